//! The interface of the parts of the core that have a state of their own: watches, rendered files and locks.
//!
//! A method of a part changes the state of the part only. What the rest of the core must do is returned as
//! [`Decision`]s, which `Core` carries out in their order (`rules/parts.rs`). A part can read the plan, but not the
//! state of jobs: `Core` decides what a file means for the jobs that require it.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::effect::Effect;
use crate::event::Code;
use crate::ids::{CheckRunId, LockIx, WatchIx};
use crate::log_entry::Fields;
use crate::plan::{Level, Plan};
use crate::state::dependency_graph::DependencyGraph;
use crate::state::journal::Origin;
use crate::state::last_ids::LastIds;
use crate::state::phase::Phase;
use crate::state::timers::Timers;
use crate::state::watch_changes::ListChange;
use crate::time::Time;
use crate::variables::JobVariables;

/// What a part may use beside its own state.
pub(crate) struct Context<'a> {
    pub(crate) now: Time,
    /// The time since 1970 by the system clock.
    pub(crate) unix_now: Duration,
    /// How long the machine was asleep since the supervisor started.
    pub(crate) asleep: Duration,
    pub(crate) phase: Phase,
    /// True if maintenance mode pauses watches (C8).
    pub(crate) is_paused: bool,
    pub(crate) plan: &'a Plan,
    pub(crate) graph: &'a DependencyGraph,
    /// The variables that all processes have in common (P7).
    pub(crate) variables: &'a Arc<JobVariables>,
    pub(crate) timers: &'a mut Timers,
    pub(crate) ids: &'a mut LastIds,
    pub(crate) decisions: Vec<Decision>,
}

/// What a part has decided.
pub(crate) enum Decision {
    Do(Effect),
    Log(Level, Fields, String),
    Send(Origin, Code),
    /// Sends an event of a watch, with what it has added and removed (D12).
    SendChange(WatchIx, Code, Option<Arc<ListChange>>),
    /// Jobs that require this source may start or have to stop, or can never start.
    Recheck(Origin),
    /// Jobs that wait for an event may have become unreachable (W10).
    RecheckReachability,
    /// The variable of a watch has another value (D12).
    SetWatchVariable(WatchIx),
    /// The variable of a lock has another value (D14).
    SetLockVariable(LockIx),
    /// The answer of a watch is another one for templates (D15).
    RenderFilesOf(WatchIx),
    /// Has the test of a file run when it is its turn (P14).
    RequestProgram(CheckRunId),
    CancelProgram(CheckRunId),
    /// Another supervisor may get this lock: the processes of the jobs that require it are killed (D14).
    KillRequirers(LockIx),
}

impl Context<'_> {
    pub(crate) fn decide(&mut self, decision: Decision) {
        self.decisions.push(decision);
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.decide(Decision::Do(effect));
    }

    pub(crate) fn log(&mut self, level: Level, fields: impl Into<Fields>, message: String) {
        self.decide(Decision::Log(level, fields.into(), message));
    }

    /// The name of a source, as in a configuration: `file.NAME`.
    pub(crate) fn name(&self, origin: Origin) -> String {
        origin_name(self.plan, origin)
    }
}

/// The name of a source of a plan, as in a configuration. Other sources have none here.
pub(crate) fn origin_name(plan: &Plan, origin: Origin) -> String {
    let (kind, name) = match origin {
        Origin::Watch(watch) => ("watch", plan.watches.get(watch.index()).map(|watch| &watch.name)),
        Origin::File(file) => ("file", plan.files.get(file.index()).map(|file| &file.name)),
        Origin::Lock(lock) => ("lock", plan.locks.get(lock.index()).map(|lock| &lock.name)),
        Origin::Job(_) | Origin::Global | Origin::Signal(_) | Origin::Removed(_) => return String::new(),
    };
    format!("{kind}.{}", name.map_or("", String::as_str))
}
