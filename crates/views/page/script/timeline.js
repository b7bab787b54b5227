// ---- the timeline ----

const GOOD = ["healthy", "exitSuccess", "acquired", "ready"];
const recordTone = (record) => record.bad ? "bad" : GOOD.includes(record.code) ? "ok" : record.code === "start" ? "busy" : "idle";
/** `becameHealthy` comes together with `healthy`. */
const isEcho = (record) => record.code.startsWith("became");
const sourceOf = (record) => record.source === "global" ? "supervisor" : record.source;
const PREFIX = { j: "", w: "watch.", l: "lock.", f: "file." };
let bySource = new Map();
const keyOf = (source) => bySource.get(source);

/** Why something happened, as nodes. */
function why(record) {
  const cause = record.cause != null ? byId.get(record.cause) : null;
  const link = cause ? button("", `${cause.source === "global" ? "" : cause.source + " "}${cause.what}`, () => showCause(cause)) : null;
  if (record.code === "start") {
    if (record.by === "restart") return ["restarted by its policy"];
    if (record.by === "hand") return ["started by hand or an action"];
    if (record.by) return [`started by its ${record.by}`];
    return link ? ["because of ", link] : [];
  }
  if (record.by) return [`ended by ${record.by}`];
  if (record.code === "exitSuccess" || record.code === "exitFailed") return link ? ["this run was started by ", link] : [];
  return link ? ["because of ", link] : [];
}
// The ticks of a periodic job are one line each for its starts and its exits, with their number.
let ticks = new Map();
function fold(record) {
  const isTick = record.code === "start" ? record.by === "interval" || record.by === "schedule" : record.code === "exitSuccess" && ticks.has(record.source + " start");
  if (!isTick) return 1;
  const name = record.source + " " + record.code, before = ticks.get(name);
  if (before) before.line.remove();
  ticks.set(name, { line: record.line, number: before ? before.number + 1 : 1 });
  return ticks.get(name).number;
}
function makeRecord(record) {
  const key = keyOf(record.source), reasons = why(record), number = el("span", "why");
  const line = el("li", recordTone(record), {},
    el("time", "", { datetime: new Date(record.at).toISOString() }, clock(record.at)),
    key ? button("link", sourceOf(record), () => choose(key)) : el("span", "", {}, sourceOf(record)),
    el("span", "", {}, el("span", "what", {}, record.what), reasons.length ? " \u2014 " : "", el("span", "why", {}, ...reasons), number));
  record.line = line;
  const times = fold(record);
  if (times > 1) setText(number, ` (${times} times)`);
  return line;
}
function showCause(cause) {
  if (!cause.line || !cause.line.isConnected) return;
  for (const old of $("records").querySelectorAll(".cause")) old.classList.remove("cause");
  cause.line.classList.add("cause");
  cause.line.scrollIntoView({ block: "center" });
}
function drawRecords(fresh) {
  const list = $("records");
  if (!fresh) { list.replaceChildren(); ticks = new Map(); fresh = records.slice(-MAX_ROWS); }
  const part = document.createDocumentFragment();
  for (const record of fresh) if (!isEcho(record)) part.prepend(makeRecord(record));
  const atTop = list.scrollTop < 4;
  list.prepend(part);
  if (atTop) list.scrollTop = 0;
  while (list.childElementCount > MAX_ROWS) list.lastElementChild.remove();
}

let lanesDrawn = 0, lanesDue = 0;

function drawLanes() {
  lanesDrawn = Date.now();
  const box = $("lanes"), width = innerWidthOfMain, end = now();
  const begin = Math.max(end - WINDOW, Math.min(...records.map((record) => record.at), end - 20e3));
  const recent = records.filter((record) => record.at >= begin && record.source !== "global" && !record.source.startsWith("SIG"));
  const order = new Map([...bySource.keys()].reverse().map((source, nth) => [source, nth]));
  const sources = [...new Set(recent.map((record) => record.source).reverse())].slice(0, MAX_LANES).sort((a, b) => (order.get(b) ?? -1) - (order.get(a) ?? -1));
  $("window").textContent = records.length ? `the last ${span(end - begin)}` : "";
  if (!sources.length || width < 200) { box.replaceChildren(); return; }
  const left = Math.min(170, width * 0.3), row = 20, x = (at) => left + (Math.max(at, begin) - begin) / (end - begin) * (width - left - 8);
  const drawing = svg("svg", { height: sources.length * row + 20, viewBox: `0 0 ${width} ${sources.length * row + 20}` });
  const steps = [1e3, 2e3, 5e3, 10e3, 30e3, 60e3, 120e3, 300e3], step = steps.find((step) => (end - begin) / step <= Math.max(2, width / 160)) || 300e3;
  for (let at = Math.ceil(begin / step) * step; at < end; at += step) {
    const label = svg("text", { x: x(at), y: sources.length * row + 14, "text-anchor": x(at) > width - 30 ? "end" : "middle" });
    label.textContent = clock(at);
    drawing.append(svg("line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: sources.length * row }), label);
  }
  const most = Math.floor((left - 10) / 6.4);
  sources.forEach((source, nth) => {
    const name = svg("text", { x: left - 8, y: nth * row + 14, "text-anchor": "end" });
    name.textContent = clean(source.length > most ? source.slice(0, most - 1) + "\u2026" : source);
    drawing.append(name);
    const key = keyOf(source), job = key && key[0] === "j" ? items[key] : null;
    let since = null;
    const bar = (from, to, style) => drawing.append(svg("rect", { class: style, x: x(from), y: nth * row + 5, width: Math.max(2, x(to) - x(from)), height: 10, rx: 2 }));
    const own = records.filter((record) => record.source === source);
    for (const record of own) {
      if (record.code === "start") since = record.at;
      else if (record.code === "exitSuccess" || record.code === "exitFailed") {
        if (record.at >= begin) bar(since == null ? begin : since, record.at, record.code === "exitFailed" && record.bad ? "bar-failed" : "bar-done");
        since = null;
      }
    }
    if (since != null || (job && job.pid && job.startedAt && !own.some((record) => record.code === "start"))) bar(since == null ? job.startedAt : since, end, "bar-run");
    for (const record of own) {
      if (record.at < begin || record.code === "start" || record.code === "exitSuccess" || isEcho(record)) continue;
      const mark = svg("circle", { class: "mark " + recordTone(record), cx: x(record.at), cy: nth * row + 10, r: 3.2 });
      const title = svg("title", {});
      title.textContent = clean(`${clock(record.at)} ${record.source} ${record.what}`);
      mark.append(title);
      drawing.append(mark);
    }
  });
  box.replaceChildren(drawing);
}
/** At most once a second, and not in the middle of many changes. */
function lanesSoon() {
  if (lanesDue) return;
  lanesDue = setTimeout(() => { lanesDue = 0; drawLanes(); }, Math.max(50, 1000 - (Date.now() - lanesDrawn)));
}
