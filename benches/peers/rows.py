"""The rows of the page: titles, units, targets, and explanations.

`bound` explains rows in which the kernel does nearly all the work. `why` is printed only if a peer is ahead of containerpilot.
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
    counts: bool = True  # whether it is part of the comparison; other rows only add detail
    # The project's target: "1.5 × tini", "1 × best peer", "at most 2253" or "at least 10".
    target: str = ""


SMALL = ("tini, dumb-init and catatonit run one program and have no configuration: they are much smaller programs with far fewer "
         "features.")
FILE = ("containerpilot reads, renders and validates its configuration before it starts the first job; a program without a "
        "configuration, or with one line of it, has less to do.")
SIGNAL = ("The signal arrives at a sleeping process with cold caches: the wait returns, the core decides (hooks, order, timeouts), and "
          "the process group of the job is signalled. A minimal init only forwards the signal.")
FLOOD = ("The job writes directly to the output stream, at the speed of the kernel; differences are noise.")
SIZE = ("One file with templates, Consul, TLS, HTTP, telemetry and the command line. It needs nothing else in the image; smaller peers "
        "have fewer features, or need shared libraries or an interpreter.")

ROWS = [
    Row("start-program", "start", "start of one program, `-- PROGRAM`", "ms", why=SMALL, target="1.2 × tini"),
    Row("start-file", "start", "start of one service from a configuration", "ms", why=FILE, target="1.6 × tini of start-program"),
    Row("memory-program", "memory", "memory with one program, `-- PROGRAM`", "KiB", why=SMALL),
    *[Row(f"memory-{count}", "memory", f"memory with {count:,} service{'s' * (count > 1)}", "KiB",
          why="The processes of s6 and runit are tiny, and with few services there are few of them. containerpilot is one process whose "
              "memory hardly grows with the number of services.",
          target={1: "at most 1024", 100: "at most 2048", 1000: "at most 5120"}.get(count, ""))
      for count in (1, 10, 100, 1000)],
    *[Row(f"wakeups-{count}", "idle", f"wake-ups per second, {count:,} idle service{'s' * (count > 1)}", "",
          why="An idle supervisor must not wake up: this is a bug, please report it.", target="at most 0") for count in (1, 10, 100, 1000)],
    *[Row(f"idle-{count}", "idle", f"CPU time per second, {count:,} idle service{'s' * (count > 1)}", "ms",
          why="An idle supervisor must not wake up: this is a bug, please report it.", counts=False)
      for count in (1, 10, 100, 1000)],
    *[Row(f"fleet-start-{count}", "fleet", f"start of {count:,} services, to the first instruction of the last one", "ms",
          why="With few services, most of it is the start of the supervisor and loading the configuration.",
          target="3 × floor" if count > 10 else "") for count in (10, 100, 1000)],
    *[Row(f"fleet-cpu-{count}", "fleet", f"CPU time to start {count:,} services", "ms",
          why="With few services, most of it is the start of the supervisor and loading the configuration.") for count in (10, 100, 1000)],
    *[Row(f"fleet-stop-{count}", "fleet", f"stop of {count:,} services, to the exit of the last process", "ms",
          why="Every exit is collected, passed to the jobs that wait for it and logged before the supervisor exits.",
          target="3 × floor" if count > 10 else "")
      for count in (10, 100, 1000)],
    Row("log-stamped", "log", "log with time and job in each line", "M lines/s", more=True,
        why="No reason is known.", target="at least 10"),
    Row("log-cpu-stamped", "log", "log with time and job: CPU time per million lines", "s", why="No reason is known."),
    Row("log-json", "log", "log as JSON", "M lines/s", more=True, reference="", target="at least 6"),
    Row("log-cpu-json", "log", "log as JSON: CPU time per million lines", "s", reference=""),
    Row("log-lines", "log", "log with time and job, one write per line", "M lines/s", more=True, why="No reason is known.",
        bound="The write calls of the job are nearly all of it.", target="at least 3"),
    Row("log-cpu-lines", "log", "log, one write per line: CPU time per million lines", "s", why="No reason is known."),
    Row("log-kept", "log", "log with time and job to a file", "M lines/s", more=True, why="No reason is known."),
    Row("log-cpu-kept", "log", "log to a file: CPU time per million lines", "s", why="No reason is known."),
    Row("log-plain", "log", "output unchanged", "M lines/s", more=True, why=FLOOD,
        bound="The job writes directly to the output stream; the kernel moves the bytes."),
    Row("log-cpu-plain", "log", "output unchanged: CPU time per million lines", "s", why=FLOOD),
    Row("restart-rate", "restart", "restarts per second without back-off", "1/s", more=True, why="No reason is known.", target="0.6 × floor"),
    Row("restart-cpu", "restart", "CPU time per restart", "µs", why="No reason is known."),
    Row("signal-program", "signals", "SIGTERM to the program, `-- PROGRAM`", "µs", why=SIGNAL),
    Row("signal-file", "signals", "SIGTERM to the service of a configuration", "µs", why=SIGNAL, target="1 × best peer"),
    Row("signal-end-program", "signals", "SIGTERM to the exit of the last process, `-- PROGRAM`", "ms",
        why="As above; and a larger program has more memory to free at its exit."),
    Row("signal-end-file", "signals", "SIGTERM to the exit of the last process, from a configuration", "ms",
        why="Before it exits, containerpilot logs the exit of the job, flushes the log and removes the control socket.",
        target="1 × best peer"),
    Row("orphans-time", "orphans", "10,000 orphans exited and reaped, as PID 1", "ms", bound="The ten thousand exits are most of it.",
        why="The exits take nearly all of the time, on the same CPUs as the reaping; the order among peers that reap in large batches "
            "changes from run to run."),
    Row("orphans-cpu", "orphans", "CPU time per orphan", "µs", target="1.3 × floor",
        why="Every wait call scans all running children, so the cost depends on how many have exited at that moment: it varies between "
        "samples by a factor of up to twenty. containerpilot waits longer between scans when they are slow."),
    Row("health-cpu", "health", "CPU time per health check", "µs", why="No reason is known.", target="2 × floor"),
    Row("health-pace", "health", "jitter of check intervals, p99", "ms", why="A hundred checks start at the same time, in random order.",
        bound="A hundred programs that start at once compete for the CPUs."),
    Row("size-own", "size", "files of the program", "KiB", why=SIZE, target="at most 7168"),
    Row("size-all", "size", "with everything needed in an empty image", "KiB", why=SIZE),
]
BY_NAME = {row.name: row for row in ROWS}
