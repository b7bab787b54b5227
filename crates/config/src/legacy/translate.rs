//! What the keys of version 2 become, key by key.
//!
//! The main program is a job whose end ends the container. Services are jobs that run nothing themselves: version 2
//! checks and advertises them whatever runs. Hooks are jobs that wait for the main program's `stopping` and `stopped`;
//! where there is a `preStart`, everything waits for it, and hooks of a program that never began do not run.

use crate::command::joined;
use crate::decode::Spanned;
use crate::json5::{Member, Node, Value};
use crate::legacy::fields::LegacyFields;
use crate::legacy::tree::{Entry, Piece};
use crate::names::{PRE_START, is_service_name};
use crate::span::Span;
use crate::template::{self, Environment};

/// The main program of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Its words as they were given, and as they are after the template.
    pub(crate) words: Vec<(String, String)>,
}

impl Program {
    /// The words as version 2 takes them: each is a template. If one of them is none, all are taken as they are.
    pub(crate) fn rendered(words: &[String], environment: &Environment) -> Self {
        let render = |word: &String| {
            let rendered = template::render(word.as_bytes(), environment).ok()?;
            String::from_utf8(rendered.text).ok().map(|text| (word.clone(), text))
        };
        let rendered: Option<Vec<_>> = words.iter().map(render).collect();
        let as_they_are = || words.iter().map(|word| (word.clone(), word.clone())).collect();
        Self { words: rendered.unwrap_or_else(as_they_are) }
    }
}

/// Translates a file that its own table has found no fault with.
pub(crate) fn translate(
    span: Span,
    top: &[Member],
    fields: &LegacyFields,
    program: Option<&Program>,
) -> Vec<Entry> {
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
    /// Where something is said to stand that the old file does not have.
    here: Span,
    /// What the main program's job is called.
    main: Option<String>,
    program: Option<&'a Program>,
}

/// The value of a key, the last one if there are several, and none if it is null.
fn get<'n>(members: &'n [Member], key: &str) -> Option<&'n Member> {
    let found = members.iter().rev().find(|member| member.key.eq_ignore_ascii_case(key));
    found.filter(|member| member.value.value != Value::Null)
}

/// An entry for a key of version 3 with the value that another key has in the old file.
fn moved(members: &[Member], old: &str, new: &'static str) -> Option<Entry> {
    get(members, old).map(|member| Entry::new(new, member.key_span, Piece::of(&member.value)))
}

/// The objects in a list of the old file, each with what the table made of it.
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

/// A name for the main program's job: `app`, whose process is then told to the others as `CONTAINERPILOT_APP_PID`, as in
/// version 2; or another one if that is taken.
pub(crate) fn main_name(fields: &LegacyFields) -> String {
    let text = |given: &Option<Spanned<String>>| given.as_ref().map(|given| given.value.clone());
    let services = fields.services.iter().flat_map(|given| &given.value).filter_map(|one| text(&one.name));
    let tasks = fields.tasks.iter().flat_map(|given| &given.value).filter_map(|one| text(&one.name));
    let beside = fields.coprocesses.iter().flat_map(|given| &given.value).filter_map(|one| text(&one.name));
    let taken: Vec<String> = services.chain(tasks).chain(beside).collect();
    let numbered = (2..).map(|nth| format!("app-{nth}"));
    let mut names = ["app", "main", "program"].map(str::to_owned).into_iter().chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or_default()
}

/// A name that version 2 refused, too, but that people wrote: with `_` where the catalog wants `-`.
pub(super) fn tamed(name: &str) -> Option<String> {
    let tame = name.replace('_', "-");
    (!is_service_name(name) && is_service_name(&tame)).then_some(tame)
}

impl Translation<'_> {
    fn file(&self) -> Vec<Entry> {
        let mut file = Vec::new();
        file.extend(moved(self.top, "consul", "consul"));
        file.extend(moved(self.top, "logging", "logging"));
        file.extend(self.stop_timeout());
        let jobs = self.jobs();
        if !jobs.is_empty() {
            file.push(Entry::new("jobs", self.here, Piece::List(self.here, jobs)));
        }
        file.extend(self.watches());
        file.extend(moved(self.top, "coprocesses", "coprocesses").map(|entry| match self.fields.pre_start {
            Some(_) => entry.noted("They start as soon as the job `preStart` has exited."),
            None => entry,
        }));
        file.extend(self.telemetry());
        file
    }

    fn has(&self, key: &str) -> bool {
        get(self.top, key).is_some()
    }

    /// The time that version 2 gives the main program. A negative one means that it is killed without being asked.
    fn patience(&self) -> (i64, bool) {
        match self.fields.stop_timeout.as_ref().map_or(0, |given| given.value) {
            time if time > 0 => (time, false),
            time => (5_000_000_000, time < 0),
        }
    }

    /// In version 2 the time begins when the program is signalled; here it covers the hooks as well. Each of them gets as
    /// much as the program has.
    fn stop_timeout(&self) -> Option<Entry> {
        let hooks = i64::from(self.has("preStop")) + i64::from(self.has("postStop") && self.main.is_some());
        let member = get(self.top, "stopTimeout");
        let (time, kills) = self.patience();
        let place = member.map_or(self.here, |member| member.key_span);
        if hooks == 0 {
            return moved(self.top, "stopTimeout", "stopTimeout").filter(|_| time > 0 && !kills);
        }
        let whole =
            Piece::time(time.saturating_mul(1 + hooks), member.map_or(self.here, |one| one.value.span));
        let each = crate::duration::format(time);
        let note =
            format!("For the hooks and the program together; version 2 gave the program {each} for itself.");
        Some(Entry::new("stopTimeout", place, whole).noted(note))
    }

    fn jobs(&self) -> Vec<Piece> {
        let mut jobs = Vec::new();
        if let Some(member) = get(self.top, "preStart") {
            let mut job = self.hook(member, "preStart", "preStart");
            job.push(self.said("onFailure", "shutdown"));
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
            let command = task.command.as_ref().map(|given| joined(&given.value)).unwrap_or_default();
            jobs.push(Self::task(node, inner, &command));
        }
        jobs.extend(self.pre_stop());
        jobs.extend(self.post_stop());
        jobs
    }

    /// A job that runs a hook's command.
    fn hook(&self, member: &Member, name: &'static str, note: &str) -> Vec<Entry> {
        let note = match note {
            "preStart" => "Runs before everything else; if it fails, the container ends with its code.",
            "preStop" => "Runs when the program is to stop, and before it is signalled.",
            _ => "Runs when the program has ended.",
        };
        vec![
            Entry::new("name", member.key_span, Piece::text(name, member.key_span)).noted(note),
            Entry::new("exec", member.key_span, Piece::of(&member.value)),
        ]
    }

    /// An entry with a word that the old file does not have.
    fn said(&self, key: &'static str, word: &str) -> Entry {
        Entry::new(key, self.here, Piece::text(word, self.here))
    }

    fn object(&self, key: &'static str, entries: Vec<Entry>) -> Entry {
        Entry::new(key, self.here, Piece::Object(self.here, entries))
    }

    fn after_pre_start(&self) -> Option<Entry> {
        self.has("preStart").then(|| {
            self.object("when", vec![self.said("source", PRE_START), self.said("once", "exitSuccess")])
        })
    }

    fn main_job(&self) -> Option<Piece> {
        let (program, name) = (self.program?, self.main.as_ref()?);
        let (time, kills) = self.patience();
        let words = program.words.iter().map(|(given, rendered)| {
            // An action of the template stays one, where it can stand in a text.
            let plain = !given.contains(['"', '\\', '\n', '\r']) && given.contains("{{");
            if plain {
                Piece::literal(rendered, format!("\"{given}\""), self.here)
            } else {
                Piece::text(rendered, self.here)
            }
        });
        let mut job = vec![
            self.said("name", name).noted("The main program: its end ends the container, with its code."),
            Entry::new("exec", self.here, Piece::List(self.here, words.collect())),
        ];
        job.extend(self.after_pre_start());
        if self.has("preStop") {
            job.push(Entry::new("stopTimeout", self.here, Piece::time(time, self.here)));
        }
        if kills {
            job.push(self.said("stopSignal", "SIGKILL"));
        }
        job.push(self.said("onSuccess", "shutdown"));
        job.push(self.said("onFailure", "shutdown"));
        job.push(self.object("logging", vec![Entry::new("raw", self.here, Piece::yes(self.here))]));
        Some(Piece::Object(self.here, job))
    }

    fn service(&self, node: &Node, inner: &[Member], name: &str) -> Piece {
        let mut job = Vec::new();
        if let Some(member) = get(inner, "name") {
            let piece = match tamed(name) {
                Some(tame) => Piece::text(tame, member.value.span),
                None => Piece::of(&member.value),
            };
            let note = "Checks and advertises a service, and runs nothing itself.";
            job.push(Entry::new("name", member.key_span, piece).noted(note));
        }
        job.extend(self.after_pre_start());
        job.extend(moved(inner, "port", "port"));
        let no_choice =
            |entry: &Entry| matches!(&entry.value.node().value, Value::List(items) if items.is_empty());
        job.extend(moved(inner, "interfaces", "interfaces").filter(|entry| !no_choice(entry)));
        job.extend(moved(inner, "tags", "tags"));
        job.extend(moved(inner, "consul", "consul"));
        let mut health = Vec::new();
        health.extend(moved(inner, "health", "exec"));
        health.extend(moved(inner, "poll", "interval"));
        health.extend(moved(inner, "ttl", "ttl"));
        health.extend(moved(inner, "timeout", "timeout"));
        let place = get(inner, "health").or(get(inner, "poll")).map_or(node.span, |member| member.key_span);
        job.push(Entry::new("health", place, Piece::Object(node.span, health)));
        Piece::Object(node.span, job)
    }

    fn on_change(node: &Node, inner: &[Member], name: &str) -> Piece {
        let mut job = Vec::new();
        if let Some(member) = get(inner, "name") {
            let note = "Runs at every change of the backend's healthy instances.";
            let called = Piece::after("onChange-", &member.value, name);
            job.push(Entry::new("name", member.key_span, called).noted(note));
            job.extend(moved(inner, "onChange", "exec"));
            let when = vec![
                Entry::new("source", member.key_span, Piece::after("watch.", &member.value, name)),
                Entry::new("each", member.key_span, Piece::text("changed", member.value.span)),
            ];
            job.push(Entry::new("when", member.key_span, Piece::Object(node.span, when)));
        }
        job.extend(moved(inner, "timeout", "timeout"));
        Piece::Object(node.span, job)
    }

    fn task(node: &Node, inner: &[Member], command: &str) -> Piece {
        let mut job = Vec::new();
        let unnamed = |member: &&Member| member.value.value != Value::String(String::new());
        job.push(match get(inner, "name").filter(unnamed) {
            Some(member) => Entry::new("name", member.key_span, Piece::of(&member.value)),
            None => Entry::new("name", node.span, Piece::text(command, node.span)),
        });
        job.extend(moved(inner, "command", "exec"));
        let when: Vec<Entry> = moved(inner, "frequency", "interval").into_iter().collect();
        let place = get(inner, "frequency").map_or(node.span, |member| member.key_span);
        job.push(Entry::new("when", place, Piece::Object(node.span, when)));
        job.extend(moved(inner, "timeout", "timeout"));
        Piece::Object(node.span, job)
    }

    /// `when` of a hook of the main program. With a `preStart` that fails, the program never begins, and neither do its
    /// hooks.
    fn at_the_programs(&self, event: &str, main: &str) -> Entry {
        let condition = |source: &str, event: &str| {
            Piece::Object(self.here, vec![self.said("source", source), self.said("event", event)])
        };
        if self.has("preStart") {
            let all = vec![condition(PRE_START, "exitSuccess"), condition(main, event)];
            return self.object("when", vec![Entry::new("all", self.here, Piece::List(self.here, all))]);
        }
        self.object("when", vec![self.said("source", main), self.said("once", event)])
    }

    fn pre_stop(&self) -> Option<Piece> {
        let member = get(self.top, "preStop")?;
        let mut job = self.hook(member, "preStop", "preStop");
        job.push(match &self.main {
            Some(main) => self.at_the_programs("stopping", main),
            None => self.object("when", vec![self.said("once", "shutdown")]),
        });
        Some(Piece::Object(member.value.span, job))
    }

    fn post_stop(&self) -> Option<Piece> {
        let member = get(self.top, "postStop")?;
        let main = self.main.as_ref()?;
        let mut job = self.hook(member, "postStop", "postStop");
        job.push(self.at_the_programs("stopped", main));
        Some(Piece::Object(member.value.span, job))
    }

    fn watches(&self) -> Option<Entry> {
        let backends = get(self.top, "backends")?;
        let watch = |(node, inner, _): (&Node, &[Member], _)| {
            let entries = [("name", "name"), ("poll", "interval"), ("tag", "tag")];
            let entries = entries.into_iter().filter_map(|(old, new)| moved(inner, old, new));
            Piece::Object(node.span, entries.collect())
        };
        let watches: Vec<Piece> = each(self.top, "backends", &self.fields.backends).map(watch).collect();
        let list = Piece::List(backends.value.span, watches);
        Some(Entry::new("watches", backends.key_span, list))
    }

    fn telemetry(&self) -> Option<Entry> {
        let member = get(self.top, "telemetry")?;
        let Value::Object(inner) = &member.value.value else { return None };
        let fields = self.fields.telemetry.as_ref()?;
        let mut telemetry = Vec::new();
        telemetry.extend(moved(inner, "port", "port"));
        telemetry.extend(moved(inner, "interfaces", "interfaces"));
        telemetry.extend(moved(inner, "tags", "tags"));
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
            let entries = keys.into_iter().filter_map(|(old, new)| moved(inner, old, new));
            Piece::Object(node.span, entries.collect())
        };
        if let Some(sensors) = get(inner, "sensors") {
            let metrics = each(inner, "sensors", &fields.value.sensors).map(metric).collect();
            let list = Piece::List(sensors.value.span, metrics);
            telemetry.push(Entry::new("metrics", sensors.key_span, list));
        }
        Some(Entry::new("telemetry", member.key_span, Piece::Object(member.value.span, telemetry)))
    }
}

/// What is not as it was in version 2, of what a file uses.
pub(crate) fn differences(fields: &LegacyFields, has_program: bool) -> Vec<&'static str> {
    let any = |there: bool, note: &'static str| there.then_some(note);
    let tasks = fields.tasks.as_ref().is_some_and(|given| !given.value.is_empty());
    let backends = fields.backends.as_ref().is_some_and(|given| !given.value.is_empty());
    let services = fields.services.iter().flat_map(|given| &given.value);
    let renamed = services.filter_map(|one| one.name.as_ref()).any(|given| tamed(&given.value).is_some());
    let differences = [
        any(
            fields.pre_stop.is_some() && has_program,
            "preStop also runs when the main program has ended by itself. It has as long as `stopTimeout` of that job \
             says.",
        ),
        any(
            fields.post_stop.is_some() && has_program,
            "postStop has to end within the `stopTimeout` at the top, and its failure is not the container's exit code.",
        ),
        any(
            fields.post_stop.is_some() && !has_program,
            "postStop is left out: it runs after the main program, and none is in this file.",
        ),
        any(
            tasks,
            "Tasks run at startup, too, and not only after their first interval; they do not wait for preStart.",
        ),
        any(backends && fields.pre_start.is_some(), "onChange does not wait for preStart."),
        any(renamed, "A service with `_` in its name is called with `-`, which the catalog wants."),
    ];
    differences.into_iter().flatten().collect()
}
