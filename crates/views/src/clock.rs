//! The times of the core as times of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use containerpilot_api::timestamps::rfc3339;
use containerpilot_core::Time;

/// How far the system clock may differ from the supervisor's before it is adopted.
const MAX_DRIFT: Duration = Duration::from_secs(1);

/// Converts the core's time to wall-clock time: the wall-clock time of the core's origin.
#[derive(Clone, Copy, Debug)]
pub struct WallClock(pub SystemTime);

impl WallClock {
    pub fn at(self, moment: Time) -> SystemTime {
        self.0 + Duration::from_nanos(moment.as_nanos())
    }

    /// Adopts the system clock if it was set. Otherwise a moment keeps its wall-clock time.
    pub fn follow(&mut self, now: Time, clock: SystemTime) {
        let shown = self.at(now);
        let drift = clock.duration_since(shown).unwrap_or_else(|early| early.duration());
        if drift > MAX_DRIFT {
            self.0 = clock.checked_sub(Duration::from_nanos(now.as_nanos())).unwrap_or(self.0);
        }
    }
}

/// Converts the core's time to wall-clock time, for a view.
#[derive(Clone, Copy)]
pub struct Clock {
    /// `None` for a view that must not change while nothing happens: it has no members that depend on the present.
    pub now: Option<Time>,
    pub wall: WallClock,
}

impl Clock {
    pub fn at(self, moment: Time) -> String {
        rfc3339(self.wall.at(moment))
    }
}

/// Seconds with millisecond precision.
#[expect(clippy::cast_precision_loss, reason = "more than 2^53 ms are 285,000 years")]
pub fn seconds(duration: Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}

/// Milliseconds since 1970.
pub fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_event_keeps_its_time_unless_the_system_clock_was_set() {
        let origin = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let mut clock = WallClock(origin);
        let (event, now) = (Time::from_nanos(7), Time::from_nanos(3_000_000_000));
        clock.follow(now, origin + Duration::from_millis(3_200));
        assert_eq!(clock.at(event), origin + Duration::from_nanos(7));
        clock.follow(now, origin + Duration::from_secs(3_600));
        assert_eq!(clock.at(now), origin + Duration::from_secs(3_600));
    }
}
