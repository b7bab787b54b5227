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
