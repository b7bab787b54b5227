//! Rendered files: when they are rendered, tested and installed (D15). The stages are in [`state`].

pub(crate) mod report;
mod state;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::context::{Context, Decision};
use crate::effect::Effect;
use crate::event::Code;
use crate::files::state::{FileStage, FileState};
use crate::ids::{CheckRunId, FileIx, RenderId};
use crate::input::{CheckError, RenderError, RenderedText};
use crate::inserted;
use crate::log_entry::Fields;
use crate::plan::diff::Moves;
use crate::plan::{FileData, Level, Plan};
#[cfg(feature = "fingerprint")]
use crate::state::fingerprint::Fingerprint;
use crate::state::journal::Origin;
use crate::state::phase::Phase;
use crate::state::timers::{FileTimer, TimerKind};
use crate::time::fmt_duration;
use crate::variables::ProcessEnvironment;
use crate::watches::Watches;

pub use report::{FileOverview, FileStatus, waiting_for_watches};

/// The rendered files of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Files {
    states: Vec<FileState>,
}

impl Files {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { states: plan.files.iter().map(|_| FileState::default()).collect() }
    }

    fn all(&self) -> impl Iterator<Item = FileIx> + use<> {
        (0..self.states.len()).map(FileIx::at)
    }

    /// Returns true if a file has had the text of its inputs. Jobs that require it wait until then.
    pub(crate) fn is_rendered(&self, file: FileIx) -> bool {
        self.states.get(file.index()).is_some_and(|state| state.rendered_at.is_some())
    }

    /// Returns true if a file is being rendered, or will be without a further change of its inputs.
    pub(crate) fn is_in_progress(&self, file: FileIx) -> bool {
        let state = self.states.get(file.index());
        state.is_some_and(|state| state.stage != FileStage::Idle || state.pending.is_some())
    }

    /// Returns true if an event of a file has come and still describes its state.
    pub(crate) fn event_holds(&self, file: FileIx, code: Code) -> bool {
        let Some(state) = self.states.get(file.index()) else { return false };
        match code {
            Code::Changed => state.changes > 0,
            Code::Failed => state.failure.is_some(),
            _ => false,
        }
    }

    /// Returns true if a file could not be rendered, and is not being rendered.
    pub(crate) fn has_failed(&self) -> bool {
        self.states.iter().any(FileState::has_failed)
    }

    /// Startup: every file is rendered for the first time.
    pub(crate) fn begin(&mut self, watches: &Watches, context: &mut Context<'_>) {
        for file in self.all() {
            self.input_changed(file, watches, context);
        }
    }

    /// After a reload, files that could not be rendered are tried again: what was in the way may be gone.
    pub(crate) fn try_failed_again(&mut self, watches: &Watches, context: &mut Context<'_>) {
        for file in self.all().filter(|file| self.states[file.index()].has_failed()).collect::<Vec<_>>() {
            self.input_changed(file, watches, context);
        }
    }

    /// An input of a file is another one, or the first.
    pub(crate) fn input_changed(&mut self, file: FileIx, watches: &Watches, context: &mut Context<'_>) {
        self.states[file.index()].change(context.now);
        self.proceed(file, watches, context);
    }

    /// Renders a file whose inputs have changed, now or when they have been calm for long enough. The first rendering
    /// is not delayed. A file in progress is continued when that is done.
    fn proceed(&mut self, file: FileIx, watches: &Watches, context: &mut Context<'_>) {
        let state = &mut self.states[file.index()];
        let (Some(pending), true) = (state.pending, state.is_waiting()) else { return };
        if let FileStage::Debouncing(timer) | FileStage::Retrying(timer) = state.stage {
            context.timers.remove(timer);
            state.stage = FileStage::Idle;
        }
        let Some(data) = file_data(file, watches, context) else { return };
        let planned = &context.plan.files[file.index()];
        let due = (pending.last + planned.debounce).min(pending.first + planned.longest_delay());
        if due > context.now && state.renders > 0 {
            let timer = context.timers.set(due, TimerKind::File(file, FileTimer::Debounce));
            state.stage = FileStage::Debouncing(timer);
            return;
        }
        self.render(file, data, context);
    }

    fn render(&mut self, file: FileIx, data: FileData, context: &mut Context<'_>) {
        let render = context.ids.new_render();
        let state = &mut self.states[file.index()];
        (state.pending, state.stage) = (None, FileStage::Rendering(render));
        state.renders += 1;
        let variables = Arc::clone(context.variables);
        context.effect(Effect::RenderFile { file, render, data, variables });
    }

    pub(crate) fn timer(
        &mut self,
        file: FileIx,
        timer: FileTimer,
        watches: &Watches,
        context: &mut Context<'_>,
    ) {
        let state = &mut self.states[file.index()];
        match (timer, state.stage) {
            (FileTimer::Debounce, FileStage::Debouncing(_)) => self.proceed(file, watches, context),
            (FileTimer::Retry, FileStage::Retrying(_)) => {
                state.stage = FileStage::Idle;
                if let Some(data) = file_data(file, watches, context) {
                    self.render(file, data, context);
                }
            }
            (FileTimer::TestTimeout, FileStage::Testing { render, run, .. }) => {
                context.effect(Effect::CancelCheck { run });
                let timeout = context.plan.files[file.index()].test.as_ref().map(|test| test.timeout);
                let why = format!("test: timeout after {}", fmt_duration(timeout.unwrap_or_default()));
                self.reject(file, render, why, watches, context);
            }
            _ => {}
        }
    }

    fn in_stage(&self, is_it: impl Fn(FileStage) -> bool) -> Option<FileIx> {
        self.states.iter().position(|state| is_it(state.stage)).map(FileIx::at)
    }

    /// A rendering is done. That of a file that a reload has removed or changed is discarded.
    pub(crate) fn rendered(
        &mut self,
        render: RenderId,
        result: Result<RenderedText, RenderError>,
        watches: &Watches,
        context: &mut Context<'_>,
    ) {
        let Some(file) = self.in_stage(|stage| stage == FileStage::Rendering(render)) else {
            return context.effect(Effect::DiscardFile { render });
        };
        let has_test = context.plan.files[file.index()].test.is_some();
        match result {
            Ok(RenderedText::Same) => self.succeeded(file, false, watches, context),
            Ok(RenderedText::New) if has_test => {
                let run = context.ids.new_program();
                self.states[file.index()].stage = FileStage::Testing { render, run, timeout: None };
                context.decide(Decision::RequestProgram(run));
            }
            Ok(RenderedText::New) => self.install(file, render, context),
            Err(RenderError::Text(why)) => self.failed(file, why, watches, context),
            Err(RenderError::System(why)) => self.refused(file, why, watches, context),
        }
    }

    /// It is the turn of the test of a file. Its time counts from now on.
    pub(crate) fn run_test(&mut self, test: CheckRunId, context: &mut Context<'_>) {
        let Some((file, render)) = self.file_of_test(test) else { return };
        let timeout = context.plan.files[file.index()].test.as_ref().map(|test| test.timeout);
        let due = context.now + timeout.unwrap_or_default();
        let timeout = context.timers.set(due, TimerKind::File(file, FileTimer::TestTimeout));
        self.states[file.index()].stage = FileStage::Testing { render, run: test, timeout: Some(timeout) };
        let environment = ProcessEnvironment { jobs: Arc::clone(context.variables), cause: Arc::default() };
        context.effect(Effect::TestFile { file, render, run: test, environment });
    }

    /// The file that a program tests, and its rendering.
    fn file_of_test(&self, test: CheckRunId) -> Option<(FileIx, RenderId)> {
        let mut files = self.states.iter().enumerate();
        files.find_map(|(index, state)| match state.stage {
            FileStage::Testing { render, run, .. } if run == test => Some((FileIx::at(index), render)),
            _ => None,
        })
    }

    /// The test of a file is done, unless it was cancelled.
    pub(crate) fn test_done(
        &mut self,
        done: CheckRunId,
        result: Result<(), CheckError>,
        watches: &Watches,
        context: &mut Context<'_>,
    ) {
        let Some((file, render)) = self.file_of_test(done) else { return };
        if let FileStage::Testing { mut timeout, .. } = self.states[file.index()].stage {
            context.timers.cancel(&mut timeout);
        }
        match result {
            Ok(()) => self.install(file, render, context),
            Err(CheckError::Failed(why)) => {
                self.reject(file, render, format!("test: {why}"), watches, context);
            }
            Err(CheckError::NotRun(why)) => {
                context.effect(Effect::DiscardFile { render });
                self.refused(file, format!("test: {why}"), watches, context);
            }
        }
    }

    fn reject(
        &mut self,
        file: FileIx,
        render: RenderId,
        why: String,
        watches: &Watches,
        context: &mut Context<'_>,
    ) {
        context.effect(Effect::DiscardFile { render });
        self.failed(file, why, watches, context);
    }

    fn install(&mut self, file: FileIx, render: RenderId, context: &mut Context<'_>) {
        self.states[file.index()].stage = FileStage::Installing(render);
        context.effect(Effect::InstallFile { render });
    }

    pub(crate) fn installed(
        &mut self,
        render: RenderId,
        result: Result<(), String>,
        watches: &Watches,
        context: &mut Context<'_>,
    ) {
        let Some(file) = self.in_stage(|stage| stage == FileStage::Installing(render)) else { return };
        match result {
            Ok(()) => self.succeeded(file, true, watches, context),
            Err(why) => self.refused(file, why, watches, context),
        }
    }

    fn succeeded(&mut self, file: FileIx, is_new: bool, watches: &Watches, context: &mut Context<'_>) {
        let state = &mut self.states[file.index()];
        (state.rendered_at, state.failure, state.refusals) = (Some(context.now), None, 0);
        if is_new {
            state.changes += 1;
            let (name, to) = (context.name(Origin::File(file)), &context.plan.files[file.index()].to);
            context.log(Level::Info, Code::Changed, format!("{name}: wrote {to}"));
            context.decide(Decision::Send(Origin::File(file), Code::Changed));
        }
        context.decide(Decision::Recheck(Origin::File(file)));
        self.end(file, watches, context);
    }

    fn failed(&mut self, file: FileIx, why: String, watches: &Watches, context: &mut Context<'_>) {
        self.states[file.index()].refusals = 0;
        self.report_failure(file, why, context);
        self.end(file, watches, context);
    }

    /// The system has refused it: it is tried again, unless an input has changed in the meantime. The same failure is
    /// logged once.
    fn refused(&mut self, file: FileIx, why: String, watches: &Watches, context: &mut Context<'_>) {
        let now = context.now;
        let state = &mut self.states[file.index()];
        state.refusals = state.refusals.saturating_add(1);
        let (delay, is_first) = (state.retry_delay(), state.refusals == 1);
        match &mut state.failure {
            Some((at, told)) if !is_first && *told == why => {
                *at = now;
                state.failures += 1;
            }
            _ => self.report_failure(file, why, context),
        }
        self.end(file, watches, context);
        let state = &mut self.states[file.index()];
        if state.stage == FileStage::Idle && context.phase == Phase::Running {
            let timer = context.timers.set(now + delay, TimerKind::File(file, FileTimer::Retry));
            state.stage = FileStage::Retrying(timer);
        }
    }

    fn report_failure(&mut self, file: FileIx, why: String, context: &mut Context<'_>) {
        let (name, to) = (context.name(Origin::File(file)), &context.plan.files[file.index()].to);
        let fields = Fields::from(Code::Failed).cause(why.as_str());
        context.log(Level::Warn, fields, format!("{name}: {to} is not changed: {why}"));
        let state = &mut self.states[file.index()];
        state.failures += 1;
        state.failure = Some((context.now, why));
        context.decide(Decision::Send(Origin::File(file), Code::Failed));
    }

    /// Renders once more if an input has changed in the meantime.
    fn end(&mut self, file: FileIx, watches: &Watches, context: &mut Context<'_>) {
        self.states[file.index()].stage = FileStage::Idle;
        context.decide(Decision::RecheckReachability);
        self.proceed(file, watches, context);
    }

    /// A reload has replaced the plan: unchanged files keep their state, new and changed ones are rendered by
    /// [`Files::begin_new`]. What is in progress for the others is given up.
    pub(crate) fn continue_from(
        &mut self,
        old: Self,
        moves: &Moves,
        context: &mut Context<'_>,
    ) -> BTreeSet<FileIx> {
        let mut new: BTreeSet<FileIx> = inserted(self.all());
        for (state, to) in old.states.into_iter().zip(&moves.files) {
            match to.and_then(|to| Some((to, self.states.get_mut(to.index())?))) {
                Some((to, place)) => {
                    new.remove(&to);
                    *place = state;
                }
                None => give_up(&state, context),
            }
        }
        new
    }

    /// Renders files that a reload has added or changed.
    pub(crate) fn begin_new(&mut self, new: BTreeSet<FileIx>, watches: &Watches, context: &mut Context<'_>) {
        for file in new {
            self.input_changed(file, watches, context);
        }
    }

    /// A shutdown has started: nothing is rendered any more.
    pub(crate) fn stop(&mut self, context: &mut Context<'_>) {
        for state in &mut self.states {
            give_up(state, context);
            (state.stage, state.pending) = (FileStage::Idle, None);
        }
    }

    /// Adds what decisions depend on, for the exhaustive search.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self, print: &mut Fingerprint) {
        print.list(&self.states, |print, state| state.fingerprint(print));
    }
}

/// Gives up what is in progress for a file.
fn give_up(state: &FileState, context: &mut Context<'_>) {
    match state.stage {
        // Their results belong to no file any more, and are discarded.
        FileStage::Idle | FileStage::Rendering(_) | FileStage::Installing(_) => {}
        FileStage::Debouncing(timer) | FileStage::Retrying(timer) => context.timers.remove(timer),
        FileStage::Testing { render, run, mut timeout } => {
            context.timers.cancel(&mut timeout);
            context.decide(Decision::CancelProgram(run));
            context.effect(Effect::DiscardFile { render });
        }
    }
}

/// What the watches of a file have found; `None` while one of them has not answered.
fn file_data(file: FileIx, watches: &Watches, context: &Context<'_>) -> Option<FileData> {
    let keys = context.graph.watches_of_file(file).iter();
    let mut data = FileData::new();
    for (name, watch) in context.plan.files[file.index()].watches.iter().zip(keys) {
        data.insert(name.clone(), watches.data(*watch)?);
    }
    Some(data)
}
