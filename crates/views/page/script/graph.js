// ---- the graph ----

let building = 0;

/** Draws what the server has placed. The browser puts the parts side by side, and after them the nodes without arrows. */
function drawGraph() {
  const canvas = $("canvas"), turn = ++building;
  const hadFocus = document.activeElement && document.activeElement.classList.contains("node") ? document.activeElement.dataset.id : null;
  for (const node of nodes.values()) node.element = null;
  const picked = filter || search, alone = el("div", "alone"), boxes = [], ordered = [];
  for (const part of parts) {
    for (const edge of part.edges) edge.path = null;
    if (picked || !part.edges.length) {
      ordered.push(...part.nodes.filter((node) => !picked || node.keys.some((key) => key[0] === "j" && matches(items[key]))).map((node) => [node, alone]));
      continue;
    }
    const box = el("div", "part");
    box.style.width = part.width + "px"; box.style.height = part.height + "px";
    box.append(svg("svg", { class: "arrows", width: part.width, height: part.height, "aria-hidden": "true" }));
    boxes.push(box);
    ordered.push(...[...part.nodes].sort((a, b) => a.x - b.x || a.y - b.y).map((node) => [node, box]));
  }
  const last = ordered.filter(([, box]) => box === alone);
  const all = [...ordered.filter(([, box]) => box !== alone), ...last];
  alone.classList.toggle("small", last.length > 150);
  canvas.replaceChildren(...boxes, alone);
  $("legend").hidden = !boxes.length;
  showEmpty(all.length);
  // A thousand nodes are added in steps, so that the page answers meanwhile.
  let at = 0;
  const some = () => {
    if (turn !== building) return;
    for (const end = Math.min(all.length, at + 120); at < end; at++) {
      const [node, box] = all[at];
      box.append(makeNode(node, at === 0, box === alone));
      if (box !== alone) drawArrows(box.firstChild, node.in);
    }
    if (at < all.length) requestAnimationFrame(some);
    else if (hadFocus && nodes.get(hadFocus) && nodes.get(hadFocus).element) focusNode(nodes.get(hadFocus));
  };
  some();
}

function drawArrows(drawing, edges) {
  for (const edge of edges) {
    const [...points] = edge.points, y = points.pop(), x = points.pop();
    // An arrow of a ring leads back, to the right side of its node.
    const way = x < points[points.length - 2] ? -1 : 1;
    points.push(x - 7 * way, y);
    let line = `M${points[0]} ${points[1]}`;
    for (let at = 2; at < points.length; at += 2) {
      const [lastX, lastY, nextX, nextY] = points.slice(at - 2, at + 2), middle = (lastX + nextX) / 2;
      line += `C${middle} ${lastY},${middle} ${nextY},${nextX} ${nextY}`;
    }
    edge.path = svg("path", { d: line });
    edge.tip = svg("polygon", { points: `${x - way},${y} ${x - 8 * way},${y - 3.5} ${x - 8 * way},${y + 3.5}` });
    drawing.append(edge.path, edge.tip);
    styleArrow(edge);
  }
}

function styleArrow(edge) {
  if (!edge.path) return;
  // An event that may come or not holds nothing up.
  const waiting = edge.to.kind === "all" ? edge.to.out.flatMap((next) => next.to.keys) : edge.to.keys;
  const blocks = edge.from.kind !== "event" && ["once", "requires"].includes(edge.line) && waiting.some((key) => key[0] === "j" && sourcesOf(edge.from).some((source) => waitsOn(items[key], source)));
  const near = chosen && (edge.from.keys.includes(chosen) || edge.to.keys.includes(chosen));
  const style = edge.line + (blocks ? " blocks" : "") + (near ? " near" : "");
  if (edge.style !== style || edge.path.getAttribute("class") !== style) {
    edge.style = style;
    edge.path.setAttribute("class", style);
    edge.tip.setAttribute("class", "tip" + (blocks ? " blocks" : ""));
  }
}

function makeNode(node, isFirst, isAlone) {
  const made = button("node", null, () => { focusNode(node); choose(node.keys.length > 1 ? node.id : node.keys[0]); });
  made.dataset.id = node.id;
  made.tabIndex = isFirst ? 0 : -1;
  if (!isAlone) {
    for (const [name, value] of Object.entries({ left: node.x, top: node.y, width: node.width, height: node.height })) made.style[name] = value + "px";
  }
  node.what = el("span", "what"); node.how = el("span", "how");
  made.append(node.what, node.how);
  node.element = made;
  dress(node);
  return made;
}
function dress(node) {
  if (!node.element) return;
  const { tone, text, hollow } = describe(node);
  const name = node.label + (node.keys.length > 1 ? ` \u00d7${node.keys.length}` : "");
  const isChosen = chosen && (chosen === node.id || node.keys.includes(chosen));
  const style = "node " + tone + (hollow ? " hollow" : "") + (node.kind === "job" ? "" : " outside " + node.kind) + (isChosen ? " chosen" : "");
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
  const places = new Map(all.map((node) => [node, node.element.getBoundingClientRect()])), here = places.get(from);
  let best = null, least = Infinity;
  for (const node of all) {
    const x = places.get(node).left - here.left, y = places.get(node).top - here.top, along = x * move[0] + y * move[1], across = Math.abs(x * move[1]) + Math.abs(y * move[0]);
    const distance = along + 3 * across;
    if (node !== from && along > 4 && distance < least) [best, least] = [node, distance];
  }
  if (best) focusNode(best);
});
