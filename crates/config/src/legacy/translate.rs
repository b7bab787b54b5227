//! Translates the keys of version 2.
//!
//! The main program is a job that shuts the container down when it exits. Services are jobs without `exec`, because version 2
//! checks and advertises them regardless of what runs. Hooks are jobs that wait for `stopping` and `stopped` of the main program. With a
//! `preStart`, everything waits for it, and the hooks of a program that never started do not run.

use crate::decode::Spanned;
use crate::json5::{Member, Node, Value};
use crate::legacy::fields::LegacyFields;
use crate::legacy::program::ProgramWord;
use crate::legacy::tree::{Piece, TreeEntry};
use crate::lower::PRE_START;
use crate::service_name::is_service_name;
use crate::span::Span;

/// Translates a file without errors.
pub(crate) fn translate(
    span: Span,
    top: &[Member],
    fields: &LegacyFields,
    program: Option<&[ProgramWord]>,
) -> Vec<TreeEntry> {
    let translation = Translation {
        top,
        fields,
        here: Span::at(span.start as usize),
        main: program.map(|_| main_name(fields)),
        program,
    };
    translation.file()
}

struct Translation<'a> {
    top: &'a [Member],
    fields: &'a LegacyFields,
    /// The place of values that are not in the old file.
    here: Span,
    /// The name of the job of the main program.
    main: Option<String>,
    program: Option<&'a [ProgramWord]>,
}

/// The last member with a key, unless it is null.
fn get<'n>(members: &'n [Member], key: &str) -> Option<&'n Member> {
    let found = members.iter().rev().find(|member| member.key.eq_ignore_ascii_case(key));
    found.filter(|member| member.value.value != Value::Null)
}

/// An entry with a new key and the value of an old key.
fn renamed(members: &[Member], old: &str, new: &'static str) -> Option<TreeEntry> {
    get(members, old).map(|member| TreeEntry::new(new, member.key_span, Piece::of(&member.value)))
}

/// The objects in a list of the old file, each with its decoded section.
fn each<'n, S>(
    members: &'n [Member],
    key: &str,
    sections: &'n Option<Spanned<Vec<S>>>,
) -> impl Iterator<Item = (&'n Node, &'n [Member], &'n S)> {
    let items = match get(members, key).map(|member| &member.value.value) {
        Some(Value::List(items)) => items.as_slice(),
        _ => &[],
    };
    let objects = items.iter().filter_map(|item| match &item.value {
        Value::Object(inner) => Some((item, inner.as_slice())),
        _ => None,
    });
    let sections = sections.iter().flat_map(|given| &given.value);
    objects.zip(sections).map(|((node, inner), section)| (node, inner, section))
}

/// The name of the job of the main program: `app`, so that its process id is in `CONTAINERPILOT_APP_PID` as in version 2, or
/// another name if that is used.
pub(crate) fn main_name(fields: &LegacyFields) -> String {
    let text = |given: &Option<Spanned<String>>| given.as_ref().map(|given| given.value.clone());
    let services = fields.services.iter().flat_map(|given| &given.value).filter_map(|one| text(&one.name));
    let tasks = fields.tasks.iter().flat_map(|given| &given.value).filter_map(|one| text(&one.name));
    let coprocesses =
        fields.coprocesses.iter().flat_map(|given| &given.value).filter_map(|one| text(&one.name));
    let used: Vec<String> = services.chain(tasks).chain(coprocesses).collect();
    let numbered = (2..).map(|nth| format!("app-{nth}"));
    let mut names = ["app", "main", "program"].map(str::to_owned).into_iter().chain(numbered);
    names.find(|name| !used.contains(name)).unwrap_or_default()
}

/// The valid form of a name with `_`, which version 2 rejected too but which files contain.
pub(super) fn with_dashes(name: &str) -> Option<String> {
    let valid = name.replace('_', "-");
    (!is_service_name(name) && is_service_name(&valid)).then_some(valid)
}

impl Translation<'_> {
    fn file(&self) -> Vec<TreeEntry> {
        let mut file = Vec::new();
        file.extend(renamed(self.top, "consul", "consul"));
        file.extend(renamed(self.top, "logging", "logging"));
        file.extend(self.stop_timeout());
        let jobs = self.jobs();
        if !jobs.is_empty() {
            file.push(TreeEntry::new("jobs", self.here, Piece::List(self.here, jobs)));
        }
        file.extend(self.watches());
        file.extend(renamed(self.top, "coprocesses", "coprocesses").map(
            |entry| match self.fields.pre_start {
                Some(_) => entry.noted("They start when the job `preStart` has exited."),
                None => entry,
            },
        ));
        file.extend(self.telemetry());
        file
    }

    fn has(&self, key: &str) -> bool {
        get(self.top, key).is_some()
    }

    /// In both versions the timeout of a process starts when it gets its stop signal. A negative one kills it at once.
    fn given_stop_timeout(&self) -> i64 {
        self.fields.stop_timeout.as_ref().map_or(0, |given| given.value)
    }

    fn stop_timeout(&self) -> Option<TreeEntry> {
        renamed(self.top, "stopTimeout", "stopTimeout").filter(|_| self.given_stop_timeout() > 0)
    }

    fn jobs(&self) -> Vec<Piece> {
        let mut jobs = Vec::new();
        if let Some(member) = get(self.top, "preStart") {
            let mut job = Self::hook(member, PRE_START);
            job.push(self.entry("onFailure", "shutdown"));
            jobs.push(Piece::Object(member.value.span, job));
        }
        jobs.extend(self.main_job());
        jobs.extend(each(self.top, "services", &self.fields.services).map(|(node, inner, service)| {
            let name = service.name.as_ref().map_or("", |given| given.value.as_str());
            self.service(node, inner, name)
        }));
        for (node, inner, backend) in each(self.top, "backends", &self.fields.backends) {
            let name = backend.name.as_ref().map_or("", |given| given.value.as_str());
            jobs.push(Self::on_change(node, inner, name));
        }
        for (node, inner, task) in each(self.top, "tasks", &self.fields.tasks) {
            let command = task.command.as_ref().map(|given| given.value.line()).unwrap_or_default();
            jobs.push(Self::task(node, inner, &command));
        }
        jobs.extend(self.pre_stop());
        jobs.extend(self.post_stop());
        jobs
    }

    /// A job that runs a hook.
    fn hook(member: &Member, name: &'static str) -> Vec<TreeEntry> {
        let note = match name {
            PRE_START => "Runs before everything else; if it fails, the container exits with its exit code.",
            "preStop" => "Runs before the program gets its stop signal.",
            _ => "Runs after the program has exited.",
        };
        vec![
            TreeEntry::new("name", member.key_span, Piece::text(name, member.key_span)).noted(note),
            TreeEntry::new("exec", member.key_span, Piece::of(&member.value)),
        ]
    }

    /// An entry with a string that is not in the old file.
    fn entry(&self, key: &'static str, word: &str) -> TreeEntry {
        TreeEntry::new(key, self.here, Piece::text(word, self.here))
    }

    fn object(&self, key: &'static str, entries: Vec<TreeEntry>) -> TreeEntry {
        TreeEntry::new(key, self.here, Piece::Object(self.here, entries))
    }

    fn after_pre_start(&self) -> Option<TreeEntry> {
        self.has("preStart").then(|| {
            self.object("when", vec![self.entry("source", PRE_START), self.entry("once", "exitSuccess")])
        })
    }

    fn main_job(&self) -> Option<Piece> {
        let (program, name) = (self.program?, self.main.as_ref()?);
        let words = program.iter().map(|ProgramWord { given, rendered, has_address }| {
            // A template action is kept if it can be written in a string, and a version 3 file has its variables.
            let plain = !given.contains(['"', '\\', '\n', '\r']) && given.contains("{{") && !has_address;
            if plain {
                Piece::literal(rendered, format!("\"{given}\""), self.here)
            } else {
                Piece::text(rendered, self.here)
            }
        });
        let mut job = vec![
            self.entry("name", name)
                .noted("The main program: when it exits, the container exits with its exit code."),
            TreeEntry::new("exec", self.here, Piece::List(self.here, words.collect())),
        ];
        job.extend(self.after_pre_start());
        if self.given_stop_timeout() < 0 {
            job.push(self.entry("stopSignal", "SIGKILL"));
        }
        job.push(self.entry("onSuccess", "shutdown"));
        job.push(self.entry("onFailure", "shutdown"));
        job.push(self.object("logging", vec![TreeEntry::new("raw", self.here, Piece::yes(self.here))]));
        Some(Piece::Object(self.here, job))
    }

    fn service(&self, node: &Node, inner: &[Member], name: &str) -> Piece {
        let mut job = Vec::new();
        if let Some(member) = get(inner, "name") {
            let piece = match with_dashes(name) {
                Some(valid) => Piece::text(valid, member.value.span),
                None => Piece::of(&member.value),
            };
            let note = "Checks and advertises a service; it runs no program.";
            job.push(TreeEntry::new("name", member.key_span, piece).noted(note));
        }
        job.extend(self.after_pre_start());
        job.extend(renamed(inner, "port", "port"));
        let is_empty =
            |entry: &TreeEntry| matches!(&entry.value.node().value, Value::List(items) if items.is_empty());
        job.extend(renamed(inner, "interfaces", "interfaces").filter(|entry| !is_empty(entry)));
        job.extend(renamed(inner, "tags", "tags"));
        job.extend(renamed(inner, "consul", "consul"));
        let mut health = Vec::new();
        health.extend(renamed(inner, "health", "exec"));
        health.extend(renamed(inner, "poll", "interval"));
        health.extend(renamed(inner, "ttl", "ttl"));
        health.extend(renamed(inner, "timeout", "timeout"));
        let place = get(inner, "health").or(get(inner, "poll")).map_or(node.span, |member| member.key_span);
        job.push(TreeEntry::new("health", place, Piece::Object(node.span, health)));
        Piece::Object(node.span, job)
    }

    fn on_change(node: &Node, inner: &[Member], name: &str) -> Piece {
        let mut job = Vec::new();
        if let Some(member) = get(inner, "name") {
            let note = "Runs when the healthy instances of the backend change.";
            let job_name = Piece::prefixed("onChange-", &member.value, name);
            job.push(TreeEntry::new("name", member.key_span, job_name).noted(note));
            job.extend(renamed(inner, "onChange", "exec"));
            let when = vec![
                TreeEntry::new("source", member.key_span, Piece::prefixed("watch.", &member.value, name)),
                TreeEntry::new("each", member.key_span, Piece::text("changed", member.value.span)),
            ];
            job.push(TreeEntry::new("when", member.key_span, Piece::Object(node.span, when)));
        }
        job.extend(renamed(inner, "timeout", "timeout"));
        Piece::Object(node.span, job)
    }

    fn task(node: &Node, inner: &[Member], command: &str) -> Piece {
        let mut job = Vec::new();
        let is_named = |member: &&Member| member.value.value != Value::String(String::new());
        job.push(match get(inner, "name").filter(is_named) {
            Some(member) => TreeEntry::new("name", member.key_span, Piece::of(&member.value)),
            None => TreeEntry::new("name", node.span, Piece::text(command, node.span)),
        });
        job.extend(renamed(inner, "command", "exec"));
        let when: Vec<TreeEntry> = renamed(inner, "frequency", "interval").into_iter().collect();
        let place = get(inner, "frequency").map_or(node.span, |member| member.key_span);
        job.push(TreeEntry::new("when", place, Piece::Object(node.span, when)));
        job.extend(renamed(inner, "timeout", "timeout"));
        Piece::Object(node.span, job)
    }

    /// `when` of a hook of the main program. If `preStart` fails, neither the program nor its hooks start.
    fn when_main(&self, event: &str, main: &str) -> TreeEntry {
        let condition = |source: &str, event: &str| {
            Piece::Object(self.here, vec![self.entry("source", source), self.entry("event", event)])
        };
        if self.has("preStart") {
            let all = vec![condition(PRE_START, "exitSuccess"), condition(main, event)];
            return self.object("when", vec![TreeEntry::new("all", self.here, Piece::List(self.here, all))]);
        }
        self.object("when", vec![self.entry("source", main), self.entry("once", event)])
    }

    fn pre_stop(&self) -> Option<Piece> {
        let member = get(self.top, "preStop")?;
        let mut job = Self::hook(member, "preStop");
        job.push(match &self.main {
            Some(main) => self.when_main("stopping", main),
            None => self.object("when", vec![self.entry("once", "shutdown")]),
        });
        Some(Piece::Object(member.value.span, job))
    }

    fn post_stop(&self) -> Option<Piece> {
        let member = get(self.top, "postStop")?;
        let main = self.main.as_ref()?;
        let mut job = Self::hook(member, "postStop");
        job.push(self.when_main("stopped", main));
        Some(Piece::Object(member.value.span, job))
    }

    fn watches(&self) -> Option<TreeEntry> {
        let backends = get(self.top, "backends")?;
        let watch = |(node, inner, _): (&Node, &[Member], _)| {
            let entries = [("name", "name"), ("poll", "interval"), ("tag", "tag")];
            let entries = entries.into_iter().filter_map(|(old, new)| renamed(inner, old, new));
            Piece::Object(node.span, entries.collect())
        };
        let watches: Vec<Piece> = each(self.top, "backends", &self.fields.backends).map(watch).collect();
        let list = Piece::List(backends.value.span, watches);
        Some(TreeEntry::new("watches", backends.key_span, list))
    }

    fn telemetry(&self) -> Option<TreeEntry> {
        let member = get(self.top, "telemetry")?;
        let Value::Object(inner) = &member.value.value else { return None };
        let fields = self.fields.telemetry.as_ref()?;
        let mut telemetry = Vec::new();
        telemetry.extend(renamed(inner, "port", "port"));
        telemetry.extend(renamed(inner, "interfaces", "interfaces"));
        telemetry.extend(renamed(inner, "tags", "tags"));
        let metric = |(node, inner, _): (&Node, &[Member], _)| {
            let keys = [
                ("namespace", "namespace"),
                ("subsystem", "subsystem"),
                ("name", "name"),
                ("help", "help"),
                ("type", "type"),
                ("check", "exec"),
                ("poll", "interval"),
                ("timeout", "timeout"),
            ];
            let entries = keys.into_iter().filter_map(|(old, new)| renamed(inner, old, new));
            Piece::Object(node.span, entries.collect())
        };
        if let Some(sensors) = get(inner, "sensors") {
            let metrics = each(inner, "sensors", &fields.value.sensors).map(metric).collect();
            let list = Piece::List(sensors.value.span, metrics);
            telemetry.push(TreeEntry::new("metrics", sensors.key_span, list));
        }
        Some(TreeEntry::new("telemetry", member.key_span, Piece::Object(member.value.span, telemetry)))
    }
}

/// The differences from version 2 that concern a file.
pub(crate) fn differences(fields: &LegacyFields, program: Option<&[ProgramWord]>) -> Vec<&'static str> {
    let has_program = program.is_some();
    let note = |applies: bool, text: &'static str| applies.then_some(text);
    let tasks = fields.tasks.as_ref().is_some_and(|given| !given.value.is_empty());
    let backends = fields.backends.as_ref().is_some_and(|given| !given.value.is_empty());
    let sensors = fields.telemetry.as_ref().and_then(|given| given.value.sensors.as_ref());
    let sensors = sensors.is_some_and(|given| !given.value.is_empty());
    let services = fields.services.iter().flat_map(|given| &given.value);
    let is_registered = fields.telemetry.is_some() || services.clone().any(|one| one.port.is_some());
    let has_underscore =
        services.filter_map(|one| one.name.as_ref()).any(|given| with_dashes(&given.value).is_some());
    let differences = [
        note(
            fields.pre_stop.is_some() && has_program,
            "preStop also runs when the main program exits by itself. It has 5 minutes, or its `timeout`.",
        ),
        note(
            fields.post_stop.is_some() && has_program,
            "postStop has 5 minutes, or its `timeout`, and its failure does not change the exit code of the container.",
        ),
        note(
            fields.post_stop.is_some() && !has_program,
            "postStop is missing: it runs after the main program, which is not in this file.",
        ),
        note(
            tasks || sensors,
            "Tasks and sensors also run at startup, not only after their first interval; they do not wait for preStart.",
        ),
        note(backends && fields.pre_start.is_some(), "onChange does not wait for preStart."),
        note(
            program.is_some_and(|words| words.iter().any(|word| word.has_address)),
            "The addresses of services in the arguments of the program are those of this host: a version 3 file has them in the environment of jobs, but not in templates.",
        ),
        note(
            is_registered,
            "The check of a service has the id `service:ID` in Consul; in version 2 it has the id of the service.",
        ),
        note(tasks || backends || sensors, "Maintenance mode does not pause tasks, sensors and onChange."),
        note(
            has_underscore,
            "In the name of a service, `_` is replaced by `-`, because the catalog does not allow `_`.",
        ),
    ];
    differences.into_iter().flatten().collect()
}
