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
              Exits with 0 if the configuration is good (warnings are not mistakes), with 1 if not.",
    flags: &[&CONFIG, &FORMAT],
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
    details: "For bash: source <(containerpilot completions bash)\n\
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

/// What this version can and cannot do, for help and man page; remove it when it can do everything.
pub(crate) const STATE: &str = "This version supervises jobs. It does not speak to Consul yet: services and watches live in a catalog inside the \
     container. It has no control socket, so -reload, -maintenance, -putenv, -putmetric and -ping are refused.";

/// All subcommands.
pub(crate) const COMMANDS: &[&Command] =
    &[&RUN, &CHECK, &RENDER, &GRAPH, &MIGRATE, &SCHEMA, &VERSION, &HELP, &COMPLETIONS, &MAN];

/// Subcommands that are to come. They are known, so that nobody takes them for a program or a slip of the pen.
pub(crate) const PLANNED: &[&str] = &[
    "status",
    "start",
    "stop",
    "restart",
    "signal",
    "logs",
    "events",
    "explain",
    "reload",
    "maintenance",
    "putenv",
    "putmetric",
    "ping",
    "health",
    "wait",
    "simulate",
];

/// The exit codes (X6), for help and man page.
pub(crate) const EXIT_CODES: [(&str, &str); 3] =
    [("0", "done"), ("1", "it failed; standard error says why"), ("2", "the command line was wrong")];

/// The environment variables that are read.
pub(crate) const VARIABLES: [(&str, &str); 3] = [
    ("CONTAINERPILOT", "the configuration's path, or the configuration itself, where -config is not given"),
    ("NO_COLOR", "if set, nothing is printed in colour"),
    (
        "CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN, …",
        "Consul's own variables, see the manual's chapter on configuration",
    ),
];
