use containerpilot_config::template::Environment;
use containerpilot_core::plan::{Command, Process};

use super::*;
use crate::process::spawn::{Request, Spawned, Spawner};
use crate::test_support::{collect, isolated, until};

fn spawner() -> Spawner {
    sys::become_subreaper().unwrap();
    Spawner::new(Environment::from([(b"PATH".to_vec(), b"/bin:/usr/bin".to_vec())])).unwrap()
}

fn shell(spawner: &mut Spawner, script: &str) -> Spawned {
    let command =
        Command { program: "/bin/sh".to_owned(), arguments: vec!["-c".to_owned(), script.to_owned()] };
    let process = Process::default();
    let (own_stdin, raw_output) = (false, true);
    let request = Request {
        command: &command,
        environment: &containerpilot_core::environment::Environment::default(),
        process: &process,
        own_stdin,
        raw_output,
    };
    spawner.spawn(&request).unwrap()
}

fn childless(reaper: &mut Reaper) -> bool {
    reaper.collect(&mut Vec::new());
    sys::look() == Ok(Look::Childless)
}

isolated! {
    fn p1_every_orphan_is_reaped_and_no_status_is_lost() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let orphans = "for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 0.05 & sleep 0.01 &) ; done; exit ";
        let count: u8 = 40;
        for code in 0..count {
            let spawned = shell(&mut spawner, &format!("{orphans}{code}"));
            reaper.started(spawned.pid, Owner::Run(RunId(code.into())));
        }
        let mut codes: Vec<_> = collect(&mut reaper, count.into())
            .into_iter()
            .map(|ended| (ended.owner, ended.status))
            .collect();
        codes.sort_by_key(|(_, status)| *status);
        let expected: Vec<_> =
            (0..count).map(|code| (Owner::Run(RunId(code.into())), ExitStatus::Code(code))).collect();
        assert_eq!(codes, expected);
        until(|| childless(&mut reaper));
    }

    fn p1_among_very_many_orphans_our_own_are_found_one_by_one() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        // Not told to the reaper, they are nobody's.
        let orphans: Vec<i32> = (0..2 * MANY).map(|_| shell(&mut spawner, "exit 0").pid).collect();
        let (ended, lives) = (shell(&mut spawner, "exit 3"), shell(&mut spawner, "sleep 1000"));
        reaper.started(ended.pid, Owner::Run(RunId(1)));
        reaper.started(lives.pid, Owner::Run(RunId(2)));
        until(|| orphans.iter().chain([&ended.pid]).all(|pid| matches!(sys::look_at(*pid), Ok(Look::Ended(..)))));
        let mut found = Vec::new();
        let round = reaper.collect_until(&mut found, Duration::ZERO);
        assert_eq!((round.orphans, round.far, round.failed), (MANY, true, false));
        assert_eq!(found.iter().map(|ended| ended.status).collect::<Vec<_>>(), [ExitStatus::Code(3)]);
        // The others are still there for the next round.
        let round = reaper.collect(&mut found);
        assert_eq!((round.orphans, found.len()), (MANY, 1));
        reaper.kill_all();
        assert_eq!(collect(&mut reaper, 1)[0].status, ExitStatus::Signal(Signal::KILL));
    }

    fn p4_what_is_left_of_a_group_is_asked_to_end() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let spawned = shell(&mut spawner, "sleep 1000 & exit 0");
        reaper.started(spawned.pid, Owner::Run(RunId(1)));
        let ended = collect(&mut reaper, 1);
        assert_eq!((ended[0].status, ended[0].orphans), (ExitStatus::Code(0), true));
        until(|| childless(&mut reaper));
        assert!(!sys::group_exists(spawned.pid));
        reaper.kill_remains(RunId(1));
    }

    fn p4_nothing_is_left_of_a_lonely_process() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let spawned = shell(&mut spawner, "exit 0");
        reaper.started(spawned.pid, Owner::Run(RunId(1)));
        assert!(!collect(&mut reaper, 1)[0].orphans);
        assert!(reaper.remains.is_empty());
    }

    fn p4_what_does_not_end_when_asked_is_killed() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let spawned = shell(&mut spawner, "trap '' TERM; sleep 1000 & exit 0");
        reaper.started(spawned.pid, Owner::Run(RunId(1)));
        assert!(collect(&mut reaper, 1)[0].orphans);
        assert!(!childless(&mut reaper), "it ignores SIGTERM");
        reaper.kill_remains(RunId(1));
        until(|| childless(&mut reaper));
    }

    fn p4_what_a_check_leaves_behind_is_killed_at_once() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let spawned = shell(&mut spawner, "trap '' TERM; sleep 1000 & exit 0");
        reaper.started(spawned.pid, Owner::Check(CheckRunId(1)));
        collect(&mut reaper, 1);
        until(|| childless(&mut reaper));
        assert!(reaper.remains.is_empty());
    }

    fn p4_a_number_that_was_reused_is_not_killed() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let spawned = shell(&mut spawner, "sleep 1000 & exec sleep 1000");
        reaper.started(spawned.pid, Owner::Run(RunId(2)));
        // As if run 1 had once had that number.
        reaper.remains.insert(RunId(1), spawned.pid);
        reaper.kill_remains(RunId(1));
        // And a group in which no child of ours is.
        reaper.remains.insert(RunId(1), 2);
        reaper.kill_remains(RunId(1));
        assert_eq!(sys::look(), Ok(Look::Alive));
        reaper.kill(Owner::Run(RunId(2)), Signal::KILL).unwrap();
        assert_eq!(collect(&mut reaper, 1)[0].status, ExitStatus::Signal(Signal::KILL));
        until(|| childless(&mut reaper));
        assert_eq!(reaper.kill(Owner::Run(RunId(2)), Signal::KILL), Ok(()), "a run that has ended is left alone");
    }
}
