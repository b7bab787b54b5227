//! Moments: what an expectation can name, such as `server healthy`, `watch.db changed` or `shutdown`.

use std::fmt;

use containerpilot_config::decode::alternatives;
use containerpilot_config::suggest;
use containerpilot_core::event::Code;
use containerpilot_core::plan::{Job, Plan, Signal};

/// Something that can happen: a source and a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// A job, `watch.NAME` or a signal; empty for the supervisor.
    pub source: String,
    /// The name of an event, or one of [`WORDS`].
    pub word: &'static str,
}

/// A program has been started.
pub const STARTS: &str = "starts";
/// SIGKILL is sent.
pub const KILLED: &str = "killed";
/// The service becomes passing in the catalog.
pub const ADVERTISED: &str = "advertised";
/// The service has left the catalog.
pub const DEREGISTERED: &str = "deregistered";
/// A reloaded configuration takes effect.
pub const RELOADED: &str = "reloaded";
/// The supervisor exits.
pub const EXIT: &str = "exit";

/// What can happen besides events: the word, its source, and when it happens.
pub const WORDS: [(&str, &str, &str); 6] = [
    (STARTS, "a job", "when its process has started"),
    (KILLED, "a job", "when SIGKILL is sent to it"),
    (ADVERTISED, "a job with `port`", "when its service becomes passing in the catalog"),
    (DEREGISTERED, "a job with `port`", "when its service has left the catalog"),
    (RELOADED, "none", "when a reloaded configuration takes effect"),
    (EXIT, "none", "when the supervisor exits"),
];

/// Other words that people use, for suggestions.
const OTHERS: [(&str, &str); 20] = [
    ("start", STARTS),
    ("started", STARTS),
    ("runs", STARTS),
    ("running", STARTS),
    ("kill", KILLED),
    ("registered", ADVERTISED),
    ("withdrawn", DEREGISTERED),
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

/// Why a text is not a moment, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidMoment {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Moment {
    /// A moment of the supervisor.
    #[must_use]
    pub fn global(word: &'static str) -> Self {
        Self { source: String::new(), word }
    }

    /// Parses a moment. It must be able to happen in one of the plans.
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
            return Self::read_global(text, word, plans);
        }
        let jobs: Vec<&Job> =
            plans.iter().flat_map(|plan| &plan.jobs).filter(|job| job.name == source).collect();
        let watch = source.strip_prefix("watch.").unwrap_or(source);
        let is_watch = plans.iter().flat_map(|plan| &plan.watches).any(|known| known.name == watch);
        let lock = source.strip_prefix("lock.");
        let is_lock = |name: &str| plans.iter().flat_map(|plan| &plan.locks).any(|known| known.name == name);
        if jobs.is_empty() && lock.is_some_and(is_lock) {
            let words = words_of(&Code::OF_LOCKS, "a lock");
            let word = known(word, &words).ok_or_else(|| unknown_word(source, word, &words))?;
            return Ok(Self { source: source.to_owned(), word });
        }
        let file = source.strip_prefix("file.");
        let is_file = plans.iter().flat_map(|plan| &plan.files).any(|known| Some(&*known.name) == file);
        if jobs.is_empty() && is_file {
            let words = words_of(&Code::OF_FILES, "a file");
            let word = known(word, &words).ok_or_else(|| unknown_word(source, word, &words))?;
            return Ok(Self { source: source.to_owned(), word });
        }
        let words: Vec<&'static str> = match (jobs.is_empty(), is_watch) {
            (false, _) => words_of(&Code::OF_JOBS, "a job"),
            (true, true) => words_of(&Code::OF_WATCHES, "a watch"),
            (true, false) => return Err(unknown_source(source, plans)),
        };
        let word = known(word, &words).ok_or_else(|| unknown_word(source, word, &words))?;
        if jobs.is_empty() {
            return Ok(Self { source: format!("watch.{watch}"), word });
        }
        let lacks = |has: fn(&Job) -> bool| !jobs.iter().any(|job| has(job));
        let missing = match word {
            "healthy" | "unhealthy" | "becameHealthy" | "becameUnhealthy"
                if lacks(|job| job.health.is_some()) =>
            {
                "health"
            }
            ADVERTISED | DEREGISTERED if lacks(|job| job.service.is_some()) => "port",
            "ready" if lacks(|job| job.ready.is_some()) => "ready",
            "crashLoop" if lacks(|job| job.start_limit.is_some()) => "startLimit",
            "timerExpired" if lacks(|job| job.when.timeout.is_some()) => "when.timeout",
            STARTS | KILLED if lacks(|job| job.exec.is_some()) => "exec",
            _ => return Ok(Self { source: source.to_owned(), word }),
        };
        Err(InvalidMoment {
            message: format!("`{source} {word}` never happens: the job has no `{missing}`"),
            help: format!("expect something else, or add `{missing}` to the job"),
        })
    }

    fn read_global(text: &str, word: &str, plans: &[&Plan]) -> Result<Self, InvalidMoment> {
        if let Some(signal) = Signal::from_full_name(word).filter(|signal| signal.can_be_received()) {
            return Ok(Self { source: signal.to_string(), word: Code::Signal.name() });
        }
        let words = words_of(&Code::GLOBAL, "none");
        if let Some(word) = known(word, &words) {
            return Ok(Self::global(word));
        }
        if names(plans).any(|name| name == text) {
            let help = format!("say what happens to it, for example \"{text} {STARTS}\"");
            return Err(InvalidMoment { message: format!("`{text}` is a name, not a moment"), help });
        }
        let all: Vec<&str> = words.iter().copied().chain(["SIGHUP", "SIGUSR2"]).collect();
        let help = match suggest::best_match(word, &all, &OTHERS) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!(
                "write a name and what happens, for example \"server healthy\"; or one of {}",
                alternatives(&quoted(&all))
            ),
        };
        Err(InvalidMoment { message: format!("`{text}` is not a moment"), help })
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
    InvalidMoment { message: format!("there is no job or watch `{source}`"), help }
}

fn unknown_word(source: &str, word: &str, words: &[&'static str]) -> InvalidMoment {
    let help = match suggest::best_match(word, words, &OTHERS) {
        Some(near) => format!("did you mean \"{source} {near}\"?"),
        None => format!("use {}", alternatives(&quoted(words))),
    };
    InvalidMoment { message: format!("`{word}` cannot happen to `{source}`"), help }
}

/// The help for a name that the configuration does not have.
#[must_use]
pub fn nearest_name(name: &str, plans: &[&Plan]) -> String {
    let mut known: Vec<&str> = names(plans).collect();
    known.sort();
    known.dedup();
    match suggest::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "the configuration has no jobs and no watches".to_owned(),
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
