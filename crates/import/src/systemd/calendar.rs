//! Calendar events of systemd (`Mon..Fri *-*-* 09:00`) as `cron`.

use std::collections::BTreeSet;

const WEEKDAYS: [(&str, &str); 7] = [
    ("mon", "monday"),
    ("tue", "tuesday"),
    ("wed", "wednesday"),
    ("thu", "thursday"),
    ("fri", "friday"),
    ("sat", "saturday"),
    ("sun", "sunday"),
];

/// The times of a calendar event: `cron` and `timezone`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cron {
    /// The five fields.
    pub(crate) fields: String,
    /// The time zone, if the event names one.
    pub(crate) timezone: Option<String>,
    /// What a reader has to know about the fields.
    pub(crate) note: Option<&'static str>,
}

/// Converts a calendar event.
///
/// # Errors
/// Why `cron` cannot express it.
pub(crate) fn cron(text: &str) -> Result<Cron, &'static str> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    let timezone = match words.last().filter(|_| words.len() > 1).filter(|word| is_name(word)) {
        Some(&zone) if zone == "UTC" || zone.contains('/') => {
            words.pop();
            Some(zone.to_owned())
        }
        Some(_) => return Err("its time zone is unknown"),
        None => None,
    };
    let shorthand = match words.as_slice() {
        [one] => shorthand(one),
        _ => None,
    };
    if let Some(expanded) = shorthand {
        words = expanded.split(' ').collect();
    }
    let mut weekdays = (1_u8..=7).collect::<BTreeSet<u8>>();
    let mut rest = words.as_slice();
    if let Some((first, others)) = rest.split_first().filter(|(first, _)| is_name(first)) {
        weekdays = weekday_list(first)?;
        rest = others;
    }
    let (date, time) = match rest {
        [] => ("*-*-*", "00:00:00"),
        [one] if one.contains(':') => ("*-*-*", *one),
        [one] => (*one, "00:00:00"),
        [date, time] => (*date, *time),
        _ => return Err("it is not a calendar event"),
    };
    if date.contains('~') {
        return Err("`cron` cannot count days from the end of a month");
    }
    let (month, day) = match date.split('-').collect::<Vec<_>>().as_slice() {
        ["*", month, day] | [month, day] => (field(month, 1, 12)?, field(day, 1, 31)?),
        [_, _, _] => return Err("`cron` has no year"),
        _ => return Err("it is not a calendar event"),
    };
    let (hour, minute) = match time.split(':').collect::<Vec<_>>().as_slice() {
        [hour, minute] => (*hour, *minute),
        [hour, minute, second] if !second.is_empty() && second.chars().all(|c| c == '0') => (*hour, *minute),
        [_, _, _] => return Err("`cron` has no seconds"),
        _ => return Err("it is not a calendar event"),
    };
    let (hour, minute) = (field(hour, 0, 23)?, field(minute, 0, 59)?);
    let (day, weekday, note) = days(day, &weekdays)?;
    let fields = format!("{} {} {day} {} {weekday}", minute.text, hour.text, month.text);
    Ok(Cron { fields, timezone, note })
}

fn shorthand(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "minutely" => "*-*-* *:*:00",
        "hourly" => "*-*-* *:00:00",
        "daily" => "*-*-* 00:00:00",
        "weekly" => "Mon *-*-* 00:00:00",
        "monthly" => "*-*-01 00:00:00",
        "yearly" | "annually" | "anually" => "*-01-01 00:00:00",
        "quarterly" => "*-01,04,07,10-01 00:00:00",
        "semiannually" | "semi-annually" | "biannually" | "bi-annually" => "*-01,07-01 00:00:00",
        _ => return None,
    })
}

/// The days of the week, Monday is 1.
fn weekday_list(text: &str) -> Result<BTreeSet<u8>, &'static str> {
    const WRONG: &str = "it is not a calendar event";
    let number = |name: &str| {
        let name = name.to_ascii_lowercase();
        let at = WEEKDAYS.iter().position(|(short, long)| *short == name || *long == name);
        at.and_then(|at| u8::try_from(at + 1).ok()).ok_or(WRONG)
    };
    let mut days = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once("..").or_else(|| part.split_once('-')).unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(WRONG);
        }
        days.extend(first..=last);
    }
    Ok(days)
}

struct CronField {
    text: String,
    /// Its values; `None` for all.
    values: Option<BTreeSet<u8>>,
}

fn field(text: &str, min: u8, max: u8) -> Result<CronField, &'static str> {
    const WRONG: &str = "it is not a calendar event";
    if text == "*" {
        return Ok(CronField { text: "*".to_owned(), values: None });
    }
    let number = |text: &str| {
        let number = text.parse::<u8>().ok().filter(|_| text.chars().all(|c| c.is_ascii_digit()));
        number.filter(|number| (min..=max).contains(number)).ok_or(WRONG)
    };
    let mut parts = Vec::new();
    let mut values = BTreeSet::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                (range, Some(step.parse::<u8>().ok().filter(|step| *step > 0).ok_or(WRONG)?))
            }
            None => (part, None),
        };
        let (first, last) = match range.split_once("..") {
            Some((first, last)) => (number(first)?, number(last)?),
            None if step.is_some() => (number(range)?, max),
            None => (number(range)?, number(range)?),
        };
        if first > last {
            return Err(WRONG);
        }
        values.extend((first..=last).step_by(usize::from(step.unwrap_or(1))));
        parts.push(match step {
            Some(step) if u16::from(first) + u16::from(step) > u16::from(last) => first.to_string(),
            Some(step) if (first, last) == (min, max) => format!("*/{step}"),
            Some(step) => format!("{first}-{last}/{step}"),
            None if first == last => first.to_string(),
            None => format!("{first}-{last}"),
        });
    }
    Ok(CronField { text: parts.join(","), values: Some(values) })
}

/// The fields of the days, and what a reader has to know about them. systemd wants both to match, and `cron` does if one of them
/// begins with `*`.
fn days(
    day: CronField,
    weekdays: &BTreeSet<u8>,
) -> Result<(String, String, Option<&'static str>), &'static str> {
    let names = |days: &BTreeSet<u8>| {
        let name = |day: &u8| WEEKDAYS.get(usize::from(*day) - 1).map_or("", |(short, _)| *short).to_owned();
        let (first, last) = (days.first().copied().unwrap_or(1), days.last().copied().unwrap_or(7));
        match last < 7 && days.len() > 2 && usize::from(last - first) + 1 == days.len() {
            true => format!("{}-{}", name(&first), name(&last)),
            false => days.iter().map(name).collect::<Vec<_>>().join(","),
        }
    };
    if weekdays.len() == 7 {
        return Ok((day.text, "*".to_owned(), None));
    }
    let Some(dates) = day.values else { return Ok((day.text, names(weekdays), None)) };
    let numbers = |of: &BTreeSet<u8>, but: u8| {
        let others: BTreeSet<u8> = of.iter().copied().filter(|n| *n != but).collect();
        match (others.first(), others.last()) {
            (Some(first), Some(last)) if usize::from(last - first) + 1 == others.len() && first < last => {
                format!(",{first}-{last}")
            }
            _ => others.iter().map(|n| format!(",{n}")).collect(),
        }
    };
    if day.text.starts_with('*') {
        Ok((day.text, names(weekdays), None))
    } else if dates.contains(&1) {
        let note = "`*/31` is day 1: a day of the month that begins with `*` must match together with the day of the week";
        Ok((format!("*/31{}", numbers(&dates, 1)), names(weekdays), Some(note)))
    } else if weekdays.contains(&7) {
        let note = "`*/7` is Sunday: a day of the week that begins with `*` must match together with the day of the month";
        Ok((day.text, format!("*/7{}", numbers(weekdays, 7)), Some(note)))
    } else {
        Err("`cron` cannot combine this date with this day of the week")
    }
}
