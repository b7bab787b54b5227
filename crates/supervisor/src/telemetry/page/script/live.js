// ---- drawing ----

function draw() {
  $("graph").hidden = view !== "graph";
  $("list").hidden = view !== "list";
  $("as-graph").setAttribute("aria-pressed", String(view === "graph"));
  $("as-list").setAttribute("aria-pressed", String(view === "list"));
  drawHeader();
  if (view === "graph") drawGraph(); else drawList();
}

function tick() {
  if (document.hidden || !hasState) return;
  drawHeader(); drawCards();
  if (view === "graph") for (const node of nodes.values()) dress(node);
  else for (const key of rows.keys()) dressRow(key);
  lanesSoon();
}

function complete(message) {
  clockOffset = message.now - Date.now();
  const before = chosen && items[chosen] ? chosen[0] + items[chosen].name : null;
  items = Object.fromEntries(Object.entries(message.items).map(([key, item]) => [key, read(item)])); hasState = true;
  bySource = new Map(["j", "w", "l", "f"].flatMap((letter) => keysOf(letter).map((key) => [PREFIX[letter] + items[key].name, key])));
  buildNodes();
  if (message.records.length || !records.length) {
    records = message.records;
    byId = new Map(records.filter((record) => record.id != null).map((record) => [record.id, record]));
    drawRecords();
  }
  draw(); drawCards(); lanesSoon();
  // After a reload the same job may have another key.
  if (chosen) {
    const again = nodes.has(chosen) && !items[chosen] ? chosen : Object.keys(KINDS).flatMap(keysOf).find((key) => key[0] + items[key].name === before);
    if (again) { chosen = again; mark(again); drawPanel(); ask(); } else closePanel();
  } else fromHash();
}

function change(message) {
  for (const key in message.items) items[key] = read(message.items[key]);
  if (message.items.graph) buildNodes();
  for (const record of message.records) { records.push(record); if (record.id != null) byId.set(record.id, record); }
  for (const old of records.splice(0, Math.max(0, records.length - 400))) byId.delete(old.id);
  if (message.records.length) { drawRecords(message.records); lanesSoon(); }
  const keys = Object.keys(message.items);
  if (message.items.graph || ((filter || search) && keys.some((key) => key[0] === "j"))) draw();
  else if (view === "graph") {
    for (const node of nodes.values()) if (node.keys.some((key) => key in message.items)) { dress(node); node.in.forEach(styleArrow); }
  } else keys.forEach(dressRow);
  drawHeader();
  if (keys.some((key) => key[0] !== "j") || keys.some((key) => key[0] === "j" && items[key].address)) drawCards();
  if (chosen && (chosen in message.items || nodes.has(chosen) || message.records.length)) {
    drawPanel();
    if (chosen in message.items) ask();
  }
}

function fromHash() {
  const [kind, name] = location.hash.slice(1).split("/");
  if (!name) return;
  let wanted = "";
  try { wanted = decodeURIComponent(name); } catch { return; }
  const key = Object.keys(KINDS).flatMap(keysOf).find((key) => KINDS[key[0]] === kind && (items[key].id || items[key].name) === wanted);
  if (key) choose(key, true);
}

// ---- the connection ----

let stream = null, polling = 0;

function live(text, isOn) {
  setText($("live"), text);
  $("live").classList.toggle("on", Boolean(isOn));
}
function connect() {
  disconnect();
  stream = new EventSource("page/events");
  stream.addEventListener("complete", (event) => { live("live", true); complete(JSON.parse(event.data)); });
  stream.addEventListener("change", (event) => change(JSON.parse(event.data)));
  stream.onerror = () => {
    if (stream.readyState !== EventSource.CLOSED) { live("connection lost, connecting again \u2026"); return; }
    // No stream is free, or the server has gone: the state is requested from time to time.
    disconnect();
    poll();
  };
}
async function poll() {
  let isOn = false;
  try {
    const response = await fetch("page/state", { cache: "no-store" });
    if (response.ok) { complete(await response.json()); isOn = true; }
  } catch { /* The next attempt follows. */ }
  live(isOn ? "too many viewers: updated every 5 s" : "the supervisor does not answer, trying again \u2026");
  polling = setTimeout(() => { connect(); }, 5000);
}
function disconnect() {
  if (stream) stream.close();
  stream = null;
  clearTimeout(polling);
}
document.addEventListener("visibilitychange", () => {
  // A page that is not seen costs the supervisor nothing.
  if (document.hidden) { disconnect(); live("paused"); } else connect();
});

// ---- input ----

$("close").addEventListener("click", closePanel);
$("as-graph").addEventListener("click", () => { view = "graph"; draw(); });
$("as-list").addEventListener("click", () => { view = "list"; draw(); });
$("search").addEventListener("input", () => { search = $("search").value.trim().toLowerCase(); draw(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (document.activeElement === $("search") && search) { $("search").value = ""; search = ""; draw(); }
    else closePanel();
  } else if (event.key === "/" && !event.ctrlKey && !event.metaKey && document.activeElement !== $("search")) {
    event.preventDefault();
    $("search").focus();
  }
});
addEventListener("hashchange", fromHash);
let resized = 0;
new ResizeObserver(([entry]) => {
  if (Math.abs(entry.contentRect.width - innerWidthOfMain) < 8) return;
  innerWidthOfMain = entry.contentRect.width;
  clearTimeout(resized);
  resized = setTimeout(() => { if (hasState) drawLanes(); }, 120);
}).observe($("jobs"));

innerWidthOfMain = $("graph").clientWidth || $("lanes").clientWidth;
setInterval(tick, 1000);
draw();
connect();
