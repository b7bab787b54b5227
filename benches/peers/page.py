"""The page in Markdown with charts. Made from peers.json alone, so that it can be rendered again."""
import json
import os
import platform
import textwrap
import time

import picture
from figures import DIRECT, FLOOR, OURS, Result, cost, joined, number, place, target
from peers import all_peers
from rows import BY_NAME, ROWS

ORDER = [peer.name for peer in all_peers("")]
COUNTS = (1, 10, 100, 1000)

# Heading, text, charts (file, title, subtitle, rows), tables (rows).
SECTIONS = [
    ("Start", "From just before the supervisor is started to the first instruction of its service. tini, dumb-init and catatonit get one "
     "program on the command line, as `containerpilot -- PROGRAM` and Horust can; the others read a configuration.",
     [("start", "Time until the service runs", "From the start of the supervisor to the first instruction of the service",
       ["start-program", "start-file"])],
     [["start-program", "start-file"]]),
    ("Memory", "PSS of all processes of the supervisor, without the services. s6 and runit have a process for each service. After its "
     "start containerpilot returns the pages of its own code to the kernel, which keeps them in the page cache: a page counts again when it is used.",
     [("memory", "Memory by number of services", "PSS of all processes of the supervisor, both axes logarithmic", "lines")],
     [["memory-program"] + [f"memory-{count}" for count in COUNTS]]),
    ("Idle", "Wake-ups and CPU time while nothing happens.",
     [("rest", "Wake-ups while nothing happens", "Wake-ups per second of all threads of the supervisor; idle services",
       [f"wakeups-{count}" for count in (100, 1000)])],
     [[f"wakeups-{count}" for count in COUNTS], [f"idle-{count}" for count in COUNTS]]),
    ("Many services", "Services that only wait for SIGTERM: the time until the last one runs, and from the stop signal until the last "
     "process has exited. CPU time is that of the supervisor until the last service runs.",
     [("fleet", "Many services", "Start to the first instruction of the last one; stop to the exit of the last process",
       ["fleet-start-100", "fleet-start-1000", "fleet-stop-100", "fleet-stop-1000"])],
     [[f"fleet-start-{count}" for count in COUNTS[1:]], [f"fleet-cpu-{count}" for count in COUNTS[1:]],
      [f"fleet-stop-{count}" for count in COUNTS[1:]]]),
    ("Logs", "A service writes lines of 100 bytes as fast as it can, 64 KB or one line per write, until the last one has arrived at the reader "
     "of a pipe or in a file in memory. *With time and job* is the log format of each supervisor: `default` for containerpilot (time, job, "
     "pid), `T` for s6-log and `-tt` for svlogd (only the time). *Unchanged* is output without labels. The floor only copies. CPU time is "
     "that of the supervisor, including its loggers.",
     [("log", "Log lines per second", "Lines of 100 bytes, in millions per second", ["log-stamped", "log-lines", "log-kept", "log-plain"]),
      ("log-cpu", "CPU time per million log lines", "CPU time of the supervisor, in seconds",
       ["log-cpu-stamped", "log-cpu-lines", "log-cpu-kept", "log-cpu-plain"])],
     [["log-stamped", "log-json", "log-lines", "log-kept", "log-plain"],
      ["log-cpu-stamped", "log-cpu-json", "log-cpu-lines", "log-cpu-kept", "log-cpu-plain"]]),
    ("Restarts", "A service that exits at once and is restarted without limit. Most peers start a service at most once a second, which is a "
     "good default (containerpilot backs off too, unless it is disabled); the cost of a restart can still be compared.",
     [("restart", "Restarts", "A service that exits at once; back-off disabled where possible",
       ["restart-rate", "restart-cpu"])],
     [["restart-rate", "restart-cpu"]]),
    ("Signals", "The supervisor gets its stop signal: the time until the service has its SIGTERM, and until the last process has exited. The "
     "supervisor has been idle for more than a second, so the caches are cold.",
     [("signal", "From the stop signal to the SIGTERM of the service", "One service, idle for a second or more",
       ["signal-program", "signal-file", "signal-end-program", "signal-end-file"])],
     [["signal-program", "signal-file"], ["signal-end-program", "signal-end-file"]]),
    ("Orphans", "As PID 1 of a pid namespace: a service leaves 10,000 orphans behind, which exit at the same time.",
     [("orphans", "Reaping 10,000 orphans as PID 1", "All exit at the same time", ["orphans-time", "orphans-cpu"])],
     [["orphans-time", "orphans-cpu"]]),
    ("Health checks", "100 services, each with an exec check once a second. The jitter is how much the time between two checks differs from "
     "a second.",
     [("health", "Health checks", "100 services, each checked every second", ["health-cpu", "health-pace"])],
     [["health-cpu", "health-pace"]]),
    ("Size", "Files in an image. The second column includes shared libraries, the dynamic loader and, for supervisor, Python with its "
     "standard library.",
     [("size", "Files in an image", "Size on disk", ["size-own", "size-all"])],
     [["size-own", "size-all"]]),
]
SHORT = {"start-program": "`-- PROGRAM`", "start-file": "from a configuration", "memory-program": "`-- PROGRAM`",
         "log-stamped": "time and job", "log-json": "JSON", "log-lines": "one write per line", "log-kept": "to a file",
         "log-plain": "unchanged", "signal-program": "`-- PROGRAM`: to the program", "signal-file": "configuration: to the service",
         "signal-end-program": "`-- PROGRAM`: to the last exit", "signal-end-file": "configuration: to the last exit"}
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
    """As JSON, with four digits of each figure."""
    def short(value):
        if isinstance(value, float):
            return float(f"{value:.4g}")
        if isinstance(value, dict):
            return {key: short(inner) for key, inner in value.items()}
        return [short(inner) for inner in value] if isinstance(value, (list, tuple)) else value
    text = json.dumps(short(result), indent=1, ensure_ascii=False)
    # The samples of one peer on one line, for readability.
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
    if family[-1].isdigit():  # one column for each number of services
        title = BY_NAME[names[-1]].title.replace("1,000 ", "").replace(" services", "").replace("with", "").strip(" ,")
        heads = [SHORT.get(row.name) or f"{int(row.name.rsplit('-', 1)[1]):,} service{'s' * (not row.name.endswith('-1'))}" for row in rows]
        corner = {"memory": "PSS, KiB", "wakeups": "wake-ups per second", "idle": "CPU time, ms per second", "fleet-start": "start, ms",
                  "fleet-cpu": "CPU time of the start, ms", "fleet-stop": "stop, ms"}.get(family[0], title)
    else:
        heads = [f"{SHORT.get(row.name) or SHORT.get(row.name.replace('-cpu', '')) or row.title}, {row.unit}" for row in rows]
        corner = "CPU time per million lines" if "log-cpu-stamped" in names else ""
    lines = [f"| {corner} | " + " | ".join(heads) + " |", "|---|" + "--:|" * len(rows)]
    for peer in there:
        name = f"**{peer}**" if peer == OURS else f"*{peer}*" if peer in (FLOOR, DIRECT) else peer
        lines.append(f"| {name} | " + " | ".join(cell(result, row, peer) for row in rows) + " |")
    return [*lines, ""]


def summary(result):
    lines = ["| | floor | containerpilot | best peer | × floor | compared with the best peer |", "|---|--:|--:|---|--:|---|"]
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
    out = ["## Targets", "", "The targets of this project, relative to the floor or a peer in the same run, or absolute.", "",
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
    for long in (", to the first instruction of the last one", ", to the exit of the last process", ", as PID 1"):
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
        rows.append((plain(row.title).replace(": CPU time per million lines", ": CPU time")
                     .replace(", to the first instruction of the last one", "").replace(", to the exit of the last process", "")
                     .replace(" to the exit of the last process", " to the last exit"), ratios))
    peers = [peer for peer in ORDER if any(peer in ratios for _, ratios in rows)]
    if rows:
        files["overview"] = picture.dots("Cost of each peer relative to containerpilot",
                                         "Each mark is the median of a peer as a multiple of containerpilot's: time, memory, CPU time or size; for rates the inverse. Logarithmic; ∞: containerpilot has 0.",
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


def wrapped(line):
    """A line of prose in lines of at most 120 characters; a row of a table, a picture or a command stays one line."""
    if len(line) <= 120 or line[:1] in "|!<#":
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def render(kept):
    """All files by name."""
    result = Result(kept)
    drawn = pictures(result)
    image = lambda name, words: [f"![{words}](peers/{name}.svg)", ""] if f"peers/{name}.svg" in drawn else []
    lines, behind = summary(result)
    where = kept["machine"]
    out = ["# Performance compared with other supervisors", "", "<!-- Generated by `make bench-peers` from peers.json: do not edit. -->", "",
           "containerpilot compared with other init systems and supervisors for containers, measured in one run on one machine, "
           f"on {where['when']}: {where['processors']} CPUs ({where['model']}), Linux {where['kernel']}.", "",
           "All figures are medians. The *floor* is the least that a supervisor must do: a C program without a C library that starts, waits, "
           "reaps and forwards signals. ⚙ marks rows in which the kernel does nearly all the work. A difference of less than 5% counts as "
           "equal, and so does one of less than 15% if each median is within the range of the other. **Only ratios within a row are "
           "meaningful**: another machine has other figures.", ""]
    if where["quick"]:
        out += ["**Quick run**: fewer services, lines and orphans than the titles say, and few samples.", ""]
    out += image("overview", "Cost of each peer relative to containerpilot")
    out += [*lines, ""]
    out += ["## Where containerpilot is not first", ""]
    for row, name, words in behind:
        out.append(f"- **{row.title[:1].upper() + row.title[1:]}**: {words.strip('*')} {name}. {row.why or 'No reason is known.'}"
                   f"{' ⚙ ' + row.bound if row.bound else ''}")
    out += ["Nowhere." if not behind else "", "" if not behind else None]
    bound = [row for row in result.rows if row.bound and row not in [late for late, _, _ in behind]]
    if bound:
        out += ["Rows that are bounded by the kernel, in which containerpilot is not behind:", ""]
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
            out.append(f"- {peer} failed{' in one round and was not measured again' if once else ''}: {text}.")
        out += [""] if failed else []
    out += fairness(kept)
    out += versions(kept)
    out += REPEAT
    return {"peers.md": "\n".join(wrapped(line) for line in out if line is not None), **drawn}


def fairness(kept):
    real = any(scene["conditions"]["real_time"] for scene in kept["scenes"].values())
    out = ["## How it is measured", "",
           "- All configurations and all files that the services write are in memory (tmpfs). The service is a small C program without a C "
           "library, which reads the clock with its first instruction.",
           "- The `run` files of s6 and runit name that program in their first line, without a shell. supervisor has `startsecs=0`. Back-off is "
           "disabled where possible. See the settings below.",
           "- Memory is PSS (private pages plus the share of shared pages) of all processes of the supervisor, without the services. "
           "containerpilot is measured with a fresh copy of its binary, which no other process shares; the shared libraries of the peers "
           "are shared with the rest of the machine, which is in their favour.",
           "- Peers are measured in alternation: all once, then all again. A figure is the median of the samples, with the smallest and the "
           "largest next to it. Slow peers are measured less often, but at least twice.",
           "- Each sample waits for an idle machine. A sample during which other programs, or the host, used more than a fifth of a CPU is "
           "repeated, for 45 seconds in total; if more than a third of the samples of a figure are disturbed, it is marked ≈.",
           "- A — means that the peer does not have the feature. Failures are listed below the table.", ""]
    if real:
        out += ["Where the table says so, everything was measured in the real-time class (`--rt`), because other programs used the machine: "
                "they are preempted, but disturb the caches. No sample was repeated because of them.", ""]
    out += ["| scene | CPUs used by other programs | samples repeated | disturbed samples kept | real-time class | seconds | measured |",
            "|---|--:|--:|--:|:-:|--:|---|"]
    for name, scene in kept["scenes"].items():
        if name != "size":
            said = scene["conditions"]
            others = "—" if said["others"] is None else said["others"]
            out.append(f"| {name} | {others} | {said['redone']} | {said['doubtful']} | {'yes' if said['real_time'] else 'no'} | "
                       f"{said['took']:.0f} | {said['when']} |")
    return [*out, ""]


def versions(kept):
    out = ["## Peers", "", "| | version | " + " | ".join(ABILITIES.values()) + " | log | settings |",
           "|---|---|" + ":-:|" * len(ABILITIES) + "---|---|"]
    for name in ORDER:
        facts_ = kept["peers"].get(name)
        if facts_ and name not in (FLOOR, DIRECT):
            can = " | ".join("yes" if ability in facts_["can"] else "—" for ability in ABILITIES)
            logs = ", ".join(dict.fromkeys(facts_["logs"].values())) or "—"
            out.append(f"| {name} | {facts_['version'] or 'unknown'} | {can} | {logs} | {facts_['setting'] or '—'} |")
    return [*out, ""]


REPEAT = """## Run it yourself

```sh
make bench-peers                        # everything, about eight minutes; writes this page, its charts and peers.json
make bench-peers BENCH=--rt             # on a busy machine, as root
make bench-peers BENCH=--quick          # a quick run in a minute, into target/peers-some
make bench-peers BENCH="--scenes start,log --peers floor,containerpilot,s6"
make bench-peers BENCH="--scenes log --merge"    # measure a part of this page again
python3 benches/peers --render          # render this page from peers.json, without measuring
```

Missing Debian packages are installed, and Horust is built from crates.io into `target/peers`. Only `--rt` and the installation need
root, if the kernel allows user namespaces. x86-64 and arm64.

[peers.json](peers.json) has every sample. [Benchmarks](benchmarks.md) has measurements without a counterpart among the peers, such as
Consul and the control socket.
""".split("\n")
