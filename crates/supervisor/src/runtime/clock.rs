//! The system clock, for jobs that run at certain times (W15) and for locks (D14).

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::SystemTime;

use containerpilot_core::Input;
use containerpilot_core::plan::Plan;
use containerpilot_process::boot_clock::BootClock;
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// Notices when the system clock is set and when the machine was asleep. Its timer never expires: it is only cancelled.
#[derive(Debug, Default)]
pub(crate) struct SystemClock {
    /// Open while the plan needs it.
    timer: Option<TimerFd>,
    boot: BootClock,
}

impl SystemClock {
    /// A clock that also measures how long the machine was asleep.
    pub(crate) fn new(boot: BootClock) -> Self {
        Self { timer: None, boot }
    }

    /// Opens the timer if the plan needs it, and closes it otherwise.
    pub(crate) fn follow(&mut self, plan: &Plan) -> Result<(), Errno> {
        if !plan.needs_clock() {
            self.timer = None;
        } else if self.timer.is_none() {
            let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
            let timer = TimerFd::new(ClockId::CLOCK_REALTIME, flags)?;
            arm(&timer)?;
            self.timer = Some(timer);
        }
        Ok(())
    }

    /// The descriptor to poll, or -1.
    pub(crate) fn poll_fd(&self) -> RawFd {
        self.timer.as_ref().map_or(-1, |timer| timer.as_fd().as_raw_fd())
    }

    /// Reads the clock if it was set since the last call. The timer is armed before that, so that no change is lost.
    pub(crate) fn change(&mut self) -> Option<Input> {
        let timer = self.timer.as_ref()?;
        // ECANCELED if it was set.
        if timer.wait() == Err(Errno::EAGAIN) {
            return None;
        }
        if arm(timer).is_err() {
            // Without this, the loop would find it ready forever.
            self.timer = None;
        }
        Some(self.reading())
    }

    /// The system clock now. A clock before 1970 counts as 1970.
    pub(crate) fn reading(&self) -> Input {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Input::Clock { unix, asleep: self.boot.asleep() }
    }
}

/// Arms a timer for the end of time.
fn arm(timer: &TimerFd) -> Result<(), Errno> {
    let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
    timer.set(Expiration::OneShot(TimeSpec::new(i64::MAX, 0)), flags)
}
