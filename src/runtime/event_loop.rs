//! Waits for the sources and turns what they report into inputs.

use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use containerpilot_core::plan::Level;
use containerpilot_core::rules::signals::{reloads_at, reopens_log};
use containerpilot_core::{Input, Time};

use super::{Decider, Runtime};
use crate::control::{Control, ControlHandles};
use crate::discovery::Discovery;
use crate::process::sys::{self, PollFd};
use crate::runtime::channel::LoopMessage;
use crate::runtime::oom::OomCounter;
use crate::runtime::query::{Query, QueryHandle};
use crate::runtime::reload::ReloadRequest;

/// With this many exited orphans, or a scan for exited children that takes this long, more orphans are expected soon.
/// Collecting them is delayed then, because the kernel scans all running children each time.
const MANY_ORPHANS: usize = 16;
const SLOW_SCAN: Duration = Duration::from_micros(100);
/// The bounds of that delay. It is four times the time of the last scan, so that scans take a fifth of the time at most.
const REAP_DELAY: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(20)];

/// How long after the first jobs have started unused memory is returned to the kernel.
const RELEASE_DELAY: Duration = Duration::from_millis(100);

impl<D: Decider> Runtime<D> {
    /// Runs until the core exits; returns the exit code.
    pub(crate) fn run(mut self) -> u8 {
        self.begin();
        let mut more = false;
        let mut fds = Vec::new();
        loop {
            if self.oom.is_none() && !more && self.results.is_empty() {
                // The first jobs are started; reading files no longer delays them.
                self.oom = Some(OomCounter::open());
                self.release_at = Some(Instant::now() + RELEASE_DELAY);
            }
            fds = self.wait(more, fds);
            // The log thread is woken once per iteration, after everything else is done.
            self.executor.logs.begin_batch();
            match self.iterate(&fds, &mut more) {
                ControlFlow::Break(code) => return self.shut_down(code),
                ControlFlow::Continue(()) => self.executor.logs.end_batch(),
            }
        }
    }

    /// Waits for a source. The first four descriptors are signals, messages, SIGCHLD and the control socket.
    fn wait(&mut self, more: bool, mut fds: Vec<PollFd>) -> Vec<PollFd> {
        fds.clear();
        // `ppoll` ignores negative descriptors.
        let sigchld = if self.reap_at.is_none() { self.signals.sigchld_fd().as_raw_fd() } else { -1 };
        let control = self.control.as_ref().map_or(-1, Control::poll_fd);
        for fd in [self.signals.fd().as_raw_fd(), self.receiver.as_fd().as_raw_fd(), sigchld, control] {
            fds.push(sys::poll_fd(fd, sys::POLLIN));
        }
        self.executor.probes.add_poll_fds(&mut fds);
        let busy = more || !self.results.is_empty();
        let release = !busy && self.release_at.take_if(|at| *at <= Instant::now()).is_some();
        let timeout = if busy { Some(Duration::ZERO) } else { self.timeout() };
        if release {
            // Right before the wait: code that runs afterwards would be mapped again.
            sys::release_unused_memory();
        }
        if sys::poll(&mut fds, timeout).is_err() {
            // EINTR or ENOMEM: nothing is known to be ready.
            fds.iter_mut().for_each(|fd| fd.revents = 0);
        }
        fds
    }

    /// The time until the next deadline.
    fn timeout(&self) -> Option<Duration> {
        let core = self.core.next_deadline().map(|deadline| {
            let due = self.origin.checked_add(Duration::from_nanos(deadline.as_nanos()));
            // A deadline beyond the clock's range: wait a day and check again.
            let due = due.unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400));
            self.paused_until.map_or(due, |paused| paused.max(due))
        });
        let checks = self.executor.check_outputs.next_due();
        let next = [core, self.reap_at, checks, self.release_at].into_iter().flatten().min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Handles what is ready. Sets `more` if the next wait must return at once.
    fn iterate(&mut self, fds: &[PollFd], more: &mut bool) -> ControlFlow<u8> {
        *more = false;
        let ready = |place: usize| fds.get(place).is_some_and(|fd| fd.revents != 0);
        // The results of the last iteration first: a start before its exit (E3).
        self.handle_results()?;
        if ready(0) {
            self.handle_signals()?;
        }
        if ready(1) {
            self.handle_messages()?;
        }
        if ready(2) || self.reap_at.is_some_and(|at| at <= Instant::now()) {
            self.collect_children(more)?;
        }
        if ready(3) {
            self.serve_control();
        }
        for (check, result) in self.executor.probes.ready(fds.get(4..).unwrap_or_default()) {
            self.handle(Input::CheckDone { check, result })?;
        }
        self.executor.check_outputs.follow_due(&self.executor.logs);
        let paused = self.paused_until.is_some_and(|until| until > Instant::now());
        if !paused && self.core.next_deadline().is_some_and(|deadline| deadline <= self.now()) {
            self.handle(Input::Tick)?;
        }
        // Only once: what these results cause is handled in the next iteration.
        self.handle_results()
    }

    /// Passes the results that are known now to the core.
    fn handle_results(&mut self) -> ControlFlow<u8> {
        for _ in 0..self.results.len() {
            let Some(input) = self.results.pop_front() else { break };
            self.handle(input)?;
        }
        ControlFlow::Continue(())
    }

    fn handle_signals(&mut self) -> ControlFlow<u8> {
        while let Some(signal) = self.signals.next() {
            // L1: sent after the log file was rotated.
            if reopens_log(signal) {
                self.executor.logs.reopen();
            }
            self.handle(Input::Signal(signal))?;
            if reloads_at(&self.plan, signal) {
                self.log(Level::Info, "received SIGHUP, reloading the configuration");
                self.reload(ReloadRequest { dry_run: false, reply: None });
            }
        }
        ControlFlow::Continue(())
    }

    fn handle_messages(&mut self) -> ControlFlow<u8> {
        let messages: Vec<LoopMessage> = self.receiver.take().collect();
        if messages.iter().any(|message| matches!(message, LoopMessage::Query(_))) {
            // Replies describe the core's last step, which may be long ago: one step brings it up to date.
            self.handle(Input::Tick)?;
        }
        for message in messages {
            self.handle_message(message)?;
        }
        ControlFlow::Continue(())
    }

    fn handle_message(&mut self, message: LoopMessage) -> ControlFlow<u8> {
        let input = match message {
            LoopMessage::Resolved(check, found) => {
                let outcome = self.executor.probes.resolved(check, found);
                self.results.extend(outcome.map(|result| Input::CheckDone { check, result }));
                None
            }
            LoopMessage::WatchResult(watch, ix, instances) => {
                Discovery::watch_result(&self.plan, &watch, ix, instances)
            }
            LoopMessage::Deregistered(id, job) => Discovery::deregistered(&self.plan, &id, job),
            LoopMessage::Loaded(loaded) => return self.loaded(*loaded),
            LoopMessage::Log(level, message) => {
                self.log(level, &message);
                None
            }
            LoopMessage::Query(Query::Reload(request)) => {
                self.reload(request);
                None
            }
            LoopMessage::Query(query) => {
                let now = self.now();
                self.core.core().and_then(|core| self.executor.queries.handle(core, now, query))
            }
        };
        match input {
            Some(input) => self.handle(input),
            None => ControlFlow::Continue(()),
        }
    }

    /// Collects the children that have exited.
    fn collect_children(&mut self, more: &mut bool) -> ControlFlow<u8> {
        // Cleared before the scan, so that an exit during the scan is signalled again.
        self.signals.clear_sigchld();
        let mut exited = Vec::new();
        let started = Instant::now();
        let pass = self.executor.reaper.collect(&mut exited);
        let scan_time = started.elapsed();
        let delayed = pass.orphans >= MANY_ORPHANS || pass.orphans > 0 && scan_time > SLOW_SCAN;
        let [shortest, longest] = REAP_DELAY;
        self.reap_at = delayed.then(|| Instant::now() + (scan_time * 4).clamp(shortest, longest));
        if pass.failed || pass.slow {
            self.reap_at = Some(Instant::now() + longest);
        }
        if pass.more {
            self.reap_at = Some(Instant::now());
            *more = true;
        }
        // E3: a child may have been started in this iteration, and the core must see the start first.
        self.handle_results()?;
        for exited in exited {
            if let Some(processes) = self.oom.as_mut().and_then(|oom| oom.kills_that_explain(&exited)) {
                self.handle(Input::OutOfMemory { processes })?;
            }
            let input = self.executor.exited(exited);
            self.handle(input)?;
        }
        ControlFlow::Continue(())
    }

    /// Starts serving the control socket, at its first connection.
    fn serve_control(&mut self) {
        let Some(mut control) = self.control.take() else { return };
        let handles = ControlHandles {
            queries: QueryHandle::new(self.receiver.sender()),
            metrics: self.metrics.clone(),
            tails: self.executor.logs.tails(),
        };
        if let Err(error) = control.serve(self.net(), handles) {
            self.log(Level::Error, &format!("cannot serve the control socket: {error}"));
        }
        self.control = Some(control);
    }

    /// Now, on a monotonic clock.
    pub(super) fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
