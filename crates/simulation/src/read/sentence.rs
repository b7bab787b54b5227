//! Reads an expectation in one sentence, such as `never web crashLoop after 10s`. It is what a verdict prints.
//!
//! ```text
//! MOMENT [once | N times] [after X] [and] [before Y]
//! never MOMENT [after X] [and] [before Y]
//! MOMENT within TIME of MOMENT [after X] [and] [before Y]
//! JOB is STATE [at TIME | at the end]
//! exit with CODE [after X] [and] [before Y]
//! ```

use std::time::Duration;

use containerpilot_config::duration;
use containerpilot_config::values::{Keyword, to_duration};
use containerpilot_core::plan::Plan;

use crate::moment::{InvalidMoment, Moment, nearest_name};
use crate::scenario::{Bound, Claim, ExpectedState, Window};

/// The forms of a sentence, for help.
const FORMS: &str = "write for example \"never web crashLoop\", \"web healthy before 10s\", \"web starts 2 times\", \
                     \"web starts within 5s of db healthy\", \"web is healthy at 1m\" or \"exit with 0\"";

impl Claim {
    /// Reads a sentence about one of the plans.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str, plans: &[&Plan]) -> Result<Self, InvalidMoment> {
        let mut words = text.split_whitespace().collect::<Vec<_>>();
        if words.first() == Some(&"see") {
            words.remove(0);
        }
        if let [rest @ .., "is", state] | [rest @ .., "is", state, "at", "the", "end"] = words.as_slice()
            && let Some(is) = state_named(state)
        {
            return Ok(Self::State(job(rest, plans)?, is, None));
        }
        if let [rest @ .., "is", state, "at", at] = words.as_slice()
            && let Some(is) = state_named(state)
        {
            return Ok(Self::State(job(rest, plans)?, is, Some(time(at)?)));
        }
        let (head, window) = window(&words, plans)?;
        match head {
            ["never", rest @ ..] => Ok(Self::Never(moment(rest, plans)?, window)),
            ["exit", "with", code] => match code.parse() {
                Ok(code) => Ok(Self::Exit(code, window)),
                Err(_) => Err(wrong(format!("`{code}` is not an exit code"), "codes are 0 to 255")),
            },
            _ => {
                let within = head.iter().rposition(|word| *word == "within");
                if let Some((first, [_, limit, "of", of @ ..])) =
                    within.and_then(|place| head.split_at_checked(place))
                {
                    let (first, limit, of) = (moment(first, plans)?, time(limit)?, moment(of, plans)?);
                    return Ok(Self::Follows(first, limit, of, window));
                }
                let (rest, times) = match head {
                    [rest @ .., "once"] => (rest, Some(1)),
                    [rest @ .., number, "times"] => match number.parse() {
                        Ok(times) => (rest, Some(times)),
                        Err(_) => return Err(wrong(format!("`{number}` is not a number"), FORMS)),
                    },
                    all => (all, None),
                };
                Ok(Self::See(moment(rest, plans)?, window, times))
            }
        }
    }
}

fn wrong(message: impl Into<String>, help: &str) -> InvalidMoment {
    InvalidMoment { message: message.into(), help: help.to_owned() }
}

fn moment(words: &[&str], plans: &[&Plan]) -> Result<Moment, InvalidMoment> {
    if words.is_empty() {
        return Err(wrong("the sentence has no moment", FORMS));
    }
    Moment::read(&words.join(" "), plans)
}

fn job(words: &[&str], plans: &[&Plan]) -> Result<String, InvalidMoment> {
    let name = words.join(" ");
    if plans.iter().flat_map(|plan| &plan.jobs).any(|job| job.name == name) {
        return Ok(name);
    }
    Err(InvalidMoment { message: format!("there is no job `{name}`"), help: nearest_name(&name, plans) })
}

fn state_named(text: &str) -> Option<ExpectedState> {
    let place = ExpectedState::NAMES.iter().position(|name| *name == text)?;
    ExpectedState::VALUES.get(place).copied()
}

fn time(text: &str) -> Result<Duration, InvalidMoment> {
    match duration::parse(text) {
        Ok(time) if time >= 0 => Ok(to_duration(time)),
        Ok(_) => Err(wrong("times must not be negative", "remove the minus sign")),
        Err(error) => Err(InvalidMoment {
            message: format!("`{text}` is not a duration: {error}"),
            help: error.help().to_string(),
        }),
    }
}

/// Takes the window from the end of a sentence.
fn window<'w, 't>(words: &'w [&'t str], plans: &[&Plan]) -> Result<(&'w [&'t str], Window), InvalidMoment> {
    let mut window = Window::default();
    let mut head = words;
    if let Some(place) = head.iter().rposition(|word| *word == "before") {
        let (rest, bound) = head.split_at(place);
        window.before = Some(self::bound(bound, plans)?);
        head = rest;
        if let [rest @ .., "and"] = head {
            head = rest;
        }
    }
    if let Some(place) = head.iter().rposition(|word| *word == "after") {
        let (rest, bound) = head.split_at(place);
        window.after = Some(self::bound(bound, plans)?);
        head = rest;
    }
    Ok((head, window))
}

/// A time or a moment, after the word that introduces it.
fn bound(words: &[&str], plans: &[&Plan]) -> Result<Bound, InvalidMoment> {
    match words {
        [_, one] if one.starts_with(|char: char| char.is_ascii_digit() || char == '-' || char == '.') => {
            Ok(Bound::Time(time(one)?))
        }
        words => moment(words.get(1..).unwrap_or_default(), plans).map(Bound::Moment),
    }
}
