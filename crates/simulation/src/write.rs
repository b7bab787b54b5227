//! Writes a scenario as a file for people.

use std::fmt::Write;
use std::time::Duration;

use containerpilot_config::duration::exact;
use containerpilot_config::values::Keyword;
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::fmt_utc;

use crate::scenario::{
    Action, Bound, CheckAnswer, CheckAnswers, Claim, Expectation, JobAction, Lifetime, Observation,
    RunScript, Scenario, StartFailure, Window,
};
use crate::world::script::Period;

/// The file, with these lines as comments at its beginning. What is loaded by a reload must have a path: a reload
/// without one is a comment.
#[must_use]
pub fn text(scenario: &Scenario, head: &[String]) -> String {
    let mut out = String::new();
    for line in head {
        // Names may have what ends a line.
        let is_text = |c: char| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}');
        let line: String = line.chars().map(|c| if is_text(c) { c } else { ' ' }).collect();
        let _ = writeln!(out, "{}", format!("// {line}").trim_end());
    }
    out.push_str("{\n");
    let mut top = Object::default();
    top.time("until", scenario.until);
    top.text("at", scenario.clock.map(timestamp));
    for (key, value) in &top.fields {
        let _ = writeln!(out, "  {key}: {value},");
    }
    let jobs = scenario.jobs.iter().map(|(name, script)| {
        let runs = script.runs.iter().map(run).collect();
        named(name, &[("runs", runs), ("checks", all_answers(&script.checks, true))])
    });
    list(&mut out, "jobs", jobs.collect());
    let watches = scenario.watches.iter().map(|(name, seen)| named(name, &[("sees", observations(seen))]));
    list(&mut out, "watches", watches.collect());
    let locks = scenario.locks.iter().map(|(name, changes)| {
        let change = |(at, held): &(Duration, bool)| {
            let mut object = Object::default();
            object.time("at", Some(*at));
            object.plain("held", held);
            object.line()
        };
        named(name, &[("changes", changes.iter().map(change).collect())])
    });
    list(&mut out, "locks", locks.collect());
    let files = scenario.files.iter().map(|(name, file)| {
        let mut head = Object::default();
        head.text("name", Some(name.clone()));
        head.time("takes", Some(file.takes));
        let fails = file.fails.iter().map(period).collect();
        entry(&head, &[("fails", fails), ("tests", all_answers(&file.tests, false))])
    });
    list(&mut out, "files", files.collect());
    catalog(&mut out, scenario);
    list(&mut out, "happens", scenario.actions.iter().map(|(at, action)| happens(*at, action)).collect());
    list(&mut out, "expect", scenario.expectations.iter().map(expectation).collect());
    out.push_str("}\n");
    out
}

/// The fields of an object.
#[derive(Default)]
struct Object {
    fields: Vec<(&'static str, String)>,
}

impl Object {
    fn plain(&mut self, key: &'static str, value: impl ToString) {
        self.fields.push((key, value.to_string()));
    }

    fn text(&mut self, key: &'static str, value: Option<String>) {
        self.fields.extend(value.map(|value| (key, quoted(&value))));
    }

    fn time(&mut self, key: &'static str, value: Option<Duration>) {
        self.text(key, value.map(exact));
    }

    fn lifetime(&mut self, key: &'static str, value: Option<Lifetime>) {
        self.text(
            key,
            value.map(|value| match value {
                Lifetime::For(time) => exact(time),
                Lifetime::Forever => "never".to_owned(),
            }),
        );
    }

    fn period(&mut self, period: Period) {
        self.time("from", Some(period.from).filter(|from| !from.is_zero()));
        self.time("to", period.to);
    }

    fn line(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        if fields.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", fields.join(", ")) }
    }
}

/// A text as JSON writes it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            _ if char.is_control() => {
                let mut units = [0; 2];
                for unit in char.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            _ => out.push(char),
        }
    }
    out + "\""
}

/// A date and time, to the millisecond.
fn timestamp(unix: Duration) -> String {
    let seconds = fmt_utc(Duration::from_secs(unix.as_secs())).to_string();
    match unix.subsec_millis() {
        0 => seconds,
        millis => format!("{}.{millis:03}Z", seconds.trim_end_matches('Z')),
    }
}

/// `key: [items],` at the top level, with one item on each line.
fn list(out: &mut String, key: &str, items: Vec<String>) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "  {key}: [");
    for item in items {
        let end = if item.starts_with("//") { "" } else { "," };
        let _ = writeln!(out, "    {item}{end}");
    }
    out.push_str("  ],\n");
}

fn named(name: &str, lists: &[(&str, Vec<String>)]) -> String {
    let mut head = Object::default();
    head.text("name", Some(name.to_owned()));
    entry(&head, lists)
}

/// An object with lists, in one line if it has only short ones.
fn entry(head: &Object, lists: &[(&str, Vec<String>)]) -> String {
    let lists: Vec<_> = lists.iter().filter(|(_, items)| !items.is_empty()).collect();
    let fields = || head.fields.iter().map(|(key, value)| format!("{key}: {value}"));
    let short = lists.iter().map(|(key, items)| match items.as_slice() {
        [one] => format!("{key}: {one}"),
        several => format!("{key}: [{}]", several.join(", ")),
    });
    let line = format!("{{ {} }}", fields().chain(short).collect::<Vec<_>>().join(", "));
    if line.len() <= 110 && !line.contains('\n') {
        return line;
    }
    let mut out = String::from("{\n");
    for field in fields() {
        let _ = writeln!(out, "      {field},");
    }
    for (key, items) in lists {
        let _ = writeln!(out, "      {key}: [");
        for item in items {
            let _ = writeln!(out, "        {},", item.replace('\n', "\n        "));
        }
        out.push_str("      ],\n");
    }
    out + "    }"
}

fn run(run: &RunScript) -> String {
    let mut object = Object::default();
    object.lifetime("startsIn", run.starts_in);
    object.text("fails", run.fails.map(|kind| keyword(&StartFailure(kind))));
    object.lifetime("lasts", run.lasts);
    match run.status {
        Some(ExitStatus::Code(code)) => object.plain("exit", code),
        Some(ExitStatus::Signal(signal)) => object.text("signal", Some(signal.to_string())),
        None => {}
    }
    object.lifetime("stopsIn", run.stops_in);
    if let Some(code) = run.stop_exit {
        object.plain("stopExit", code);
    }
    if !run.ignores.is_empty() {
        let signals: Vec<String> = run.ignores.iter().map(|signal| quoted(&signal.to_string())).collect();
        object.plain("ignores", format!("[{}]", signals.join(", ")));
    }
    object.lifetime("outlivedFor", run.outlived_for);
    object.lifetime("healthyAfter", run.healthy_after);
    object.lifetime("ready", run.ready);
    object.lifetime("drain", run.drain);
    if run.drain_fails {
        object.plain("drainExit", 1);
    }
    object.lifetime("watchdogStops", run.watchdog_stops);
    let checks = all_answers(&run.checks, true);
    match checks.as_slice() {
        [] => {}
        [one] => object.plain("checks", one),
        several if several.len() <= 2 && object.line().len() <= 30 => {
            object.plain("checks", format!("[{}]", several.join(", ")));
        }
        several => object.plain("checks", format!("[\n  {},\n]", several.join(",\n  "))),
    }
    object.line()
}

fn all_answers(answers: &[CheckAnswers], has_name: bool) -> Vec<String> {
    let line = |one: &CheckAnswers| {
        let mut object = Object::default();
        object.text("check", one.check.clone().filter(|_| has_name));
        object.period(one.period);
        object.text("answer", Some(keyword(&one.answer)).filter(|_| one.answer != CheckAnswer::Fail));
        object.time("takes", Some(one.takes));
        object.line()
    };
    answers.iter().map(line).collect()
}

fn keyword<K: Keyword + PartialEq + 'static>(value: &K) -> String {
    let name = K::VALUES.iter().zip(K::NAMES).find(|(known, _)| *known == value);
    name.map_or("", |(_, name)| name).to_owned()
}

fn observations(seen: &[Observation]) -> Vec<String> {
    let mut before = 0;
    let mut line = |one: &Observation| {
        let mut object = Object::default();
        object.time("at", Some(one.at));
        match (&one.value, one.instances) {
            (_, 0) => object.plain("up", false),
            (Some(_), _) | (None, 1) => {}
            (None, instances) => object.plain("instances", instances),
        }
        object.text("value", one.value.clone());
        if one.generation > before {
            object.plain("others", true);
        }
        before = one.generation;
        object.line()
    };
    seen.iter().map(&mut line).collect()
}

fn period(period: &Period) -> String {
    let mut object = Object::default();
    object.period(*period);
    object.line()
}

fn catalog(out: &mut String, scenario: &Scenario) {
    let forget = |(at, job): &(Duration, String)| {
        let mut object = Object::default();
        object.time("at", Some(*at));
        object.text("job", Some(job.clone()));
        object.line()
    };
    let lists: [(&str, Vec<String>); 2] = [
        ("away", scenario.outages.iter().map(period).collect()),
        ("forgets", scenario.forgets.iter().map(forget).collect()),
    ];
    if lists.iter().any(|(_, items)| !items.is_empty()) {
        let text = entry(&Object::default(), &lists);
        let _ = writeln!(out, "  catalog: {},", text.replace("\n    ", "\n  "));
    }
}

fn happens(at: Duration, action: &Action) -> String {
    let mut object = Object::default();
    object.time("at", Some(at));
    match action {
        Action::Signal(signal) => object.text("signal", Some(signal.to_string())),
        Action::Maintenance(on) => object.plain("maintenance", on),
        Action::Clock(unix) => object.text("clock", Some(timestamp(*unix))),
        Action::Scale(name, count) => object.text("scale", Some(format!("{name}={count}"))),
        Action::PutVariable(name, value) => {
            object.text("putenv", Some(format!("{name}={}", value.as_deref().unwrap_or_default())));
        }
        Action::Reload(path, _) if path.is_empty() => {
            object.text("reload", Some("FILE".to_owned()));
            return format!("// {},", object.line());
        }
        Action::Reload(path, _) => object.text("reload", Some(path.clone())),
        Action::Job(action, name) => {
            let name = Some(name.clone());
            match action {
                JobAction::Start => object.text("start", name),
                JobAction::Stop => object.text("stop", name),
                JobAction::Restart => object.text("restart", name),
                JobAction::RollingRestart => object.text("rollingRestart", name),
                JobAction::Send(signal) => {
                    object.text("send", Some(signal.to_string()));
                    object.text("to", name);
                }
            }
        }
    }
    object.line()
}

fn expectation(expectation: &Expectation) -> String {
    let mut object = Object::default();
    let window = |object: &mut Object, window: &Window| {
        let bound = |bound: &Bound| match bound {
            Bound::Time(at) => exact(*at),
            Bound::Moment(moment) => moment.to_string(),
        };
        object.text("after", window.after.as_ref().map(bound));
        object.text("before", window.before.as_ref().map(bound));
    };
    match &expectation.claim {
        Claim::See(moment, between, times) => {
            object.text("see", Some(moment.to_string()));
            if let Some(times) = times {
                object.plain("times", times);
            }
            window(&mut object, between);
        }
        Claim::Never(moment, between) => {
            object.text("never", Some(moment.to_string()));
            window(&mut object, between);
        }
        Claim::Follows(moment, within, of, between) => {
            object.text("see", Some(moment.to_string()));
            object.time("within", Some(*within));
            object.text("of", Some(of.to_string()));
            window(&mut object, between);
        }
        Claim::State(job, is, at) => {
            object.text("job", Some(job.clone()));
            object.text("is", Some(is.to_string()));
            object.time("at", *at);
        }
        Claim::Exit(code, between) => {
            object.plain("exit", code);
            window(&mut object, between);
        }
    }
    object.text("why", expectation.why.clone());
    object.line()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b5_a_name_does_not_end_a_comment() {
        let head = ["The last run of these: a\u{2028}b\u{1b}[31m\n{ jobs: 1 }".to_owned()];
        let text = text(&Scenario::default(), &head);
        assert_eq!(text.lines().next(), Some("// The last run of these: a b [31m { jobs: 1 }"));
        assert!(!text.contains(['\u{2028}', '\u{1b}']));
    }
}
