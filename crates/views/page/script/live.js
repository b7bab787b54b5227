// ---- the time ----

let clockOffset = 0;
const now = () => Date.now() + clockOffset;
function setClock(at) { clockOffset = at - Date.now(); }
const clock = (at) => { const time = new Date(at); return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`; };

function tick() {
  if (document.hidden || !hasState) return;
  drawHeader(); drawCards();
  if (view === "graph") for (const node of nodes.values()) dress(node);
  else for (const key of rows.keys()) dressRow(key);
  lanesSoon();
}

/** The explanation of an item; nothing if the server does not answer. The next attempt is in two seconds. */
async function explained(key) {
  try {
    const response = await fetch(`page/${KINDS[key[0]]}/${encodeURIComponent(items[key].id || items[key].name)}`, { cache: "no-store" });
    return response.ok ? await response.json() : null;
  } catch { return null; }
}
const withoutOutput = (job) => `Not shown on this page. In the container: containerpilot logs ${job.id}`;

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

setInterval(tick, 1000);
draw();
connect();
