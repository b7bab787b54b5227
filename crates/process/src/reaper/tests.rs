use containerpilot_core::plan::{Command, Process};
use containerpilot_template::Environment;
use containerpilot_test_support::{isolated, until};

use super::*;
use crate::spawn::{ProcessStart, Reports, SpawnRequest, Spawner};
use crate::test_support::collect;

fn spawner() -> Spawner {
    sys::become_subreaper().unwrap();
    Spawner::new(Environment::from([(b"PATH".to_vec(), b"/bin:/usr/bin".to_vec())])).unwrap()
}

fn shell(spawner: &mut Spawner, script: &str) -> ProcessStart {
    let command = Command { program: "/bin/sh".into(), arguments: vec!["-c".into(), script.into()] };
    let process = Process::default();
    let (own_stdin, raw_output) = (false, true);
    let request = SpawnRequest {
        command: &command,
        environment: &containerpilot_core::variables::ProcessEnvironment::default(),
        process: &process,
        own_stdin,
        raw_output,
        cgroup: None,
        reports: Reports::default(),
    };
    spawner.spawn(&request).unwrap()
}

fn no_child_left(reaper: &mut Reaper) -> bool {
    reaper.collect(&mut Vec::new());
    sys::wait_nowait() == Ok(WaitState::NoChild)
}

#[test]
fn p1_passes_are_delayed_while_there_are_many_orphans() {
    let millis = Duration::from_millis;
    let slow = Duration::from_micros(101);
    let pass = Pass { orphans: 1, ..Pass::default() };
    assert_eq!([Pass::default().next(slow), pass.next(SLOW_PASS)], [None, None]);
    let many = Pass { orphans: MANY_ORPHANS, ..pass };
    let delays = [pass.next(slow), many.next(Duration::ZERO), many.next(millis(2)), many.next(millis(9))];
    assert_eq!(delays, [5, 5, 8, 20].map(|delay| Some(millis(delay))));
    for pass in [Pass { failed: true, ..Pass::default() }, Pass { slow: true, ..pass }] {
        assert_eq!(pass.next(Duration::ZERO), Some(millis(20)));
    }
    assert_eq!(Pass { more: true, ..many }.next(millis(9)), Some(Duration::ZERO));
}

isolated! {
    fn p1_every_orphan_is_reaped_and_no_exit_status_is_lost() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let orphans = "for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 0.05 & sleep 0.01 &) ; done; exit ";
        let count: u8 = 40;
        for code in 0..count {
            let spawned = shell(&mut spawner, &format!("{orphans}{code}"));
            reaper.started(spawned.pid, Owner::Run(RunId(code.into())));
        }
        let mut codes: Vec<_> = collect(&mut reaper, count.into())
            .into_iter()
            .map(|exited| (exited.owner, exited.status))
            .collect();
        codes.sort_by_key(|(_, status)| *status);
        let expected: Vec<_> =
            (0..count).map(|code| (Owner::Run(RunId(code.into())), ExitStatus::Code(code))).collect();
        assert_eq!(codes, expected);
        until(|| no_child_left(&mut reaper));
    }

    fn p1_own_processes_are_collected_by_pid_among_very_many_orphans() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        // Not registered with the reaper, they count as orphans.
        let orphans: Vec<i32> = (0..2 * MANY_ORPHANS).map(|_| shell(&mut spawner, "exit 0").pid).collect();
        let (exited, running) = (shell(&mut spawner, "exit 3"), shell(&mut spawner, "sleep 1000"));
        reaper.started(exited.pid, Owner::Run(RunId(1)));
        reaper.started(running.pid, Owner::Run(RunId(2)));
        until(|| orphans.iter().chain([&exited.pid]).all(|pid| matches!(sys::wait_pid_nowait(*pid), Ok(WaitState::Exited(..)))));
        let mut found = Vec::new();
        let pass = reaper.collect_until(&mut found, Duration::ZERO);
        assert_eq!((pass.orphans, pass.slow, pass.failed), (MANY_ORPHANS, true, false));
        assert_eq!(found.iter().map(|exited| exited.status).collect::<Vec<_>>(), [ExitStatus::Code(3)]);
        // The others are left for the next pass.
        let pass = reaper.collect_until(&mut found, Duration::MAX);
        assert_eq!((pass.orphans, found.len()), (MANY_ORPHANS, 1));
        reaper.kill_all();
        assert_eq!(collect(&mut reaper, 1)[0].status, ExitStatus::Signal(Signal::KILL));
    }

    fn p4_orphaned_group_receives_sigterm() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let spawned = shell(&mut spawner, "sleep 1000 & exit 0");
        reaper.started(spawned.pid, Owner::Run(RunId(1)));
        let exited = collect(&mut reaper, 1);
        assert_eq!(exited[0].status, ExitStatus::Code(0));
        assert!(matches!(exited[0].remains, Remains::Group(_)), "{exited:?}");
        until(|| no_child_left(&mut reaper));
        assert!(!sys::group_exists(spawned.pid));
        reaper.kill_orphans(RunId(1));
    }

    fn p4_process_without_children_leaves_no_group() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let spawned = shell(&mut spawner, "exit 0");
        reaper.started(spawned.pid, Owner::Run(RunId(1)));
        assert_eq!(collect(&mut reaper, 1)[0].remains, Remains::Nothing);
        assert!(reaper.orphaned_groups.is_empty());
    }

    fn p4_orphaned_group_that_ignores_sigterm_is_killed() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let spawned = shell(&mut spawner, "trap '' TERM; sleep 1000 & exit 0");
        reaper.started(spawned.pid, Owner::Run(RunId(1)));
        assert!(matches!(collect(&mut reaper, 1)[0].remains, Remains::Group(_)));
        assert!(!no_child_left(&mut reaper), "it ignores SIGTERM");
        reaper.kill_orphans(RunId(1));
        until(|| no_child_left(&mut reaper));
    }

    fn p4_orphans_of_a_check_are_killed_at_once() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let spawned = shell(&mut spawner, "trap '' TERM; sleep 1000 & exit 0");
        reaper.started(spawned.pid, Owner::Check(CheckRunId(1)));
        collect(&mut reaper, 1);
        until(|| no_child_left(&mut reaper));
        assert!(reaper.orphaned_groups.is_empty());
    }

    fn p4_reused_pid_is_not_killed() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let spawned = shell(&mut spawner, "sleep 1000 & exec sleep 1000");
        reaper.started(spawned.pid, Owner::Run(RunId(2)));
        // As if run 1 had once had that pid.
        reaper.orphaned_groups.insert(RunId(1), OrphanedGroup { group: spawned.pid, reaped: proc::ticks() });
        reaper.kill_orphans(RunId(1));
        // A group without a child of this process.
        reaper.orphaned_groups.insert(RunId(1), OrphanedGroup { group: 2, reaped: proc::ticks() });
        reaper.kill_orphans(RunId(1));
        assert_eq!(sys::wait_nowait(), Ok(WaitState::Running));
        reaper.kill(Owner::Run(RunId(2)), Signal::KILL, StopScope::Group, true).unwrap();
        assert_eq!(collect(&mut reaper, 1)[0].status, ExitStatus::Signal(Signal::KILL));
        until(|| no_child_left(&mut reaper));
        assert_eq!(reaper.kill(Owner::Run(RunId(2)), Signal::KILL, StopScope::Group, true), Ok(()), "signalling an exited run does nothing");
    }
}
