//! Time zones (W15).

use containerpilot_core::plan::{Cron, Zone};
use jiff::tz::TimeZone;

use super::Lower;
use crate::decode::Spanned;
use crate::values::Schedule;
use crate::zones;

impl Lower<'_> {
    pub(super) fn cron(&mut self, schedule: &Schedule, zone: Option<&Spanned<String>>) -> Option<Box<Cron>> {
        let zone = match zone {
            None => Zone::utc(),
            Some(zone) => self.zone(zone)?,
        };
        Some(Box::new(Cron { text: schedule.text.clone(), fields: schedule.fields, zone }))
    }

    /// A time zone by its IANA name. The data of the host counts if it is newer than that in the binary.
    fn zone(&mut self, given: &Spanned<String>) -> Option<Zone> {
        let name = given.value.as_str();
        let bundled = zones::get(name);
        let is_newer = || self.host.zone_version().is_some_and(|version| version.as_str() > zones::VERSION);
        let host =
            (is_path(name) && (bundled.is_none() || is_newer())).then(|| self.host.zone(name)).flatten();
        let of_host = host.and_then(|data| TimeZone::tzif(name, &data).ok()).map(|zone| (name, zone));
        let of_binary = || bundled.and_then(|(name, data)| Some((name, TimeZone::tzif(name, data).ok()?)));
        if let Some((name, offsets)) = of_host.or_else(of_binary) {
            return Some(Zone { name: name.to_owned(), offsets });
        }
        let help = match nearest_zone(name) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "write the name of a city, for example \"Europe/Berlin\", or \"UTC\"".to_owned(),
        };
        self.error(given.place, format!("unknown time zone `{name}`"), &help);
        None
    }
}

/// Returns true if a name is a path below the folder of zones. Zones below `right/` count leap seconds.
fn is_path(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
    };
    name.len() <= 64 && name.split('/').all(is_part) && !name.starts_with("right/")
}

/// The zone with a similar name, or with this city.
fn nearest_zone(name: &str) -> Option<&'static str> {
    let city = |zone: &str| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name));
    let of_city = zones::names().find(|zone| zone.contains('/') && city(zone));
    of_city.or_else(|| crate::suggest::nearest(name, zones::names()))
}
