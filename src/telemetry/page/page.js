"use strict";
// The live page. Everything that comes from the server is set as text or as a number, never as markup; the policy of the document
// enforces that. The server sends a complete state first, then what changes.

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const KINDS = { w: "watches", l: "locks", f: "files", j: "jobs" };
const MAX_ROWS = 200, MAX_LANES = 14, WINDOW = 10 * 60e3;

/** Text without characters that could hide or reorder other text. */
const clean = (text) => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, "\u00b7");

/** An element with a class, attributes and children; strings become text. */
function el(tag, style, attributes, ...children) {
  const made = document.createElement(tag);
  if (style) made.className = style;
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  made.append(...children.filter((child) => child != null).map((child) => typeof child === "string" ? clean(child) : child));
  return made;
}
function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  made.append(...children);
  return made;
}
function setText(node, text) {
  text = clean(text);
  if (node.textContent !== text) node.textContent = text;
}
function button(style, label, act) {
  const made = el("button", style, { type: "button" }, label);
  made.addEventListener("click", act);
  return made;
}

// The state, as the server last told it.
let items = {}, records = [], byId = new Map(), clockOffset = 0, hasState = false;
// The width of the sections. Asking for it in the middle of a change would make the browser lay out everything at once.
let innerWidthOfMain = 0;
// What the viewer has chosen.
let chosen = null, filter = "", search = "", view = matchMedia("(max-width: 640px)").matches ? "list" : "graph";

const now = () => Date.now() + clockOffset;

/** The keys of all jobs (`j`), watches (`w`), locks (`l`) or files (`f`), in the order of the configuration. */
const keysOf = (letter) => Object.keys(items).filter((key) => key[0] === letter && /\d$/.test(key)).sort((a, b) => a.slice(1) - b.slice(1));

/** `3s`, `12m`, `5h`, `3d`. */
function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 100) return seconds + "s";
  if (seconds < 100 * 60) return Math.floor(seconds / 60) + "m";
  if (seconds < 48 * 3600) return Math.floor(seconds / 3600) + "h";
  return Math.floor(seconds / 86400) + "d";
}
const two = (number) => String(number).padStart(2, "0");
const clock = (at) => { const time = new Date(at); return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`; };
const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

// ---- words about jobs ----

function tone(job) {
  switch (job.state) {
    case "running": return job.health === "unhealthy" ? "bad" : job.health === "unknown" ? "busy" : "ok";
    case "failed": return "bad";
    case "restarting": return "warn";
    case "starting": case "stopping": return "busy";
    case "waiting": return job.failed ? "warn" : "idle";
    default: return "idle";
  }
}
const TONES = ["bad", "warn", "busy", "ok", "idle"];
const worst = (tones) => TONES.find((tone) => tones.includes(tone)) || "idle";

const short = (exit) => exit.replace(/^exited (with|on) /, "");

/** The state of a job in a few words, for its node. */
function about(job) {
  const parts = [];
  if (job.state === "running") {
    if (job.health === "unhealthy") parts.push("unhealthy");
    else if (job.health === "unknown") parts.push("not checked yet");
    else if (job.health === "healthy") parts.push("healthy");
    else parts.push("running");
    if (job.startedAt) parts.push(span(now() - job.startedAt));
  } else if (job.state === "waiting") {
    if (job.waits) parts.push("until " + job.waits.join(job.any ? " or " : " and "));
    else if (job.manual) parts.push("started by hand");
    else if (job.next) parts.push("next run in " + span(job.next.at - now()));
    else parts.push("waiting");
    if (job.failed) parts.unshift("last run failed");
  } else if (job.state === "restarting" && job.next) {
    parts.push(`${job.exit ? short(job.exit) : "restarting"}, again in ${span(job.next.at - now())}`);
  } else {
    parts.push(job.state);
    if (job.exit && job.state === "failed") parts.push(short(job.exit));
    else if (job.endedAt && job.state !== "starting" && job.state !== "stopping") parts.push(span(now() - job.endedAt) + " ago");
  }
  return parts.join(" \u00b7 ");
}
const jobs = () => keysOf("j").map((key) => items[key]);
const isShown = (job) => job.role !== "telemetry";
const matches = (job) => (!filter || groupOf(job) === filter) && (!search || job.name.toLowerCase().includes(search));
/** The chip that a job is counted in. */
const groupOf = (job) => job.state === "running" && job.health === "unhealthy" ? "unhealthy" : job.state;

// ---- nodes: jobs, replicas as one, and what jobs depend on ----

let nodes = new Map(), edges = [];

function buildNodes() {
  nodes = new Map();
  const bySource = new Map(), byKey = new Map();
  const add = (id, kind, label, key) => {
    let node = nodes.get(id);
    if (!node) nodes.set(id, node = { id, kind, label, keys: [], out: [], in: [] });
    if (key) { node.keys.push(key); byKey.set(key, node); }
    return node;
  };
  const named = (source, node) => { const all = bySource.get(source) || []; if (!all.includes(node)) all.push(node); bySource.set(source, all); };
  for (const key of keysOf("j")) {
    const item = items[key];
    if (!isShown(item)) continue;
    const node = item.replicaOf ? add("j:" + item.replicaOf, "job", item.replicaOf, key) : add(key, "job", item.name, key);
    named(item.name, node);
    if (item.replicaOf) named(item.replicaOf, node);
  }
  const used = new Set((items.edges || []).map((edge) => edge[0]));
  const targets = new Set((items.edges || []).map((edge) => edge[1]));
  for (const [letter, prefix, kind] of [["w", "watch.", "watch"], ["l", "lock.", "lock"], ["f", "file.", "file"]]) {
    for (const key of keysOf(letter)) {
      const source = prefix + items[key].name;
      if (used.has(source) || targets.has(key)) named(source, add(source, kind, source, key));
    }
  }
  edges = [];
  for (const [source, target, label] of items.edges || []) {
    const to = byKey.get(target);
    if (!to) continue;
    let from = bySource.get(source);
    if (!from) {
      const event = source === "global" ? label.replace("each ", "") : source;
      from = [add("e:" + event, "event", event)];
      bySource.set(source === "global" ? "global." + event : source, from);
    }
    for (const one of from) {
      if (one === to || one.out.some((edge) => edge.to === to && edge.label === label)) continue;
      const edge = { from: one, to, label, source };
      edges.push(edge); one.out.push(edge); to.in.push(edge);
    }
  }
}

function describe(node) {
  const own = node.keys.map((key) => items[key]);
  if (node.kind === "job" && own.length === 1 && !own[0].replicaOf) return { tone: tone(own[0]), text: about(own[0]), hollow: own[0].state !== "running" };
  if (node.kind === "job") {
    const counts = new Map();
    for (const job of own) counts.set(groupOf(job), (counts.get(groupOf(job)) || 0) + 1);
    const text = [...counts].map(([state, number]) => `${number} ${state}`).join(", ");
    return { tone: worst(own.map(tone)), text, hollow: !own.some((job) => job.state === "running") };
  }
  const item = own[0];
  if (node.kind === "watch") return watchWords(item);
  if (node.kind === "lock") return lockWords(item);
  if (node.kind === "file") return fileWords(item);
  return { tone: "idle", text: "event", hollow: true };
}
function watchWords(watch) {
  if (watch.error) return { tone: "warn", text: watch.state ? `${watch.state}; ${watch.error}` : watch.error };
  if (watch.healthy == null) return { tone: "busy", text: "no answer yet" };
  return { tone: watch.healthy ? "ok" : "warn", text: watch.state };
}
const lockWords = (lock) => lock.held ? { tone: "ok", text: `held${lock.since ? " for " + span(now() - lock.since) : ""}` } : { tone: "idle", text: "not held" + (lock.waiting ? ": " + lock.waiting : "") };
function fileWords(file) {
  if (file.state === "failed") return { tone: "bad", text: `rendering failed ${span(now() - file.failedAt)} ago` + (file.renderedAt ? "; keeps its old text" : "") };
  if (file.state === "rendered") return { tone: "ok", text: `rendered ${span(now() - file.renderedAt)} ago` };
  return { tone: "busy", text: file.waitsFor.length ? "waiting for " + file.waitsFor.map((name) => "watch." + name).join(", ") : file.state };
}

// ---- the graph ----

const WIDTH = 176, HEIGHT = 50, GAP_X = 42, GAP_Y = 12;

/** Places nodes in columns, so that arrows go to the right. Returns the size. */
function layered(all) {
  // Arrows that close a ring are left out of the order.
  const mark = new Map(), kept = new Set();
  for (const root of all) {
    const stack = [[root, 0]];
    if (mark.has(root)) continue;
    mark.set(root, 1);
    while (stack.length) {
      const top = stack[stack.length - 1], edge = top[0].out[top[1]++];
      if (!edge) { mark.set(top[0], 2); stack.pop(); continue; }
      if (mark.get(edge.to) === 1) continue;
      kept.add(edge);
      if (!mark.has(edge.to)) { mark.set(edge.to, 1); stack.push([edge.to, 0]); }
    }
  }
  for (const node of all) { node.layer = 0; node.open = node.in.filter((edge) => kept.has(edge)).length; }
  const queue = all.filter((node) => node.open === 0);
  for (let at = 0; at < queue.length; at++) {
    for (const edge of queue[at].out) {
      if (!kept.has(edge)) continue;
      edge.to.layer = Math.max(edge.to.layer, queue[at].layer + 1);
      if (--edge.to.open === 0) queue.push(edge.to);
    }
  }
  // A source stands directly before the first thing that it is for.
  for (const node of [...queue].reverse()) {
    const next = node.out.filter((edge) => kept.has(edge)).map((edge) => edge.to.layer);
    if (next.length && !node.in.some((edge) => kept.has(edge))) node.layer = Math.min(...next) - 1;
  }
  // Long arrows pass between the nodes of the columns on their way.
  let passing = 0;
  for (const edge of kept) passing += Math.max(0, edge.to.layer - edge.from.layer - 1);
  const columns = [], put = (node) => { (columns[node.layer] = columns[node.layer] || []).push(node); };
  for (const node of all) { node.before = []; node.after = []; put(node); }
  for (const edge of all.flatMap((node) => node.out)) {
    edge.via = [];
    if (!kept.has(edge)) continue;
    let last = edge.from;
    for (let layer = edge.from.layer + 1; passing < 2000 && layer < edge.to.layer; layer++) {
      const pass = { layer, pass: true, before: [last], after: [] };
      last.after.push(pass); put(pass); edge.via.push(pass); last = pass;
    }
    last.after.push(edge.to); edge.to.before.push(last);
  }
  const size = (node) => node.pass ? 10 : HEIGHT + GAP_Y;
  const place = (column) => column.forEach((node, nth) => { node.order = nth; });
  columns.forEach(place);
  for (let round = 0; round < 6; round++) {
    const forward = round % 2 === 0;
    for (const column of forward ? columns : [...columns].reverse()) {
      for (const node of column) {
        const near = forward ? node.before : node.after;
        node.weight = near.length ? near.reduce((sum, other) => sum + other.order / columns[other.layer].length, 0) / near.length : node.order / column.length;
      }
      column.sort((a, b) => a.weight - b.weight);
      place(column);
    }
  }
  const heights = columns.map((column) => column.reduce((sum, node) => sum + size(node), 0));
  const height = Math.max(...heights);
  columns.forEach((column, layer) => {
    let y = (height - heights[layer]) / 2;
    for (const node of column) { node.x = layer * (WIDTH + GAP_X); node.y = y; y += size(node); }
  });
  // Nodes move towards their neighbours where there is room.
  for (let round = 0; round < 4; round++) {
    for (const column of round % 2 ? [...columns].reverse() : columns) {
      let floor = 0;
      column.forEach((node, nth) => {
        const near = [...node.before, ...node.after];
        const wish = near.length ? near.reduce((sum, other) => sum + other.y + size(other) / 2, 0) / near.length - size(node) / 2 : node.y;
        let below = 0;
        for (let other = nth; other < column.length; other++) below += size(column[other]);
        node.y = Math.max(floor, Math.min(wish, height - below));
        floor = node.y + size(node);
      });
    }
  }
  return { width: columns.length * (WIDTH + GAP_X) - GAP_X, height: height - GAP_Y };
}

/** The nodes that arrows connect with each other, one list for each such part. */
function parts(all) {
  const seen = new Set(), found = [];
  for (const root of all) {
    if (seen.has(root)) continue;
    const part = [root];
    seen.add(root);
    for (let at = 0; at < part.length; at++) {
      for (const other of [...part[at].in.map((edge) => edge.from), ...part[at].out.map((edge) => edge.to)]) {
        if (!seen.has(other)) { seen.add(other); part.push(other); }
      }
    }
    found.push(part);
  }
  return found;
}

/** Places each part of the graph, and the parts side by side where there is room. */
function packed(all, width) {
  let x = 0, y = 0, row = 0, widest = 0;
  for (const part of parts(all)) {
    const size = layered(part);
    if (x > 0 && x + size.width > width) { x = 0; y += row + 22; row = 0; }
    for (const node of part) {
      node.x += x; node.y += y;
      for (const edge of node.out) for (const pass of edge.via) { pass.x += x; pass.y += y; }
    }
    widest = Math.max(widest, x + size.width);
    x += size.width + 30;
    row = Math.max(row, size.height);
  }
  return { width: widest, height: y + row };
}

/** Places nodes side by side. */
function grid(all, top, width) {
  const small = all.length > 150, w = small ? 156 : WIDTH, h = small ? 26 : HEIGHT, gap = small ? 6 : GAP_Y;
  const columns = Math.max(1, Math.floor((width + gap) / (w + gap)));
  all.forEach((node, nth) => {
    node.x = (nth % columns) * (w + gap); node.y = top + Math.floor(nth / columns) * (h + gap); node.w = w; node.h = h;
  });
  return { width: Math.min(columns, all.length) * (w + gap), height: top + Math.ceil(all.length / columns) * (h + gap) };
}

let building = 0;

function drawGraph() {
  const canvas = $("canvas"), arrows = $("arrows"), turn = ++building;
  const hadFocus = document.activeElement && document.activeElement.classList.contains("node") ? document.activeElement.dataset.id : null;
  for (const old of canvas.querySelectorAll(".node")) old.remove();
  arrows.replaceChildren();
  for (const node of nodes.values()) node.element = null;
  const width = innerWidthOfMain - 4;
  const picked = filter || search;
  const all = [...nodes.values()].filter((node) => !picked || node.keys.some((key) => key[0] === "j" && matches(items[key])));
  const joined = picked ? [] : all.filter((node) => node.in.length || node.out.length), alone = picked ? all : all.filter((node) => !node.in.length && !node.out.length);
  let size = { width: 0, height: 0 };
  for (const node of all) { node.w = WIDTH; node.h = HEIGHT; }
  if (joined.length) size = packed(joined, width);
  if (alone.length) {
    const rest = grid(alone, joined.length ? size.height + 26 : 0, width);
    size = { width: Math.max(size.width, rest.width), height: rest.height };
  }
  canvas.style.width = Math.max(size.width, 1) + "px";
  canvas.style.height = Math.max(size.height, 1) + "px";
  arrows.setAttribute("width", Math.max(size.width, 1));
  arrows.setAttribute("height", Math.max(size.height, 1));
  for (const edge of edges) edge.path = null;
  if (joined.length) drawArrows(arrows);
  $("legend").hidden = !joined.length;
  showEmpty(all.length);
  // A thousand nodes are added in parts, so that the page answers meanwhile.
  const ordered = [...all].sort((a, b) => a.y - b.y || a.x - b.x);
  let at = 0;
  const some = () => {
    if (turn !== building) return;
    const part = document.createDocumentFragment();
    for (const end = Math.min(ordered.length, at + 120); at < end; at++) part.append(makeNode(ordered[at], at === 0));
    canvas.append(part);
    if (at < ordered.length) requestAnimationFrame(some);
    else if (hadFocus && nodes.get(hadFocus) && nodes.get(hadFocus).element) focusNode(nodes.get(hadFocus));
  };
  some();
}

function drawArrows(arrows) {
  const part = document.createDocumentFragment();
  for (const edge of edges) {
    const points = [[edge.from.x + WIDTH, edge.from.y + HEIGHT / 2]];
    for (const pass of edge.via) points.push([pass.x, pass.y + 5], [pass.x + WIDTH, pass.y + 5]);
    points.push([edge.to.x - 7, edge.to.y + HEIGHT / 2]);
    let line = `M${points[0]}`;
    for (let nth = 1; nth < points.length; nth++) {
      const [x, y] = points[nth], [lastX, lastY] = points[nth - 1];
      // An arrow back goes around below.
      if (x <= lastX) line += `C${lastX + 40} ${lastY + 60},${x - 40} ${y + 60},${x} ${y}`;
      else { const middle = (x - lastX) / 2; line += `C${lastX + middle} ${lastY},${x - middle} ${y},${x} ${y}`; }
    }
    edge.path = svg("path", { d: line });
    const [x, y] = points[points.length - 1];
    edge.tip = svg("polygon", { points: `${x + 6},${y} ${x - 1},${y - 3.5} ${x - 1},${y + 3.5}` });
    part.append(edge.path, edge.tip);
    styleArrow(edge);
  }
  arrows.append(part);
}

function styleArrow(edge) {
  if (!edge.path) return;
  const kind = edge.label.startsWith("requires") ? "requires" : edge.label.startsWith("each") || edge.label.includes("bound") ? "each" : "once";
  // An event that may come or not holds nothing up.
  const blocks = edge.from.kind !== "event" && kind !== "each" && edge.to.keys.some((key) => items[key] && (items[key].waits || []).some((wait) => wait.startsWith(edge.source + " ")));
  const near = chosen && (edge.from.keys.includes(chosen) || edge.to.keys.includes(chosen));
  const style = kind + (blocks ? " blocks" : "") + (near ? " near" : "");
  if (edge.style !== style || edge.path.getAttribute("class") !== style) {
    edge.style = style;
    edge.path.setAttribute("class", style);
    edge.tip.setAttribute("class", "tip" + (blocks ? " blocks" : ""));
  }
}

function makeNode(node, isFirst) {
  const made = button("node", null, () => { focusNode(node); choose(node.keys.length > 1 ? node.id : node.keys[0]); });
  made.dataset.id = node.id;
  made.tabIndex = isFirst ? 0 : -1;
  made.style.left = node.x + "px"; made.style.top = node.y + "px"; made.style.width = node.w + "px"; made.style.height = node.h + "px";
  node.what = el("span", "what"); node.how = el("span", "how");
  made.append(node.what, node.how);
  node.element = made;
  node.isSmall = node.h < HEIGHT;
  dress(node);
  return made;
}
function dress(node) {
  if (!node.element) return;
  const { tone, text, hollow } = describe(node);
  const name = node.label + (node.keys.length > 1 ? ` \u00d7${node.keys.length}` : "");
  const isChosen = chosen && (chosen === node.id || node.keys.includes(chosen));
  const style = "node " + tone + (hollow ? " hollow" : "") + (node.kind === "job" ? "" : " outside") + (node.isSmall ? " small" : "") + (isChosen ? " chosen" : "");
  if (node.element.className !== style) node.element.className = style;
  setText(node.what, name);
  setText(node.how, text);
  const label = clean(`${name}: ${text}`);
  if (node.element.getAttribute("aria-label") !== label) { node.element.setAttribute("aria-label", label); node.element.title = label; }
}
function focusNode(node) {
  for (const other of $("canvas").querySelectorAll('.node[tabindex="0"]')) other.tabIndex = -1;
  node.element.tabIndex = 0;
  node.element.focus();
}

$("canvas").addEventListener("keydown", (event) => {
  const from = nodes.get(event.target.dataset.id);
  const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!from || (!move && event.key !== "Home" && event.key !== "End")) return;
  event.preventDefault();
  const all = [...nodes.values()].filter((node) => node.element);
  if (!move) { focusNode(event.key === "Home" ? all[0] : all[all.length - 1]); return; }
  let best = null, least = Infinity;
  for (const node of all) {
    const x = node.x - from.x, y = node.y - from.y, along = x * move[0] + y * move[1], across = Math.abs(x * move[1]) + Math.abs(y * move[0]);
    const distance = along + 3 * across;
    if (node !== from && along > 4 && distance < least) [best, least] = [node, distance];
  }
  if (best) focusNode(best);
});

// ---- the list ----

let rows = new Map();

function drawList() {
  const turn = ++building, body = $("rows");
  body.replaceChildren();
  rows = new Map();
  const keys = keysOf("j").filter((key) => isShown(items[key]) && matches(items[key]));
  $("legend").hidden = true;
  showEmpty(keys.length);
  let at = 0;
  const some = () => {
    if (turn !== building) return;
    const part = document.createDocumentFragment();
    for (const end = Math.min(keys.length, at + 100); at < end; at++) part.append(makeRow(keys[at]));
    body.append(part);
    if (at < keys.length) requestAnimationFrame(some);
  };
  some();
}
function makeRow(key) {
  const row = { line: el("tr"), name: button("link", items[key].name, () => choose(key)), state: el("td", "state"), since: el("td", "note"), restarts: el("td", "number"), about: el("td", "note") };
  row.line.append(el("td", "", {}, row.name), row.state, row.since, row.restarts, row.about);
  rows.set(key, row);
  dressRow(key);
  return row.line;
}
function dressRow(key) {
  const row = rows.get(key), job = items[key];
  if (!row || !job) return;
  const style = tone(job) + (chosen === key ? " chosen" : "");
  if (row.line.className !== style) row.line.className = style;
  const since = job.state === "running" ? job.startedAt : job.endedAt;
  setText(row.state, job.state + (job.state === "running" && job.health !== "none" ? ", " + job.health : ""));
  setText(row.since, since ? span(now() - since) : "");
  setText(row.restarts, String(job.restarts));
  setText(row.about, aboutInList(job));
}
function aboutInList(job) {
  if (job.state === "waiting") return about(job);
  if (job.state === "restarting") return about(job);
  if (job.says) return "says: " + job.says;
  if (job.exit && job.state !== "running") return job.exit + (job.failedRuns > 1 ? `, ${job.failedRuns} failures in a row` : "");
  if (job.service) return serviceWords(job.service).text;
  return job.action || "";
}

function showEmpty(number) {
  const note = $("empty");
  note.hidden = number > 0;
  if (number === 0) setText(note, !hasState ? "Waiting for the supervisor \u2026" : filter || search ? "No job matches." : "The configuration has no jobs.");
}

// ---- filters, header, cards ----

const ORDER = ["failed", "unhealthy", "restarting", "starting", "running", "stopping", "waiting", "complete", "stopped", "skipped"];
let chips = "";

function drawHeader() {
  const head = items.head;
  if (!head) return;
  setText($("version"), head.version);
  const shown = jobs().filter(isShown), counts = new Map();
  for (const job of shown) counts.set(groupOf(job), (counts.get(groupOf(job)) || 0) + 1);
  const bad = (counts.get("failed") || 0) + (counts.get("unhealthy") || 0);
  const state = head.phase !== "running" ? head.phase : head.maintenance ? "maintenance mode" : head.notReady.length ? "not ready" : "ready";
  const style = state === "ready" ? (bad ? "warn" : "ok") : state === "not ready" ? "bad" : "busy";
  const why = head.phase === "running" && !head.maintenance && head.notReady.length ? head.notReady.slice(0, 3).join("; ") + (head.notReady.length > 3 ? " \u2026" : "") : "";
  const overall = $("overall");
  // A screen reader announces this, so it has no time.
  if (overall.dataset.text !== style + state + why) {
    overall.dataset.text = style + state + why;
    overall.replaceChildren(el("strong", "state " + style, {}, el("span", "dot"), state), clean(why));
  }
  setText($("up"), `${count(shown.length, "job")}, up ${span(now() - head.startedAt)}`);
  document.title = (bad ? `${bad} in trouble \u2013 ` : "") + "containerpilot";
  // A filter stays while it is pressed, also without a job.
  const wanted = ORDER.filter((name) => counts.has(name) || name === filter);
  const key = wanted.map((name) => name + counts.get(name)).join() + filter;
  if (key === chips) return;
  chips = key;
  const focused = document.activeElement && document.activeElement.dataset.filter;
  $("filters").replaceChildren(...wanted.map((name) => {
    const style = { failed: "bad", unhealthy: "bad", restarting: "warn", running: "ok", starting: "busy", stopping: "busy" }[name] || "idle";
    const chip = button("chip " + style, null, () => { filter = filter === name ? "" : name; draw(); });
    chip.append(el("span", "dot"), `${counts.get(name) || 0} ${name}`);
    chip.dataset.filter = name;
    chip.setAttribute("aria-pressed", String(filter === name));
    return chip;
  }));
  if (focused) { const again = $("filters").querySelector(`[data-filter="${CSS.escape(focused)}"]`); if (again) again.focus(); }
}

function serviceWords(service) {
  const where = `${service.address}:${service.port}`;
  // That Consul is away is said once.
  if (service.error && !items.head.catalog.error) return { tone: "warn", text: `${where}, ${service.wanted} wanted: ${service.error}` };
  if (service.confirmed == null) return { tone: service.wanted === "passing" ? "ok" : "idle", text: `${where}, ${service.wanted === "absent" ? "not advertised" : service.wanted}` };
  if (service.confirmed === service.wanted) return { tone: service.wanted === "absent" ? "idle" : service.wanted === "passing" ? "ok" : "warn", text: `${where}, ${service.wanted === "absent" ? "not registered" : "registered as " + service.wanted}` };
  return { tone: "busy", text: `${where}, ${service.wanted} wanted, ${service.confirmed === "unknown" ? "not confirmed yet" : service.confirmed + " now"}` };
}

let cardTexts = [];

function drawCards() {
  const head = items.head, cards = [];
  if (!head) return;
  const catalog = head.catalog;
  const services = keysOf("j").filter((key) => items[key].service && (catalog.kind === "consul" || isShown(items[key]))).map((key) => [key, items[key].name, serviceWords(items[key].service)]);
  if (catalog.kind === "consul") {
    const state = catalog.up === false ? { tone: "bad", text: `does not answer${catalog.since ? " for " + span(now() - catalog.since) : ""}${catalog.error ? ": " + catalog.error : ""}` } : catalog.up ? { tone: "ok", text: "answers" } : { tone: "busy", text: "no answer yet" };
    cards.push(["Catalog", [[null, "Consul", state], ...services]]);
  } else if (services.length) cards.push(["Services (embedded catalog)", services]);
  for (const [letter, title, words] of [["w", "Watches", watchWords], ["l", "Locks", lockWords], ["f", "Files", fileWords]]) {
    const own = keysOf(letter).map((key) => [key, items[key].name, words(items[key])]);
    if (own.length) cards.push([title, own]);
  }
  $("rest").hidden = cards.length === 0;
  const key = JSON.stringify(cards.map(([title, list]) => [title, list.map(([key, name]) => [key, name])]));
  if ($("cards").dataset.key !== key) {
    $("cards").dataset.key = key;
    cardTexts = [];
    $("cards").replaceChildren(...cards.map(([title, list]) => {
      const lines = list.slice(0, 60).map(([key, name]) => {
        const how = el("span", "how"), line = el("li", "", {}, el("span", "dot"), el("div", "", {}, key ? button("link", name, () => choose(key)) : el("strong", "", {}, name), " ", how));
        cardTexts.push([line, how]);
        return line;
      });
      if (list.length > 60) lines.push(el("li", "note", {}, `and ${list.length - 60} more`));
      return el("div", "", {}, el("h3", "", {}, title), el("ul", "", {}, ...lines));
    }));
  }
  let at = 0;
  for (const [, list] of cards) for (const [, , words] of list.slice(0, 60)) {
    const [line, how] = cardTexts[at++];
    if (line.className !== words.tone) line.className = words.tone;
    setText(how, words.text);
  }
}

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

// ---- the panel ----

let opener = null, asked = 0, usage = new Map(), lastDetail = null;

function choose(key, quietly) {
  if (!items[key] && !nodes.has(key)) return;
  const before = chosen;
  if (!quietly) opener = document.activeElement;
  chosen = key;
  lastDetail = null;
  mark(before); mark(key);
  const panel = $("detail");
  panel.hidden = false;
  drawPanel();
  if (!quietly) panel.focus();
  const name = items[key] ? items[key].id || items[key].name : nodes.get(key).label;
  history.replaceState(null, "", "#" + (KINDS[key[0]] && items[key] ? KINDS[key[0]] : "jobs") + "/" + encodeURIComponent(name));
  ask();
}
function closePanel() {
  if (!chosen) return;
  const before = chosen;
  chosen = null;
  mark(before);
  $("detail").hidden = true;
  history.replaceState(null, "", location.pathname + location.search);
  const node = [...nodes.values()].find((node) => node.id === before || node.keys.includes(before));
  const target = opener && opener.isConnected && opener !== document.body ? opener : view === "graph" && node && node.element ? node.element : rows.get(before) ? rows.get(before).name : $("jobs");
  target.focus();
}
function mark(key) {
  if (!key) return;
  for (const node of nodes.values()) if (node.id === key || node.keys.includes(key)) { dress(node); node.in.forEach(styleArrow); node.out.forEach(styleArrow); }
  dressRow(key);
}

async function ask() {
  const key = chosen, turn = ++asked;
  if (!key || !items[key] || document.hidden) return;
  let told = null;
  try {
    const response = await fetch(`page/${KINDS[key[0]]}/${encodeURIComponent(items[key].id || items[key].name)}`, { cache: "no-store" });
    if (response.ok) told = await response.json();
  } catch { /* The next attempt is in two seconds. */ }
  if (turn !== asked || chosen !== key) return;
  if (told) {
    if (told.usage) {
      const known = usage.get(key) || [];
      const last = known[known.length - 1];
      if (last && last.run !== told.usage.run) known.length = 0;
      if (!last || last.at !== told.usage.at) known.push(told.usage);
      if (known.length > 150) known.shift();
      usage.set(key, known);
    }
    lastDetail = told;
    drawPanel();
  }
  setTimeout(() => { if (turn === asked) ask(); }, 2000);
}

const facts = (pairs) => el("dl", "", {}, ...pairs.filter(([, value]) => value != null && value !== "").flatMap(([name, value]) => [el("dt", "", {}, name), el("dd", "", {}, value)]));

function drawPanel() {
  const key = chosen, item = items[key], group = item ? null : nodes.get(key);
  if (!key || (!item && !group)) { closePanel(); return; }
  const body = $("detail-body"), parts = [];
  const kept = body.querySelector("pre.output"), scroll = kept ? [kept.scrollTop, kept.scrollTop + kept.clientHeight >= kept.scrollHeight - 4] : null;
  const selected = getSelection();
  // What is selected stays until it is not.
  if (!selected.isCollapsed && body.contains(selected.anchorNode)) return;
  const stops = () => [...body.querySelectorAll("button, [tabindex]")], focused = stops().indexOf(document.activeElement);
  if (group) {
    setText($("detail-title"), `${group.label} \u00d7${group.keys.length}`);
    const words = describe(group);
    parts.push(el("p", "state " + words.tone, {}, el("span", "dot"), words.text), el("h3", "", {}, "Replicas"));
    parts.push(el("div", "picks", {}, ...group.keys.map((one) => {
      const pick = button("chip " + tone(items[one]), null, () => choose(one, true));
      pick.append(el("span", "dot"), clean(items[one].name));
      return pick;
    })));
  } else {
    const prefix = PREFIX[key[0]];
    setText($("detail-title"), prefix + item.name);
    const words = key[0] === "j" ? { tone: tone(item), text: item.state + (item.state === "running" && item.health !== "none" ? ", " + item.health : "") } : key[0] === "w" ? watchWords(item) : key[0] === "l" ? lockWords(item) : fileWords(item);
    const state = el("p", "state " + words.tone, {}, el("span", "dot"), words.text);
    parts.push(state);
    const told = lastDetail;
    if (told) {
      const lines = el("ol", "", { id: "explanation" });
      lines.classList.add(words.tone);
      for (const sentence of told.sentences) {
        const text = sentence.trimStart(), line = el("li", "", {}, text);
        line.style.marginLeft = Math.min(6, (sentence.length - text.length) / 2) * 12 + "px";
        lines.append(line);
      }
      parts.push(lines);
    }
    if (key[0] === "j") parts.push(...jobParts(key, item, told));
    const own = records.filter((record) => record.source === prefix + item.name && !isEcho(record)).slice(-8).reverse();
    if (own.length) {
      parts.push(el("h3", "", {}, "Its last events"));
      parts.push(el("dl", "", {}, ...own.flatMap((record) => [el("dt", "", {}, clock(record.at)), el("dd", recordTone(record), {}, el("span", "state", {}, record.what), " ", el("span", "note why", {}, ...why(record)))])));
    }
  }
  body.replaceChildren(...parts);
  const output = body.querySelector("pre.output");
  if (output) output.scrollTop = !scroll || scroll[1] ? output.scrollHeight : scroll[0];
  if (focused >= 0 && stops()[focused]) stops()[focused].focus({ preventScroll: true });
}

function jobParts(key, job, told) {
  const parts = [], known = usage.get(key) || [];
  if (told && told.usage && job.pid) {
    const cpu = known.slice(1).map((sample, nth) => Math.max(0, (sample.cpuSeconds - known[nth].cpuSeconds) / Math.max(0.001, (sample.at - known[nth].at) / 1000)) * 100);
    const memory = known.map((sample) => sample.memoryBytes / 1048576);
    const latest = (list, unit, digits) => list.length ? list[list.length - 1].toFixed(digits) + unit : "\u2026";
    parts.push(el("h3", "", {}, "Usage since this panel was opened"), spark("CPU", cpu, latest(cpu, " %", 1), 5), spark("Memory", memory, latest(memory, " MiB", 1), 1));
  }
  const [success, failure, timeout, stopped] = job.runs;
  const runs = [[success, "succeeded"], [failure, "failed"], [timeout, "timed out"], [stopped, "stopped"]].filter(([number]) => number).map(([number, word]) => `${number} ${word}`).join(", ");
  const checks = (job.checks || []).map((check) => `${check.name}: ${check.passed == null ? "not run yet" : check.passed ? "passed" : `failed (${check.failures} in a row, unhealthy at ${check.needed})`}`);
  parts.push(el("h3", "", {}, "Facts"), facts([
    ["Process", job.pid ? `pid ${job.pid}` : null],
    ["Started", job.startedAt ? `${clock(job.startedAt)}, ${span(now() - job.startedAt)} ago` : "never"],
    ["Started by", { hand: "hand", interval: "its interval", cron: "its schedule", action: "an action" }[job.startedBy] || null],
    ["Last exit", job.exit && job.endedAt ? `${job.exit}, ${span(now() - job.endedAt)} ago` : job.exit],
    ["Restarts", String(job.restarts)],
    ["Ended runs", runs || "none"],
    ["Checks", checks.join("; ")],
    ["Service", job.service ? serviceWords(job.service).text : null],
    ["Schedule", job.schedule], ["Action", job.action], ["It says", job.says],
    ["Kind", job.role === "job" ? null : job.role], ["Groups", (job.groups || []).join(", ")], ["Replica of", job.replicaOf],
  ]));
  if (told && told.command) parts.push(el("h3", "", {}, "Command"), el("pre", "", { tabindex: "0" }, told.command));
  if (told && told.lines) {
    const output = el("pre", "output", { tabindex: "0", "aria-label": "Last lines of output" });
    output.textContent = told.lines.map(clean).join("\n") || "(nothing yet)";
    parts.push(el("h3", "", {}, "Last lines of output"), output);
  } else if (told) {
    parts.push(el("h3", "", {}, "Output"), el("p", "note", {}, `Not shown on this page. In the container: containerpilot logs ${job.id}`));
  }
  return parts;
}
function spark(title, values, latest, least) {
  const most = Math.max(least, ...values) * 1.1, shown = values.slice(-120);
  const points = shown.map((value, nth) => `${shown.length < 2 ? 100 : (nth / (shown.length - 1) * 100).toFixed(2)},${(30 - value / most * 28).toFixed(2)}`);
  const drawing = svg("svg", { viewBox: "0 0 100 32", preserveAspectRatio: "none", role: "img", "aria-label": clean(`${title}: ${latest}`) });
  if (points.length > 1) drawing.append(svg("polygon", { class: "area", points: `0,32 ${points.join(" ")} 100,32` }), svg("polyline", { points: points.join(" ") }));
  return el("div", "spark", {}, el("span", "note", {}, title), drawing, el("output", "", {}, latest));
}

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
  items = message.items; hasState = true;
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
  Object.assign(items, message.items);
  if (message.items.edges) buildNodes();
  for (const record of message.records) { records.push(record); if (record.id != null) byId.set(record.id, record); }
  for (const old of records.splice(0, Math.max(0, records.length - 400))) byId.delete(old.id);
  if (message.records.length) { drawRecords(message.records); lanesSoon(); }
  const keys = Object.keys(message.items);
  if (message.items.edges || ((filter || search) && keys.some((key) => key[0] === "j"))) draw();
  else if (view === "graph") {
    for (const node of nodes.values()) if (node.keys.some((key) => key in message.items)) { dress(node); node.in.forEach(styleArrow); }
  } else keys.forEach(dressRow);
  drawHeader();
  if (keys.some((key) => key[0] !== "j") || keys.some((key) => key[0] === "j" && items[key].service)) drawCards();
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
  resized = setTimeout(() => { if (hasState) { if (view === "graph") drawGraph(); drawLanes(); } }, 120);
}).observe($("jobs"));

innerWidthOfMain = $("graph").clientWidth || $("lanes").clientWidth;
setInterval(tick, 1000);
draw();
connect();
