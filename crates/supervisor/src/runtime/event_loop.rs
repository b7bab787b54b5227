//! Waits for the sources and turns what they report into inputs.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use containerpilot_core::effect::Exit;
use containerpilot_core::ids::WatchIx;
use containerpilot_core::plan::Level;
use containerpilot_core::rules::signals::{reloads_at, reopens_log};
use containerpilot_core::{Core, Input, Notice, Time};
use containerpilot_process::failpoints::failpoint;
use containerpilot_process::orphans::OrphanLook;
use containerpilot_process::reaper::Owner;
use containerpilot_process::sys::{self, POLL_FAILED_DELAY, PollFd};
use nix::errno::Errno;

use super::effects::EffectExecutor;
use super::{Decider, Runtime};
use crate::control::ControlServer;
use crate::discovery::Discovery;
use crate::messages::LoopMessage;
use crate::messages::query::LoopQuery;
use crate::messages::reload::ReloadRequest;
use crate::runtime::oom::OomCounter;
use crate::runtime::panics::caught;
use crate::runtime::queries::execution;

/// Signals that are handled in one iteration. A sender that is faster than the loop must not keep it from other
/// sources.
const MAX_SIGNALS: usize = 64;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The descriptors that are always polled. Those of starts and checks follow.
const FIXED_SOURCES: usize = 5;

/// How long after another plan has replaced the old one unused memory is returned to the kernel. The threads of log files
/// end meanwhile.
pub(super) const PLAN_SETTLES: Duration = Duration::from_secs(5);
/// How long after the first jobs have started unused memory is returned to the kernel.
const RELEASE_DELAY: Duration = Duration::from_millis(100);

impl<D: Decider> Runtime<D> {
    /// Runs until the core exits; returns the exit code.
    pub(crate) fn run(mut self) -> u8 {
        self.guarded("starting", Self::begin);
        let mut fds = Vec::new();
        loop {
            fds = caught(|| self.wait(fds)).unwrap_or_else(|panic| self.wait_after_panic(&panic));
            // The log thread is woken once per iteration, after everything else is done.
            self.executor.logs.begin_batch();
            match self.iterate(&fds) {
                ControlFlow::Break(exit) => return self.shut_down(exit),
                ControlFlow::Continue(()) => self.executor.logs.end_batch(),
            }
        }
    }

    /// Waits for a source.
    fn wait(&mut self, mut fds: Vec<PollFd>) -> Vec<PollFd> {
        failpoint("wait");
        if self.oom.is_none() && self.results.is_empty() {
            // The first jobs are started; reading files no longer delays them.
            self.oom = Some(OomCounter::open());
            self.release_at = Some(Instant::now() + RELEASE_DELAY);
        }
        self.executor.notices.resume();
        self.list_sources(&mut fds);
        let busy = !self.results.is_empty() || !self.messages.is_empty() || !self.exited.is_empty();
        let mut release = !busy && self.release_at.take_if(|at| *at <= Instant::now()).is_some();
        if release && self.executor.starts.is_busy() {
            // Many jobs start in turn (P14): the last of them needs memory, too.
            self.release_at = Some(Instant::now() + RELEASE_DELAY);
            release = false;
        }
        let timeout = if busy { Some(Duration::ZERO) } else { self.timeout() };
        if release {
            // Right before the wait: code that runs afterwards would be mapped again.
            sys::release_unused_memory();
        }
        match sys::poll(&mut fds, timeout) {
            Ok(()) => {}
            Err(Errno::EINTR) => fds.clear(),
            Err(_) => {
                std::thread::sleep(timeout.unwrap_or(POLL_FAILED_DELAY).min(POLL_FAILED_DELAY));
                ask_all(&mut fds);
            }
        }
        fds
    }

    /// Replaces a [`Runtime::wait`] that has panicked and may do so every time: deadlines and all sources are still
    /// handled.
    fn wait_after_panic(&mut self, panic: &str) -> Vec<PollFd> {
        self.log_panic("waiting", panic);
        std::thread::sleep(POLL_FAILED_DELAY);
        let mut fds = Vec::new();
        if caught(|| self.list_sources(&mut fds)).is_err() {
            fds = vec![sys::poll_fd(0, sys::POLLIN); FIXED_SOURCES];
        }
        ask_all(&mut fds);
        fds
    }

    /// Lists the descriptors to poll: signals, messages, SIGCHLD, the control socket and the clock; then the starts in
    /// progress and the connections of checks.
    fn list_sources(&mut self, fds: &mut Vec<PollFd>) {
        fds.clear();
        // `ppoll` ignores negative descriptors.
        let sigchld = if self.reap_at.is_none() { self.signals.sigchld_fd().as_raw_fd() } else { -1 };
        let paused = self.paused_until.is_some();
        // While the network thread cannot be started, a waiting connection must not wake the loop all the time.
        let control = self.control.as_ref().filter(|_| !self.network.is_paused() && !paused);
        let control = control.map_or(-1, ControlServer::poll_fd);
        let (signals, messages) = (self.signals.fd().as_raw_fd(), self.receiver.waker().as_fd().as_raw_fd());
        let fixed: [_; FIXED_SOURCES] = [signals, messages, sigchld, control, self.clock.poll_fd()];
        for fd in fixed {
            fds.push(sys::poll_fd(fd, sys::POLLIN));
        }
        if !paused {
            let starts_wait = self.core.core().is_some_and(Core::starts_wait);
            self.executor.starts.add_poll_fds(starts_wait, fds);
            self.executor.probes.add_poll_fds(fds);
            self.executor.notices.add_poll_fds(fds);
        }
    }

    /// The time until the next deadline.
    fn timeout(&self) -> Option<Duration> {
        let core = self.core.next_deadline().map(|deadline| {
            let due = self.instant(deadline);
            self.paused_until.map_or(due, |paused| paused.max(due))
        });
        let paused = self.paused_until;
        let checks = self.executor.check_outputs.next_due();
        let load = self.executor.reloads.deadline();
        let network = self.network.retry_at();
        let look = self.executor.reaper.next_look();
        let notices = self.executor.notices.next_due();
        let record = self.recording.flush_at();
        let next =
            [core, notices, self.reap_at, checks, load, network, look, paused, self.release_at, record];
        let next = next.into_iter().flatten().min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Handles what is ready. A panic in one source does not affect the others.
    fn iterate(&mut self, fds: &[PollFd]) -> ControlFlow<Exit> {
        self.paused_until = self.paused_until.filter(|until| *until > Instant::now());
        let ready = |place: usize| fds.get(place).is_some_and(|fd| fd.revents != 0);
        let starts = self.executor.starts.ready(fds.get(FIXED_SOURCES..).unwrap_or_default());
        let notices = self.executor.notices.ready(fds);
        // First: no time is due by a clock that is out of date, and nothing is started with a lock that was lost while
        // the machine was asleep (D14).
        if ready(4)
            && let Some(reading) = self.clock.change()
        {
            self.handle(reading)?;
        }
        // The results of the last iteration: a start before its exit (E3).
        self.handle_results()?;
        self.guarded_flow("continuing starts", |this| this.handle_starts(&starts))?;
        if ready(0) {
            self.guarded_flow("handling signals", Self::handle_signals)?;
        }
        if ready(1) || !self.messages.is_empty() {
            self.guarded_flow("handling messages", Self::handle_messages)?;
        }
        self.guarded_flow("reading what processes report", |this| this.handle_notices(&notices))?;
        let reap = ready(2) || self.reap_at.is_some_and(|at| at <= Instant::now());
        if reap && self.guarded("collecting exited processes", Self::collect_children).is_none() {
            // No signal will announce them again.
            self.reap_at = self.paused_until;
        }
        self.guarded_flow("handling exits", Self::handle_exits)?;
        self.guarded_flow("looking for orphans", Self::look_for_orphans)?;
        self.guarded("serving clients", |this| {
            if ready(3) {
                this.serve_control();
            }
            this.retry_network();
        });
        self.guarded_flow("handling checks", |this| {
            this.handle_probes(fds.get(FIXED_SOURCES..).unwrap_or_default())
        })?;
        self.guarded("following the output of checks", |this| {
            failpoint("check-output");
            this.executor.check_outputs.follow_due(&this.executor.logs);
        });
        self.guarded("giving up a reload", Self::give_up_slow_load);
        if self.recording.flush_at().is_some_and(|at| at <= Instant::now()) {
            let flushed = caught(|| self.recording.flush());
            self.survive_recording(flushed);
        }
        self.guarded_flow("handling a deadline", Self::handle_deadline)?;
        // Only once: what these results cause is handled in the next iteration.
        self.handle_results()
    }

    /// Passes the results that are known now to the core.
    fn handle_results(&mut self) -> ControlFlow<Exit> {
        for _ in 0..self.results.len() {
            let Some(input) = self.results.pop_front() else { break };
            self.handle(input)?;
        }
        ControlFlow::Continue(())
    }

    fn handle_signals(&mut self) -> ControlFlow<Exit> {
        for _ in 0..MAX_SIGNALS {
            let Some(signal) = self.signals.next() else { break };
            self.handle(Input::Signal(signal))?;
            self.guarded("handling a signal", |this| {
                failpoint("signal");
                // L1: sent after the log file was rotated.
                if reopens_log(signal) {
                    this.executor.logs.reopen();
                }
                if reloads_at(&this.plan, signal) {
                    this.log(Level::Info, "received SIGHUP, reloading the configuration");
                    this.reload(ReloadRequest { dry_run: false, reply: None });
                }
            });
        }
        ControlFlow::Continue(())
    }

    fn handle_messages(&mut self) -> ControlFlow<Exit> {
        self.messages.extend(self.receiver.take());
        if self.messages.iter().any(|message| matches!(message, LoopMessage::Query(_))) {
            // Replies describe the core's last step, which may be long ago: one step brings it up to date.
            self.handle(Input::Tick)?;
        }
        while let Some(message) = self.messages.pop_front() {
            self.handle_message(message)?;
        }
        ControlFlow::Continue(())
    }

    fn handle_message(&mut self, message: LoopMessage) -> ControlFlow<Exit> {
        failpoint("message");
        let input = match message {
            LoopMessage::Resolved(host, found) => {
                let done = self.executor.probes.resolved(&host, &found).into_iter();
                self.results.extend(done.map(|(check, result)| Input::CheckDone { check, result }));
                None
            }
            LoopMessage::CheckDone(check, result) => {
                let result = self.executor.probes.remote_done(check, result);
                result.map(|result| Input::CheckDone { check, result })
            }
            LoopMessage::Watched(watch, ix, answer) => {
                // A reload may have moved the watch to another index, or removed it.
                let watches = &self.plan.watches;
                let is_same = |ix: &WatchIx| watches.get(ix.index()) == Some(&*watch);
                let anywhere = || watches.iter().position(|other| *other == *watch).map(WatchIx::at);
                let watch = Some(ix).filter(is_same).or_else(anywhere);
                watch.map(|watch| Input::Watched { watch, answer })
            }
            LoopMessage::Lock(lock, report) => {
                let lock = self.executor.catalog.lock(&self.plan, &lock);
                lock.map(|lock| Input::Lock { lock, report })
            }
            LoopMessage::FileRendered(render, result) => Some(self.executor.files.rendered(render, result)),
            LoopMessage::FileInstalled(render, result) => Some(Input::FileInstalled { render, result }),
            LoopMessage::Deregistered(id, job) => Discovery::deregistered(&self.plan, &id, job),
            LoopMessage::TelemetryListens(address, result) => {
                let is_wanted = self.telemetry.as_ref().is_some_and(|telemetry| telemetry.is_at(address));
                is_wanted.then_some(Input::TelemetryListens(result))
            }
            LoopMessage::ReadyLine(run) => Some(Input::Notified { run, notice: Notice::Ready }),
            LoopMessage::Loaded(loaded) => return self.loaded(*loaded),
            LoopMessage::OrphansRead(report) => {
                let look = self.executor.reaper.orphans_read(report);
                return self.handle_look(look);
            }
            LoopMessage::Log(level, message) => {
                self.log(level, &message);
                None
            }
            LoopMessage::Query(LoopQuery::Reload(request)) => {
                self.reload(request);
                None
            }
            LoopMessage::Query(LoopQuery::Execution(name, reply)) => {
                failpoint("query");
                if let Some(core) = self.core.core() {
                    // It fails if the client has gone.
                    drop(reply.send(execution(core, &mut self.executor.spawner, &name)));
                }
                None
            }
            LoopMessage::Query(LoopQuery::Recording(reply)) => {
                drop(reply.send(self.recording.to_bytes()));
                None
            }
            LoopMessage::Query(query) => {
                failpoint("query");
                let now = self.now();
                let EffectExecutor { queries, catalog, reaper, .. } = &mut self.executor;
                if matches!(query, LoopQuery::Overview(_) | LoopQuery::PublicOverview(..)) {
                    queries.set_processes(reaper.run_processes());
                }
                self.core.core().and_then(|core| queries.handle(core, catalog, now, query))
            }
        };
        match input {
            Some(input) => self.handle(input),
            None => ControlFlow::Continue(()),
        }
    }

    /// Collects the children that have exited.
    fn collect_children(&mut self) {
        // Cleared before the scan, so that an exit during the scan is signalled again.
        self.signals.clear_sigchld();
        failpoint("reap");
        let next = self.executor.reaper.collect(&mut self.exited);
        self.reap_at = next.map(|delay| Instant::now() + delay);
    }

    /// Passes the exits of processes to the core, also if another part fails.
    fn handle_exits(&mut self) -> ControlFlow<Exit> {
        for exited in std::mem::take(&mut self.exited) {
            // E3: starts that were continued in this iteration, or by the time that an earlier exit has passed on: the
            // start of this process may be among them.
            self.handle_results()?;
            let killed = self.guarded("reading how many processes the kernel has killed", |this| {
                this.oom.as_mut().and_then(|oom| oom.kills_that_explain(&exited))
            });
            if let Some(processes) = killed.flatten() {
                self.handle(Input::OutOfMemory { processes })?;
            }
            // E3: the start first.
            match self.executor.resolve_start(&exited) {
                Err(failed) => self.handle(failed)?,
                Ok(started) => {
                    if let Some(started) = started {
                        self.handle(started)?;
                    }
                    if let Owner::Run(run) = exited.owner {
                        self.handle_notices_of(run)?;
                    }
                    self.guarded("reading the last output of a process", |this| {
                        failpoint("exit");
                        this.executor.exited(&exited);
                    });
                    self.handle(exited.input())?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// P4: looks for processes of ended runs.
    fn look_for_orphans(&mut self) -> ControlFlow<Exit> {
        let look = self.executor.reaper.look_for_orphans();
        self.handle_look(look)
    }

    fn handle_look(&mut self, look: OrphanLook) -> ControlFlow<Exit> {
        if let Some(warning) = look.warning {
            self.log(Level::Warn, &warning);
        }
        for run in look.found {
            self.handle(Input::OrphansFound { run })?;
        }
        for run in look.gone {
            self.handle(Input::OrphansGone { run })?;
        }
        ControlFlow::Continue(())
    }

    /// Continues the checks whose connections are ready.
    fn handle_probes(&mut self, fds: &[PollFd]) -> ControlFlow<Exit> {
        failpoint("probe");
        for (check, result) in self.executor.probes.ready(fds) {
            self.results.push_back(Input::CheckDone { check, result });
        }
        ControlFlow::Continue(())
    }

    fn handle_deadline(&mut self) -> ControlFlow<Exit> {
        let due = self.core.next_deadline().is_some_and(|deadline| deadline <= self.now());
        if due && self.paused_until.is_none() { self.handle(Input::Tick) } else { ControlFlow::Continue(()) }
    }

    /// When the core is told a time. One beyond the clock's range becomes a day from now.
    pub(super) fn instant(&self, time: Time) -> Instant {
        let milliseconds = time.as_nanos().div_ceil(NANOS_PER_MILLI);
        let instant = self.origin.checked_add(Duration::from_millis(milliseconds));
        instant.unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400))
    }

    /// Now, on a monotonic clock. The core is told whole milliseconds, which cost nothing in a recording (B1); it is not
    /// told a time before it has come.
    pub(super) fn now(&self) -> Time {
        let milliseconds = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Time::from_nanos(milliseconds.saturating_mul(NANOS_PER_MILLI))
    }
}

/// Marks all sources as ready, when it is not known which are. Each of them can be asked without waiting.
fn ask_all(fds: &mut [PollFd]) {
    fds.iter_mut().for_each(|fd| fd.revents = if fd.fd >= 0 { sys::POLLIN } else { 0 });
}
