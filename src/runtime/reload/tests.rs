use std::time::{Duration, Instant};

use super::*;
use crate::runtime::channel::LoopReceiver;
use crate::test_support::folder;

const GOOD: &str = "{ jobs: [{ name: 'a', exec: '/bin/true {{ .WORD }}' }] }";

struct Scene {
    file: std::path::PathBuf,
    receiver: LoopReceiver,
    reloads: Reloads,
    now: Plan,
    next: u64,
}

impl Scene {
    fn new() -> Self {
        let file = folder().join("config.json5");
        std::fs::write(&file, GOOD).unwrap();
        let source = Source::new(Some(file.clone()), None);
        let environment = || Environment::from([(b"WORD".to_vec(), b"first".to_vec())]);
        let (now, _) = source.load(environment()).unwrap();
        let receiver = LoopReceiver::new().unwrap();
        let reloads = Reloads::new(Some(source), environment, receiver.sender());
        Self { file, receiver, reloads, now, next: 0 }
    }

    fn ask(&mut self, dry: bool) -> oneshot::Receiver<Outcome> {
        let (answer, receiver) = oneshot::channel();
        assert_eq!(self.reloads.ask(Asker { dry, answer: Some(answer) }, &BTreeMap::new()), None);
        receiver
    }

    /// The load that is under way, when it is done.
    fn load(&mut self, set: &BTreeMap<String, Option<String>>) -> Step {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(LoopMessage::Loaded(loaded)) = self.receiver.take().next() {
                self.next += 1;
                let step = self.reloads.loaded(&self.now, *loaded, RequestId(self.next));
                self.reloads.proceed(set);
                return step;
            }
            assert!(Instant::now() < deadline, "nothing is loaded");
            std::thread::yield_now();
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.file.parent().unwrap());
    }
}

fn kept(names: &[&str]) -> Changes {
    Changes { kept: names.iter().map(|name| (*name).to_owned()).collect(), ..Changes::default() }
}

#[test]
fn r4_a_hundred_at_once_are_two_loads_and_all_are_answered() {
    let mut scene = Scene::new();
    let mut waiting: Vec<_> = (0..100).map(|_| scene.ask(false)).collect();
    for _ in 0..2 {
        let step = scene.load(&BTreeMap::new());
        let (id, _) = step.plan.unwrap();
        scene.reloads.reply(id, Reply::Reloaded(kept(&["a"]))).unwrap();
    }
    assert!(scene.reloads.loading.is_none() && scene.reloads.pending.is_empty());
    for one in &mut waiting {
        assert!(matches!(one.try_recv(), Ok(Outcome::Done(done)) if done.changes == kept(&["a"])));
    }
}

#[test]
fn r4_who_has_gone_and_many_signals_leave_nothing_behind() {
    let mut scene = Scene::new();
    drop(scene.ask(false));
    for _ in 0..100 {
        drop(scene.ask(true));
        scene.reloads.ask(Asker { dry: false, answer: None }, &BTreeMap::new());
    }
    assert!(scene.reloads.next.len() <= 2, "{}", scene.reloads.next.len());
}

#[test]
fn r2_what_was_set_by_hand_counts_and_a_dry_run_only_looks() {
    let mut scene = Scene::new();
    let mut same = scene.ask(true);
    let step = scene.load(&BTreeMap::new());
    assert!(step.plan.is_none() && step.entries.is_empty());
    assert_eq!(same.try_recv(), Ok(Outcome::Done(Done { changes: kept(&["a"]), ..Done::default() })));
    let set = BTreeMap::from([("WORD".to_owned(), Some("second".to_owned()))]);
    let (answer, mut other) = oneshot::channel();
    scene.reloads.ask(Asker { dry: true, answer: Some(answer) }, &set);
    scene.load(&set);
    let Ok(Outcome::Done(done)) = other.try_recv() else { panic!("not done") };
    assert_eq!(done.changes.restarted, ["a"]);
    let unset = with_set((scene.reloads.environment)(), &BTreeMap::from([("WORD".to_owned(), None)]));
    assert!(unset.is_empty());
}

#[test]
fn r2_an_error_is_told_to_all_and_logged_once() {
    let mut scene = Scene::new();
    std::fs::write(&scene.file, "{ jobs: [{ name: 'a', exce: 'x' }] }").unwrap();
    let mut one = scene.ask(false);
    let step = scene.load(&BTreeMap::new());
    assert!(step.plan.is_none());
    assert!(step.entries[0].1.contains("nothing was changed"), "{:?}", step.entries);
    assert!(step.entries[1].1.contains("config.json5:1:23: "), "{:?}", step.entries);
    let Ok(Outcome::Wrong(why)) = one.try_recv() else { panic!("not wrong") };
    assert!(why.contains("exce") && why.contains('^') && why.contains("nothing was changed"), "{why}");
    std::fs::remove_file(&scene.file).unwrap();
    let mut dry = scene.ask(true);
    assert!(scene.load(&BTreeMap::new()).entries.is_empty(), "who only looks leaves no traces");
    assert!(matches!(dry.try_recv(), Ok(Outcome::Wrong(why)) if why.contains("cannot be read")));
}

#[test]
fn s7_a_program_alone_has_nothing_to_reload() {
    let receiver = LoopReceiver::new().unwrap();
    let mut reloads = Reloads::new(None, Environment::new, receiver.sender());
    let (answer, mut receiver) = oneshot::channel();
    reloads.ask(Asker { dry: false, answer: Some(answer) }, &BTreeMap::new());
    assert!(matches!(receiver.try_recv(), Ok(Outcome::Refused(_))));
}
