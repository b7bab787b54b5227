//! Moments: what can be expected to happen, as one writes it: `server healthy`, `watch.db changed`, `shutdown`.

use std::fmt;

use containerpilot_config::decode::alternatives;
use containerpilot_config::suggest;
use containerpilot_core::event::Code;
use containerpilot_core::plan::{Job, Plan};

/// Something that can happen: who, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// A job, `watch.NAME`, or nothing for the whole.
    pub source: String,
    /// What happens: an event's name, or one of the words of [`WORDS`].
    pub word: &'static str,
}

/// A program has been started.
pub const STARTS: &str = "starts";
/// SIGKILL is sent.
pub const KILLED: &str = "killed";
/// The service is in the catalog, as passing.
pub const ADVERTISED: &str = "advertised";
/// The service is out of the catalog.
pub const WITHDRAWN: &str = "withdrawn";
/// Another configuration is in force.
pub const RELOADED: &str = "reloaded";
/// The supervisor has left.
pub const EXIT: &str = "exit";

/// What can happen beside events: the word, whose it is, and when it comes.
pub const WORDS: [(&str, &str, &str); 6] = [
    (STARTS, "a job", "when a process of it has been started"),
    (KILLED, "a job", "when SIGKILL is sent to it"),
    (ADVERTISED, "a job with `port`", "when its service is in the catalog as passing"),
    (WITHDRAWN, "a job with `port`", "when its service is out of the catalog"),
    (RELOADED, "none", "when another configuration is in force"),
    (EXIT, "none", "when the supervisor has left"),
];

const OF_JOBS: [Code; 7] = [
    Code::ExitSuccess,
    Code::ExitFailed,
    Code::Stopping,
    Code::Stopped,
    Code::Healthy,
    Code::Unhealthy,
    Code::TimerExpired,
];
const OF_WATCHES: [Code; 3] = [Code::Changed, Code::Healthy, Code::Unhealthy];
const OF_THE_WHOLE: [Code; 4] =
    [Code::Startup, Code::Shutdown, Code::EnterMaintenance, Code::ExitMaintenance];
const SIGNALS: [&str; 2] = ["SIGHUP", "SIGUSR2"];

/// What people call what happens.
const OTHERS: [(&str, &str); 20] = [
    ("start", STARTS),
    ("started", STARTS),
    ("runs", STARTS),
    ("running", STARTS),
    ("kill", KILLED),
    ("registered", ADVERTISED),
    ("deregistered", WITHDRAWN),
    ("ready", "healthy"),
    ("up", "healthy"),
    ("down", "unhealthy"),
    ("success", "exitSuccess"),
    ("succeeds", "exitSuccess"),
    ("done", "exitSuccess"),
    ("fails", "exitFailed"),
    ("failed", "exitFailed"),
    ("stop", "stopped"),
    ("stops", "stopped"),
    ("exits", EXIT),
    ("reload", RELOADED),
    ("timeout", "timerExpired"),
];

/// A moment that cannot be, in words, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidMoment {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Moment {
    /// What happens to the whole.
    #[must_use]
    pub fn whole(word: &'static str) -> Self {
        Self { source: String::new(), word }
    }

    /// Reads a moment; it must be one that can come in one of these plans.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str, plans: &[&Plan]) -> Result<Self, InvalidMoment> {
        let text = text.trim();
        let (source, word) = match text.rsplit_once(char::is_whitespace) {
            Some((source, word)) => (source.trim_end(), word),
            None => ("", text),
        };
        if matches!(source, "" | "global") {
            return Self::read_whole(text, word, plans);
        }
        let jobs: Vec<&Job> =
            plans.iter().flat_map(|plan| &plan.jobs).filter(|job| job.name == source).collect();
        let watch = source.strip_prefix("watch.").unwrap_or(source);
        let is_watch = plans.iter().flat_map(|plan| &plan.watches).any(|known| known.name == watch);
        let words: Vec<&'static str> = match (jobs.is_empty(), is_watch) {
            (false, _) => words_of(&OF_JOBS, "a job"),
            (true, true) => words_of(&OF_WATCHES, "a watch"),
            (true, false) => return Err(unknown_source(source, plans)),
        };
        let word = known(word, &words).ok_or_else(|| unknown_word(source, word, &words))?;
        if jobs.is_empty() {
            return Ok(Self { source: format!("watch.{watch}"), word });
        }
        let lacks = |has: fn(&Job) -> bool| !jobs.iter().any(|job| has(job));
        let missing = match word {
            "healthy" | "unhealthy" if lacks(|job| job.health.is_some()) => "health",
            ADVERTISED | WITHDRAWN if lacks(|job| job.service.is_some()) => "port",
            "timerExpired" if lacks(|job| job.when.timeout.is_some()) => "when.timeout",
            STARTS | KILLED if lacks(|job| job.exec.is_some()) => "exec",
            _ => return Ok(Self { source: source.to_owned(), word }),
        };
        Err(InvalidMoment {
            message: format!("`{source} {word}` never comes: the job has no `{missing}`"),
            help: format!("expect something else of it, or give it a `{missing}`"),
        })
    }

    fn read_whole(text: &str, word: &str, plans: &[&Plan]) -> Result<Self, InvalidMoment> {
        if let Some(signal) = SIGNALS.into_iter().find(|signal| *signal == word) {
            return Ok(Self { source: signal.to_owned(), word: "signal" });
        }
        let words = words_of(&OF_THE_WHOLE, "none");
        if let Some(word) = known(word, &words) {
            return Ok(Self::whole(word));
        }
        if names(plans).any(|name| name == text) {
            let help = format!("write what becomes of it, for example \"{text} {STARTS}\"");
            return Err(InvalidMoment { message: format!("`{text}` alone is no moment"), help });
        }
        let all: Vec<&str> = words.iter().copied().chain(SIGNALS).collect();
        let help = match suggest::meant(word, &all, &OTHERS) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!(
                "write who and what, for example \"server healthy\"; or one of {}",
                alternatives(&quoted(&all))
            ),
        };
        Err(InvalidMoment { message: format!("`{text}` is no moment"), help })
    }
}

fn words_of(codes: &[Code], whose: &str) -> Vec<&'static str> {
    let more = WORDS.iter().filter(|(_, of, _)| of.starts_with(whose)).map(|(word, _, _)| *word);
    codes.iter().map(|code| code.name()).chain(more).collect()
}

fn known(word: &str, words: &[&'static str]) -> Option<&'static str> {
    words.iter().copied().find(|known| *known == word)
}

fn names<'a>(plans: &'a [&Plan]) -> impl Iterator<Item = &'a str> {
    plans.iter().flat_map(|plan| {
        let watches = plan.watches.iter().map(|watch| watch.name.as_str());
        plan.jobs.iter().map(|job| job.name.as_str()).chain(watches)
    })
}

fn quoted(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| format!("\"{word}\"")).collect()
}

fn unknown_source(source: &str, plans: &[&Plan]) -> InvalidMoment {
    let help = nearest_name(source, plans);
    InvalidMoment { message: format!("there is no job and no watch `{source}`"), help }
}

fn unknown_word(source: &str, word: &str, words: &[&'static str]) -> InvalidMoment {
    let help = match suggest::meant(word, words, &OTHERS) {
        Some(near) => format!("did you mean \"{source} {near}\"?"),
        None => format!("what can become of it is {}", alternatives(&quoted(words))),
    };
    InvalidMoment { message: format!("`{word}` is nothing that happens to `{source}`"), help }
}

/// What to do about a name that the configuration does not have.
#[must_use]
pub fn nearest_name(name: &str, plans: &[&Plan]) -> String {
    let mut known: Vec<&str> = names(plans).collect();
    known.sort();
    known.dedup();
    match suggest::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "the configuration has none".to_owned(),
        None => {
            let more = if known.len() > 12 { ", …" } else { "" };
            known.truncate(12);
            format!("the configuration has {}{more}", known.join(", "))
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.source.as_str(), self.word) {
            ("", word) => out.write_str(word),
            (signal, "signal") => out.write_str(signal),
            (source, word) => write!(out, "{source} {word}"),
        }
    }
}
