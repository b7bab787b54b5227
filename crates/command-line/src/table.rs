//! The table of commands and flags of both programs (X15). The parser, the help, the completions and the man page are
//! generated from it.

use crate::flags::{Flag, FlagKind};

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `containerpilot`: what runs in a container, or talks to a running supervisor.
    Containerpilot,
    /// `containerpilot-tools`: what works on files.
    Tools,
}

impl Program {
    /// The name of its executable.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Containerpilot => "containerpilot",
            Self::Tools => "containerpilot-tools",
        }
    }

    /// The other program.
    pub const fn other(self) -> Self {
        match self {
            Self::Containerpilot => Self::Tools,
            Self::Tools => Self::Containerpilot,
        }
    }

    /// The names of its commands, without those that both programs have.
    pub fn command_names(self) -> impl Iterator<Item = &'static str> {
        self.abouts().iter().map(|(name, _)| *name)
    }

    /// Each of these commands with the line about it. The texts of its help are not a part of a program that only asks
    /// for this.
    pub const fn abouts(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Containerpilot => &ABOUTS,
            Self::Tools => &TOOLS_ABOUTS,
        }
    }
}

/// A subcommand.
#[derive(Debug)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// The arguments as the help shows them. The parser counts them: `[X]` is optional, `X…` repeatable.
    pub arguments: &'static str,
    /// One line for the list of commands.
    pub about: &'static str,
    /// The text of `help COMMAND`.
    pub details: &'static str,
    /// The flags after its name.
    pub flags: &'static [&'static Flag],
}

impl Command {
    /// Returns true if a page of the manual has the same name: it is `help manual/NAME`.
    pub fn has_page(&self) -> bool {
        COMMANDS_WITH_PAGE.contains(&self.name)
    }
}

/// What `containerpilot` passes to the tools before all other arguments; its version follows.
pub const CALLED_BY: &str = "-called-by=";

/// The flags of `containerpilot-tools` without a command.
pub const TOOLS_FLAGS: &[&Flag] =
    &[&CONFIG, &Flag { name: "version", kind: FlagKind::Bool, help: "print the version and exit" }];

pub const CONFIG: Flag = Flag {
    name: "config",
    kind: FlagKind::Text("PATH"),
    help: "the configuration: a file, a directory with *.json5 and *.json files, or the JSON5 text itself",
};
pub const OUT: Flag = Flag {
    name: "out",
    kind: FlagKind::Text("FILE"),
    help: "the file to write to; `-` (the default) is standard output",
};
pub const FROM: Flag = Flag {
    name: "from",
    kind: FlagKind::Text("PROGRAM"),
    help: "the program whose configuration is converted: `supervisord`, `procfile`, `compose`, `process-compose`, `s6`, `systemd` or `pebble`",
};
pub const FROM_DOCKERFILE: Flag = Flag {
    name: "from",
    kind: FlagKind::Text("FILE"),
    help: "the Dockerfile whose program, port, health check, user and stop signal are taken over; `-` is standard input",
};
pub const WITH: Flag = Flag {
    name: "with",
    kind: FlagKind::Text("FILE"),
    help: "the deployment: a manifest of Kubernetes, a Compose file, a Nomad job or a Dockerfile; `-` is standard input",
};
pub const CONTAINER: Flag = Flag {
    name: "container",
    kind: FlagKind::Text("NAME"),
    help: "the container, service or task that runs the configuration, if the deployment has several",
};
pub const FORMAT: Flag =
    Flag { name: "format", kind: FlagKind::Text("FORMAT"), help: "`human` (the default) or `json`" };

pub const GRAPH_FORMAT: Flag = Flag {
    name: "format",
    kind: FlagKind::Text("mermaid|dot|svg"),
    help: "the output format; the default is `mermaid`",
};

pub const SIMULATE_FORMAT: Flag = Flag {
    name: "format",
    kind: FlagKind::Text("human|json|svg"),
    help: "the output format; the default is `human`, `svg` draws a picture",
};
pub const AT: Flag =
    Flag { name: "at", kind: FlagKind::Text("TIME"), help: "answer for this time, such as `03:12:07` (UTC)" };
pub const SCENARIO: Flag = Flag {
    name: "scenario",
    kind: FlagKind::Text("FILE"),
    help: "write a scenario for simulate, in which the world does what was recorded; `-` is standard output",
};
pub const WITH_CONFIG: Flag = Flag {
    name: "with",
    kind: FlagKind::Text("FILE"),
    help: "print what would have happened with another configuration",
};
pub const SHRINK: Flag = Flag {
    name: "shrink",
    kind: FlagKind::Text("SENTENCE"),
    help: "find the fewest facts that break a sentence, such as `never web crashLoop`",
};
pub const FROM_TIME: Flag = Flag {
    name: "from",
    kind: FlagKind::Text("TIME"),
    help: "print only what happened at this time and later",
};
pub const TO_TIME: Flag =
    Flag { name: "to", kind: FlagKind::Text("TIME"), help: "print only what happened until this time" };
pub const PAGE: Flag = Flag {
    name: "page",
    kind: FlagKind::Text("FILE"),
    help: "write a page for a browser, with a slider for the time, to this file",
};
pub const FULL: Flag =
    Flag { name: "full", kind: FlagKind::Bool, help: "show all events, including repeated ones" };
pub const EXPLORE: Flag = Flag {
    name: "explore",
    kind: FlagKind::Text("NUMBER"),
    help: "try this many random variations and report what can go wrong",
};
pub const SEED: Flag = Flag {
    name: "seed",
    kind: FlagKind::Text("SEED"),
    help: "replay a variation that -explore has found; with -explore, start another random series",
};

pub const SOCKET: Flag = Flag {
    name: "socket",
    kind: FlagKind::Text("PATH"),
    help: "the control socket of the supervisor; the default is the one in the configuration",
};
pub const CONTROL: Flag = Flag {
    name: "control",
    kind: FlagKind::Bool,
    help: "also offer what changes something: start, stop, restart and reload",
};
pub const DIFF: Flag = Flag {
    name: "diff",
    kind: FlagKind::Bool,
    help: "print what a reload of the running supervisor would change",
};
pub const STRICT: Flag = Flag { name: "strict", kind: FlagKind::Bool, help: "treat warnings as errors" };
pub const FOLLOW: Flag = Flag {
    name: "follow",
    kind: FlagKind::Bool,
    help: "keep printing new entries until the supervisor exits",
};
pub const LINES: Flag =
    Flag { name: "lines", kind: FlagKind::Text("NUMBER"), help: "print only the last NUMBER entries" };
pub const VERBOSE: Flag =
    Flag { name: "verbose", kind: FlagKind::Bool, help: "print all names, also of many jobs" };
pub const TIMESTAMPS: Flag =
    Flag { name: "timestamps", kind: FlagKind::Bool, help: "print the time of each line" };
pub const SINCE: Flag = Flag {
    name: "since",
    kind: FlagKind::Text("TIME"),
    help: "only lines since then: a duration such as 5m, or a time such as 2026-11-15T08:00:00Z",
};
pub const TIMEOUT: Flag =
    Flag { name: "timeout", kind: FlagKind::Text("TIME"), help: "how long to wait, such as 30s or 1m30s" };
pub const ANSWER_TIMEOUT: Flag = Flag {
    name: "timeout",
    kind: FlagKind::Text("TIME"),
    help: "how long to wait for the answer of the supervisor, such as 5s",
};
pub const ROLLING: Flag = Flag {
    name: "rolling",
    kind: FlagKind::Bool,
    help: "one replica at a time, each healthy before the next",
};
pub const INTERVAL: Flag = Flag {
    name: "interval",
    kind: FlagKind::Text("TIME"),
    help: "how often to refresh, from 100ms; the default is 2s",
};
pub const ONCE: Flag = Flag { name: "once", kind: FlagKind::Bool, help: "print one table and exit" };
pub const SORT: Flag = Flag {
    name: "sort",
    kind: FlagKind::Text("COLUMN"),
    help: "the column to sort by: job, state, health, restarts, pid, uptime, cpu or memory",
};
pub const ALL: Flag = Flag { name: "all", kind: FlagKind::Bool, help: "all jobs that can be in this state" };

/// The flags without a subcommand, which are those of ContainerPilot 3. The parser also knows `-help` and `-h`.
pub const MAIN_FLAGS: &[&Flag] = &[
    &CONFIG,
    &Flag {
        name: "template",
        kind: FlagKind::Bool,
        help: "render the template of the configuration, print the result and exit",
    },
    &OUT,
    &Flag { name: "version", kind: FlagKind::Bool, help: "print the version and exit" },
    &Flag {
        name: "reload",
        kind: FlagKind::Bool,
        help: "make the running supervisor reload its configuration",
    },
    &Flag {
        name: "maintenance",
        kind: FlagKind::Text("enable|disable"),
        help: "make the running supervisor enter or leave maintenance mode",
    },
    &Flag {
        name: "putenv",
        kind: FlagKind::Pairs,
        help: "set an environment variable in the running supervisor; repeatable",
    },
    &Flag {
        name: "putmetric",
        kind: FlagKind::Pairs,
        help: "send the value of a metric to the running supervisor; repeatable",
    },
    &Flag { name: "ping", kind: FlagKind::Bool, help: "check that the running supervisor answers" },
];

pub const RUN: Command = Command {
    name: "run",
    arguments: "[PATH] [-- PROGRAM ARGS…]",
    about: "supervise the jobs of the configuration (the default)",
    details: "Runs the jobs of the configuration. The configuration is PATH, or the one given with -config, or \
              with the environment variable CONTAINERPILOT, or else /etc/containerpilot.json5 or the directory \
              /etc/containerpilot.d. `containerpilot PATH` does the same if PATH exists, or ends in .json5 or \
              .json.\n\n\
              PROGRAM runs as the main job, in addition to the jobs of the configuration. When it exits, the \
              supervisor stops all other jobs and exits with its exit code. Without a configuration PROGRAM \
              runs alone, and every signal and standard input are passed on to it. With a ContainerPilot 2 \
              configuration the `--` may be omitted.\n\n\
              Signals:\n\
              SIGTERM, SIGINT, SIGQUIT: graceful shutdown of all jobs. A second one sends SIGKILL to all jobs.\n\
              SIGHUP: reload the configuration, unless a job waits for SIGHUP.\n\
              SIGUSR1: reopen the log file. With a ContainerPilot 2 configuration, also enter or leave \
              maintenance mode.\n\
              SIGUSR2: an event that jobs can wait for.\n\
              All other signals are ignored.\n\n\
              Exits with 0 after a shutdown by a signal, and when all jobs are complete and none of them \
              failed. Otherwise it exits with the code of the first job that failed: the job's own exit code, \
              128+N if it exited on signal number N, 127 if its program was not found, 126 if its program \
              could not be executed, or 125 if it could not be started for another reason.",
    flags: &[&CONFIG],
};

pub const CHECK: Command = Command {
    name: "check",
    arguments: "[PATH]",
    about: "validate a configuration without starting anything",
    details: "Prints `ok` and a summary of the configuration, or all errors in it. Each error names its line \
              and column in the file as you wrote it, before the template is rendered. `check` also finds what \
              can never work: conditions that are never met, jobs that wait for each other; and warns about \
              what may not work as intended. PATH may be `-` for standard input.\n\n\
              With --diff, the running supervisor reads its own configuration again and reports what a reload \
              would do to its jobs. Nothing is changed.\n\n\
              Exits with 0 if the configuration is valid (warnings are allowed, except with --strict), with 1 if not.",
    flags: &[&CONFIG, &FORMAT, &STRICT, &DIFF, &SOCKET, &VERBOSE],
};

pub const AUDIT: Command = Command {
    name: "audit",
    arguments: "[PATH]",
    about: "compare a configuration with a manifest, Compose file, Nomad job or Dockerfile",
    details: "Finds what will go wrong in the deployment: a stop that takes longer than the grace period, probes that ask for what \
              nothing serves, a stop signal that does not stop, a command that does not start containerpilot, a socket or file on a \
              read-only root, users that cannot be switched to, and memory limits of jobs that exceed that of the container. Each \
              finding names its line in the deployment, its place in the configuration, what will happen, and what to do.\n\n\
              FILE has one or several documents of Kubernetes (Deployment, StatefulSet, DaemonSet, Job, CronJob, Pod), services of \
              Compose, a Nomad job in HCL or JSON, or is a Dockerfile, of which the last stage counts. The container is the one whose command, image, files or probes mention \
              containerpilot, or the only one, or that of --container. Its variables are used to render the template.\n\n\
              Exits with 0 if there are no errors (with --strict: and no warnings), with 1 if there are, and with 2 \
              if a file cannot be read.\n\n\
              For example: helm template shop | containerpilot audit app.json5 --with -",
    flags: &[&CONFIG, &WITH, &CONTAINER, &FORMAT, &STRICT],
};

pub const RENDER: Command = Command {
    name: "render",
    arguments: "[PATH]",
    about: "print a configuration with its template rendered",
    details: "Renders the template with the environment, as the supervisor does, and prints only the result. \
              PATH may be `-` for standard input. `-template` does the same.",
    flags: &[&CONFIG, &OUT],
};

pub const MIGRATE: Command = Command {
    name: "migrate",
    arguments: "[PATH…] [-- PROGRAM ARGS…]",
    about: "convert a configuration of ContainerPilot 2 or of another supervisor",
    details: "With --from, PATH is the configuration of another program: a file, several files, or a directory, as that \
              program has it, or `-` for one file on standard input. Each key of the printed file has the line that it comes from as \
              a comment. What has no exact equivalent is listed at the top of the file and on standard error, one line each, and \
              the exit code is 3. \
              `containerpilot check` reads the result.\n\n\
              Without --from, PATH is a ContainerPilot 2 configuration, or `-` for standard input. Such files also run as \
              they are; `migrate` is for editing one further. The printed version 3 file has comments and means the \
              same: this is verified before it is printed. Template actions inside values are kept; template \
              actions around values are evaluated with the current environment. What has no counterpart in \
              version 3 is listed at the top of the file and on standard error. \
              PROGRAM is the main program, which ContainerPilot 2 takes from the command line. It becomes a job \
              of the new file.",
    flags: &[&CONFIG, &FROM],
};

pub const INIT: Command = Command {
    name: "init",
    arguments: "[FOLDER]",
    about: "write a first configuration, the lines for a Dockerfile, and a scenario",
    details: "Writes three files into FOLDER (default: this folder; it is created): containerpilot.json5, with comments; \
              Dockerfile.containerpilot, which adds containerpilot and the configuration to an image; and \
              containerpilot.scenario.json5, for `simulate`. Then it shows what `check` and `audit` say about them.\n\n\
              On a terminal it asks for the program, its port, its health check, another program beside it, and a setup that runs \
              before. Ctrl-C and the end of the input write nothing. Without a terminal it asks nothing, reads no input, and \
              takes the defaults. With --from, it takes ENTRYPOINT, CMD, EXPOSE, HEALTHCHECK, USER and STOPSIGNAL of the last \
              stage of a Dockerfile, with the values of ENV and the defaults of ARG, and asks nothing.\n\n\
              No file is overwritten: if one of the three exists, nothing is written, and the exit code is 2.\n\n\
              Exits with 0 if the files are written and have no errors, with 1 if not, and with 2 if a file exists or the \
              Dockerfile cannot be converted.\n\n\
              For example: containerpilot-tools init pilot --from Dockerfile",
    flags: &[&FROM_DOCKERFILE],
};

pub const MCP: Command = Command {
    name: "mcp",
    arguments: "",
    about: "serve an agent: status, logs, check, simulate and replay as tools of the Model Context Protocol",
    details: "A server of the Model Context Protocol on standard input and output, for an agent that starts this command. Its \
              tools are status, explain, logs and events of a running supervisor, and check, simulate and replay of files \
              below the working directory. With --control also start, stop, restart and reload.\n\n\
              Each tool runs the command of the same name, for at most a minute. Ends with 0 at the end of the input.\n\n\
              `containerpilot help agents` says how a client is configured.",
    flags: &[&SOCKET, &CONTROL],
};

pub const STATUS: Command = Command {
    name: "status",
    arguments: "[JOB]",
    about: "show the state of all jobs, or the details of one",
    details: "Prints one line per job: state, health (`-` without checks or while it is not running), pid, uptime, number of \
              restarts, and what the job waits for or what went wrong. The watches and their healthy instances \
              follow.\n\n\
              The states are waiting (for its condition), starting, running, restarting (it exited and will run \
              again after its back-off), stopping, stopped (by hand, by a reload or by the shutdown), complete (it \
              will not run again), failed (its last run failed, and it will not run again) and skipped (it never \
              ran and never will).\n\n\
              With JOB, or `watch.NAME` for a watch, prints all details of it; with `@GROUP`, one line per job \
              of the group. If several jobs share a name, \
              NAME:2 is the second of them. `containerpilot explain JOB` shows why a job is in its state.",
    flags: &[&CONFIG, &SOCKET, &FORMAT],
};

pub const EXPLAIN: Command = Command {
    name: "explain",
    arguments: "JOB",
    about: "show why a job is or is not running, or what a watch knows",
    details: "Prints the state of the job. For a waiting job it prints the chain of unmet conditions, down to \
              the one you can act on. For a running or failed job it prints the events that led to its last run. \
              For a job whose last run failed it prints how that exited, how many runs in a row failed, when the \
              next one starts, and its last lines of output.\n\n\
              JOB may also be `watch.NAME`, for the instances that a watch sees and the jobs that it starts, or \
              `service.NAME`, for the job that advertises a service, or `@GROUP`, for every job of a group.",
    flags: &[&CONFIG, &SOCKET, &FORMAT],
};

pub const TOP: Command = Command {
    name: "top",
    arguments: "",
    about: "show the jobs live on a terminal, with their CPU time and memory",
    details: "Shows a table of all jobs that is refreshed while it is shown. Keys: arrows, Page Up, Page Down, Home and End \
              move; `/` filters by text; `<` and `>` choose the column to sort by, `o` reverses the order; Enter or `l` \
              shows the last lines of the job, `e` explains it; `s`, `t`, `r` and `k` start it, stop it, restart it and \
              send it a signal, after a question; `q` quits. `?` lists all keys.\n\n\
              CPU is that of the last interval: 100% is one processor. Both CPU and memory are those of all processes of the \
              current run. If the supervisor does not answer, `top` says so and tries again.\n\n\
              If standard input or output is not a terminal, prints the table at each interval; with --once, one table.",
    flags: &[&CONFIG, &SOCKET, &INTERVAL, &SORT, &ONCE],
};

pub const ANALYZE: Command = Command {
    name: "analyze",
    arguments: "",
    about: "show what determined when the container was ready",
    details: "Prints the critical path of the start: the chain of jobs and waits that led to the job that was ready last, with the \
              time of each step, what to look at first, and when each job was started and ready. A job is ready when it is \
              healthy, or done if it runs once, or started if it has no checks.\n\n\
              The journal of the running supervisor is read. If it no longer reaches back to the start, the command fails.\n\n\
              For example: containerpilot analyze --format json --out start.json",
    flags: &[&CONFIG, &SOCKET, &FORMAT, &OUT],
};

pub const HEALTH: Command = Command {
    name: "health",
    arguments: "[JOB]",
    about: "report whether the container, or one job, is healthy",
    details: "Prints one line with the reason. Exits with 0 if healthy, with 1 if not. Meant for an image: \
              HEALTHCHECK CMD [\"containerpilot\", \"health\"]\n\n\
              The container is healthy if it is not shutting down and all jobs that have checks and should be \
              running pass them. Jobs that are waiting, complete, skipped or stopped by hand do not count; a job \
              that has failed does. It is not healthy if nothing can happen any more, because all jobs wait for the \
              stop of others that wait. In maintenance mode checks are suspended, and the container counts as healthy.",
    flags: &[&CONFIG, &SOCKET, &ANSWER_TIMEOUT],
};

pub const WAIT: Command = Command {
    name: "wait",
    arguments: "[JOB…] STATE",
    about: "wait until jobs are in a state",
    details: "STATE is running, healthy, unhealthy, waiting, stopped (it has ended in any way), complete (it \
              has ended successfully), failed or skipped (it never ran and never will). JOB may be `@GROUP`. With several jobs, all of \
              them must be in the state; with --all, every job that does work and can be in it: a job that runs \
              repeatedly or is complete need not be running, and one that is restarted without limit need not be \
              complete.\n\n\
              Exits with 0 when the state is reached, and with 1 when it can no longer be reached or when \
              --timeout has passed. With --timeout, `wait` also waits for a supervisor that does not answer yet.\n\
              \n\
              For example: containerpilot wait db healthy --timeout 30s",
    flags: &[&CONFIG, &SOCKET, &TIMEOUT, &ALL],
};

pub const LOGS: Command = Command {
    name: "logs",
    arguments: "[JOB…]",
    about: "show the last lines that jobs have written",
    details: "JOB may be `@GROUP`. For one job, prints its lines unchanged. For several jobs, or for all jobs if none is named, \
              prints the lines in the order of their times, with the name of the job in front of each. The \
              supervisor keeps the last lines of each job in memory, except for jobs with `logging: { raw: true \
              }`.",
    flags: &[&CONFIG, &SOCKET, &FOLLOW, &LINES, &TIMESTAMPS, &SINCE],
};

pub const EVENTS: Command = Command {
    name: "events",
    arguments: "",
    about: "show the latest events",
    details: "Prints one line per event: time, number, source and code, and the number of the event that caused \
              it. An exit is shown with its status, with what ended the run if the process did not exit by \
              itself, and with the event that had started the run. The start of a run, which is not an event, has \
              a line without a number. The supervisor keeps the last 1,000 events. With --format json, each line \
              is a JSON object.",
    flags: &[&CONFIG, &SOCKET, &FOLLOW, &LINES, &FORMAT],
};

pub const REPLAY: Command = Command {
    name: "replay",
    arguments: "FILE [QUESTION] [NAME]",
    about: "play a recording: what happened, and what status and explain would have said",
    details: "Plays a recording of `containerpilot record`, or of `record: { file }`, on the same decisions, and compares what \
              they lead to with the recording. Prints the timeline, in UTC, with what caused each entry; --from and --to \
              print a part of it.\n\n\
              With --at TIME, QUESTION is `status`, `status JOB`, `explain JOB` or `graph`: what that command would have printed at \
              that time, also with `--format json`. TIME is \
              a time of day in UTC, RFC 3339, or `end`. What was known about Consul, the output of jobs, \
              their memory and the pid of the supervisor are not in a recording.\n\n\
              --page writes one HTML file that shows the recording as the live page shows a supervisor, with a slider for the \
              time. It needs no server and no network.\n\n\
              --scenario writes what the world did as a scenario: programs, checks, watches, locks and people behave as they \
              did. `simulate` with the configuration of that time shows the same events, and a warning says what differs. \
              --with FILE simulates that world with another configuration, and prints first what it has to assume. \
              --shrink SENTENCE prints the fewest facts that break a sentence, or writes them with --scenario, with the \
              sentence in `expect`. A sentence is `never MOMENT`, `MOMENT before 10s`, `MOMENT within 5s of MOMENT`, \
              `JOB is STATE at 1m` or `exit with CODE`. The exit code is 0 if the recording keeps it, and 1 if it breaks \
              it.\n\n\
              A recording can only be played by the version that made it.\n\n\
              For example: containerpilot-tools replay incident.cprec --at 03:12:07 explain web",
    flags: &[
        &AT,
        &FROM_TIME,
        &TO_TIME,
        &PAGE,
        &FULL,
        &SIMULATE_FORMAT,
        &OUT,
        &SCENARIO,
        &WITH_CONFIG,
        &SHRINK,
    ],
};

pub const RECORD: Command = Command {
    name: "record",
    arguments: "",
    about: "write the recording of what has happened so far to a file",
    details: "The supervisor records what it was told, and when: starts, exits, checks, answers of watches, signals and \
              requests. The recording begins with the start, or as far back as `record: { memory }` reaches. It has no \
              environment values, no output and no secrets: these are hashes.\n\n\
              It is not text: redirect it, or use --out.\n\n\
              For example: containerpilot record > incident.cprec",
    flags: &[&CONFIG, &SOCKET, &OUT],
};

pub const START: Command = Command {
    name: "start",
    arguments: "JOB…",
    about: "start jobs now, without waiting for their conditions",
    details: "JOB may be `@GROUP`, for every job of a group. A job that is already running is left alone. The command does not wait until the job runs; use \
              `containerpilot wait JOB running` for that.",
    flags: &[&CONFIG, &SOCKET],
};

pub const STOP: Command = Command {
    name: "stop",
    arguments: "JOB…",
    about: "stop jobs gracefully; they stay stopped until started by hand",
    details: "JOB may be `@GROUP`, for every job of a group. The job stops as in a shutdown: its hooks (jobs with `when: { source: JOB, once: \"stopping\" }`) \
              run first, then its service is deregistered and drained, then it gets its `stopSignal`. The \
              command does not wait until the job has stopped; use `containerpilot wait JOB stopped` for that.",
    flags: &[&CONFIG, &SOCKET],
};

pub const RESTART: Command = Command {
    name: "restart",
    arguments: "JOB…",
    about: "stop jobs gracefully and start them again",
    details: "A job that is not running is only started. JOB may also be a job with `replicas`, for all of them, or `@GROUP`, \
              for every job of a group. The command does \
              not wait until the job runs; use `containerpilot wait JOB healthy` for that.\n\n\
              With --rolling, the replicas of a job are restarted one at a time: each must be healthy (or running, if it has no \
              checks) before the next is stopped. If one does not get so far, the rest is not restarted. The command \
              waits until that is done.",
    flags: &[&CONFIG, &SOCKET, &ROLLING],
};

pub const SCALE: Command = Command {
    name: "scale",
    arguments: "JOB=NUMBER…",
    about: "change the number of replicas of jobs",
    details: "Starts or stops replicas of a job that has `replicas`, until there are NUMBER of them: at least 1, and at most one for \
              each port. The other replicas keep running. The command waits until that is done. A reload keeps the number \
              as long as `replicas` in the configuration is unchanged.\n\n\
              For example: containerpilot scale web=4",
    flags: &[&CONFIG, &SOCKET],
};

pub const SIGNAL: Command = Command {
    name: "signal",
    arguments: "JOB SIGNAL",
    about: "send a signal to the process group of a job",
    details: "SIGNAL is a name, with or without SIG, or a number. JOB may be `@GROUP`, for every job of a group.\n\n\
              For example: containerpilot signal nginx HUP",
    flags: &[&CONFIG, &SOCKET],
};

pub const EXEC: Command = Command {
    name: "exec",
    arguments: "JOB -- PROGRAM [ARGS…]",
    about: "run a command with the environment of a job",
    details: "Runs PROGRAM in this terminal with what a process of the job would get now: its variables and secrets, \
              user and groups, working directory, umask, limits, nice value and capabilities. The job need not be running. \
              The command is not a part of the job: its output is not logged, and a stop of the job does not end it.\n\n\
              Only root and the user of the supervisor may do this; a job of another user needs root.\n\n\
              Exits with the code of PROGRAM; with 127 if it was not found, 126 if it could not be executed, and 125 if \
              anything else failed before that.\n\n\
              For example: containerpilot exec web -- sh",
    flags: &[&CONFIG, &SOCKET],
};

pub const RELOAD: Command = Command {
    name: "reload",
    arguments: "",
    about: "make the supervisor reload its configuration",
    details: "Jobs whose definition has not changed keep running. Changed jobs are stopped and started again, \
              removed jobs are stopped, new jobs are started. The command waits until the reload is done and \
              prints what it did: names, or the number of jobs if they are many. If the new configuration has errors, they are printed and the old \
              configuration stays in force. `check --diff` shows what a reload would do. `-reload` does the \
              same as this command, and so does SIGHUP, unless a job waits for SIGHUP.",
    flags: &[&CONFIG, &SOCKET, &FORMAT, &VERBOSE],
};

pub const MAINTENANCE: Command = Command {
    name: "maintenance",
    arguments: "enable|disable|status",
    about: "enter or leave maintenance mode, or show whether it is on",
    details: "In maintenance mode all services are deregistered and all checks are suspended, while the jobs \
              keep running. `-maintenance` does the same.",
    flags: &[&CONFIG, &SOCKET],
};

pub const PUTENV: Command = Command {
    name: "putenv",
    arguments: "KEY=VALUE…",
    about: "set environment variables for processes started from now on",
    details: "An empty VALUE removes the variable. Running processes keep their environment until a reload. Values are never \
              logged. `-putenv` does the same.",
    flags: &[&CONFIG, &SOCKET],
};

pub const PUTMETRIC: Command = Command {
    name: "putmetric",
    arguments: "KEY=VALUE…",
    about: "send values for the metrics of the configuration",
    details: "KEY is the full name of a metric in `telemetry`. VALUE is a number: it is added to a counter, set \
              as the value of a gauge, or observed by a histogram or summary. If one pair is invalid, none is \
              taken. `-putmetric` does the same.",
    flags: &[&CONFIG, &SOCKET],
};

pub const PING: Command = Command {
    name: "ping",
    arguments: "",
    about: "check that the supervisor answers",
    details: "Prints `ok` if it does. `-ping` does the same.",
    flags: &[&CONFIG, &SOCKET],
};

pub const GRAPH: Command = Command {
    name: "graph",
    arguments: "[PATH]",
    about: "draw the jobs of a configuration and what starts them",
    details: "An arrow leads from the source of an event to the job that it starts: a thick arrow starts the \
              job each time, a thin arrow once. A dashed arrow starts nothing: it shuts down the container, or \
              shows that a watch sees the service. Nothing is run, and no supervisor is needed.\n\n\
              Many Markdown viewers draw Mermaid. DOT is for Graphviz: containerpilot graph --format dot | dot \
              -Tpng > graph.png. SVG is for a browser: containerpilot graph --format svg --out graph.svg",
    flags: &[&CONFIG, &GRAPH_FORMAT, &OUT],
};

pub const SIMULATE: Command = Command {
    name: "simulate",
    arguments: "[CONFIG] [SCENARIO]",
    about: "run a configuration in virtual time, without starting anything",
    details: "Simulates the configuration with the supervisor's own rules and prints what happens, when and \
              why. SCENARIO is a JSON5 file that describes the simulated environment: how long programs run and \
              how they exit, the results of checks, the instances that watches see, signals and commands, \
              Consul outages. `expect` in it lists the expected results. Without a scenario, tasks exit \
              successfully after one second and services run until they are stopped.\n\n\
              With --explore, random faults are injected in many variations. Every job that waits forever, \
              never starts or does not stop in time is reported, with the smallest set of faults that causes it \
              and a seed for --seed.\n\n\
              Exits with 0 if all expectations are met, with 1 if not, and with 2 if the configuration or the \
              scenario has errors.\n\n\
              For example: containerpilot simulate app.json5 app.scenario.json5 --format svg --out app.svg",
    flags: &[&CONFIG, &SIMULATE_FORMAT, &OUT, &FULL, &EXPLORE, &SEED],
};

pub const SCHEMA: Command = Command {
    name: "schema",
    arguments: "",
    about: "print the JSON Schema of the configuration",
    details: "For editors: save the schema, and refer to it with the key `$schema` in a configuration or in the \
              settings of the editor.",
    flags: &[],
};

pub const VERSION: Command = Command {
    name: "version",
    arguments: "",
    about: "print the version",
    details: "`-version` does the same.",
    flags: &[],
};

pub const HELP: Command = Command {
    name: "help",
    arguments: "[TOPIC…]",
    about: "print help for the program, a command or a page of the manual",
    details: "TOPIC is a command, or a page of the manual such as `jobs`. The manual is a part of containerpilot-tools: `containerpilot \
              help topics` lists its pages.\n\n\
              `-help` prints the help for the program or, after a command, that of the command.",
    flags: &[],
};

pub const TOOLS_HELP: Command = Command {
    name: "help",
    arguments: "[TOPIC…]",
    about: "print help for the program, a command or a page of the manual",
    details: "TOPIC is a command, a page such as `jobs`, or a part of a page, such as `jobs#start-limit`. `help topics` \
              lists the pages. If a command has the same name, the page is `manual/NAME`. The name of a key of the \
              configuration, such as `stopTimeout`, prints its entry in the reference. For other words, such as \
              `help crash loop`, the entries of the index are printed.\n\n\
              The pages fit the width of the terminal. For a pager: containerpilot help jobs | less\n\n\
              `-help` prints the help for the program or, after a command, that of the command.",
    flags: &[],
};

pub const COMPLETIONS: Command = Command {
    name: "completions",
    arguments: "bash|zsh|fish",
    about: "print completions for a shell",
    details: "Completes commands, flags, values and, while the supervisor answers, the names of its jobs.\n\n\
              For bash: source <(containerpilot completions bash)\n\
              For zsh: containerpilot completions zsh > \"${fpath[1]}/_containerpilot\"\n\
              For fish: containerpilot completions fish > ~/.config/fish/completions/containerpilot.fish",
    flags: &[],
};

pub const MAN: Command = Command {
    name: "man",
    arguments: "",
    about: "print the manual page",
    details: "Read it with: containerpilot man | man -l -",
    flags: &[],
};

/// The commands of `containerpilot`, in the order of the help.
pub const COMMANDS: &[&Command] = &[
    &RUN,
    &STATUS,
    &EXPLAIN,
    &ANALYZE,
    &TOP,
    &HEALTH,
    &WAIT,
    &LOGS,
    &EVENTS,
    &RECORD,
    &START,
    &STOP,
    &RESTART,
    &SCALE,
    &SIGNAL,
    &EXEC,
    &RELOAD,
    &MAINTENANCE,
    &PUTENV,
    &PUTMETRIC,
    &PING,
    &CHECK,
    &RENDER,
    &VERSION,
    &HELP,
];

/// The commands of `containerpilot-tools`, in the order of the help.
pub const TOOLS: &[&Command] = &[
    &INIT,
    &SIMULATE,
    &REPLAY,
    &GRAPH,
    &AUDIT,
    &MIGRATE,
    &MCP,
    &SCHEMA,
    &COMPLETIONS,
    &MAN,
    &VERSION,
    &TOOLS_HELP,
];

/// Both programs have these, at the end of their lists.
const SHARED: usize = 2;

const ABOUTS: [(&str, &str); COMMANDS.len() - SHARED] = abouts(COMMANDS);
const TOOLS_ABOUTS: [(&str, &str); TOOLS.len() - SHARED] = abouts(TOOLS);

const fn abouts<const N: usize>(commands: &[&Command]) -> [(&'static str, &'static str); N] {
    let mut abouts = [("", ""); N];
    let mut next = 0;
    while next < N {
        abouts[next] = (commands[next].name, commands[next].about);
        next += 1;
    }
    abouts
}

/// The commands whose name is that of a page of the manual, too.
const COMMANDS_WITH_PAGE: [&str; 3] = ["health", "reload", "simulate"];

/// The exit codes (X6).
pub const EXIT_CODES: [(&str, &str); 5] = [
    ("0", "success"),
    ("1", "failure; the reason is on standard error"),
    ("2", "invalid command line; for `simulate`, `audit` and `init` also an invalid file"),
    (
        "3",
        "for `migrate --from`: the file was printed, but something of the original has no exact equivalent",
    ),
    (
        "other",
        "`run` exits with the code of the first job that failed, `exec` with that of its program, see `containerpilot help run`",
    ),
];

/// The environment variables of the program.
pub const VARIABLES: &[(&str, &str)] = &[
    ("CONTAINERPILOT", "the path of the configuration, or its text; -config overrides it"),
    ("CONTAINERPILOT_SOCKET", "the path of the control socket, if the configuration has none"),
    ("NO_COLOR", "if set, the output has no colours"),
    ("CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN, …", "the variables of Consul's own tools, see the manual"),
];
