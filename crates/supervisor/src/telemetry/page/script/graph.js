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
  $("legend").hidden = !joined.length;
  showEmpty(all.length);
  // A thousand nodes are added in parts, so that the page answers meanwhile.
  const ordered = [...all].sort((a, b) => a.y - b.y || a.x - b.x);
  let at = 0;
  const some = () => {
    if (turn !== building) return;
    const part = document.createDocumentFragment(), own = [];
    for (const end = Math.min(ordered.length, at + 120); at < end; at++) {
      part.append(makeNode(ordered[at], at === 0));
      if (joined.length) own.push(...ordered[at].in);
    }
    canvas.append(part);
    drawArrows(arrows, own);
    if (at < ordered.length) requestAnimationFrame(some);
    else if (hadFocus && nodes.get(hadFocus) && nodes.get(hadFocus).element) focusNode(nodes.get(hadFocus));
  };
  some();
}

function drawArrows(arrows, some) {
  const part = document.createDocumentFragment();
  for (const edge of some) {
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
  const blocks = edge.from.kind !== "event" && kind !== "each" && edge.to.keys.some((key) => waitsOn(items[key], edge.source));
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
