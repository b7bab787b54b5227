use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};

use containerpilot_core::input::{ExitStatus, Remains};
use containerpilot_core::plan::{Command, Process, StopScope};
use containerpilot_template::Environment;
use containerpilot_test_support::{folder, isolated, until};

use super::*;
use crate::cgroups::Cgroups;
use crate::descendants::kill_descendants;
use crate::spawn::{Reports, SpawnRequest, Spawner};
use crate::test_support::collect;

/// A reaper, the reports of its thread, and what starts processes.
struct Fixture {
    reaper: Reaper,
    reports: Receiver<OrphanReport>,
    spawner: Spawner,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // A process that is left would hold the output of the test open.
        kill_descendants(Instant::now() + Duration::from_secs(10));
    }
}

impl Fixture {
    fn new() -> Self {
        sys::become_subreaper().unwrap();
        let (sender, reports) = mpsc::channel();
        let orphans = Orphans::new(move |report| sender.send(report).unwrap());
        let environment = Environment::from([(b"PATH".to_vec(), b"/bin:/usr/bin".to_vec())]);
        Self { reaper: Reaper::new(orphans), reports, spawner: Spawner::new(environment).unwrap() }
    }

    /// Starts a shell as a run.
    fn start(&mut self, run: RunId, script: &str) -> i32 {
        let cgroup = self.reaper.cgroups.create(run);
        self.start_in(cgroup, run, script)
    }

    fn start_in(&mut self, cgroup: Option<OwnedFd>, run: RunId, script: &str) -> i32 {
        let arguments = vec!["-c".into(), script.into()];
        let command = Command { program: "/bin/sh".into(), arguments };
        let mut environment = containerpilot_core::variables::ProcessEnvironment::default();
        Arc::make_mut(&mut environment.cause).push((MARK.into(), mark(run)));
        let request = SpawnRequest {
            command: &command,
            environment: &environment,
            process: &Process::default(),
            own_stdin: false,
            raw_output: true,
            cgroup,
            reports: Reports::default(),
        };
        let pid = self.spawner.spawn(&request).unwrap().pid;
        self.reaper.started(pid, Owner::Run(run));
        pid
    }

    /// One iteration of the loop. Returns the runs with orphans that were sent SIGTERM.
    fn turn(&mut self) -> BTreeSet<RunId> {
        self.look().found
    }

    fn look(&mut self) -> OrphanLook {
        self.reaper.collect(&mut Vec::new());
        let mut look = self.reaper.look_for_orphans();
        while let Ok(report) = self.reports.try_recv() {
            let next = self.reaper.orphans_read(report);
            look.found.extend(next.found);
            look.gone.extend(next.gone);
        }
        look
    }

    fn until_gone(&mut self, run: RunId) {
        until(|| self.look().gone.contains(&run));
        assert!(self.reaper.orphaned_groups.is_empty() && self.reaper.orphans.ending.is_empty());
        let Orphans { next_groups, attribution_ends, .. } = &self.reaper.orphans;
        assert_eq!((*next_groups, *attribution_ends), (None, None));
    }

    fn stop(&mut self, scope: StopScope) {
        self.reaper.kill(Owner::Run(RUN), Signal::TERM, scope, true).unwrap();
    }

    fn until_found(&mut self, run: RunId) {
        until(|| self.turn().contains(&run));
    }

    /// Waits until nothing is left to do. Returns the pids of the children.
    fn settle(&mut self) -> Vec<i32> {
        until(|| {
            self.turn();
            self.reaper.orphans.due.is_none() && self.reaper.orphans.reading.is_none()
        });
        proc::all_children().unwrap()
    }
}

/// A cgroup that is delegated to this process; removed at the end.
struct Delegated {
    directory: PathBuf,
    /// The cgroup in which the test was started.
    outer: PathBuf,
}

impl Delegated {
    fn new() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].into_iter().find_map(|root| {
            let outer = PathBuf::from(root).join(path);
            let directory = outer.join(format!("test-{}", std::process::id()));
            fs::create_dir(&directory).ok()?;
            if !directory.join("cgroup.kill").exists()
                || fs::write(directory.join("cgroup.procs"), "0").is_err()
            {
                fs::remove_dir(directory).unwrap();
                return None;
            }
            Some(Self { directory, outer })
        })
    }

    /// The cgroups in a cgroup.
    fn inner(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        let _ = fs::write(self.outer.join("cgroup.procs"), "0");
        let _ = fs::write(self.directory.join("cgroup.kill"), "1");
        if !std::thread::panicking() {
            until(|| fs::remove_dir(&self.directory).is_ok());
        }
    }
}

/// Runs a test with cgroups. Skips it where there are none.
fn with_cgroups(test: impl FnOnce(&mut Fixture, &Path)) {
    let Some(delegated) = Delegated::new() else {
        containerpilot_test_support::skip("a cgroup v2 with cgroup.kill cannot be made here");
        return;
    };
    let mut fixture = Fixture::new();
    let (cgroups, message) = Cgroups::open();
    fixture.reaper.cgroups = cgroups;
    let [own] = <[PathBuf; 1]>::try_from(Delegated::inner(&delegated.directory)).expect(&message);
    assert_eq!(message, format!("each run has a cgroup of its own in {}", own.display()));
    test(&mut fixture, &own);
    fixture.reaper.cgroups.remove_all(Instant::now() + Duration::from_secs(10));
    assert!(!own.exists());
}

const RUN: RunId = RunId(1);

fn children_of(pid: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// A shell that starts another one, which counts its signals in a file and exits when a second file exists.
fn outlived_by(folder: &Path) -> String {
    let [signals, end] = ["signals", "end"].map(|name| folder.join(name).display().to_string());
    let other =
        format!("trap 'echo x >> {signals}' TERM; : > {signals}; until [ -e {end} ]; do sleep 0.01; done");
    format!("sh -c \"{other}\" & until [ -e {signals} ]; do sleep 0.01; done; exec sleep 1000")
}

isolated! {
    fn s14_rest_of_a_group_gets_the_stop_signal_once_and_its_end_is_reported() {
        for (run, scope) in [(RUN, StopScope::Group), (RUN, StopScope::Process)] {
            let (mut fixture, folder) = (Fixture::new(), folder());
            let leader = fixture.start(run, &outlived_by(&folder));
            until(|| std::fs::read_to_string(format!("/proc/{leader}/comm")).unwrap() == "sleep\n");
            fixture.stop(scope);
            let exited = &collect(&mut fixture.reaper, 1)[0];
            let Remains::Group(names) = &exited.remains else { panic!("{exited:?}") };
            assert!(names.starts_with("sh ("), "{names}");
            let signals = || std::fs::read_to_string(folder.join("signals")).unwrap();
            until(|| signals() == "x\n");
            assert!(fixture.look().gone.is_empty());
            fixture.settle();
            assert_eq!(signals(), "x\n", "{scope:?}");
            std::fs::write(folder.join("end"), "").unwrap();
            fixture.until_gone(run);
            assert_eq!(signals(), "x\n", "{scope:?}");
            std::fs::remove_dir_all(folder).unwrap();
        }
    }

    fn s14_next_signals_reach_what_is_left_of_a_run() {
        let mut fixture = Fixture::new();
        let other = "trap '' TERM; exec sleep 1000";
        let script = format!("sh -c \"{other}\" & (trap '' TERM; exec setsid sleep 1000) & exec sleep 1000");
        let leader = fixture.start(RUN, &script);
        let named = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default() == "sleep\n";
        until(|| named(leader) && children_of(leader).iter().filter(|child| named(**child)).count() == 2);
        fixture.stop(StopScope::Group);
        assert!(matches!(collect(&mut fixture.reaper, 1)[0].remains, Remains::Group(_)));
        fixture.until_found(RUN);
        assert_eq!(fixture.settle().len(), 2, "both ignore SIGTERM");
        fixture.reaper.kill(Owner::Run(RUN), Signal::HUP, StopScope::Process, true).unwrap();
        fixture.until_gone(RUN);
        assert_eq!(sys::wait_nowait(), Ok(WaitState::NoChild));
    }

    fn s14_daemons_of_an_ended_run_are_waited_for() {
        let mut fixture = Fixture::new();
        let leader = fixture.start(RUN, "(trap '' TERM; exec setsid sleep 1000) & exec sleep 1000");
        until(|| children_of(leader).iter().any(|child| sys::group_of(*child) == Some(*child)));
        fixture.stop(StopScope::Group);
        assert_eq!(collect(&mut fixture.reaper, 1)[0].remains, Remains::Unknown);
        fixture.until_found(RUN);
        assert_eq!(fixture.settle().len(), 1);
        assert!(fixture.look().gone.is_empty());
        fixture.reaper.kill(Owner::Run(RUN), Signal::KILL, StopScope::Group, true).unwrap();
        fixture.until_gone(RUN);
    }

    fn s14_orphans_of_other_runs_do_not_hold_up_the_end_of_a_run() {
        let mut fixture = Fixture::new();
        let other = fixture.start(RunId(2), "(setsid sleep 1000 &); exec sleep 1000");
        until(|| proc::all_children().unwrap().len() == 2);
        let leader = fixture.start(RUN, "exec sleep 1000");
        until(|| std::fs::read_to_string(format!("/proc/{leader}/comm")).unwrap() == "sleep\n");
        fixture.stop(StopScope::Group);
        // Whose orphan it is, is not known yet.
        assert_eq!(collect(&mut fixture.reaper, 1)[0].remains, Remains::Unknown);
        fixture.until_gone(RUN);
        // Now it is.
        fixture.start(RUN, "exec sleep 1000");
        fixture.stop(StopScope::Group);
        let exited = collect(&mut fixture.reaper, 1);
        assert_eq!((exited[0].status, &exited[0].remains), (ExitStatus::Signal(Signal::TERM), &Remains::Nothing));
        assert!(sys::process_exists(other));
    }

    fn s14_group_without_a_child_of_the_supervisor_is_looked_at_again() {
        let mut fixture = Fixture::new();
        // The other member has a parent in another group.
        let folder = folder();
        let end = folder.join("end");
        let member = format!("until [ -e {} ]; do sleep 0.01; done", end.display());
        let script = format!(
            "exec perl -e 'my $group = getpgrp(0); if (fork == 0) {{ $SIG{{TERM}} = \"IGNORE\"; setpgrp(0, 0); \
             if (fork == 0) {{ setpgrp(0, $group); exec \"sh\", \"-c\", \"{member}\" }} wait; exit }} \
             exec \"sleep\", \"1000\"'"
        );
        let leader = fixture.start(RUN, &script);
        let in_group = || {
            let all = proc::processes().unwrap();
            all.filter(|(pid, stat)| stat.group == leader && *pid != leader).count() >= 1
        };
        until(|| in_group() && std::fs::read_to_string(format!("/proc/{leader}/comm")).unwrap() == "sleep\n");
        fixture.stop(StopScope::Process);
        assert!(matches!(collect(&mut fixture.reaper, 1)[0].remains, Remains::Group(_)));
        assert!(fixture.look().gone.is_empty());
        assert!(fixture.reaper.orphans.next_groups.is_some(), "no exit will be signalled");
        std::fs::write(&end, "").unwrap();
        fixture.until_gone(RUN);
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn p4_daemon_is_sent_sigterm_when_its_run_has_ended_and_not_before() {
        let mut fixture = Fixture::new();
        let leader = fixture.start(RUN, "setsid sleep 1000 & exec sleep 1000");
        until(|| children_of(leader).iter().any(|child| sys::group_of(*child) == Some(*child)));
        fixture.start(RunId(2), "exit 0");
        until(|| { fixture.turn(); fixture.reaper.pids.len() == 1 });
        assert_eq!(fixture.settle(), [leader]);
        fixture.reaper.kill(Owner::Run(RUN), Signal::TERM, StopScope::Group, true).unwrap();
        fixture.until_found(RUN);
        until(|| fixture.turn().is_empty() && proc::all_children().unwrap().is_empty());
    }

    fn p4_orphans_cost_a_look_only_while_a_process_of_an_ended_run_may_be_left() {
        let mut fixture = Fixture::new();
        let orphans = "(sh -c 'exit 0' &) & wait; exec sleep 1000";
        let leader = fixture.start(RUN, orphans);
        let name = || std::fs::read_to_string(format!("/proc/{leader}/comm")).unwrap();
        until(|| name() == "sleep\n");
        // Both orphans are reaped; the run lives.
        until(|| { fixture.turn(); proc::all_children().unwrap().len() == 1 });
        assert_eq!(fixture.reaper.next_look(), None, "no run has ended");
        let daemon = "trap '' TERM; setsid sh -c 'setsid sleep 1000 & wait' & exec sleep 1000";
        let leader = fixture.start(RunId(2), daemon);
        until(|| children_of(leader).iter().any(|child| !children_of(*child).is_empty()));
        sys::kill_process(leader, Signal::KILL).unwrap();
        fixture.until_found(RunId(2));
        fixture.settle();
        assert!(fixture.reaper.orphans.may_be_left, "a daemon of an ended run ignores SIGTERM");
        fixture.reaper.kill_orphans(RunId(2));
        until(|| { fixture.turn(); proc::all_children().unwrap().len() == 1 });
        fixture.settle();
        assert!(!fixture.reaper.orphans.may_be_left);
    }

    fn p3_p4_daemon_of_a_process_that_is_no_longer_waited_for_is_found_when_that_exits() {
        let mut fixture = Fixture::new();
        let leader = fixture.start(RUN, "setsid sleep 1000 & exec sleep 1000");
        until(|| children_of(leader).iter().any(|child| sys::group_of(*child) == Some(*child)));
        // As by `abandon`, but SIGKILL does not end it yet.
        fixture.reaper.owners.remove(&leader);
        fixture.reaper.pids.remove(&Owner::Run(RUN));
        fixture.reaper.orphans.abandon(leader);
        assert_eq!(fixture.settle(), [leader]);
        sys::kill_process(leader, Signal::KILL).unwrap();
        fixture.until_found(RUN);
        until(|| fixture.turn().is_empty() && proc::all_children().unwrap().is_empty());
    }

    fn p4_daemon_that_ignores_sigterm_is_killed_with_its_children() {
        let mut fixture = Fixture::new();
        let daemon = "trap '' TERM; setsid sh -c 'setsid sleep 1000 & wait' & exec sleep 1000";
        let leader = fixture.start(RUN, daemon);
        let is_daemon = |pid: &i32| sys::group_of(*pid) == Some(*pid);
        until(|| children_of(leader).iter().any(|child| is_daemon(child) && children_of(*child).iter().any(is_daemon)));
        // Not by the reaper, which would kill the daemons too.
        sys::kill_process(leader, Signal::KILL).unwrap();
        fixture.until_found(RUN);
        let children = fixture.settle();
        assert_eq!(children.len(), 1);
        assert_eq!(proc::children_by_parent().unwrap(), children, "on kernels without the list");
        fixture.reaper.kill_orphans(RUN);
        until(|| fixture.turn().is_empty() && proc::all_children().unwrap().is_empty());
        fixture.settle();
        assert!(fixture.reaper.orphans.killed.is_empty() && fixture.reaper.orphans.adopted.is_empty());
    }

    fn p4_daemon_dies_with_a_run_that_is_killed() {
        let mut fixture = Fixture::new();
        let daemons = "trap '' TERM; (setsid sleep 1000 &); exec sleep 1000";
        fixture.start(RUN, daemons);
        until(|| proc::all_children().unwrap().len() == 2);
        fixture.reaper.kill(Owner::Run(RUN), Signal::KILL, StopScope::Group, true).unwrap();
        until(|| fixture.turn().is_empty() && proc::all_children().unwrap().is_empty());
    }

    fn p4_processes_without_a_mark_of_this_supervisor_are_left_alone() {
        let mut fixture = Fixture::new();
        let foreign = format!("{MARK}={}-1 setsid sleep 1000", std::process::id() + 1);
        let script = format!("{foreign} & env -i setsid sleep 1000 & exec sleep 1000");
        let leader = fixture.start(RUN, &script);
        until(|| children_of(leader).iter().filter(|child| sys::group_of(**child) == Some(**child)).count() == 2);
        fixture.reaper.kill(Owner::Run(RUN), Signal::KILL, StopScope::Group, true).unwrap();
        until(|| { fixture.turn(); fixture.reaper.pids.is_empty() });
        let left = fixture.settle();
        assert_eq!(left.len(), 2);
        assert!(fixture.reaper.orphans.adopted.values().all(|adopted| *adopted == Adopted::Unmarked));
        assert_eq!(kill_descendants(Instant::now() + Duration::from_secs(10)), 0);
        assert_eq!(sys::wait_nowait(), Ok(WaitState::NoChild));
    }

    fn p4_members_of_the_process_group_get_sigterm_once() {
        let mut fixture = Fixture::new();
        let file = folder().join("signals");
        let member = format!("trap 'echo x >> {0}' TERM; : > {0}; while :; do sleep 0.01; done", file.display());
        let script = format!("sh -c \"{member}\" & while ! [ -e {} ]; do sleep 0.01; done", file.display());
        fixture.start(RUN, &script);
        assert!(matches!(collect(&mut fixture.reaper, 1)[0].remains, Remains::Group(_)));
        until(|| { fixture.turn(); std::fs::read_to_string(&file).unwrap() == "x\n" });
        assert_eq!(fixture.settle().len(), 1);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
        fixture.reaper.kill_orphans(RUN);
        until(|| fixture.turn().is_empty() && proc::all_children().unwrap().is_empty());
        std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }

    fn p4_group_is_killed_if_a_member_is_older_than_the_end_of_its_leader() {
        let mut fixture = Fixture::new();
        let group = fixture.start(RUN, "trap '' TERM; sleep 1000 & exit 0");
        collect(&mut fixture.reaper, 1);
        // A younger one may be in another group that has the same number.
        fixture.reaper.orphans.kill_group(OrphanedGroup { group, reaped: Some(1) });
        fixture.settle();
        assert!(sys::group_exists(group));
        fixture.reaper.orphans.kill_group(OrphanedGroup { group, reaped: proc::ticks() });
        until(|| { fixture.turn(); !sys::group_exists(group) });
    }

    fn p4_daemon_that_clears_its_environment_is_found_by_its_cgroup() {
        with_cgroups(|fixture, own| {
            let ready = folder().join("ready");
            let daemon = format!("trap '' TERM; : > {}; while :; do sleep 1000; done", ready.display());
            let leader = fixture.start(RUN, &format!("(env -i setsid sh -c \"{daemon}\" &); exec sleep 1000"));
            fixture.start(RunId(2), "exec sleep 1000");
            assert_eq!(Delegated::inner(own).len(), 2);
            until(|| ready.exists());
            fixture.settle();
            // Not by the reaper, which would kill the daemon too.
            sys::kill_process(leader, Signal::KILL).unwrap();
            fixture.until_found(RUN);
            assert_eq!(fixture.settle().len(), 2, "it ignores SIGTERM");
            assert_eq!(Delegated::inner(own).len(), 2);
            fixture.reaper.kill_orphans(RUN);
            until(|| fixture.turn().is_empty() && proc::all_children().unwrap().len() == 1);
            until(|| { fixture.reaper.orphans.request(); fixture.turn(); Delegated::inner(own).len() == 1 });
            fixture.reaper.kill(Owner::Run(RunId(2)), Signal::KILL, StopScope::Group, true).unwrap();
            until(|| fixture.turn().is_empty() && proc::all_children().unwrap().is_empty());
            fs::remove_dir_all(ready.parent().unwrap()).unwrap();
        });
    }

    fn p4_cgroup_of_a_run_that_left_no_process_is_removed_with_cgroups_inside() {
        with_cgroups(|fixture, own| {
            let script = "cd $0 && mkdir -p a/b c && sh -c 'echo 0 > c/cgroup.procs; exit 0'";
            fixture.start(RUN, &script.replace("$0", own.join("1").to_str().unwrap()));
            collect(&mut fixture.reaper, 1);
            until(|| { fixture.reaper.orphans.request(); fixture.turn(); Delegated::inner(own).is_empty() });
        });
    }

    fn p4_p5_run_that_is_killed_ends_with_every_process_in_its_cgroup() {
        with_cgroups(|fixture, _| {
            let daemon = "env -i setsid sh -c 'while :; do (setsid sleep 1000 &); sleep 0.01; done' &";
            fixture.start(RUN, &format!("({daemon}); exec sleep 1000"));
            until(|| proc::all_children().unwrap().len() > 10);
            fixture.reaper.kill(Owner::Run(RUN), Signal::KILL, StopScope::Group, true).unwrap();
            until(|| { fixture.turn(); proc::all_children().unwrap().is_empty() });
            assert_eq!(sys::wait_nowait(), Ok(WaitState::NoChild));
        });
    }

    fn p3_start_does_not_fail_without_the_cgroup_of_its_run() {
        with_cgroups(|fixture, own| {
            // Deleted, and not a cgroup.
            let deleted = fixture.reaper.cgroups.create(RUN);
            fs::remove_dir(own.join("1")).unwrap();
            fixture.start_in(deleted, RUN, "exit 0");
            fixture.start_in(Some(fs::File::open("/").unwrap().into()), RunId(2), "exit 0");
            assert!(collect(&mut fixture.reaper, 2).iter().all(|exited| exited.status.is_success()));
        });
    }

    fn p6_abandoned_process_is_reaped_like_an_orphan() {
        let mut fixture = Fixture::new();
        let pid = fixture.start(RUN, "exec sleep 1000");
        assert_eq!(fixture.reaper.abandon(Owner::Run(RUN)), Some(pid));
        assert_eq!(fixture.reaper.abandon(Owner::Run(RUN)), None);
        fixture.settle();
        assert!(sys::process_exists(pid), "it is not looked at");
        sys::kill_process(pid, Signal::KILL).unwrap();
        until(|| fixture.turn().is_empty() && proc::all_children().unwrap().is_empty());
        assert!(fixture.reaper.orphans.abandoned.is_empty());
    }
}
