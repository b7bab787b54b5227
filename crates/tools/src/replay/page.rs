//! `--page`: a document for a browser that shows a recording as the live page shows a supervisor.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use containerpilot_command_line::failure::Failure;
use containerpilot_core::ids::{EventId, FileIx, JobIx, LockIx, WatchIx};
use containerpilot_core::report::redact::Disclosure;
use containerpilot_core::state::journal::Event;
use containerpilot_core::{Core, Effect, Input, Notice, Time};
use containerpilot_process::orphans::RunProcesses;
use containerpilot_recording::{Recording, Replay};
use containerpilot_views::answers::json;
use containerpilot_views::catalog::CatalogReport;
use containerpilot_views::clock::{WallClock, milliseconds};
use containerpilot_views::journal::{JournalRecord, records};
use containerpilot_views::page::{Board, Picture, RECORDED, STATES, Shown};
use containerpilot_views::snapshot::PublicSnapshot;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::catalog::RecordedCatalog;
use super::clock::Clock;
use super::player::play;

/// The most bytes of all states before they are compressed. A page with more would keep a browser busy.
const MAX_BYTES: usize = 32 << 20;

/// How far states are apart: the first of these with which they are small enough. The last one is used in any case.
const GAPS: [u64; 6] = [0, 1, 10, 60, 600, 3600];

/// A page.
pub(super) struct RecordedPage {
    pub(super) html: String,
    /// What the user should know about it.
    pub(super) note: Option<String>,
    /// Why the recording could not be played to its end.
    pub(super) failure: Option<Failure>,
}

/// What happened between these times.
pub(super) fn page(
    recording: &Recording<'_>,
    clock: &Clock,
    (from, to): (Option<SystemTime>, Option<SystemTime>),
) -> Result<RecordedPage, Failure> {
    let (mut note, mut states) = (None, States::default());
    let mut failure = None;
    for gap in GAPS {
        let is_last = GAPS.last() == Some(&gap);
        states = States { gap: Duration::from_secs(gap), is_unbounded: is_last, ..States::default() };
        failure = states.play(recording, clock, (from, to)).err();
        if !states.is_too_large() {
            break;
        }
        let next = GAPS.into_iter().find(|next| *next > gap).unwrap_or(gap);
        note = Some(format!(
            "note: the states of the page are at least {next}s apart, because there are too many changes; use --from and --to"
        ));
    }
    if states.texts.is_empty() {
        let (start, end) = (clock.text(clock.start()), clock.text(states.end.unwrap_or(clock.start())));
        let why = format!("nothing was recorded then: what was played is from {start} to {end}");
        return Err(failure.unwrap_or(Failure::Failed(why)));
    }
    Ok(RecordedPage { html: states.html()?, note, failure })
}

/// The states of a page, in the order of their times.
#[derive(Default)]
struct States {
    gap: Duration,
    is_unbounded: bool,
    texts: Vec<String>,
    size: usize,
    /// What the page has been told.
    board: Board,
    picture: Picture,
    seen: Option<u64>,
    /// The sentences about each item, without their durations.
    told: BTreeMap<String, String>,
    last_event: Option<EventId>,
    starts: u64,
    catalog: RecordedCatalog,
    /// Whether something may have changed since the last state.
    is_dirty: bool,
    /// Whether every check has passed the last time: passing again changes nothing then.
    all_pass: bool,
    /// The time of the last step, and of the last state.
    end: Option<SystemTime>,
    last: Option<SystemTime>,
}

impl States {
    fn is_too_large(&self) -> bool {
        self.size > MAX_BYTES && !self.is_unbounded
    }

    fn play(
        &mut self,
        recording: &Recording<'_>,
        clock: &Clock,
        (from, to): (Option<SystemTime>, Option<SystemTime>),
    ) -> Result<(), Failure> {
        let mut replay = Replay::new(recording);
        let mut last = None;
        loop {
            let step = play(&mut replay, clock, |core, now, input, effects| {
                let at = clock.at(now);
                // What happens at one time is one state.
                if let Some((last, moment)) =
                    last.filter(|(_, moment)| milliseconds(*moment) < milliseconds(at))
                    && from.is_none_or(|from| from <= at)
                {
                    self.add(core, last, moment, clock, recording.version);
                }
                if to.is_none_or(|to| at <= to) {
                    let (plan, quiet) = (core.shared_plan(), is_quiet(&input));
                    let before = core.journal().events().next_back().map(|event| event.id);
                    core.step(now, input, effects);
                    self.catalog.follow(plan, now, effects);
                    let is_new = core.journal().events().next_back().map(|event| event.id) != before;
                    let does = |effect: &Effect| {
                        !matches!(effect, Effect::RunCheck { .. } | Effect::Heartbeat { .. })
                    };
                    self.is_dirty |= is_new || !quiet || !self.all_pass || effects.iter().any(does);
                    last = Some((now, at));
                }
            })?;
            self.end = last.map(|(_, at)| at);
            match step {
                Some(step) if to.is_none_or(|to| clock.at(step.now) <= to) && !self.is_too_large() => {}
                _ => break,
            }
        }
        if let (Some(core), Some((now, at))) = (replay.core(), last)
            && from.is_none_or(|from| from <= at)
        {
            self.gap = Duration::ZERO;
            self.add(core, now, at, clock, recording.version);
        }
        Ok(())
    }

    /// Adds the state of the core, if something has changed, and if the state before is not too near.
    fn add(&mut self, core: &Core, now: Time, at: SystemTime, clock: &Clock, version: &str) {
        let is_near =
            |last: SystemTime| self.gap > at.duration_since(last).unwrap_or_default() && !self.gap.is_zero();
        if !self.is_dirty || self.last.is_some_and(is_near) {
            return;
        }
        (self.is_dirty, self.last) = (false, Some(at));
        self.catalog.complete(core);
        let wall = WallClock(clock.zero(now));
        // A recording has no texts that its owner must not see.
        let shown = Disclosure { commands: true, output: true };
        let report = CatalogReport::new(&self.catalog, core.plan());
        let public = PublicSnapshot::new(core, shown, wall, report, RunProcesses::default());
        let checks = public.snapshot.overview.jobs.iter().flat_map(|job| &job.checks);
        self.all_pass =
            checks.into_iter().all(|check| check.last.as_ref().is_some_and(|last| last.result.is_ok()));
        let records = self.new_records(core, wall);
        let shown = Shown { version, arguments: true, logs: false };
        self.board.update(&public, &mut self.picture, &shown, &records);
        let Some(change) = self.board.change(self.seen, milliseconds(at)) else { return };
        self.seen = Some(self.board.version());
        if change.is_complete {
            self.told.clear();
        }
        let told = self.new_sentences(core);
        let Some(members) = change.text.strip_suffix('}') else { return };
        let complete = if change.is_complete { ",\"complete\":true" } else { "" };
        let text = format!("{members},\"told\":{told}{complete}}}");
        self.size += text.len();
        self.texts.push(text);
    }

    /// What the journal has since the last state.
    fn new_records(&mut self, core: &Core, wall: WallClock) -> Vec<Arc<JournalRecord>> {
        let journal = core.journal();
        let newer = |event: &&Event| self.last_event.is_none_or(|last| event.id > last);
        let events: Vec<&Event> = journal.events().rev().take_while(newer).collect();
        let count = usize::try_from(journal.start_count().saturating_sub(self.starts)).unwrap_or(usize::MAX);
        let starts: Vec<_> = journal.starts().rev().take(count).collect();
        self.last_event = events.first().map(|event| event.id).or(self.last_event);
        self.starts = journal.start_count();
        records(core, wall, events.into_iter().rev(), starts.into_iter().rev())
    }

    /// The sentences that are new, by the keys of their items, as JSON. A sentence whose durations alone are new is not.
    fn new_sentences(&mut self, core: &Core) -> String {
        let plan = core.plan();
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for nth in 0..plan.jobs.len() {
            all.push((format!("j{nth}"), core.explain(JobIx::at(nth), None).sentences()));
        }
        let watches = (0..plan.watches.len()).map(|nth| {
            (format!("w{nth}"), core.explain_watch(WatchIx::at(nth), None).map(|it| it.sentences))
        });
        let locks = (0..plan.locks.len())
            .map(|nth| (format!("l{nth}"), core.explain_lock(LockIx::at(nth), None).map(|it| it.sentences)));
        let files = (0..plan.files.len())
            .map(|nth| (format!("f{nth}"), core.explain_file(FileIx::at(nth)).map(|it| it.sentences)));
        all.extend(watches.chain(locks).chain(files).filter_map(|(key, sentences)| Some((key, sentences?))));
        let is_new = |(key, sentences): &(String, Vec<String>)| {
            let text = without_durations(&sentences.join("\n"));
            let is_new = self.told.get(key) != Some(&text);
            if is_new {
                self.told.insert(key.clone(), text);
            }
            is_new
        };
        let new: BTreeMap<String, Vec<String>> = all.into_iter().filter(is_new).collect();
        json(&new)
    }

    fn html(&self) -> Result<String, Failure> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(format!("[{}]", self.texts.join(",")).as_bytes())?;
        // Letters, digits, `+`, `/` and `=`: no text of the recording can become markup.
        Ok(RECORDED.replacen(STATES, &BASE64_STANDARD.encode(packed.finish()?), 1))
    }
}

/// Whether an input changes nothing that is seen, unless the core does something or a check has failed.
fn is_quiet(input: &Input) -> bool {
    matches!(
        input,
        Input::CheckDone { result: Ok(()), .. }
            | Input::Notified { notice: Notice::Watchdog, .. }
            | Input::Tick
    )
}

/// A text without its durations, such as `3h12m`.
fn without_durations(text: &str) -> String {
    let is_duration = |word: &str| {
        let word = word.trim_end_matches([',', ';', ')', ':', '.']);
        let mut units = word.split(|letter: char| letter.is_ascii_digit() || letter == '.').peekable();
        word.starts_with(|letter: char| letter.is_ascii_digit())
            && units
                .by_ref()
                .filter(|part| !part.is_empty())
                .all(|part| matches!(part, "ms" | "s" | "m" | "h" | "d"))
            && word.ends_with(['s', 'm', 'h', 'd'])
    };
    let words = text.split(' ').map(|word| if is_duration(word) { "" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::without_durations;

    #[test]
    fn b4_durations_are_not_a_change() {
        assert_eq!(without_durations("running for 3h12m, 2 of 3 failures"), "running for  2 of 3 failures");
        assert_eq!(without_durations("passed 42ms ago, next in 1.5s"), "passed  ago, next in ");
        assert_eq!(without_durations("pid 12, code 3 of 5ms-job 1.2.3"), "pid 12, code 3 of 5ms-job 1.2.3");
    }
}
