// ---- the recording ----

// Each state is what changed since the one before, or complete. `told` has the explanations that are new.
let states = [], place = 0, time = 0, told = {};
const now = () => time;
function setClock(at) { time = at; }
/** The times of recordings are in UTC. */
const clock = (at) => new Date(at).toISOString().slice(11, 19);
const withoutOutput = () => "The output of jobs is not in a recording.";

/** An explanation is as old as the last change of it: its durations are those of that time. */
async function explained(key) {
  const known = told[key];
  if (!known) return null;
  return { sentences: known.at === time ? known.sentences : [...known.sentences, `  (as of ${clock(known.at)})`] };
}

/** Shows a state: the last complete one up to it, with what changed since. */
function show(nth) {
  place = Math.max(0, Math.min(nth, states.length - 1));
  let first = place;
  while (!states[first].complete) first--;
  const all = {}, happened = [];
  told = {};
  for (const state of states.slice(first, place + 1)) {
    Object.assign(all, state.items);
    for (const key in state.told) told[key] = { at: state.now, sentences: state.told[key] };
  }
  // A complete state has the records of those before it.
  for (let at = place; at >= first && happened.length < 400; at--) happened.unshift(...states[at].records);
  records = [];
  byId = new Map();
  complete({ now: states[place].now, items: all, records: happened.slice(-400) });
  const text = new Date(time).toISOString();
  $("at").value = place;
  $("at").setAttribute("aria-valuetext", text);
  setText($("at-time"), `${text} (${place + 1} of ${states.length})`);
}

async function unpack() {
  const bytes = Uint8Array.from(atob($("states").textContent.trim()), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  states = JSON.parse(await new Response(unpacked).text());
  $("at").max = states.length - 1;
  setText($("live"), "a recording");
  show(states.length - 1);
  $("at").focus();
}

$("at").addEventListener("input", () => show($("at").valueAsNumber));
$("earlier").addEventListener("click", () => show(place - 1));
$("later").addEventListener("click", () => show(place + 1));
draw();
unpack().catch((error) => { setText($("live"), `the recording cannot be shown: ${error}`); throw error; });
