//! Time since the supervisor started, as the caller reports it.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::Add;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Nanoseconds since the supervisor started, on a monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(u64);

impl Time {
    /// The start of the supervisor.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds since the start.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Saturates after 584 years.
    fn add(self, duration: Duration) -> Self {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanoseconds))
    }
}

/// A duration as logs and reports print it: `250µs`, `100ms`, `5.6s`, `1m30s`, `2h0m5s`.
pub fn fmt_duration(duration: Duration) -> impl fmt::Display {
    fmt::from_fn(move |out| match (duration.as_secs(), duration.subsec_nanos()) {
        (0, 0) => out.write_str("0s"),
        (0, nanoseconds) if nanoseconds < 1_000_000 => write!(out, "{}µs", nanoseconds / 1_000),
        (0, nanoseconds) => write!(out, "{}ms", nanoseconds / 1_000_000),
        (seconds, nanoseconds) if seconds < 60 && nanoseconds >= 1_000_000 => {
            let fraction = format!("{:03}", nanoseconds / 1_000_000);
            write!(out, "{seconds}.{}s", fraction.trim_end_matches('0'))
        }
        (seconds, _) if seconds < 60 => write!(out, "{seconds}s"),
        (seconds, _) if seconds < 3_600 => write!(out, "{}m{}s", seconds / 60, seconds % 60),
        (seconds, _) => write!(out, "{}h{}m{}s", seconds / 3_600, seconds / 60 % 60, seconds % 60),
    })
}

const SECOND: u64 = 1_000_000_000;

/// Formats a duration like Go's `Duration.String`, which a configuration reads: `1h15m30.5s`, `100ms`, `1µs`, `0s`.
/// Saturates after 584 years.
///
/// It is exact, for values of a configuration; what was measured is rounded by [`fmt_duration`].
#[must_use]
pub fn exact(duration: Duration) -> String {
    let total = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let decimal = |value: u64, unit: u64| {
        let width = unit.ilog10() as usize;
        let fraction = format!("{:0width$}", value % unit);
        let fraction = if width == 0 { "" } else { fraction.trim_end_matches('0') };
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction}", value / unit)
    };
    match total {
        0 => "0s".to_owned(),
        1..1000 => format!("{total}ns"),
        1000..1_000_000 => format!("{}µs", decimal(total, 1000)),
        1_000_000..SECOND => format!("{}ms", decimal(total, 1_000_000)),
        _ => {
            let seconds = decimal(total % (60 * SECOND), SECOND);
            let minutes = total / (60 * SECOND);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}
