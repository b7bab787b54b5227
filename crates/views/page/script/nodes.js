// ---- nodes: jobs, replicas as one, and what jobs depend on ----

// The server places them: each part has the nodes that arrows connect.
let nodes = new Map(), parts = [];

function buildNodes() {
  nodes = new Map();
  parts = items.graph.map((part) => {
    const own = part.nodes.map((node) => {
      const id = node.keys.length === 1 ? node.keys[0] : `${node.kind}:${nodes.size}`;
      const made = { ...node, id, label: node.name, in: [], out: [] };
      nodes.set(id, made);
      return made;
    });
    const edges = part.arrows.map((arrow) => {
      const edge = { ...arrow, from: own[arrow.from], to: own[arrow.to] };
      edge.from.out.push(edge); edge.to.in.push(edge);
      return edge;
    });
    return { ...part, nodes: own, edges };
  });
}
/** The names of a node as a source. */
const sourcesOf = (node) => [node.label, ...node.keys.map((key) => items[key].name)];

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
  if (node.kind === "all") return { tone: "idle", text: "", hollow: true };
  if (node.kind === "missing") return { tone: "warn", text: "does not exist", hollow: true };
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
