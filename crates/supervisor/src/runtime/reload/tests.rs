use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use containerpilot_core::plan::diff::Changes;
use containerpilot_test_support::folder;
use tokio::sync::oneshot;

use super::*;
use crate::messages::LoopReceiver;

const GOOD: &str = "{ jobs: [{ name: 'a', exec: '/bin/true {{ .WORD }}' }] }";

struct Fixture {
    file: std::path::PathBuf,
    receiver: LoopReceiver,
    reloads: Reloads,
    current: Core,
    next: u64,
}

impl Fixture {
    fn new() -> Self {
        let file = folder().join("config.json5");
        std::fs::write(&file, GOOD).unwrap();
        let source = ConfigSource::new(Some(file.clone()), None);
        let environment = || Environment::from([(b"WORD".to_vec(), b"first".to_vec())]);
        let (current, _) = source.load(environment(), &Rc::new(Looks::new(|_| ()))).unwrap();
        let receiver = LoopReceiver::new().unwrap();
        let reloads = Reloads::new(Some(source), environment, receiver.sender());
        Self { file, receiver, reloads, current: Core::new(current), next: 0 }
    }

    fn request(&mut self, dry_run: bool) -> oneshot::Receiver<ReloadOutcome> {
        let (reply, receiver) = oneshot::channel();
        let request = ReloadRequest { dry_run, reply: Some(reply) };
        assert_eq!(self.reloads.request(request, &Overrides::new()), None);
        receiver
    }

    /// Waits for the running load and handles it.
    fn load(&mut self, overrides: &Overrides) -> LoadResult {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(LoopMessage::Loaded(loaded)) = self.receiver.take().next() {
                self.next += 1;
                let result = self.reloads.loaded(&self.current, *loaded, RequestId(self.next));
                self.reloads.start_next(overrides);
                return result;
            }
            assert!(Instant::now() < deadline, "the load did not finish");
            std::thread::yield_now();
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.file.parent().unwrap());
    }
}

fn kept(names: &[&str]) -> Changes {
    Changes { kept: names.iter().map(|name| (*name).to_owned()).collect(), ..Changes::default() }
}

#[test]
fn r4_hundred_requests_at_once_cost_two_loads_and_all_are_answered() {
    let mut fixture = Fixture::new();
    let mut waiting: Vec<_> = (0..100).map(|_| fixture.request(false)).collect();
    for _ in 0..2 {
        let result = fixture.load(&Overrides::new());
        let (id, _) = result.plan.unwrap();
        fixture.reloads.reply(id, Reply::Reloaded(kept(&["a"]))).unwrap();
    }
    assert!(fixture.reloads.loading.is_none() && fixture.reloads.applying.is_empty());
    for one in &mut waiting {
        assert!(matches!(one.try_recv(), Ok(ReloadOutcome::Applied(done)) if done.changes == kept(&["a"])));
    }
}

#[test]
fn r4_abandoned_requests_and_many_signals_do_not_accumulate() {
    let mut fixture = Fixture::new();
    drop(fixture.request(false));
    for _ in 0..100 {
        drop(fixture.request(true));
        fixture.reloads.request(ReloadRequest { dry_run: false, reply: None }, &Overrides::new());
    }
    assert!(fixture.reloads.next.len() <= 2, "{}", fixture.reloads.next.len());
}

#[test]
fn r2_reload_uses_putenv_variables_and_a_dry_run_changes_nothing() {
    let mut fixture = Fixture::new();
    let mut same = fixture.request(true);
    let result = fixture.load(&Overrides::new());
    assert!(result.plan.is_none() && result.entries.is_empty());
    let Ok(ReloadOutcome::Applied(summary)) = same.try_recv() else { panic!("it is not applied") };
    assert_eq!(summary, ReloadSummary { changes: kept(&["a"]), ..ReloadSummary::default() });
    let overrides = Overrides::from([("WORD".to_owned(), Some("second".to_owned()))]);
    let (reply, mut other) = oneshot::channel();
    fixture.reloads.request(ReloadRequest { dry_run: true, reply: Some(reply) }, &overrides);
    fixture.load(&overrides);
    let Ok(ReloadOutcome::Applied(done)) = other.try_recv() else { panic!("not applied") };
    assert_eq!(done.changes.restarted, ["a"]);
    let unset =
        with_overrides((fixture.reloads.environment)(), &Overrides::from([("WORD".to_owned(), None)]));
    assert!(unset.is_empty());
}

#[test]
fn r2_error_is_reported_to_all_clients_and_logged_once() {
    let mut fixture = Fixture::new();
    std::fs::write(&fixture.file, "{ jobs: [{ name: 'a', exce: 'x' }] }").unwrap();
    let mut one = fixture.request(false);
    let result = fixture.load(&Overrides::new());
    assert!(result.plan.is_none());
    assert!(result.entries[0].1.contains("nothing was changed"), "{:?}", result.entries);
    assert!(result.entries[1].1.contains("config.json5:1:23: "), "{:?}", result.entries);
    let Ok(ReloadOutcome::Invalid(why)) = one.try_recv() else { panic!("not invalid") };
    assert!(why.contains("exce") && why.contains('^') && why.contains("nothing was changed"), "{why}");
    std::fs::remove_file(&fixture.file).unwrap();
    let mut dry = fixture.request(true);
    assert!(fixture.load(&Overrides::new()).entries.is_empty(), "a dry run leaves no log entries");
    assert!(matches!(dry.try_recv(), Ok(ReloadOutcome::Invalid(why)) if why.contains("cannot read ")));
}

#[test]
fn s7_single_program_refuses_a_reload() {
    let receiver = LoopReceiver::new().unwrap();
    let mut reloads = Reloads::new(None, Environment::new, receiver.sender());
    let (reply, mut receiver) = oneshot::channel();
    reloads.request(ReloadRequest { dry_run: false, reply: Some(reply) }, &Overrides::new());
    assert!(matches!(receiver.try_recv(), Ok(ReloadOutcome::Refused(_))));
}

#[test]
fn r2_load_that_takes_too_long_fails_and_the_next_one_starts() {
    let mut fixture = Fixture::new();
    std::fs::remove_file(&fixture.file).unwrap();
    nix::unistd::mkfifo(&fixture.file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut first = fixture.request(false);
    let mut second = fixture.request(false);
    // It succeeds as soon as the FIFO is open for reading; then the load waits for the end of what is written.
    let writer = loop {
        let options = std::fs::File::options().write(true).custom_flags(nix::libc::O_NONBLOCK).to_owned();
        if let Ok(writer) = options.open(&fixture.file) {
            break writer;
        }
        std::thread::yield_now();
    };
    assert_eq!(fixture.reloads.give_up(), None);
    fixture.reloads.loading.as_mut().unwrap().deadline = Instant::now();
    let error = fixture.reloads.give_up().unwrap();
    assert_eq!(error, "reload: the configuration could not be read within 10s; nothing was changed");
    assert!(matches!(first.try_recv(), Ok(ReloadOutcome::Refused(_))));
    std::fs::rename(&fixture.file, fixture.file.with_extension("fifo")).unwrap();
    std::fs::write(&fixture.file, GOOD).unwrap();
    assert_eq!(fixture.reloads.start_next(&Overrides::new()), None);
    let result = fixture.load(&Overrides::new());
    assert!(result.plan.is_some());
    assert!(second.try_recv().is_err(), "it waits for the core");
    // The first load ends late. Its requests have their reply.
    drop(writer);
    let late = fixture.load(&Overrides::new());
    assert!(late.plan.is_none() && late.entries.is_empty());
}

#[test]
fn r2_number_of_loads_that_take_too_long_is_bounded() {
    let mut fixture = Fixture::new();
    std::fs::remove_file(&fixture.file).unwrap();
    nix::unistd::mkfifo(&fixture.file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for _ in 0..MAX_STUCK {
        fixture.request(false);
        fixture.reloads.loading.as_mut().unwrap().deadline = Instant::now();
        fixture.reloads.give_up().unwrap();
    }
    let (reply, mut refused) = oneshot::channel();
    let error =
        fixture.reloads.request(ReloadRequest { dry_run: false, reply: Some(reply) }, &Overrides::new());
    assert_eq!(error.as_deref(), Some("reload: 4 earlier reloads are still waiting for the configuration"));
    assert!(matches!(refused.try_recv(), Ok(ReloadOutcome::Refused(_))));
}
