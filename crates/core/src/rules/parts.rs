//! Passes messages to the parts of the core that have a state of their own, and carries out what they decide.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::context::{Context, Decision};
use crate::effect::KillReason;
use crate::ids::{EventId, JobIx, LockIx, WatchIx};
use crate::plan::Level;
use crate::state::job::StopReason;
use crate::state::journal::Origin;
use crate::state::start_queue::NewProcess;
use crate::supervisor::Core;
use crate::supervisor::plan_state::{Parts, PlanState};

impl Core {
    /// Calls a part, and carries out its decisions.
    pub(crate) fn tell<T>(&mut self, message: impl FnOnce(&mut Parts, &mut Context<'_>) -> T) -> T {
        let (unix_now, is_paused) = (self.unix_now(), self.is_paused());
        let PlanState { plan, graph, variables, parts, .. } = &mut self.plan_state;
        let mut context = Context {
            now: self.now,
            unix_now,
            asleep: self.asleep,
            phase: self.phase,
            is_paused,
            plan,
            graph,
            variables,
            timers: &mut self.timers,
            ids: &mut self.last_ids,
            decisions: Vec::new(),
        };
        let answer = message(parts, &mut context);
        for decision in context.decisions {
            self.carry_out(decision);
        }
        answer
    }

    fn carry_out(&mut self, decision: Decision) {
        match decision {
            Decision::Do(effect) => self.effects.push(effect),
            Decision::Log(level, fields, message) => {
                self.log(level, None, fields, format_args!("{message}"));
            }
            Decision::Send(origin, code) => self.send(origin, code),
            Decision::SendChange(watch, code, list) => {
                self.send(Origin::Watch(watch), code);
                let watchers = self.plan_state.graph.watchers.get(watch.index());
                if let Some(list) = list.filter(|_| watchers.is_some_and(|jobs| !jobs.is_empty())) {
                    self.watch_changes.record(EventId(self.last_ids.event), list);
                }
            }
            Decision::Recheck(origin) => {
                let PlanState { graph, recheck, reachability_dirty, .. } = &mut self.plan_state;
                recheck.extend(graph.requirers_of(origin));
                *reachability_dirty = true;
            }
            Decision::RecheckReachability => self.plan_state.reachability_dirty = true,
            Decision::SetWatchVariable(watch) => self.set_watch_variable(watch),
            Decision::SetLockVariable(lock) => {
                let PlanState { parts, variables, .. } = &mut self.plan_state;
                Arc::make_mut(variables).set_lock(lock, parts.locks.fencing(lock));
            }
            Decision::RenderFilesOf(watch) => {
                for file in self.plan_state.graph.files_of_watch(watch).to_vec() {
                    self.tell(|Parts { files, watches, .. }, context| {
                        files.input_changed(file, watches, context);
                    });
                }
            }
            Decision::RequestProgram(run) => {
                if self.starts.request(NewProcess::Program(run), self.now) {
                    self.tell(|parts, context| parts.files.run_test(run, context));
                }
            }
            Decision::CancelProgram(run) => self.cancel_program(run),
            Decision::KillRequirers(lock) => self.kill_lock_requirers(lock),
        }
    }

    /// C8: maintenance mode has ended.
    pub(crate) fn resume_watches(&mut self) {
        for watch in (0..self.plan().watches.len()).map(WatchIx::at) {
            self.tell(|parts, context| parts.watches.resume(watch, context));
        }
    }

    /// D14: kills the processes of the jobs that require a lock, also during hooks and drain times.
    fn kill_lock_requirers(&mut self, lock: LockIx) {
        let jobs: Vec<JobIx> = self.plan_state.graph.lock_requirers(lock).to_vec();
        let jobs: Vec<JobIx> = jobs.into_iter().filter(|job| self.job(*job).has_process()).collect();
        for job in &jobs {
            let fields = self.killing(*job, Duration::ZERO);
            let name = self.origin_name(Origin::Lock(lock));
            let message = format_args!("sending SIGKILL: another supervisor may get {name}");
            self.log(Level::Warn, Some(*job), fields, message);
            let then_start = self.is_before_shutdown();
            self.begin_stop_then(*job, StopReason::SourceGone, then_start);
            self.kill(*job, KillReason::LockLost);
        }
        // Processes that a run has left behind have got SIGTERM.
        self.kill_all_orphans();
    }

    /// S4: releases each lock in a shutdown when the jobs that require it have ended. A lock that no job requires is
    /// released at the exit.
    pub(crate) fn release_locks(&mut self) {
        for lock in self.plan_state.parts.locks.all() {
            let jobs = self.plan_state.graph.lock_requirers(lock);
            let is_idle = !jobs.is_empty() && jobs.iter().all(|job| self.job(*job).has_ended());
            if is_idle && self.orphans.is_empty() {
                self.tell(|parts, context| parts.locks.release(lock, context));
            }
        }
    }

    /// D14: gives up the locks that other supervisors may have soon.
    pub(crate) fn expire_locks(&mut self) {
        if !self.plan_state.parts.locks.is_empty() {
            self.tell(|parts, context| parts.locks.expire(context));
        }
    }

    /// The machine was asleep for this long since the supervisor started.
    pub(crate) fn set_asleep(&mut self, asleep: Duration) {
        if self.asleep != asleep {
            self.asleep = asleep;
            self.tell(|parts, context| {
                parts.locks.renew_timers(context);
                parts.locks.expire(context);
            });
        }
    }
}
