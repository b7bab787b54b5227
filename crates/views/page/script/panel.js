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
  const told = await explained(key);
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
  const { success, failure, timeout, stopped } = job.runs;
  const runs = [[success, "succeeded"], [failure, "failed"], [timeout, "timed out"], [stopped, "stopped"]].filter(([number]) => number).map(([number, word]) => `${number} ${word}`).join(", ");
  const checks = job.checks.map((check) => `${check.name}: ${check.passed == null ? "not run yet" : check.passed ? "passed" : `failed (${check.failures} in a row, unhealthy at ${check.failuresNeeded})`}`);
  parts.push(el("h3", "", {}, "Facts"), facts([
    ["Process", job.pid ? `pid ${job.pid}` : null],
    ["Started", job.startedAt ? `${clock(job.startedAt)}, ${span(now() - job.startedAt)} ago` : "never"],
    ["Started by", { hand: "hand", interval: "its interval", cron: "its schedule", action: "an action" }[job.startedBy] || null],
    ["Last exit", job.lastRun && job.endedAt ? `${job.lastRun}, ${span(now() - job.endedAt)} ago` : job.lastRun],
    ["Restarts", String(job.restarts)],
    ["Ended runs", runs || "none"],
    ["Checks", checks.join("; ")],
    ["Service", job.address ? serviceWords(job).text : null],
    ["Schedule", job.schedule ? `${job.schedule.cron}, ${job.schedule.timezone}` : null], ["Next run", job.schedule && job.schedule.next], ["Action", job.action], ["It says", job.processStatus],
    ["Kind", job.role === "job" ? null : job.role], ["Groups", job.groups.join(", ")], ["Replica of", job.replicaOf],
  ]));
  if (told && told.command) parts.push(el("h3", "", {}, "Command"), el("pre", "", { tabindex: "0" }, told.command));
  if (told && told.lines) {
    const output = el("pre", "output", { tabindex: "0", "aria-label": "Last lines of output" });
    output.textContent = told.lines.map(clean).join("\n") || "(nothing yet)";
    parts.push(el("h3", "", {}, "Last lines of output"), output);
  } else if (told) {
    parts.push(el("h3", "", {}, "Output"), el("p", "note", {}, withoutOutput(job)));
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
