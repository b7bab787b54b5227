//! The one table of commands and flags. Parser, help, completions and man page are made from it.

use super::flags::{Flag, FlagKind};

/// A subcommand.
#[derive(Debug)]
pub(crate) struct Command {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it takes besides flags, as the help shows it.
    pub(crate) arguments: &'static str,
    /// One line about it.
    pub(crate) about: &'static str,
    /// What one needs to know to use it.
    pub(crate) details: &'static str,
    /// Its flags.
    pub(crate) flags: &'static [&'static Flag],
}

pub(crate) const CONFIG: Flag = Flag {
    name: "config",
    kind: FlagKind::Text("PATH"),
    help: "the configuration: a file, a directory of *.json5 and *.json files, or the text itself",
};
pub(crate) const OUT: Flag = Flag {
    name: "out",
    kind: FlagKind::Text("FILE"),
    help: "the file to write to; `-` or nothing is standard output",
};
pub(crate) const FORMAT: Flag =
    Flag { name: "format", kind: FlagKind::Text("FORMAT"), help: "`human` (the default) or `json`" };

pub(crate) const PICTURE: Flag = Flag {
    name: "format",
    kind: FlagKind::Text("mermaid|dot|svg"),
    help: "the form of the picture; `mermaid` is the default",
};

pub(crate) const STORY: Flag = Flag {
    name: "format",
    kind: FlagKind::Text("human|json|svg"),
    help: "the form of the timeline; `human` is the default, `svg` is a picture",
};
pub(crate) const FULL: Flag =
    Flag { name: "full", kind: FlagKind::Bool, help: "show everything, also what has come many times" };
pub(crate) const EXPLORE: Flag = Flag {
    name: "explore",
    kind: FlagKind::Text("NUMBER"),
    help: "try so many other worlds, and say what can go wrong",
};
pub(crate) const SEED: Flag = Flag {
    name: "seed",
    kind: FlagKind::Text("SEED"),
    help: "play the world that -explore has found, or, beside -explore, the worlds of another series",
};

pub(crate) const SOCKET: Flag = Flag {
    name: "socket",
    kind: FlagKind::Text("PATH"),
    help: "the supervisor's control socket, if not that of the configuration",
};
pub(crate) const DIFF: Flag =
    Flag { name: "diff", kind: FlagKind::Bool, help: "ask the running supervisor what a reload would do" };
pub(crate) const FOLLOW: Flag =
    Flag { name: "follow", kind: FlagKind::Bool, help: "go on with what comes, until the supervisor ends" };
pub(crate) const LINES: Flag =
    Flag { name: "lines", kind: FlagKind::Text("NUMBER"), help: "only so many of the last ones" };
pub(crate) const TIMEOUT: Flag = Flag {
    name: "timeout",
    kind: FlagKind::Text("TIME"),
    help: "how long it may take, such as 30s or 1m30s",
};
pub(crate) const ALL: Flag = Flag { name: "all", kind: FlagKind::Bool, help: "all jobs that can be so" };

/// The flags of ContainerPilot 3, which stand before any subcommand. `-help` and `-h` are known besides.
pub(crate) const MAIN_FLAGS: &[&Flag] = &[
    &CONFIG,
    &Flag {
        name: "template",
        kind: FlagKind::Bool,
        help: "render the configuration's template, print it and exit",
    },
    &OUT,
    &Flag { name: "version", kind: FlagKind::Bool, help: "print the version and exit" },
    &Flag { name: "reload", kind: FlagKind::Bool, help: "reload the running supervisor's configuration" },
    &Flag {
        name: "maintenance",
        kind: FlagKind::Text("enable|disable"),
        help: "enter or leave maintenance mode of the running supervisor",
    },
    &Flag {
        name: "putenv",
        kind: FlagKind::Pairs,
        help: "set a variable in the running supervisor's environment; repeatable",
    },
    &Flag {
        name: "putmetric",
        kind: FlagKind::Pairs,
        help: "send a metric to the running supervisor; repeatable",
    },
    &Flag { name: "ping", kind: FlagKind::Bool, help: "ask whether the running supervisor answers" },
];

pub(crate) const RUN: Command = Command {
    name: "run",
    arguments: "[-- PROGRAM ARGS…]",
    about: "supervise the jobs of the configuration (the default)",
    details: "Reads the configuration named by -config, by the environment's CONTAINERPILOT, or else \
              /etc/containerpilot.json5 or the directory /etc/containerpilot.d, and runs its jobs.\n\n\
              PROGRAM runs as the main job beside them: its end ends the container with its code. Without a \
              configuration it runs alone, with every signal and standard input passed on to it.\n\n\
              With a ContainerPilot 2 file PROGRAM needs no `--`, and SIGUSR1 enters and leaves maintenance.\n\n\
              SIGTERM and SIGINT stop everything; a second one kills what is left. SIGHUP and SIGUSR2 are events that jobs \
              may wait for. SIGUSR1 opens the log's file anew.\n\n\
              Exits with 0 after SIGTERM or SIGINT, and when all jobs are complete and none has failed; otherwise with \
              the code of the first job that failed for good: its own, 128 and the number of the signal that ended it, \
              127 if the program was not found, 126 if it may not be executed.",
    flags: &[&CONFIG],
};

pub(crate) const CHECK: Command = Command {
    name: "check",
    arguments: "[PATH]",
    about: "look for mistakes in a configuration, without starting anything",
    details: "Prints `ok` and what the configuration would do, or every mistake in it, each with its place in the \
              text as it was written. Besides mistakes of writing it finds what can never work: events that never \
              come, jobs that wait for one another, a TTL that is too short. PATH may be `-` for standard input.\n\n\
              With --diff, the running supervisor says what a reload would do to its jobs: nothing is done, and it is its \
              own configuration that it reads.\n\n\
              Exits with 0 if the configuration is good (warnings are not mistakes), with 1 if not.",
    flags: &[&CONFIG, &FORMAT, &DIFF, &SOCKET],
};

pub(crate) const RENDER: Command = Command {
    name: "render",
    arguments: "[PATH]",
    about: "print a configuration as it is after its template has been rendered",
    details: "The text is rendered with the environment, as the supervisor would do it, and nothing else is printed. \
              PATH may be `-` for standard input. `-template` does the same.",
    flags: &[&CONFIG, &OUT],
};

pub(crate) const MIGRATE: Command = Command {
    name: "migrate",
    arguments: "[OLD] [-- PROGRAM ARGS…]",
    about: "print a ContainerPilot 2 file as one of version 3",
    details: "ContainerPilot 2 files run as they are; this is for whoever wants to go on from one. OLD is the file, or `-` \
              for standard input. The new file is printed with comments, and means the same plan, which is checked \
              before it is printed. Actions of the template stay in values; those around values are decided with the \
              environment. What has no counterpart is listed at the top of the new file and on standard error.\n\n\
              PROGRAM is the main program, which version 2 takes from the command line; it becomes a job of the new file.",
    flags: &[&CONFIG],
};

pub(crate) const STATUS: Command = Command {
    name: "status",
    arguments: "[JOB]",
    about: "show what every job is doing, or everything about one",
    details: "A line for each job: its state, its health (`-` if it has no checks), its process and for how long that has \
              run, how often it was restarted, and what it waits for or what went wrong. Below, what the watches see.\n\n\
              A job is waiting for its event, starting, running, restarting (it has ended and will run again), stopping, \
              stopped (by hand), complete or failed (both for good).\n\n\
              With a JOB, or a watch as `watch.NAME`: everything that is known of it. Of several jobs of one name, NAME:2 \
              is the second. `containerpilot explain JOB` says why.",
    flags: &[&CONFIG, &SOCKET, &FORMAT],
};

pub(crate) const EXPLAIN: Command = Command {
    name: "explain",
    arguments: "JOB",
    about: "say why a job runs, or why it does not",
    details: "What the job is doing; what it waits for, how it stands with that, and why that has not come, as far back as \
              it goes; and the events that led to its last run.",
    flags: &[&CONFIG, &SOCKET, &FORMAT],
};

pub(crate) const HEALTH: Command = Command {
    name: "health",
    arguments: "[JOB]",
    about: "say whether the container, or one job, is healthy",
    details: "Exits with 0 if it is and with 1 if not, with one line that says why. Made for an image: HEALTHCHECK CMD \
              [\"containerpilot\", \"health\"]\n\n\
              The container is healthy while it is not stopping and every job with checks that is to run now passes them. \
              Jobs that wait for their event, are complete or were stopped by hand do not count. In maintenance no checks \
              are made, and it is healthy.",
    flags: &[&CONFIG, &SOCKET, &TIMEOUT],
};

pub(crate) const WAIT: Command = Command {
    name: "wait",
    arguments: "[JOB…] STATE",
    about: "wait until a job is in a state",
    details: "STATE is running, healthy, unhealthy, waiting, stopped (it has ended, however), complete (it has ended, and well) \
              or failed. With several jobs, all of them must be so; with --all, all jobs that can be.\n\n\
              Exits with 0 when it is so; with 1 as soon as it cannot be any more, or when the time of --timeout is over. \
              With --timeout, a supervisor that does not answer yet is waited for too.\n\n\
              For example: containerpilot wait db healthy --timeout 30s",
    flags: &[&CONFIG, &SOCKET, &TIMEOUT, &ALL],
};

pub(crate) const LOGS: Command = Command {
    name: "logs",
    arguments: "[JOB…]",
    about: "show the last lines that jobs have written",
    details: "Of one job the lines as it wrote them; of several, or of all if none is named, with the name before each \
              line. The supervisor keeps the last lines of each job in memory; a job with `logging: { raw: true }` has \
              none.",
    flags: &[&CONFIG, &SOCKET, &FOLLOW, &LINES],
};

pub(crate) const EVENTS: Command = Command {
    name: "events",
    arguments: "",
    about: "show what has happened",
    details: "One event a line: when, its number, what happened, how a process ended, and the number of the event that \
              caused it. The supervisor remembers the last thousand. With --format json each line is an object.",
    flags: &[&CONFIG, &SOCKET, &FOLLOW, &LINES, &FORMAT],
};

pub(crate) const START: Command = Command {
    name: "start",
    arguments: "JOB…",
    about: "run jobs now, whatever they wait for",
    details: "A job that runs already is left alone. The answer does not wait for anything: `containerpilot wait JOB running` \
              does.",
    flags: &[&CONFIG, &SOCKET],
};

pub(crate) const STOP: Command = Command {
    name: "stop",
    arguments: "JOB…",
    about: "stop jobs, in good order; they stay so until they are started by hand",
    details: "As at a shutdown: first the jobs that run at its `stopping`, then it leaves the catalog, then it gets its \
              `stopSignal`. The answer does not wait for the end: `containerpilot wait JOB stopped` does.",
    flags: &[&CONFIG, &SOCKET],
};

pub(crate) const RESTART: Command = Command {
    name: "restart",
    arguments: "JOB…",
    about: "stop jobs if they run, and run them anew",
    details: "The answer does not wait for anything: `containerpilot wait JOB healthy` does.",
    flags: &[&CONFIG, &SOCKET],
};

pub(crate) const SIGNAL: Command = Command {
    name: "signal",
    arguments: "JOB SIGNAL",
    about: "send a signal to a job's processes",
    details: "SIGNAL is a name, with or without SIG, or a number. It goes to the whole process group of the job.\n\n\
              For example: containerpilot signal nginx HUP",
    flags: &[&CONFIG, &SOCKET],
};

pub(crate) const RELOAD: Command = Command {
    name: "reload",
    arguments: "",
    about: "let the supervisor read its configuration anew",
    details: "Jobs whose definition has not changed keep running; changed ones are stopped and started, those that are gone \
              are stopped. Says what it did, when it is done. A configuration with mistakes changes nothing: they are shown, \
              and the old one goes on. `check --diff` says what it would do. `-reload` and SIGHUP do the same, SIGHUP unless a \
              job waits for it.",
    flags: &[&CONFIG, &SOCKET, &FORMAT],
};

pub(crate) const MAINTENANCE: Command = Command {
    name: "maintenance",
    arguments: "enable|disable|status",
    about: "begin or end maintenance, or say whether there is one",
    details: "In maintenance all services leave the catalog and no checks are made, while the jobs go on. `-maintenance` does \
              the same.",
    flags: &[&CONFIG, &SOCKET],
};

pub(crate) const PUTENV: Command = Command {
    name: "putenv",
    arguments: "KEY=VALUE…",
    about: "set variables of all processes that are started from now on",
    details: "An empty VALUE takes the variable away. Processes that run already keep what they have. Values are written to no \
              log. `-putenv` does the same.",
    flags: &[&CONFIG, &SOCKET],
};

pub(crate) const PUTMETRIC: Command = Command {
    name: "putmetric",
    arguments: "KEY=VALUE…",
    about: "send values of the configuration's metrics",
    details: "KEY is the whole name of a metric of `telemetry`, VALUE a number: added to a counter, the new value of a gauge, \
              observed by a histogram or summary. If one of them is wrong, none is taken. `-putmetric` does the same.",
    flags: &[&CONFIG, &SOCKET],
};

pub(crate) const PING: Command = Command {
    name: "ping",
    arguments: "",
    about: "ask whether the supervisor answers",
    details: "Prints `ok` if it does. `-ping` does the same.",
    flags: &[&CONFIG, &SOCKET],
};

pub(crate) const GRAPH: Command = Command {
    name: "graph",
    arguments: "[PATH]",
    about: "draw the web of jobs, events and watches of a configuration",
    details: "An arrow leads from what sends an event to the job that it starts. A thick arrow starts it each time, a thin \
              one once; a dashed arrow starts nothing, but ends the container or is seen by a watch. Nothing is run, and no \
              supervisor is asked.\n\n\
              Mermaid's text is drawn by many viewers of Markdown. DOT is for Graphviz: containerpilot graph --format dot \
              | dot -Tpng > web.png. An SVG is a picture for a browser: containerpilot graph --format svg --out web.svg",
    flags: &[&CONFIG, &PICTURE, &OUT],
};

pub(crate) const SIMULATE: Command = Command {
    name: "simulate",
    arguments: "[CONFIG] [SCENARIO]",
    about: "try a configuration in virtual time, without starting anything",
    details: "Plays the configuration with the supervisor's own decisions in a made-up world, and prints what happens, when \
              and why. SCENARIO is a JSON5 file that says what the world does: how long programs run and how they end, how \
              checks answer, what watches see, which signals and commands come, when Consul is away; and with `expect`, \
              what must come of it. Without one, tasks succeed after a second and services run until they are stopped.\n\n\
              With --explore, many worlds are tried in which now and then something goes wrong, and every job that waits for \
              ever, never starts or is not stopped in time is reported, with the fewest mishaps that lead there and a seed for \
              --seed.\n\n\
              Exits with 0 if everything is as expected, with 1 if not, and with 2 if the configuration or the scenario has \
              mistakes.\n\n\
              For example: containerpilot simulate app.json5 app.scenario.json5 --format svg --out app.svg",
    flags: &[&CONFIG, &STORY, &OUT, &FULL, &EXPLORE, &SEED],
};

pub(crate) const SCHEMA: Command = Command {
    name: "schema",
    arguments: "",
    about: "print the JSON Schema of the configuration",
    details: "For editors: save it, and name it in the key `$schema` of a configuration or in the editor's settings.",
    flags: &[],
};

pub(crate) const VERSION: Command = Command {
    name: "version",
    arguments: "",
    about: "print the version",
    details: "`-version` does the same.",
    flags: &[],
};

pub(crate) const HELP: Command = Command {
    name: "help",
    arguments: "[COMMAND]",
    about: "explain the program or one of its commands",
    details: "`-help` does the same, before or after a command.",
    flags: &[],
};

pub(crate) const COMPLETIONS: Command = Command {
    name: "completions",
    arguments: "bash|zsh|fish",
    about: "print completions for a shell",
    details: "Commands, flags and values; and the names of jobs, while a supervisor answers.\n\n\
              For bash: source <(containerpilot completions bash)\n\
              For zsh: containerpilot completions zsh > \"${fpath[1]}/_containerpilot\"\n\
              For fish: containerpilot completions fish > ~/.config/fish/completions/containerpilot.fish",
    flags: &[],
};

pub(crate) const MAN: Command = Command {
    name: "man",
    arguments: "",
    about: "print the manual page",
    details: "Read it with: containerpilot man | man -l -",
    flags: &[],
};

/// All subcommands.
pub(crate) const COMMANDS: &[&Command] = &[
    &RUN,
    &STATUS,
    &EXPLAIN,
    &HEALTH,
    &WAIT,
    &LOGS,
    &EVENTS,
    &START,
    &STOP,
    &RESTART,
    &SIGNAL,
    &RELOAD,
    &MAINTENANCE,
    &PUTENV,
    &PUTMETRIC,
    &PING,
    &CHECK,
    &RENDER,
    &GRAPH,
    &SIMULATE,
    &MIGRATE,
    &SCHEMA,
    &VERSION,
    &HELP,
    &COMPLETIONS,
    &MAN,
];

/// The exit codes (X6), for help and man page.
pub(crate) const EXIT_CODES: [(&str, &str); 3] =
    [("0", "done"), ("1", "it failed; standard error says why"), ("2", "the command line was wrong")];

/// The environment variables that are read.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    ("CONTAINERPILOT", "the configuration's path, or the configuration itself, where -config is not given"),
    ("CONTAINERPILOT_SOCKET", "the control socket's path, where the configuration names none"),
    ("NO_COLOR", "if set, nothing is printed in colour"),
    (
        "CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN, …",
        "Consul's own variables, see the manual's chapter on configuration",
    ),
];
