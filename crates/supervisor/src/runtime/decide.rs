//! One step of the core: an input, the decision, its effects. A panic in a step is logged and survived.

use std::ops::ControlFlow;
use std::time::Instant;

use containerpilot_core::effect::Exit;
use containerpilot_core::input::{RenderError, StartError, StartErrorKind};
use containerpilot_core::plan::Level;
use containerpilot_core::request::{Refusal, Reply};
use containerpilot_core::{Effect, Input, Time};
use containerpilot_process::failpoints::failpoint;
use containerpilot_process::reaper::Owner;

use super::event_loop::PLAN_SETTLES;
use super::{Decider, Runtime};
use crate::messages::reload::ReloadRequest;
use crate::runtime::panics::caught;

/// The error of a request or an effect that caused an internal error.
const INTERNAL_ERROR: &str = "internal error, please report it";

/// The exit code after an internal error during shutdown (`EX_SOFTWARE`).
pub(super) const INTERNAL_ERROR_CODE: u8 = 70;

impl<D: Decider> Runtime<D> {
    /// Passes an input to the core and carries out the effects. Breaks with the exit code.
    pub(super) fn handle(&mut self, input: Input) -> ControlFlow<Exit> {
        let mut effects = std::mem::take(&mut self.effects);
        let traced = self.export.as_ref().filter(|export| export.has_traces()).map(|_| input.clone());
        let now = self.now();
        let decided = self.decide(now, input, &mut effects);
        if let Some(input) = traced {
            self.guarded("exporting spans", |this| {
                failpoint("spans");
                if let (Some(export), Some(core)) = (&mut this.export, this.core.core()) {
                    export.step(now, &input, &effects, core);
                }
            });
        }
        self.guarded("sending events to clients", |this| {
            failpoint("state");
            if let Some(core) = this.core.core() {
                this.executor.queries.state_changed(core);
            }
        });
        for effect in effects.drain(..) {
            let failed = failed_result(&effect);
            let reloaded = matches!(&effect, Effect::Reply { reply: Reply::Reloaded(_), .. });
            let replies_to = if let Effect::Reply { id, .. } = &effect { Some(*id) } else { None };
            let done = caught(|| {
                failpoint("effect");
                failpoint(failpoint_name(&effect));
                if let Effect::PlanReplaced { plan, moves } = &effect {
                    self.replanned(plan, moves);
                    // Many jobs may be gone, with the threads of their log files.
                    self.release_at = Some(Instant::now() + PLAN_SETTLES);
                }
                if effect == Effect::Reload {
                    // R1, W19: as at SIGHUP.
                    self.reload(ReloadRequest { dry_run: false, reply: None });
                }
                let flow = self.executor.carry_out(&self.plan, effect, &mut self.results);
                if reloaded {
                    self.log_loaded();
                    self.log_serving();
                }
                flow
            });
            match done {
                Ok(flow) => flow?,
                Err(panic) => {
                    self.survive_panic("carrying out a decision", &panic);
                    if let Some(id) = replies_to {
                        // A client waits for it.
                        let effect = Effect::Reply { id, reply: internal_error() };
                        let _ = caught(|| self.executor.carry_out(&self.plan, effect, &mut self.results));
                    }
                    if let Some((owner, result)) = failed {
                        // If the process exists already, the core does not know it.
                        owner.into_iter().for_each(|owner| self.executor.cancel_start(owner));
                        self.results.push_back(result);
                    }
                }
            }
        }
        self.effects = effects;
        decided
    }

    /// Lets the core decide. After a panic the input is passed once more, because an event cannot be undone and the
    /// core ignores duplicates; a command is refused instead. If a stop signal fails twice, all jobs are
    /// killed and the supervisor exits.
    fn decide(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) -> ControlFlow<Exit> {
        let (mut refused, again) = match &input {
            Input::Request { id, .. } => (Some(*id), Input::Tick),
            event => (None, event.clone()),
        };
        for input in [input, again.clone()] {
            let recorded = caught(|| {
                failpoint("record");
                if let Some(core) = self.core.core() {
                    self.recording.before_step(core, now, &input);
                }
            });
            self.survive_recording(recorded);
            let before = effects.len();
            let decided = caught(|| {
                failpoint("step");
                self.core.step(now, input, effects);
            });
            let Err(panic) = decided else {
                let decided = effects.get(before..).unwrap_or_default();
                let recorded = caught(|| self.recording.after_step(decided));
                self.survive_recording(recorded);
                return ControlFlow::Continue(());
            };
            let recorded = caught(|| self.recording.step_failed());
            self.survive_recording(recorded);
            self.survive_panic("deciding", &panic);
            if let Some(id) = refused.take() {
                effects.push(Effect::Reply { id, reply: internal_error() });
            }
        }
        match again {
            Input::Signal(signal) if self.plan.stop_on.contains(&signal) => {
                self.log(Level::Panic, "internal error during shutdown, killing all jobs");
                self.executor.reaper.kill_all();
                ControlFlow::Break(Exit::at_once(INTERNAL_ERROR_CODE, &self.plan, now))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn internal_error() -> Reply {
    Reply::Refused(Refusal::InternalError)
}

/// The result of an effect that could not be carried out, if the core waits for one.
fn failed_result(effect: &Effect) -> Option<(Option<Owner>, Input)> {
    let why = || StartError { kind: StartErrorKind::Other, message: INTERNAL_ERROR.to_owned() };
    match effect {
        Effect::Spawn { run, .. } => {
            let owner = Owner::Run(*run);
            Some((Some(owner), owner.start_failed(why())))
        }
        Effect::InspectStart { run } => Some((None, Input::StartPending { run: *run })),
        Effect::RunCheck { run, .. } | Effect::RunDrain { run, .. } | Effect::TestFile { run, .. } => {
            let owner = Owner::Check(*run);
            Some((Some(owner), owner.start_failed(why())))
        }
        Effect::RenderFile { render, .. } => {
            let result = Err(RenderError::Text(INTERNAL_ERROR.to_owned()));
            Some((None, Input::FileRendered { render: *render, result }))
        }
        Effect::InstallFile { render } => {
            let result = Err(INTERNAL_ERROR.to_owned());
            Some((None, Input::FileInstalled { render: *render, result }))
        }
        // The core does not wait for them, or for a limited time only: for an exit, and for a deregistration.
        Effect::CancelStart { .. }
        | Effect::Kill { .. }
        | Effect::KillOrphans { .. }
        | Effect::Abandon { .. }
        | Effect::CancelCheck { .. }
        | Effect::DiscardFile { .. }
        | Effect::Advertise { .. }
        | Effect::Heartbeat { .. }
        | Effect::ReleaseLock { .. }
        | Effect::NotifyManager(_)
        | Effect::Reply { .. }
        | Effect::PlanReplaced { .. }
        | Effect::Reload
        | Effect::Log(_)
        | Effect::Exit(_) => None,
    }
}

/// The failpoint of one kind of effect.
const fn failpoint_name(effect: &Effect) -> &'static str {
    match effect {
        Effect::Spawn { .. } => "effect.spawn",
        Effect::InspectStart { .. } => "effect.inspectStart",
        Effect::CancelStart { .. } => "effect.cancelStart",
        Effect::Kill { .. } => "effect.kill",
        Effect::KillOrphans { .. } => "effect.killOrphans",
        Effect::Abandon { .. } => "effect.abandon",
        Effect::RunCheck { .. } => "effect.runCheck",
        Effect::RunDrain { .. } => "effect.runDrain",
        Effect::CancelCheck { .. } => "effect.cancelCheck",
        Effect::RenderFile { .. } => "effect.renderFile",
        Effect::TestFile { .. } => "effect.testFile",
        Effect::InstallFile { .. } => "effect.installFile",
        Effect::DiscardFile { .. } => "effect.discardFile",
        Effect::Advertise { .. } => "effect.advertise",
        Effect::Heartbeat { .. } => "effect.heartbeat",
        Effect::ReleaseLock { .. } => "effect.releaseLock",
        Effect::NotifyManager(_) => "effect.notifyManager",
        Effect::Reply { .. } => "effect.reply",
        Effect::PlanReplaced { .. } => "effect.planReplaced",
        Effect::Reload => "effect.reload",
        Effect::Log(_) => "effect.log",
        Effect::Exit(_) => "effect.exit",
    }
}
