"use strict";
// The page. Everything that comes from the server or from a recording is set as text or as a number, never as markup;
// the policy of the document enforces that. The last file of the script gets the states: `live.js` from the server,
// `recorded.js` from the document.

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

// The state, as it was last told.
let items = {}, records = [], byId = new Map(), hasState = false;
// The width of the sections. Asking for it in the middle of a change would make the browser lay out everything at once.
let innerWidthOfMain = 0;
// What the viewer has chosen.
let chosen = null, filter = "", search = "", view = matchMedia("(max-width: 640px)").matches ? "list" : "graph";

/** An item as it is used here: a job together with what the page has besides, and times as numbers. */
function read(item) {
  const made = item.job ? { ...item.job, ...item, job: null } : item;
  for (const part of [made, made.catalog || {}, ...made.deadlines || []]) {
    for (const name of ["startedAt", "endedAt", "since", "renderedAt", "failedAt", "at"]) {
      if (typeof part[name] === "string") part[name] = Date.parse(part[name].replace(/(\.\d{3})\d+/, "$1"));
    }
  }
  return made;
}

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
const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

// ---- words about jobs ----

function tone(job) {
  switch (job.state) {
    case "running": return job.health === "unhealthy" ? "bad" : job.health === "unknown" ? "busy" : "ok";
    case "failed": return "bad";
    case "restarting": return "warn";
    case "starting": case "stopping": return "busy";
    case "waiting": return job.failedRuns ? "warn" : "idle";
    default: return "idle";
  }
}
const TONES = ["bad", "warn", "busy", "ok", "idle"];
const worst = (tones) => TONES.find((tone) => tones.includes(tone)) || "idle";

/** Whether a job waits for this source. */
const waitsOn = (job, source) => job.waitsFor.some((one) => !one.holds && one.source === source)
  || job.state === "waiting" && job.requires.some((one) => !one.holds && one.source === source);
/** What a job waits for, without the word that its state says. */
const waiting = (job) => job.waiting.replace(/^waiting /, "");
const short = (exit) => exit.replace(/^exited (with|on) /, "");

/** The state of a job in a few words, for its node. */
function about(job) {
  const parts = [], next = job.deadlines[0];
  if (job.state === "running") {
    if (job.health === "unhealthy") parts.push("unhealthy");
    else if (job.health === "unknown") parts.push("not checked yet");
    else if (job.health === "healthy") parts.push("healthy");
    else parts.push("running");
    if (job.startedAt) parts.push(span(now() - job.startedAt));
  } else if (job.state === "waiting") {
    if (job.waiting) parts.push(waiting(job));
    else if (next) parts.push("next run in " + span(next.at - now()));
    else parts.push("waiting");
    if (job.failedRuns) parts.unshift("last run failed");
  } else if (job.state === "restarting" && next) {
    parts.push(`${job.lastRun ? short(job.lastRun) : "restarting"}, again in ${span(next.at - now())}`);
  } else {
    parts.push(job.state);
    if (job.waiting) parts.push(waiting(job));
    else if (job.lastRun && job.state === "failed") parts.push(short(job.lastRun));
    else if (job.endedAt && job.state !== "starting" && job.state !== "stopping") parts.push(span(now() - job.endedAt) + " ago");
  }
  return parts.join(" \u00b7 ");
}
const jobs = () => keysOf("j").map((key) => items[key]);
const isShown = (job) => job.role !== "telemetry";
const matches = (job) => (!filter || groupOf(job) === filter) && (!search || job.name.toLowerCase().includes(search));
/** The chip that a job is counted in. */
const groupOf = (job) => job.state === "running" && job.health === "unhealthy" ? "unhealthy" : job.state;
