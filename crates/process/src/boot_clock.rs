//! The time since the supervisor started, also while the machine was asleep (D14).
//!
//! The core's time stands still while the machine is asleep, as the jobs do. The lock of a supervisor expires
//! meanwhile.

use std::time::{Duration, Instant};

use containerpilot_core::Time;
use nix::time::{ClockId, clock_gettime};

/// Shorter times asleep are differences between two readings.
const PRECISION: Duration = Duration::from_millis(10);

/// Reads the clock that counts while the machine is asleep.
#[derive(Clone, Copy, Debug)]
pub struct BootClock {
    /// The origin of the core's time.
    origin: Instant,
    /// The same moment on the clock that counts.
    boot_origin: Duration,
}

impl BootClock {
    /// A clock with the origin of the core's time.
    pub fn new(origin: Instant) -> Self {
        let boot_origin = boot_time().map_or(Duration::ZERO, |now| now.saturating_sub(origin.elapsed()));
        Self { origin, boot_origin }
    }

    /// The time since the origin.
    pub fn now(&self) -> Time {
        let now = boot_time().map(|now| now.saturating_sub(self.boot_origin));
        let now = now.unwrap_or_else(|| self.origin.elapsed());
        Time::ZERO + now
    }

    /// The core's time now.
    pub fn awake(&self) -> Time {
        Time::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// How much of this time the machine was asleep.
    pub fn asleep(&self) -> Duration {
        let now = boot_time().map_or(Duration::ZERO, |now| now.saturating_sub(self.boot_origin));
        let asleep = now.saturating_sub(self.origin.elapsed());
        if asleep < PRECISION { Duration::ZERO } else { asleep }
    }
}

impl Default for BootClock {
    fn default() -> Self {
        Self::new(Instant::now())
    }
}

fn boot_time() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_BOOTTIME).ok().map(Duration::from)
}
