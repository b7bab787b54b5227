// ---- drawing ----

function draw() {
  $("graph").hidden = view !== "graph";
  $("list").hidden = view !== "list";
  $("as-graph").setAttribute("aria-pressed", String(view === "graph"));
  $("as-list").setAttribute("aria-pressed", String(view === "list"));
  drawHeader();
  if (view === "graph") drawGraph(); else drawList();
}

function complete(message) {
  setClock(message.now);
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
