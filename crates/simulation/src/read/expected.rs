//! Reads expectations.

use containerpilot_config::decode::{Spanned, alternatives};
use containerpilot_config::diagnostics::Place;
use containerpilot_config::duration;
use containerpilot_config::values::{to_duration, value_of};

use super::{Reader, small};
use crate::fields::ExpectFields;
use crate::moment::Moment;
use crate::scenario::{Bound, Claim, Expectation, Window};

impl Reader<'_> {
    fn moment(&mut self, given: &Spanned<String>) -> Option<Moment> {
        match Moment::read(&given.value, self.plans) {
            Ok(moment) => Some(moment),
            Err(invalid) => {
                self.error(given.place, invalid.message, invalid.help);
                None
            }
        }
    }

    fn bound(&mut self, given: &Option<Spanned<String>>) -> Option<Option<Bound>> {
        let Some(given) = given else { return Some(None) };
        let text = given.value.trim();
        if text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
            return match duration::parse(text) {
                Ok(time) if time >= 0 => Some(Some(Bound::Time(to_duration(time)))),
                Ok(_) => {
                    self.error(given.place, "times must not be negative", "remove the minus sign");
                    None
                }
                Err(error) => {
                    self.error(given.place, format!("`{text}` is not a duration: {error}"), error.help());
                    None
                }
            };
        }
        self.moment(given).map(|moment| Some(Bound::Moment(moment)))
    }

    pub(super) fn expectation(&mut self, fields: &ExpectFields) -> Option<Expectation> {
        let choice = "`see`, `never`, `exit` or `job`";
        let heads = [
            fields.see.as_ref().map(|given| given.key),
            fields.never.as_ref().map(|given| given.key),
            fields.exit.as_ref().map(|given| given.key),
            fields.job.as_ref().map(|given| given.key),
        ];
        let heads: Vec<Place> = heads.into_iter().flatten().collect();
        match heads.as_slice() {
            [] => {
                if !self.has_errors_in(fields.place) {
                    self.error(fields.place, "this entry expects nothing", format!("set one of {choice}"));
                }
                return None;
            }
            [_, second, ..] => {
                let second = *second;
                self.error(
                    second,
                    "an entry can expect only one thing",
                    format!("set one of {choice}; put the other into an entry of its own"),
                );
                return None;
            }
            [_] => {}
        }
        self.check_combination(fields);
        let window = Window { after: self.bound(&fields.after)?, before: self.bound(&fields.before)? };
        let claim = if let Some(see) = &fields.see {
            let moment = self.moment(see);
            match (&fields.within, &fields.of) {
                (Some(_), Some(of)) => {
                    let (within, of) = (self.time(&fields.within)?, self.moment(of)?);
                    Claim::Follows(moment?, within, of, window)
                }
                (Some(within), None) => {
                    self.error(
                        within.key,
                        "`within` needs `of`",
                        "set `of` to the moment it counts from, or use `before`",
                    );
                    return None;
                }
                (None, Some(of)) => {
                    self.error(
                        of.key,
                        "`of` needs `within`",
                        "set `within` to the longest time, or use `after`",
                    );
                    return None;
                }
                (None, None) => {
                    let times = fields.times.as_ref().and_then(|given| u64::try_from(given.value).ok());
                    Claim::See(moment?, window, times)
                }
            }
        } else if let Some(never) = &fields.never {
            Claim::Never(self.moment(never)?, window)
        } else if let Some(job) = &fields.job {
            let is = self.required(&fields.is, fields.place, "is");
            let job = self.job(job)?;
            Claim::State(job.value.clone(), is?.value, self.time(&fields.at))
        } else {
            Claim::Exit(small(&fields.exit)?, window)
        };
        Some(Expectation { claim, why: value_of(&fields.why) })
    }

    /// Refuses keys that would have no effect.
    fn check_combination(&mut self, fields: &ExpectFields) {
        let keys: [(&str, Option<Place>); 7] = [
            ("is", fields.is.as_ref().map(|given| given.key)),
            ("at", fields.at.as_ref().map(|given| given.key)),
            ("before", fields.before.as_ref().map(|given| given.key)),
            ("after", fields.after.as_ref().map(|given| given.key)),
            ("times", fields.times.as_ref().map(|given| given.key)),
            ("within", fields.within.as_ref().map(|given| given.key)),
            ("of", fields.of.as_ref().map(|given| given.key)),
        ];
        let follows = fields.within.is_some() || fields.of.is_some();
        let (head, fit): (&str, &[&str]) = if fields.see.is_some() && follows {
            ("within", &["within", "of", "before", "after"])
        } else if fields.see.is_some() {
            ("see", &["before", "after", "times", "within", "of"])
        } else if fields.never.is_some() {
            ("never", &["before", "after"])
        } else if fields.job.is_some() {
            ("job", &["is", "at"])
        } else {
            ("exit", &["before", "after"])
        };
        for (key, place) in keys {
            if let Some(place) = place.filter(|_| !fit.contains(&key)) {
                let fit: Vec<String> = fit.iter().map(|key| format!("`{key}`")).collect();
                let help = format!("`{head}` can be combined with {}", alternatives(&fit));
                self.error(place, format!("`{key}` cannot be combined with `{head}`"), help);
            }
        }
    }
}
