//! The time of an entry in RFC 3339.

use std::time::{SystemTime, UNIX_EPOCH};

/// A time in UTC with nanoseconds, always 30 bytes: `2026-11-15T00:15:28.645445913Z`.
pub type Stamp = [u8; 30];

/// Formats a time. Times before 1970 or after 9999 are clamped.
pub fn stamp(time: SystemTime) -> Stamp {
    const LAST_SECOND: u64 = 253_402_300_799;
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().min(LAST_SECOND);
    let (year, month, day) = date(seconds / 86_400);
    let of_day = seconds % 86_400;

    let mut text = *b"0000-00-00T00:00:00.000000000Z";
    let parts = [
        (0, 4, year),
        (5, 2, month),
        (8, 2, day),
        (11, 2, of_day / 3_600),
        (14, 2, of_day / 60 % 60),
        (17, 2, of_day % 60),
        (20, 9, u64::from(since.subsec_nanos())),
    ];
    for (start, width, value) in parts {
        digits(&mut text, start, width, value);
    }
    text
}

/// Writes a number right-aligned into a field of zeros.
fn digits(text: &mut Stamp, start: usize, width: usize, mut value: u64) {
    for place in text.iter_mut().skip(start).take(width).rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Year, month and day from the days since 1970-01-01.
///
/// Years are counted from March, so that the leap day is the last day of a year (Howard Hinnant's `civil_from_days`).
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64, nanoseconds: u32) -> String {
        let stamp = stamp(UNIX_EPOCH + Duration::new(seconds, nanoseconds));
        String::from_utf8(stamp.to_vec()).unwrap()
    }

    #[test]
    fn l1_times_are_rfc_3339_in_utc() {
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(at(1_794_701_728, 645_445_913), "2026-11-15T00:15:28.645445913Z");
        assert_eq!(at(951_782_399, 5), "2000-02-28T23:59:59.000000005Z");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(at(4_107_542_399, 0), "2100-02-28T23:59:59.000000000Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000000000Z");
    }

    #[test]
    fn l1_times_out_of_range_are_clamped() {
        assert_eq!(at(u64::MAX / 4, 0), "9999-12-31T23:59:59.000000000Z");
        let before = stamp(UNIX_EPOCH - Duration::from_secs(1));
        assert_eq!(&before, b"1970-01-01T00:00:00.000000000Z");
    }
}
