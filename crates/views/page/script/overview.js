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
  if (job.processStatus) return "says: " + job.processStatus;
  if (job.lastRun && job.state !== "running") return job.lastRun + (job.failedRuns > 1 ? `, ${job.failedRuns} failures in a row` : "");
  if (job.address) return serviceWords(job).text;
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

function serviceWords(job) {
  const where = job.address, wanted = job.service, known = items.head.catalog.kind === "consul" ? job.catalog : null;
  // That Consul is away is said once.
  if (known && known.error && !items.head.catalog.error) return { tone: "warn", text: `${where}, ${wanted} wanted: ${known.error}` };
  if (!known) return { tone: wanted === "passing" ? "ok" : "idle", text: `${where}, ${wanted === "absent" ? "not advertised" : wanted}` };
  if (known.confirmed === wanted) return { tone: wanted === "absent" ? "idle" : wanted === "passing" ? "ok" : "warn", text: `${where}, ${wanted === "absent" ? "not registered" : "registered as " + wanted}` };
  return { tone: "busy", text: `${where}, ${wanted} wanted, ${known.confirmed === "unknown" ? "not confirmed yet" : known.confirmed + " now"}` };
}

let cardTexts = [];

function drawCards() {
  const head = items.head, cards = [];
  if (!head) return;
  const catalog = head.catalog;
  const services = keysOf("j").filter((key) => items[key].address && (catalog.kind === "consul" || isShown(items[key]))).map((key) => [key, items[key].name, serviceWords(items[key])]);
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
