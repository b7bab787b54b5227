"""The page: what was measured, in Markdown, with pictures. Made of the JSON alone, so that it can be made again."""
import json
import os
import platform
import time

import picture
from figures import DIRECT, FLOOR, OURS, Result, cost, joined, number, place, target
from peers import everyone
from rows import BY_NAME, ROWS

ORDER = [peer.name for peer in everyone("")]
COUNTS = (1, 10, 100, 1000)

# Heading, what is said about it, pictures (file, title, subtitle, rows), tables (rows).
SECTIONS = [
    ("Start", "From the moment before the supervisor is started to the first instruction of what it runs. tini, dumb-init and "
     "catatonit are told one program on the command line, as `containerpilot -- PROGRAM` and Horust can be; the others read a configuration.",
     [("start", "How long until the service runs", "From the start of the supervisor to the service's first instruction",
       ["start-program", "start-file"])],
     [["start-program", "start-file"]]),
    ("Memory", "PSS of every process on the supervisor's side, and of no service. s6 and runit have a process for each service. After its "
     "start containerpilot gives the pages of its own code back to the kernel, which keeps them in its cache: they count again when they are used.",
     [("memory", "Memory by number of services", "PSS of all processes of the supervisor, both axes logarithmic", "lines")],
     [["memory-program"] + [f"memory-{count}" for count in COUNTS]]),
    ("Rest", "Nothing happens: how often is something awake all the same, and for how long?",
     [("rest", "How often a supervisor wakes while nothing happens", "Wake-ups a second of all its threads; services asleep",
       [f"wakeups-{count}" for count in (100, 1000)])],
     [[f"wakeups-{count}" for count in COUNTS], [f"idle-{count}" for count in COUNTS]]),
    ("Fleets", "Many services at once, which do nothing but wait for their end: until the last one runs, and from the signal to stop until "
     "the last process is gone. Processor time is the supervisor's, till the last service runs.",
     [("fleet", "A fleet of services", "Start to the last one's first instruction; stop to the end of the last process",
       ["fleet-start-100", "fleet-start-1000", "fleet-stop-100", "fleet-stop-1000"])],
     [[f"fleet-start-{count}" for count in COUNTS[1:]], [f"fleet-cpu-{count}" for count in COUNTS[1:]],
      [f"fleet-stop-{count}" for count in COUNTS[1:]]]),
    ("Logs", "A service writes lines of 100 bytes as fast as it can: 64 KB at a time, or each line by itself; until the last one has come to "
     "a reader at the end of a pipe, or into a file in memory. *With time and job* is each supervisor's own way to mark lines: `default` "
     "here (time, job, process), `T` for s6-log and `-tt` for svlogd (only the time). *Unchanged* is what comes out as it went in. "
     "The floor reads and writes. Processor time is that of the supervisor's side, loggers among them.",
     [("log", "Log lines a second", "Lines of 100 bytes, in millions a second", ["log-stamped", "log-lines", "log-kept", "log-plain"]),
      ("log-cpu", "What a million log lines cost", "Processor time of the supervisor's side, in seconds",
       ["log-cpu-stamped", "log-cpu-lines", "log-cpu-kept", "log-cpu-plain"])],
     [["log-stamped", "log-json", "log-lines", "log-kept", "log-plain"],
      ["log-cpu-stamped", "log-cpu-json", "log-cpu-lines", "log-cpu-kept", "log-cpu-plain"]]),
    ("Restarts", "A service that ends at once and shall run for ever. Most peers start a service at most once a second, which is their "
     "choice and a good one for most services (ours backs off, too, unless told not to); what a restart costs them can still be compared.",
     [("restart", "Starting again what has ended", "A service that ends at once; back-off switched off where it can be",
       ["restart-rate", "restart-cpu"])],
     [["restart-rate", "restart-cpu"]]),
    ("Signals", "The supervisor is asked to stop: until the service has its SIGTERM, and until the last process has ended. It has been "
     "asleep for more than a second, so nothing is warm.",
     [("signal", "From the supervisor's signal to the service's", "One service, asleep for a second or more",
       ["signal-program", "signal-file", "signal-end-program", "signal-end-file"])],
     [["signal-program", "signal-file"], ["signal-end-program", "signal-end-file"]]),
    ("Orphans", "As PID 1 of a namespace of its own: a service leaves 10,000 processes behind, which end at the same moment.",
     [("orphans", "Reaping 10,000 orphans as PID 1", "All end at the same moment", ["orphans-time", "orphans-cpu"])],
     [["orphans-time", "orphans-cpu"]]),
    ("Health checks", "100 services, each with a check that is a small program, once a second. The pace is how far the time "
     "from one check to the next is from a second.",
     [("health", "Health checks", "100 services, a check of each every second", ["health-cpu", "health-pace"])],
     [["health-cpu", "health-pace"]]),
    ("Size", "What an image has to hold. The second column counts shared libraries, the loader and, for supervisor, Python with its "
     "standard library.",
     [("size", "What an image has to hold", "Files on disk", ["size-own", "size-all"])],
     [["size-own", "size-all"]]),
]
SHORT = {"start-program": "`-- PROGRAM`", "start-file": "from a configuration", "memory-program": "`-- PROGRAM`",
         "log-stamped": "time and job", "log-json": "JSON", "log-lines": "a write per line", "log-kept": "into a file",
         "log-plain": "unchanged", "signal-program": "`-- PROGRAM`: to the program", "signal-file": "configuration: to the service",
         "signal-end-program": "`-- PROGRAM`: to the end", "signal-end-file": "configuration: to the end"}
ABILITIES = {"program": "one program", "file": "configuration", "fleet": "many services", "again": "restarts", "check": "health checks",
             "orphans": "PID 1"}


def machine(quick):
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    return {"when": time.strftime("%Y-%m-%d"), "kernel": platform.release(), "processors": os.cpu_count(), "model": model, "quick": quick}


def facts(peer):
    return {"version": peer.version() if peer.programs else "", "about": peer.about, "setting": peer.setting,
            "can": sorted(peer.can), "logs": peer.logs}


def rounded(result):
    """As JSON, with four digits of each figure: more would be noise."""
    def short(value):
        if isinstance(value, float):
            return float(f"{value:.4g}")
        if isinstance(value, dict):
            return {key: short(inner) for key, inner in value.items()}
        return [short(inner) for inner in value] if isinstance(value, (list, tuple)) else value
    text = json.dumps(short(result), indent=1, ensure_ascii=False)
    # Samples of one peer on one line: the file is read by people, too.
    return _lists_in_line(text) + "\n"


def _lists_in_line(text):
    lines, inside = [], None
    for line in text.split("\n"):
        if inside is None and line.rstrip().endswith("["):
            inside = [line.rstrip()]
        elif inside is not None:
            inside.append(line.strip())
            if line.strip().startswith("]"):
                lines.append(inside[0] + " ".join(inside[1:-1]) + inside[-1])
                inside = None
        else:
            lines.append(line)
    return "\n".join(lines)


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


def plain(words):
    return words.replace("`", "")


def cell(result, row, peer):
    figure = result.figure(row, peer)
    if figure is None:
        return "failed" if result.failure(row, peer) else "—"
    words = f"{'≈ ' if figure.doubtful else ''}**{number(figure.median)}**"
    spread = f"{number(figure.low)} – {number(figure.high)}"
    return words if figure.count == 1 or figure.low == figure.high else f"{words} <sub>{spread}</sub>"


def table(result, names):
    rows = [BY_NAME[name] for name in names if result.samples(BY_NAME[name])]
    if not rows:
        return []
    there = [peer for peer in ORDER if any(result.figure(row, peer) or result.failure(row, peer) for row in rows)]
    family = names[-1].rsplit("-", 1)
    if family[-1].isdigit():  # the same for different numbers of services
        title = BY_NAME[names[-1]].title.replace("1,000 ", "").replace(" services", "").replace("with", "").strip(" ,")
        heads = [SHORT.get(row.name) or f"{int(row.name.rsplit('-', 1)[1]):,} service{'s' * (not row.name.endswith('-1'))}" for row in rows]
        corner = {"memory": "PSS, KiB", "wakeups": "wake-ups a second", "idle": "processor time, ms a second", "fleet-start": "start, ms",
                  "fleet-cpu": "processor time of the start, ms", "fleet-stop": "stop, ms"}.get(family[0], title)
    else:
        heads = [f"{SHORT.get(row.name) or SHORT.get(row.name.replace('-cpu', '')) or row.title}, {row.unit}" for row in rows]
        corner = "processor time per million lines" if "log-cpu-stamped" in names else ""
    lines = [f"| {corner} | " + " | ".join(heads) + " |", "|---|" + "--:|" * len(rows)]
    for peer in there:
        name = f"**{peer}**" if peer == OURS else f"*{peer}*" if peer in (FLOOR, DIRECT) else peer
        lines.append(f"| {name} | " + " | ".join(cell(result, row, peer) for row in rows) + " |")
    return [*lines, ""]


def summary(result):
    lines = ["| | floor | containerpilot | best peer | × floor | beside the best peer |", "|---|--:|--:|---|--:|---|"]
    behind = []
    for row in result.rows:
        ours = result.figure(row, OURS)
        if not row.counts or ours is None:
            continue
        name, best = result.best(row)
        floor = row.reference and result.figure(row, row.reference)
        ratio = floor and cost(row, ours, floor)
        words, late = place(row, ours, best)
        if late:
            behind.append((row, name, words))
        lines.append(f"| {joined(row)}{' ⚙' if row.bound else ''} | {number(floor.median) if floor else '—'} | **{number(ours.median)}** | "
                     f"{f'{name}: {number(best.median)}' if best else '—'} | {f'{number(ratio)} ×' if ratio else '—'} | {words} |")
    return lines, behind


def targets(result):
    found = [(row, target(result, row)) for row in result.rows]
    found = [(row, *said) for row, said in found if said]
    if not found:
        return []
    out = ["## The targets of this project", "", "Set before the first line was written; some beside the floor, some beside tini.", "",
           "| | target | containerpilot | met |", "|---|---|--:|---|"]
    for row, words, met in found:
        out.append(f"| {joined(row)} | {words} | {number(result.figure(row, OURS).median)} | {'yes' if met else '**no**'} |")
    return [*out, ""]


def bar_panels(result, names):
    panels = []
    for row in (BY_NAME[name] for name in names):
        found = [(peer, result.figure(row, peer)) for peer in ORDER]
        found = [(peer, figure) for peer, figure in found if figure]
        if found:
            ground = [pair for pair in found if pair[0] in (FLOOR, DIRECT)]
            rest = sorted((pair for pair in found if pair not in ground), key=lambda pair: pair[1].median, reverse=row.more)
            panels.append((heading(row), row.unit, row.more, ground + rest))
    return panels


def heading(row):
    if row.name.startswith("log-"):
        return plain(SHORT[row.name.replace("-cpu", "")])
    words = plain(SHORT.get(row.name) or row.title)
    for long in (", to the last one's first instruction", ", to the end of the last process", ", as PID 1"):
        words = words.replace(long, "")
    return words[:1].upper() + words[1:] if not words.startswith("--") else words


def pictures(result):
    files = {}
    rows = []
    for row in result.rows:
        ours = result.figure(row, OURS)
        if not row.counts or not ours or not result.best(row)[1]:
            continue
        ratios = {peer: cost(row, result.figure(row, peer), ours) for peer in ORDER
                  if peer not in (OURS, DIRECT, FLOOR) and result.figure(row, peer)}
        ratios = {peer: (1e9 if ratio is None else ratio) for peer, ratio in ratios.items()}
        rows.append((plain(row.title).replace(": processor time per million lines", ": processor time")
                     .replace(", to the last one's first instruction", "").replace(", to the end of the last process", "")
                     .replace(" of everything", ""), ratios))
    peers = [peer for peer in ORDER if any(peer in ratios for _, ratios in rows)]
    if rows:
        files["overview"] = picture.dots("What each peer costs beside containerpilot",
                                         "Each mark is a peer's median as a multiple of ours: time, memory, processor time or size; of rates, the inverse. Logarithmic; ∞: ours is 0.",
                                         rows, peers, number)
    for _, _, drawn, _ in SECTIONS:
        for name, title, subtitle, what in drawn:
            if what == "lines":
                series = []
                for peer in ORDER:
                    points = {count: result.figure(BY_NAME[f"memory-{count}"], peer) for count in COUNTS}
                    points = {count: figure for count, figure in points.items() if figure and figure.median > 0}
                    if len(points) > 1:
                        series.append((peer, points))
                if series:
                    counts = sorted({count for _, points in series for count in points})
                    files[name] = picture.lines(title, subtitle, counts, series, number)
            else:
                panels = bar_panels(result, what)
                if panels:
                    files[name] = picture.bars(title, subtitle, panels, number)
    return {f"peers/{name}.svg": text for name, text in files.items()}


def render(kept):
    """All files, by name."""
    result = Result(kept)
    drawn = pictures(result)
    image = lambda name, words: [f"![{words}](peers/{name}.svg)", ""] if f"peers/{name}.svg" in drawn else []
    lines, behind = summary(result)
    where = kept["machine"]
    out = ["# Speed beside the peers", "", "<!-- Written by `make bench-peers` from peers.json: do not edit. -->", "",
           "What containerpilot costs beside other inits and supervisors for containers, measured in one go on one machine, "
           f"on {where['when']}: {where['processors']} processors ({where['model']}), Linux {where['kernel']}.", "",
           "Medians. The *floor* is the least that a supervisor can do: a C program without a C library that starts, waits, reaps and "
           "passes signals on, and knows nothing else. ⚙ marks rows in which the kernel does nearly all the work. A difference of less "
           "than a twentieth is called level, and so is one of up to a seventh if each median is among the other's samples. **Only ratios within a row mean anything**: another machine has other figures.", ""]
    if where["quick"]:
        out += ["**A quick look**: fewer services, lines and orphans than the titles say, and few samples.", ""]
    out += image("overview", "What each peer costs beside containerpilot")
    out += [*lines, ""]
    out += ["## Where we are not first, and why", ""]
    for row, name, words in behind:
        out.append(f"- **{row.title[:1].upper() + row.title[1:]}**: {words.strip('*')} {name}. {row.why or 'No reason is known.'}"
                   f"{' ⚙ ' + row.bound if row.bound else ''}")
    out += ["Nowhere." if not behind else "", "" if not behind else None]
    bound = [row for row in result.rows if row.bound and row not in [late for late, _, _ in behind]]
    if bound:
        out += ["Rows that the kernel bounds, in which we are not behind:", ""]
        out += [f"- {row.title}: {row.bound[:1].lower() + row.bound[1:]}" for row in bound] + [""]
    out += targets(result)
    for title, words, pictures_, tables in SECTIONS:
        body = [line for names in tables for line in table(result, names)]
        if not body:
            continue
        out += [f"## {title}", "", words, ""]
        for name, caption, _, _ in pictures_:
            out += image(name, caption)
        out += body
        shown = [BY_NAME[name] for names in tables for name in names]
        failed = {}
        for scene in dict.fromkeys(row.scene for row in shown):
            failed |= kept["scenes"].get(scene, {}).get("failed", {})
        for peer, text in failed.items():
            once = any(result.figure(row, peer) for row in shown)
            out.append(f"- {peer} failed{' in one turn, after which it was not asked again' if once else ''}: {text}.")
        out += [""] if failed else []
    out += fairness(kept)
    out += versions(kept)
    out += REPEAT
    return {"peers.md": "\n".join(line for line in out if line is not None), **drawn}


def fairness(kept):
    real = any(scene["conditions"]["real_time"] for scene in kept["scenes"].values())
    out = ["## How it is measured", "",
           "- Everybody's configuration is in memory (tmpfs), and so is what the services write down. The service is one small C program "
           "without a C library, which reads the clock with its first instruction.",
           "- `run` files of s6 and runit name that program in their first line: no shell is charged to them. supervisor has "
           "`startsecs=0`. Whatever holds restarts back is switched off where it can be. See the settings below.",
           "- Memory is PSS: private pages, and of each shared page its share, of every process that belongs to the supervisor, and of no "
           "service. Our binary is a copy of its own, on disk and in the kernel's cache as theirs are, so that no other run of it shares its pages; libraries of the peers are shared with the "
           "rest of the machine, which is to their advantage.",
           "- Peers take turns: all once, then all again. A figure is the median of the samples, with the smallest and the largest beside it. "
           "Who takes very long is asked less often, but at least twice.",
           "- Before each sample we wait until nothing else wants a processor. A sample during which other programs, or the host, used more "
           "than a fifth of one is thrown away and taken again, as long as patience lasts (45 s); if it is kept, and such samples are a "
           "third of a figure, it is marked ≈.",
           "- Who cannot do a thing has a — in its row. What a peer has failed to do is said below the table.", ""]
    if real:
        out += ["Where the table says so, everything measured was in the real-time class (`--rt`), because other programs used the "
                "machine: they give way at once, but leave their traces in the caches. No sample was thrown away for them.", ""]
    out += ["| scene | other programs used, processors | samples taken again | doubtful ones kept | real-time class | seconds | measured |",
            "|---|--:|--:|--:|:-:|--:|---|"]
    for name, scene in kept["scenes"].items():
        if name != "size":
            said = scene["conditions"]
            others = "—" if said["others"] is None else said["others"]
            out.append(f"| {name} | {others} | {said['redone']} | {said['doubtful']} | {'yes' if said['real_time'] else 'no'} | "
                       f"{said['took']:.0f} | {said['when']} |")
    return [*out, ""]


def versions(kept):
    out = ["## Who takes part", "", "| | version | " + " | ".join(ABILITIES.values()) + " | log | settings |",
           "|---|---|" + ":-:|" * len(ABILITIES) + "---|---|"]
    for name in ORDER:
        facts_ = kept["peers"].get(name)
        if facts_ and name not in (FLOOR, DIRECT):
            can = " | ".join("yes" if ability in facts_["can"] else "—" for ability in ABILITIES)
            logs = ", ".join(dict.fromkeys(facts_["logs"].values())) or "—"
            out.append(f"| {name} | {facts_['version'] or 'unknown'} | {can} | {logs} | {facts_['setting'] or '—'} |")
    return [*out, ""]


REPEAT = """## Measure it yourself

```sh
make bench-peers                        # everything, about eight minutes; writes this page, its pictures and peers.json
make bench-peers BENCH=--rt             # on a machine that others keep busy, as root
make bench-peers BENCH=--quick          # a look, in a minute, into target/peers-some
make bench-peers BENCH="--scenes start,log --peers floor,containerpilot,s6"
make bench-peers BENCH="--scenes log --merge"    # measure a part of this page again
python3 benches/peers --render          # this page anew from peers.json, without measuring
```

Debian's packages are installed where they are missing, and Horust is built from its crate into `target/peers`. Nothing needs to be root
but `--rt` and the installation, where the kernel lets users have namespaces. x86-64 and arm64.

[peers.json](peers.json) has every sample. [Benchmarks](benchmarks.md) has what has no counterpart among the peers: Consul, the control
socket, and what was found on the way.
""".split("\n")
