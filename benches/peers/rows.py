"""The rows of the page: what each figure is, which direction is good, what bounds it, and why we are not first where we are not.

`bound` is said of rows in which the kernel does nearly all the work. `why` is printed only where a peer is ahead of us.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    name: str
    scene: str
    title: str
    unit: str
    why: str = ""
    bound: str = ""
    more: bool = False  # more is better
    reference: str = "floor"
    counts: bool = True  # whether it takes part in the comparison; some rows only tell more about others
    # What the project has set itself: "1.5 × tini", "at most 2253" or "at least 10".
    target: str = ""


SMALL = ("tini, dumb-init and catatonit know one program and no configuration: their whole code is smaller than our tables. "
         "Compare what they do, too.")
FILE = ("Reading, rendering and checking a configuration comes before the first job; whoever has none, or a folder with one line in it, "
        "has less to do.")
SIGNAL = ("The signal finds us asleep, with cold caches: the wait returns, the core decides what it means (hooks, order, time limits), and "
          "then the job's whole process group is signalled. An init of a few lines passes the same number on.")
FLOOD = ("The bytes are handed to the job's own stream: whoever does that lets the job write at the kernel's pace, and differences "
         "are chance.")
SIZE = ("One file with templates, Consul, TLS, HTTP, telemetry and its command line. It needs nothing else in the image; those that "
        "are smaller do less, or need libraries and an interpreter beside them.")

ROWS = [
    Row("start-program", "start", "start of one program, `-- PROGRAM`", "ms", why=SMALL, target="1 × tini"),
    Row("start-file", "start", "start of one service from a configuration", "ms", why=FILE, target="1.5 × tini of start-program"),
    Row("memory-program", "memory", "memory with one program, `-- PROGRAM`", "KiB", why=SMALL),
    *[Row(f"memory-{count}", "memory", f"memory with {count:,} service{'s' * (count > 1)}", "KiB",
          why="Each process of s6 and runit is tiny, and here there are few of them. Ours is one process, most of it code that has been "
              "used a moment ago, and hardly grows with the services.",
          target={1: "at most 2253", 100: "at most 2867", 1000: "at most 6144"}.get(count, ""))
      for count in (1, 10, 100, 1000)],
    *[Row(f"wakeups-{count}", "idle", f"wake-ups a second, {count:,} idle service{'s' * (count > 1)}", "",
          why="Nothing is to be done, and yet something was: a defect, please report it.", target="at most 0") for count in (1, 10, 100, 1000)],
    *[Row(f"idle-{count}", "idle", f"processor time a second, {count:,} idle service{'s' * (count > 1)}", "ms",
          why="Nothing is to be done, and yet something was: a defect, please report it.", counts=False)
      for count in (1, 10, 100, 1000)],
    *[Row(f"fleet-start-{count}", "fleet", f"start of {count:,} services, to the last one's first instruction", "ms",
          why="With few services the configuration and the program's own start are most of it.",
          target="3 × floor" if count > 10 else "") for count in (10, 100, 1000)],
    *[Row(f"fleet-cpu-{count}", "fleet", f"processor time to start {count:,} services", "ms",
          why="With few services the configuration and the program's own start are most of it.") for count in (10, 100, 1000)],
    *[Row(f"fleet-stop-{count}", "fleet", f"stop of {count:,} services, to the end of the last process", "ms",
          why="Each job's end is waited for, told to those that wait for it, and logged, before the whole ends.",
          target="3 × floor" if count > 10 else "")
      for count in (10, 100, 1000)],
    Row("log-stamped", "log", "log, with time and job in each line", "M lines/s", more=True,
        why="No reason is known.", target="at least 10"),
    Row("log-cpu-stamped", "log", "log, with time and job: processor time per million lines", "s", why="No reason is known."),
    Row("log-json", "log", "log, as JSON", "M lines/s", more=True, reference="", target="at least 6"),
    Row("log-cpu-json", "log", "log, as JSON: processor time per million lines", "s", reference=""),
    Row("log-lines", "log", "log, with time and job, one write per line", "M lines/s", more=True, why="No reason is known.",
        bound="The job's own write of each line is nearly all of it.", target="at least 3"),
    Row("log-cpu-lines", "log", "log, one write per line: processor time per million lines", "s", why="No reason is known."),
    Row("log-kept", "log", "log, with time and job, into a file", "M lines/s", more=True, why="No reason is known."),
    Row("log-cpu-kept", "log", "log, into a file: processor time per million lines", "s", why="No reason is known."),
    Row("log-plain", "log", "output unchanged", "M lines/s", more=True, why=FLOOD,
        bound="Ours hands the job its own stream: the kernel moves the bytes."),
    Row("log-cpu-plain", "log", "output unchanged: processor time per million lines", "s", why=FLOOD),
    Row("restart-rate", "restart", "restarts a second, without back-off", "1/s", more=True, why="No reason is known.", target="0.7 × floor"),
    Row("restart-cpu", "restart", "processor time per restart", "µs", why="No reason is known."),
    Row("signal-program", "signals", "SIGTERM to the program, `-- PROGRAM`", "µs", why=SIGNAL),
    Row("signal-file", "signals", "SIGTERM to the service of a configuration", "µs", why=SIGNAL, target="2.2 × nothing between of signal-program"),
    Row("signal-end-program", "signals", "SIGTERM to the end of everything, `-- PROGRAM`", "ms",
        why="The way of the signal, as above; and a larger program has more memory to give back before it is gone."),
    Row("signal-end-file", "signals", "SIGTERM to the end of everything, from a configuration", "ms",
        why="The job's end is logged and the log flushed, the control socket removed, before we leave."),
    Row("orphans-time", "orphans", "10,000 orphans ended and reaped, as PID 1", "ms", bound="Ten thousand exits are most of it.",
        why="The exits themselves take nearly all of the time, on the same processors as the reaping; the order among those who reap "
            "in large steps changes from run to run."),
    Row("orphans-cpu", "orphans", "processor time per orphan", "µs", target="1.3 × floor",
        why="The kernel walks over all living children at every look, so it depends on how many have ended when a look comes: from one "
        "sample to the next that changes what a peer pays by a factor of up to twenty. Ours looks less often when looks are long."),
    Row("health-cpu", "health", "processor time per health check", "µs", why="No reason is known.", target="2 × floor"),
    Row("health-pace", "health", "pace of checks: 99 of 100 within", "ms of a second", why="A hundred checks begin within a moment, and who comes first is chance.",
        bound="A hundred programs started at once wait for the processors."),
    Row("size-own", "size", "the program's own files", "KiB", why=SIZE),
    Row("size-all", "size", "with all they need in an empty image", "KiB", why=SIZE),
]
BY_NAME = {row.name: row for row in ROWS}
