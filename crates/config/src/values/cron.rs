//! Schedules of five fields (W15).

use containerpilot_core::plan::CronFields;

use crate::decode::{DecodeContext, Shape, ValueType, shortened};
use crate::json5::Node;

/// A schedule of five fields, or a word such as `@daily`.
pub struct CronText;

/// A schedule, as written and as the values of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The text.
    pub text: String,
    /// The values.
    pub fields: CronFields,
}

impl ValueType for CronText {
    type Value = Schedule;
    const SHAPE: Shape = Shape::Text;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Schedule> {
        let text = cx.text(key, node)?;
        match parse(&text) {
            Ok(fields) => Some(Schedule { text, fields }),
            Err(Wrong { what, help }) => {
                cx.error(node.span, format!("`{key}`: {what}"), help);
                None
            }
        }
    }
}

/// What is wrong with a schedule, and what to write.
struct Wrong {
    what: String,
    help: String,
}

impl Wrong {
    fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: help.into() }
    }
}

/// A field of a schedule.
struct FieldType {
    name: &'static str,
    min: u8,
    max: u8,
    /// The names of its values, from `min` on.
    names: &'static [&'static str],
}

const MINUTE: FieldType = FieldType { name: "minute", min: 0, max: 59, names: &[] };
const HOUR: FieldType = FieldType { name: "hour", min: 0, max: 23, names: &[] };
const DAY: FieldType = FieldType { name: "day of the month", min: 1, max: 31, names: &[] };
const MONTH: FieldType = FieldType {
    name: "month",
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// 0 and 7 are Sunday.
const WEEKDAY: FieldType = FieldType {
    name: "day of the week",
    min: 0,
    max: 7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

/// The words in place of five fields.
const WORDS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

fn parse(text: &str) -> Result<CronFields, Wrong> {
    let text = text.trim();
    let text = if text.starts_with('@') { fields_of_word(text)? } else { text };
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [minute, hour, day, month, weekday] = words.as_slice() else {
        let what = format!("a schedule has five fields, and this one has {}", words.len());
        let help = match words.len() {
            6 => {
                "there are no seconds: minute, hour, day of the month, month, day of the week; \
                  for less than a minute use `interval`"
            }
            _ => {
                "for example \"0 3 * * *\" (minute, hour, day of the month, month, day of the week) or \"@daily\""
            }
        };
        return Err(Wrong::new(what, help));
    };
    let weekdays = WEEKDAY.values(weekday)?;
    let fields = CronFields {
        minutes: MINUTE.values(minute)?,
        hours: HOUR.values(hour)?,
        days: DAY.values(day)?,
        months: MONTH.values(month)?,
        weekdays: (weekdays | weekdays >> 7) & 0x7f,
        both_days: day.starts_with('*') || weekday.starts_with('*'),
    };
    if fields.has_date() {
        return Ok(fields);
    }
    Err(Wrong::new("there is no such date, so the job can never run", "check the day and the month"))
}

/// The five fields of a word such as `@daily`.
fn fields_of_word(word: &str) -> Result<&'static str, Wrong> {
    let lower = word.to_ascii_lowercase();
    if let Some((_, fields)) = WORDS.iter().find(|(name, _)| *name == lower) {
        return Ok(fields);
    }
    let names = WORDS.map(|(name, _)| name);
    let help = match lower.split_ascii_whitespace().next() {
        Some("@reboot") => "remove `when` to run the job once, at startup".to_owned(),
        Some("@every") => "use `interval`, for example interval: \"5m\"".to_owned(),
        _ => match crate::suggest::best_match(&lower, &names, &[]) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("the words are {}", names.join(", ")),
        },
    };
    Err(Wrong::new(format!("`{}` is not a schedule", shortened(word)), help))
}

impl FieldType {
    /// The values that a field accepts: bit n is the value n.
    fn values(&self, field: &str) -> Result<u64, Wrong> {
        let mut values = 0;
        for part in field.split(',') {
            values |= self.part(part)?;
        }
        Ok(values)
    }

    /// One part of a list: `*`, a value or a range, and a step.
    fn part(&self, part: &str) -> Result<u64, Wrong> {
        let (range, step) = match part.split_once('/') {
            None => (part, None),
            Some((range, step)) => (range, Some(self.step(step)?)),
        };
        // 7 is a second name of Sunday.
        let last = if self.max == 7 { 6 } else { self.max };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.min, last),
            None if step.is_some() => {
                let help = format!("write {range}-{last}/{}", step.unwrap_or(1));
                return Err(Wrong::new(format!("a step needs `*` or a range, and `{part}` has none"), help));
            }
            None => {
                let value = self.value(range)?;
                (value, value)
            }
            Some((from, to)) => (self.value(from)?, self.value(to)?),
        };
        // The week may end with Sunday.
        let to = if self.max == 7 && to == 0 && from > 0 { 7 } else { to };
        if from > to {
            let help = format!("write {from}-{last},{}-{to}", self.min);
            return Err(Wrong::new(format!("the range `{range}` ends before it begins"), help));
        }
        let steps = (from..=to).step_by(step.unwrap_or(1).into());
        Ok(steps.fold(0, |values, value| values | 1 << value))
    }

    fn step(&self, text: &str) -> Result<u8, Wrong> {
        let step = number(text).filter(|step| (1..=self.max).contains(step));
        step.ok_or_else(|| {
            let what =
                format!("the step of the {} must be 1 to {}, not `{}`", self.name, self.max, shortened(text));
            Wrong::new(what, "for example */5")
        })
    }

    fn value(&self, text: &str) -> Result<u8, Wrong> {
        if let Some(nth) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(self.min + u8::try_from(nth).unwrap_or(0));
        }
        if let Some(value) = number(text).filter(|value| (self.min..=self.max).contains(value)) {
            return Ok(value);
        }
        let or_name = match self.names {
            [first, .., last] => format!(" or a name from {first} to {last}"),
            _ => String::new(),
        };
        let what = format!(
            "the {} must be {} to {}{or_name}, not `{}`",
            self.name,
            self.min,
            self.max,
            shortened(text)
        );
        Err(Wrong::new(what, if text == "?" { "write *" } else { "" }))
    }
}

/// A number in digits.
fn number(text: &str) -> Option<u8> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}
