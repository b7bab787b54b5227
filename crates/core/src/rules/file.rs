//! Rendered files: when they are rendered, tested and installed (D15). The stages are in [`FileState`].

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::effect::Effect;
use crate::event::Code;
use crate::ids::{CheckRunId, FileIx, JobIx, RenderId, WatchIx};
use crate::input::{CheckError, RenderError, RenderedText};
use crate::log_entry::Fields;
use crate::plan::{FileData, Level, RenderedFile};
use crate::state::file::{FileStage, FileState};
use crate::state::journal::Origin;
use crate::state::timers::{FileTimer, TimerKind};
use crate::supervisor::{Core, Phase};
use crate::time::fmt_duration;
use crate::variables::Environment;

impl Core {
    pub(crate) fn planned_file(&self, file: FileIx) -> &RenderedFile {
        &self.plan_state.plan.files[file.index()]
    }

    pub(crate) fn file(&self, file: FileIx) -> &FileState {
        &self.plan_state.files[file.index()]
    }

    fn file_mut(&mut self, file: FileIx) -> &mut FileState {
        &mut self.plan_state.files[file.index()]
    }

    /// Renders files for the first time: at startup, and after a reload that has added or changed them.
    pub(crate) fn begin_files(&mut self, files: impl IntoIterator<Item = FileIx>) {
        for file in files {
            self.input_changed(file);
        }
    }

    /// After a reload, files that could not be rendered are tried again: what was in the way may be gone.
    pub(crate) fn try_failed_files_again(&mut self) {
        self.begin_files(self.failed_files());
    }

    /// The files that could not be rendered, and are not being rendered.
    pub(crate) fn failed_files(&self) -> Vec<FileIx> {
        let failed = |state: &FileState| state.is_waiting() && state.failure.is_some();
        let states = self.plan_state.files.iter().enumerate();
        states.filter(|(_, state)| failed(state)).map(|(nth, _)| FileIx::at(nth)).collect()
    }

    /// The answer of a watch is another one, or the first: renders the files that use it.
    pub(crate) fn render_files_of(&mut self, watch: WatchIx) {
        for file in self.plan_state.graph.files_of_watch(watch).to_vec() {
            self.input_changed(file);
        }
    }

    fn input_changed(&mut self, file: FileIx) {
        let now = self.now;
        self.file_mut(file).change(now);
        self.continue_file(file);
    }

    /// Renders a file whose inputs have changed, now or when they have been calm for long enough. The first rendering is not
    /// delayed. A file in progress is continued when that is done.
    fn continue_file(&mut self, file: FileIx) {
        let state = self.file(file);
        let (Some(pending), true) = (state.pending, state.is_waiting()) else { return };
        if let FileStage::Debouncing(timer) | FileStage::Retrying(timer) = state.stage {
            self.timers.remove(timer);
            self.file_mut(file).stage = FileStage::Idle;
        }
        let Some(data) = self.file_data(file) else { return };
        let planned = self.planned_file(file);
        let due = (pending.last + planned.debounce).min(pending.first + planned.longest_delay());
        if due > self.now && self.file(file).renders > 0 {
            let timer = self.timers.set(due, TimerKind::File(file, FileTimer::Debounce));
            self.file_mut(file).stage = FileStage::Debouncing(timer);
            return;
        }
        self.render_file(file, data);
    }

    fn render_file(&mut self, file: FileIx, data: FileData) {
        let render = self.last_ids.new_render();
        let state = self.file_mut(file);
        (state.pending, state.stage) = (None, FileStage::Rendering(render));
        state.renders += 1;
        let variables = Arc::clone(&self.plan_state.variables);
        self.effects.push(Effect::RenderFile { file, render, data, variables });
    }

    /// What the watches of a file have found; `None` while one of them has not answered.
    fn file_data(&self, file: FileIx) -> Option<FileData> {
        let keys = self.plan_state.graph.watches_of_file(file).iter();
        let watches = &self.planned_file(file).watches;
        let answer = |watch: &WatchIx| self.plan_state.watches.get(watch.index())?.data();
        let mut data = FileData::new();
        for (name, watch) in watches.iter().zip(keys) {
            data.insert(name.clone(), answer(watch)?);
        }
        Some(data)
    }

    /// The watches of a file that have not answered.
    pub(crate) fn unanswered_watches(&self, file: FileIx) -> Vec<String> {
        let keys = self.plan_state.graph.watches_of_file(file).iter();
        let is_open = |watch: &WatchIx| {
            self.plan_state.watches.get(watch.index()).is_none_or(|state| state.data().is_none())
        };
        let open = self.planned_file(file).watches.iter().zip(keys).filter(|(_, watch)| is_open(watch));
        open.map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn file_timer(&mut self, file: FileIx, timer: FileTimer) {
        match (timer, self.file(file).stage) {
            (FileTimer::Debounce, FileStage::Debouncing(_)) => self.continue_file(file),
            (FileTimer::Retry, FileStage::Retrying(_)) => {
                self.file_mut(file).stage = FileStage::Idle;
                if let Some(data) = self.file_data(file) {
                    self.render_file(file, data);
                }
            }
            (FileTimer::TestTimeout, FileStage::Testing { render, run, .. }) => {
                self.effects.push(Effect::CancelCheck { run });
                let timeout = self.planned_file(file).test.as_ref().map(|test| test.timeout);
                let after = fmt_duration(timeout.unwrap_or_default());
                self.reject_text(file, render, format!("test: timeout after {after}"));
            }
            _ => {}
        }
    }

    fn file_in(&self, is_it: impl Fn(FileStage) -> bool) -> Option<FileIx> {
        self.plan_state.files.iter().position(|state| is_it(state.stage)).map(FileIx::at)
    }

    /// A rendering is done. That of a file that a reload has removed or changed is discarded.
    pub(crate) fn file_rendered(&mut self, render: RenderId, result: Result<RenderedText, RenderError>) {
        let Some(file) = self.file_in(|stage| stage == FileStage::Rendering(render)) else {
            return self.effects.push(Effect::DiscardFile { render });
        };
        match result {
            Ok(RenderedText::Same) => self.file_succeeded(file, false),
            Ok(RenderedText::New) if self.planned_file(file).test.is_some() => self.test_file(file, render),
            Ok(RenderedText::New) => self.install_file(file, render),
            Err(RenderError::Text(why)) => self.file_failed(file, why),
            Err(RenderError::System(why)) => self.file_refused(file, why),
        }
    }

    fn test_file(&mut self, file: FileIx, render: RenderId) {
        let run = self.last_ids.new_program();
        self.file_mut(file).stage = FileStage::Testing { render, run, timeout: None };
        self.request_program(run);
    }

    /// Runs the test of a file. Its time counts from now on.
    pub(crate) fn create_test(&mut self, test: CheckRunId) {
        let Some((file, render)) = self.file_of_test(test) else { return };
        let timeout = self.planned_file(file).test.as_ref().map(|test| test.timeout).unwrap_or_default();
        let timeout = self.timers.set(self.now + timeout, TimerKind::File(file, FileTimer::TestTimeout));
        self.file_mut(file).stage = FileStage::Testing { render, run: test, timeout: Some(timeout) };
        let environment = Environment { jobs: Arc::clone(&self.plan_state.variables), cause: Arc::default() };
        self.effects.push(Effect::TestFile { file, render, run: test, environment });
    }

    /// The file that a program tests, and its rendering.
    fn file_of_test(&self, test: CheckRunId) -> Option<(FileIx, RenderId)> {
        let mut files = self.plan_state.files.iter().enumerate();
        files.find_map(|(index, state)| match state.stage {
            FileStage::Testing { render, run, .. } if run == test => Some((FileIx::at(index), render)),
            _ => None,
        })
    }

    /// A program that is not a health check is done: the test of a file, unless that was cancelled.
    pub(crate) fn test_done(&mut self, done: CheckRunId, result: Result<(), CheckError>) {
        let Some((file, render)) = self.file_of_test(done) else { return };
        if let FileStage::Testing { mut timeout, .. } = self.file(file).stage {
            self.timers.cancel(&mut timeout);
        }
        match result {
            Ok(()) => self.install_file(file, render),
            Err(CheckError::Failed(why)) => self.reject_text(file, render, format!("test: {why}")),
            Err(CheckError::NotRun(why)) => {
                self.effects.push(Effect::DiscardFile { render });
                self.file_refused(file, format!("test: {why}"));
            }
        }
    }

    fn reject_text(&mut self, file: FileIx, render: RenderId, why: String) {
        self.effects.push(Effect::DiscardFile { render });
        self.file_failed(file, why);
    }

    fn install_file(&mut self, file: FileIx, render: RenderId) {
        self.file_mut(file).stage = FileStage::Installing(render);
        self.effects.push(Effect::InstallFile { render });
    }

    pub(crate) fn file_installed(&mut self, render: RenderId, result: Result<(), String>) {
        let Some(file) = self.file_in(|stage| stage == FileStage::Installing(render)) else { return };
        match result {
            Ok(()) => self.file_succeeded(file, true),
            Err(why) => self.file_refused(file, why),
        }
    }

    fn file_succeeded(&mut self, file: FileIx, is_new: bool) {
        let now = self.now;
        let state = self.file_mut(file);
        (state.rendered_at, state.failure, state.refusals) = (Some(now), None, 0);
        if is_new {
            state.changes += 1;
            let to = self.planned_file(file).to.clone();
            let name = self.origin_name(Origin::File(file));
            self.log(Level::Info, None, Code::Changed, format_args!("{name}: wrote {to}"));
            self.send(Origin::File(file), Code::Changed);
        }
        self.plan_state.recheck.extend(self.plan_state.graph.file_requirers(file));
        self.end_rendering(file);
    }

    fn file_failed(&mut self, file: FileIx, why: String) {
        self.file_mut(file).refusals = 0;
        self.tell_failure(file, why);
        self.end_rendering(file);
    }

    /// The system has refused it: it is tried again, unless an input has changed in the meantime. The same failure is
    /// logged once.
    fn file_refused(&mut self, file: FileIx, why: String) {
        let now = self.now;
        let state = self.file_mut(file);
        state.refusals = state.refusals.saturating_add(1);
        let (delay, is_first) = (state.retry_delay(), state.refusals == 1);
        match &mut state.failure {
            Some((at, told)) if !is_first && *told == why => {
                *at = now;
                state.failures += 1;
            }
            _ => self.tell_failure(file, why),
        }
        self.end_rendering(file);
        if self.file(file).stage == FileStage::Idle && self.phase == Phase::Running {
            let timer = self.timers.set(now + delay, TimerKind::File(file, FileTimer::Retry));
            self.file_mut(file).stage = FileStage::Retrying(timer);
        }
    }

    fn tell_failure(&mut self, file: FileIx, why: String) {
        let now = self.now;
        let name = self.origin_name(Origin::File(file));
        let to = self.planned_file(file).to.clone();
        let fields = Fields::from(Code::Failed).cause(why.as_str());
        self.log(Level::Warn, None, fields, format_args!("{name}: {to} is not changed: {why}"));
        let state = self.file_mut(file);
        state.failures += 1;
        state.failure = Some((now, why));
        self.send(Origin::File(file), Code::Failed);
    }

    /// Renders once more if an input has changed in the meantime.
    fn end_rendering(&mut self, file: FileIx) {
        self.file_mut(file).stage = FileStage::Idle;
        // Jobs that wait for this file may have become unreachable (W10).
        self.plan_state.reachability_dirty = true;
        self.continue_file(file);
    }

    /// Gives up what is in progress for files that a reload removes, or at a shutdown.
    pub(crate) fn cancel_files(&mut self, files: impl IntoIterator<Item = FileState>) {
        for state in files {
            match state.stage {
                // Their results belong to no file any more, and are discarded.
                FileStage::Idle | FileStage::Rendering(_) | FileStage::Installing(_) => {}
                FileStage::Debouncing(timer) | FileStage::Retrying(timer) => self.timers.remove(timer),
                FileStage::Testing { render, run, mut timeout } => {
                    self.timers.cancel(&mut timeout);
                    self.cancel_program(run);
                    self.effects.push(Effect::DiscardFile { render });
                }
            }
        }
    }

    /// A shutdown has started: nothing is rendered any more.
    pub(crate) fn stop_files(&mut self) {
        let states = self.plan_state.files.iter_mut();
        let stopped: Vec<FileState> = states
            .map(|state| {
                let before = state.clone();
                (state.stage, state.pending) = (FileStage::Idle, None);
                before
            })
            .collect();
        self.cancel_files(stopped);
    }

    /// Returns true if a file may be rendered (again), assuming that only jobs for which `can_start` returns true can start.
    pub(crate) fn file_can_change(&self, file: FileIx, can_start: &dyn Fn(JobIx) -> bool) -> bool {
        let Some(state) = self.plan_state.files.get(file.index()) else { return false };
        let mut watches = self.plan_state.graph.watches_of_file(file).iter();
        self.phase == Phase::Starting
            || state.stage != FileStage::Idle
            || state.pending.is_some()
            || watches.any(|watch| self.watch_can_change(*watch, can_start))
    }

    /// What a required file is doing, as a clause after "which".
    pub(crate) fn required_file_words(&self, file: FileIx) -> String {
        let Some(state) = self.plan_state.files.get(file.index()) else { return "does not exist".into() };
        match (&state.failure, state.rendered_at) {
            (_, Some(_)) => "is rendered".into(),
            (Some((_, why)), None) => format!("could not be rendered: {why}"),
            (None, None) => match self.unanswered_watches(file) {
                open if open.is_empty() => "is being rendered".into(),
                open => format!("waits for the first answer of {}", watch_names(&open)),
            },
        }
    }
}

/// Names of watches as sources.
pub(crate) fn watch_names(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("watch.{name}")).collect();
    names.join(" and ")
}
