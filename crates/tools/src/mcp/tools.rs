//! The tools: their parameters, and the commands that they run.

use std::process::Command;

use serde_json::{Map, Value, json};

use super::confine;
use super::error::RpcError;
use super::run::{Outcome, Programs, run};

/// The most lines of `logs` and `events`.
const MOST_LINES: u64 = 1000;
const DEFAULT_LINES: u64 = 100;
/// The most variations of `simulate`.
const MOST_VARIATIONS: u64 = 10_000;
const MOST_JOBS: usize = 100;

/// A tool.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    title: &'static str,
    about: &'static str,
    parameters: &'static [Parameter],
    effect: Effect,
}

/// What a tool does to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// It only reads.
    None,
    /// It starts something.
    Adds,
    /// It ends processes.
    Ends,
}

#[derive(Debug)]
struct Parameter {
    name: &'static str,
    kind: Kind,
    is_required: bool,
    about: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    /// One or several names.
    Names,
    Flag,
    /// A number from 1 to this.
    Count(u64),
}

const JOB: &str = "the name of a job, `@GROUP`, or `watch.NAME`";

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { name, kind, is_required: false, about }
}

const fn required(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { name, kind, is_required: true, about }
}

const LINES: Parameter =
    optional("lines", Kind::Count(MOST_LINES), "how many of the last lines; 100 if it is missing");
const JOBS: Parameter = required("jobs", Kind::Names, "the names of jobs, or `@GROUP`");

const TOOLS: [Tool; 11] = [
    Tool {
        name: "status",
        title: "State of the jobs",
        about: "Shows the state, health, process, restarts and problems of all jobs and watches, or the details of one.",
        parameters: &[optional("job", Kind::Text, JOB)],
        effect: Effect::None,
    },
    Tool {
        name: "explain",
        title: "Why a job is in its state",
        about: "Shows why a job runs, waits, restarts or failed: the chain of unmet conditions down to the one that can be acted \
                on, or the events that led to its last run, and its last output.",
        parameters: &[required(
            "job",
            Kind::Text,
            "the name of a job, `@GROUP`, `watch.NAME`, `service.NAME`, `file.NAME` or `lock.NAME`",
        )],
        effect: Effect::None,
    },
    Tool {
        name: "logs",
        title: "Last output of jobs",
        about: "Shows the last lines that jobs have written, with their times. The text is that of the programs.",
        parameters: &[
            optional("jobs", Kind::Names, "the names of jobs, or `@GROUP`; all if it is missing"),
            LINES,
        ],
        effect: Effect::None,
    },
    Tool {
        name: "events",
        title: "Latest events",
        about: "Shows the latest events, one per line: time, number, source and code, and the number of the event that caused it.",
        parameters: &[LINES],
        effect: Effect::None,
    },
    Tool {
        name: "check",
        title: "Validate a configuration",
        about: "Validates a configuration file and summarizes what it does, or reports all errors with line and column. It does \
                not start anything.",
        parameters: &[
            required("path", Kind::Text, "a file below the working directory"),
            optional("strict", Kind::Flag, "whether warnings are errors"),
        ],
        effect: Effect::None,
    },
    Tool {
        name: "simulate",
        title: "Play a configuration in virtual time",
        about: "Runs a configuration file in virtual time and shows what happens, when and why, and which expectations of the \
                scenario hold. It does not start anything.",
        parameters: &[
            required("config", Kind::Text, "a file below the working directory"),
            optional(
                "scenario",
                Kind::Text,
                "a scenario below the working directory: what programs and checks do, and what is expected",
            ),
            optional("full", Kind::Flag, "whether repeated events are shown, too"),
            optional(
                "explore",
                Kind::Count(MOST_VARIATIONS),
                "try this many random variations with faults, and report what can go wrong",
            ),
        ],
        effect: Effect::None,
    },
    Tool {
        name: "replay",
        title: "Play a recording",
        about: "Plays the recording of a supervisor, which `containerpilot record` or `record: { file }` has written, and shows \
                what happened, when and why; with `at` and `question`, what status, explain or graph would have shown at that \
                time. It does not start anything.",
        parameters: &[
            required("file", Kind::Text, "a recording below the working directory"),
            optional(
                "from",
                Kind::Text,
                "show only what happened at this time and later, such as `03:12:07` (UTC)",
            ),
            optional("to", Kind::Text, "show only what happened until this time"),
            optional("at", Kind::Text, "answer `question` for this time"),
            optional("question", Kind::Text, "`status`, `explain` or `graph`"),
            optional("job", Kind::Text, "what status or explain is about"),
            optional("full", Kind::Flag, "whether repeated events are shown, too"),
        ],
        effect: Effect::None,
    },
    Tool {
        name: "start",
        title: "Start jobs",
        about: "Starts jobs now, without waiting for their conditions. It does not wait until they run.",
        parameters: &[JOBS],
        effect: Effect::Adds,
    },
    Tool {
        name: "stop",
        title: "Stop jobs",
        about: "Stops jobs gracefully; they stay stopped until they are started by hand. It does not wait until they have stopped.",
        parameters: &[JOBS],
        effect: Effect::Ends,
    },
    Tool {
        name: "restart",
        title: "Restart jobs",
        about: "Stops jobs gracefully and starts them again. It does not wait until they run.",
        parameters: &[JOBS],
        effect: Effect::Ends,
    },
    Tool {
        name: "reload",
        title: "Reload the configuration",
        about: "Makes the supervisor load its configuration again. Changed jobs are restarted and removed ones stopped; a \
                configuration with errors changes nothing.",
        parameters: &[],
        effect: Effect::Ends,
    },
];

/// The tools that a client sees.
pub(super) fn offered(control: bool) -> impl Iterator<Item = &'static Tool> {
    const { &TOOLS }.iter().filter(move |tool| control || tool.effect == Effect::None)
}

impl Tool {
    /// The entry in the list of tools.
    pub(super) fn description(&self) -> Value {
        let schema = |kind| match kind {
            Kind::Text => json!({ "type": "string" }),
            Kind::Names => {
                json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": MOST_JOBS })
            }
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Count(most) => json!({ "type": "integer", "minimum": 1, "maximum": most }),
        };
        let property = |parameter: &Parameter| {
            let mut schema = schema(parameter.kind);
            schema["description"] = json!(parameter.about);
            (parameter.name.to_owned(), schema)
        };
        let properties: Map<String, Value> = self.parameters.iter().map(property).collect();
        let required: Vec<&str> =
            self.parameters.iter().filter(|one| one.is_required).map(|one| one.name).collect();
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.about,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            },
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.effect == Effect::None,
                "destructiveHint": self.effect == Effect::Ends,
                "openWorldHint": false,
            },
        })
    }

    /// Runs the command of the tool.
    pub(super) fn call(
        &self,
        arguments: &Map<String, Value>,
        programs: &Programs,
    ) -> Result<Outcome, RpcError> {
        self.check(arguments)?;
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let is_on = |name: &str| arguments.get(name).and_then(Value::as_bool).unwrap_or(false);
        let count = |name: &str| arguments.get(name).and_then(Value::as_u64);
        let names = |name: &str| {
            arguments.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        };
        let is_in_tools = matches!(self.name, "simulate" | "replay");
        let program = if is_in_tools { &programs.tools } else { &programs.containerpilot };
        let mut command = Command::new(program);
        command.current_dir(&programs.folder).arg(self.name);
        let is_about_files = is_in_tools || self.name == "check";
        if let Some(socket) = programs.socket.as_ref().filter(|_| !is_about_files) {
            command.arg(format!("-socket={socket}"));
        }
        let path = |name| Some((name == "scenario", text(name)?.to_owned()));
        let paths: Vec<(bool, String)> =
            ["path", "config", "scenario", "file"].into_iter().filter_map(path).collect();
        if !paths.is_empty() {
            match confine::files(&programs.folder, paths) {
                // They begin with a slash.
                Ok(real) => drop(command.args(real)),
                Err(why) => return Ok(Outcome::failed(why)),
            }
        }
        if let Some(question) = text("question") {
            if !["status", "explain", "graph"].contains(&question) {
                return Err(RpcError::invalid_params("`question` must be `status`, `explain` or `graph`"));
            }
            command.arg(question);
        } else if self.name == "replay" && arguments.contains_key("job") {
            return Err(RpcError::invalid_params("`job` needs `question`"));
        }
        for name in ["from", "to", "at"] {
            if let Some(time) = text(name) {
                command.arg(format!("-{name}={time}"));
            }
        }
        for name in text("job").into_iter().chain(names("jobs")) {
            if name.is_empty() || name.starts_with('-') {
                return Ok(Outcome::failed(format!("there is no job `{name}`")));
            }
            command.arg(name);
        }
        if matches!(self.name, "logs" | "events") {
            command.arg(format!("-lines={}", count("lines").unwrap_or(DEFAULT_LINES)));
        }
        if self.name == "logs" {
            command.arg("-timestamps");
        }
        for flag in ["strict", "full"].into_iter().filter(|flag| is_on(flag)) {
            command.arg(format!("-{flag}"));
        }
        if let Some(variations) = count("explore") {
            command.arg(format!("-explore={variations}"));
        }
        Ok(run(&mut command))
    }

    /// Checks the arguments against the parameters.
    fn check(&self, arguments: &Map<String, Value>) -> Result<(), RpcError> {
        let wrong = |message: String| Err(RpcError::invalid_params(message));
        for (name, value) in arguments {
            let Some(parameter) = self.parameters.iter().find(|one| one.name == name) else {
                let known: Vec<&str> = self.parameters.iter().map(|one| one.name).collect();
                let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
                return wrong(format!("`{}` has no parameter `{name}`: {known}", self.name));
            };
            let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.contains('\0'));
            let (is_valid, wanted) = match parameter.kind {
                Kind::Text => (is_text(value), "a string".to_owned()),
                Kind::Flag => (value.is_boolean(), "true or false".to_owned()),
                Kind::Count(most) => (
                    value.as_u64().is_some_and(|count| (1..=most).contains(&count)),
                    format!("a whole number from 1 to {most}"),
                ),
                Kind::Names => (
                    value.as_array().is_some_and(|names| {
                        (1..=MOST_JOBS).contains(&names.len()) && names.iter().all(is_text)
                    }),
                    format!("a list of 1 to {MOST_JOBS} names"),
                ),
            };
            if !is_valid {
                return wrong(format!("`{name}` must be {wanted}"));
            }
        }
        match self.parameters.iter().find(|one| one.is_required && !arguments.contains_key(one.name)) {
            Some(missing) => wrong(format!("`{}` is missing: {}", missing.name, missing.about)),
            None => Ok(()),
        }
    }
}
