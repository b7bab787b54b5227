// Sends what is typed to worker.js, and shows the answer. A long simulation runs in the worker and does not freeze the
// page.
"use strict";

// Configurations of the manual, with their scenarios.
const EXAMPLES = [
  ["quickstart", "quickstart.json5", "quickstart.scenario.json5"],
  ["replicas", "replicas.json5"],
  ["hooks", "hooks.json5"],
  ["coprocesses", "coprocesses.json5"],
  ["Consul", "consul.json5"],
  ["telemetry", "telemetry.json5"],
];
// Longer than any sensible scenario takes.
const PATIENCE_MS = 20000;
// How long after the last key is pressed.
const PAUSE_MS = 250;

const part = (id) => document.getElementById(id);
const tabs = [...document.querySelectorAll("[role=tab]")];
const texts = ["config", "scenario", "environment"];

let worker;
let deadline;
let waiting; // what was typed while the worker was busy
let busy = false;

function start() {
  worker = new Worker("worker.js");
  worker.onmessage = ({ data }) => {
    clearTimeout(deadline);
    busy = false;
    show(data);
    if (waiting) send(waiting);
  };
  worker.onerror = (event) => finish("bad", `the playground cannot start: ${event.message || "worker.js does not load"}`);
}

function finish(tone, words) {
  part("state").className = tone;
  part("state").textContent = words;
}

function send(request) {
  if (busy) {
    waiting = request;
    return;
  }
  waiting = undefined;
  busy = true;
  finish("", "…");
  deadline = setTimeout(() => {
    worker.terminate();
    busy = false;
    start();
    finish("bad", `no answer within ${PATIENCE_MS / 1000} s: simulate less time`);
  }, PATIENCE_MS);
  worker.postMessage(request);
}

function environment(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("#"));
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
  }));
}

function ask() {
  send({ config: part("config").value, scenario: part("scenario").value, environment: environment(part("environment").value) });
}

// As a picture, not as a part of the page: nothing in it can run.
function draw(into, svg, words) {
  const old = into.querySelector("img");
  if (old) URL.revokeObjectURL(old.src);
  into.replaceChildren();
  if (!svg) return;
  const picture = document.createElement("img");
  picture.alt = words;
  picture.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  into.append(picture);
}

function show(answer) {
  if (answer.failed) {
    finish("bad", answer.failed);
    return;
  }
  part("check").textContent = answer.check;
  draw(part("graph"), answer.graph, "The jobs, and what starts them");
  draw(part("lanes"), answer.simulation?.svg, "The jobs over time");
  part("timeline").textContent =
    answer.simulation?.text ?? answer.scenario_errors ?? "The configuration has errors, so there is nothing to simulate.";
  if (!answer.ok) finish("bad", "the configuration has errors");
  else if (answer.scenario_errors) finish("bad", "the scenario has errors");
  else if (!answer.simulation.holds) finish("bad", "an expectation does not hold");
  else finish("ok", "ok");
}

function choose(tab) {
  for (const one of tabs) {
    one.setAttribute("aria-selected", one === tab);
    one.tabIndex = one === tab ? 0 : -1;
    part(one.getAttribute("aria-controls")).hidden = one !== tab;
  }
}

async function text(name) {
  const response = await fetch(`../../examples/${name}`);
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  return response.text();
}

async function example() {
  const [, config, scenario] = EXAMPLES[part("example").selectedIndex];
  try {
    part("config").value = await text(config);
    part("scenario").value = scenario ? await text(scenario) : "";
    part("environment").value = "";
    ask();
  } catch (error) {
    finish("bad", `the example does not load: ${error.message}`);
  }
}

part("example").append(...EXAMPLES.map(([name]) => new Option(name)));
part("example").onchange = example;
let pause;
for (const id of texts) {
  part(id).oninput = () => {
    clearTimeout(pause);
    pause = setTimeout(ask, PAUSE_MS);
  };
}
for (const [nth, tab] of tabs.entries()) {
  tab.onclick = () => choose(tab);
  tab.onkeydown = ({ key }) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (!step) return;
    const next = tabs[(nth + step + tabs.length) % tabs.length];
    choose(next);
    next.focus();
  };
}
choose(tabs[0]);
start();
if (location.protocol === "file:") {
  finish("bad", "a page from a file cannot load the program: run `python3 -m http.server` in the folder of the site");
} else {
  example();
}
