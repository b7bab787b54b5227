//! Failures of programs, the machine and the log: the supervisor keeps running and still handles its signals.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use crate::support::clock::clock_jumps;
use crate::support::config::Config;
use crate::support::deadline::InTime;
use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Stdout, Supervisor, child_states, is_root, modes, wait_until};

/// Sends SIGTERM and requires exit code 0 within 30 s; returns the log.
fn assert_stops(run: Supervisor) -> String {
    let began = Instant::now();
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    assert!(began.elapsed() < Duration::from_secs(30));
    log
}

/// Starts a mount namespace unless the script already runs in one (as PID 1, or because of this line).
const MOUNTS: &str = "[ $$ = 1 ] || [ -n \"$INSIDE\" ] || INSIDE=1 exec unshare --mount sh -c";

#[test]
fn p3_s5_program_that_cannot_run_is_reported_with_the_system_error() {
    let cases = [
        ("/no/such", 127, "/no/such: No such file or directory"),
        ("no-such-program", 127, "no-such-program: not found in PATH"),
        ("@/plain", 126, "/plain: Permission denied: it is not executable; chmod +x "),
        ("@/empty", 126, "/empty: Exec format error: it is empty"),
        ("@/marked", 126, "/marked: Exec format error: it begins with a byte order mark"),
        ("@/folder", 126, "/folder: Is a directory"),
        ("@/script", 127, "/script: its interpreter /no/such/shell: No such file or directory"),
        ("@/garbage", 126, "/garbage: Exec format error: it has no #! line; write exec: [\"sh\", "),
        ("@/windows", 127, "/windows: its interpreter is `/bin/sh\\r`: the script has Windows line endings"),
    ];
    let script = "echo x > @/plain; mkdir @/folder; printf '#!/no/such/shell -x\\n' > @/script
        printf 'garbage' > @/garbage; printf '#!/bin/sh\\r\\n' > @/windows
        : > @/empty; printf '\\357\\273\\277#!/bin/sh\\n' > @/marked
        chmod +x @/script @/garbage @/windows @/empty @/marked";
    for mode in modes() {
        for (program, code, words) in cases {
            let config = Config::new().job("bad", format!("exec: ['{program}']"));
            let (found, log) = Supervisor::with_setup(mode, script, &config).wait();
            assert!(log.contains("bad failed to start: "));
            assert!(log.contains(words), "{words}");
            assert_eq!(found, code);
        }
        let bad = cases.iter().enumerate().fold(Config::new(), |config, (n, (program, ..))| {
            config.job(format!("bad{n}"), format!("exec: ['{program}'], restarts: 2"))
        });
        let mut run = Supervisor::with_setup(mode, script, &bad.job("good", "exec: 'sleep 1000'"));
        for _ in 0..3 * cases.len() {
            run.wait_for_line("failed to start");
        }
        assert!(run.log_so_far().contains("good started"), "{}", run.log_so_far());
        assert_stops(run);
    }
}

#[test]
fn p3_p9_user_without_the_capability_is_named_with_the_remedy() {
    if !is_root() {
        skip("needs root");
        return;
    }
    let script = "set -- setpriv --bounding-set=-setuid,-setgid \"$@\"";
    let user = ("user: 'daemon'", "user `daemon`", "CAP_SETUID and CAP_SETGID");
    for (keys, what, needed) in [user, ("group: 1", "group `1`", "CAP_SETGID")] {
        let key = what.split(' ').next().unwrap();
        let config = Config::new().job("a", format!("exec: 'true', {keys}"));
        let (code, log) = Supervisor::with_setup(Mode::Plain, script, &config).wait();
        let remedy = format!("the supervisor needs {needed}, or remove `{key}`");
        assert!(log.contains(&format!("true: cannot switch to {what}: EPERM ({remedy})")));
        assert_eq!(code, 125);
    }
}

#[test]
fn p3_p9_limit_without_the_capability_is_named_with_the_remedy() {
    if !is_root() {
        skip("needs root");
        return;
    }
    let script = "ulimit -H -c 0; set -- setpriv --bounding-set=-sys_resource \"$@\"";
    let config = "{ jobs: [{ name: 'a', exec: 'true', limits: { core: 7 } }] }";
    let (code, log) = Supervisor::with_setup(Mode::Plain, script, config).wait();
    let remedy = "CAP_SYS_RESOURCE is missing; lower the limit or add the capability";
    assert!(log.contains(&format!("true: cannot set the limit `core` to 7: EPERM ({remedy})")));
    assert_eq!(code, 125);
}

#[test]
fn p3_p9_user_removed_while_running_is_a_failed_start() {
    if !is_root() {
        skip("needs root");
        return;
    }
    let script = format!(
        "{MOUNTS} '
            cp /etc/passwd @/passwd; echo vanishing:x:4242:4242::/:/bin/sh >> @/passwd
            mount --bind @/passwd /etc/passwd; exec \"$@\"' sh \"$@\"
        cp /etc/passwd @/passwd; echo vanishing:x:4242:4242::/:/bin/sh >> @/passwd
        mount --bind @/passwd /etc/passwd"
    );
    let config = "{ jobs: [
        { name: 'before', exec: ['sh', '-c', 'id -u; grep -v vanishing /etc/passwd > @/left; cat @/left > @/passwd'] },
        { name: 'by-name', exec: 'id -u', user: 'vanishing', when: { source: 'before', once: 'exitSuccess' } },
        { name: 'by-number', exec: ['sh', '-c', 'echo I am $(id -u)'], user: 4242,
          when: { source: 'by-name', once: 'exitFailed' } },
        { name: 'replace', exec: ['sh', '-c', 'mkfifo @/fifo && mount --bind @/fifo /etc/passwd'],
          when: { source: 'by-number', once: 'exitSuccess' } },
        { name: 'unknown', exec: 'id -u', user: 4242, when: { source: 'replace', once: 'exitSuccess' } },
        { name: 'rest', exec: 'sleep 1000', when: { source: 'unknown', once: 'exitFailed' } } ] }";
    for mode in modes() {
        let mut run = Supervisor::with_setup(mode, &script, config);
        run.wait_for_line("by-name failed to start: id: there is no user `vanishing`");
        run.wait_for_line("I am 4242");
        // Its group would not be known, either.
        run.wait_for_line(
            "unknown failed to start: id: cannot look up its user or group: /etc/passwd: not a regular file",
        );
        run.wait_for_line("rest started");
        assert_stops(run);
    }
}

#[test]
fn p3_failed_fork_is_a_failed_start_and_a_restart_may_succeed() {
    if !is_root() {
        skip("needs root");
        return;
    }
    // RLIMIT_NPROC counts all processes of a user, so no other process may run as this one.
    let user = 1_000_000 + std::process::id();
    for (mode, nth) in modes().into_iter().zip(0..) {
        let user = user * 2 + nth;
        let script = format!(
            "pilot=$1; shift; cp \"$pilot\" @/containerpilot; chmod 777 @/.; set -- @/containerpilot \"$@\"
             set -- setpriv --reuid {user} --regid {user} --clear-groups \"$@\"
             set -- prlimit --nproc=6:6 \"$@\""
        );
        let config = Config::new()
            .job("short", "exec: 'sleep 1000', timeout: '1s'")
            .jobs((0..10).map(|n| format!("hog{n}")), "exec: 'sleep 1000'")
            .job("late", "exec: 'sleep 1000', restarts: 'unlimited'");
        let mut run = Supervisor::with_setup(mode, &script, &config);
        run.wait_for_line("late failed to start: sleep: cannot create a process");
        // When `short` has ended at the latest; before it, if a thread of the supervisor's start was counted and has ended.
        run.wait_for_line("late started");
        let log = assert_stops(run);
        // Which of the others fail depends on when the processes that were started before are counted.
        let hogs = |what: &str| (0..10).filter(|nth| log.contains(&format!("hog{nth} {what}"))).count();
        assert!(log.contains("hog0 started") && hogs("failed to start") >= 4);
        assert_eq!(hogs("started") + hogs("failed to start"), 10);
    }
}

#[test]
fn p3_file_descriptor_exhaustion_is_a_failed_start() {
    for mode in modes() {
        let health = "health: { tcp: '127.0.0.1:1', interval: 1, ttl: 5, timeout: '100ms' }";
        let config = Config::new()
            .job("short", format!("exec: 'sleep 1000', timeout: '500ms', {health}"))
            .jobs((0..20).map(|n| format!("hog{n}")), "exec: 'sleep 1000'")
            .job("late", "exec: 'sleep 1000', restarts: 'unlimited'");
        let mut run = Supervisor::with_setup(mode, "ulimit -n 32", &config);
        run.wait_for_line("late failed to start: sleep: cannot create a pipe: Too many open files");
        // It starts as soon as there are enough descriptors: when others have started, or when one has exited.
        run.wait_for_lines("short timeout after 500ms", 1);
        run.wait_for_lines("late started", 1);
        assert!(run.cpu_ticks() < 100, "the supervisor used too much CPU time");
        assert_stops(run);
    }
}

#[test]
fn l1_full_disk_blocks_no_job_and_the_log_continues_when_space_is_free() {
    if !is_root() {
        skip("needs root");
        return;
    }
    let mount =
        "mkdir @/disk; mount -t tmpfs -o size=256k none @/disk; head -c 200000 /dev/zero > @/disk/filler";
    let script = format!("{MOUNTS} '{mount}; exec \"$@\"' sh \"$@\"\n{mount}");
    // The output fits neither on the disk nor in the pipe.
    let config = "{ stopTimeout: 2, logging: { output: '@/disk/log' }, jobs: [
        { name: 'noisy', exec: ['sh', '-c', '@programs/lines.sh 2000; echo all said; sleep 1000'] },
        { name: 'tick', exec: ['sh', '-c', 'echo x >> @/ticks'], when: { interval: '20ms' } },
        { name: 'room', exec: 'rm @/disk/filler', when: { source: 'SIGHUP' } } ] }";
    for mode in modes() {
        let run = Supervisor::with_setup(mode, &script, config);
        wait_until("the disk is full", || run.read("disk/log").len() > 40_000);
        let ticks = run.size("ticks");
        wait_until("the periodic job keeps running", || run.size("ticks") > ticks + 10);
        assert!(!run.read("disk/log").contains("all said"), "the disk was not full");
        run.signal("-HUP");
        wait_until("the log continues", || run.read("disk/log").contains("all said"));
        let log = run.read("disk/log");
        assert!((0..2000).all(|n| log.contains(&format!(" line {n}\n"))), "lines are missing");
        assert_stops(run);

        let run = Supervisor::with_setup(mode, &script, config);
        wait_until("the disk is full", || run.read("disk/log").len() > 40_000);
        assert_stops(run);
    }
}

#[test]
fn l4_jobs_keep_running_when_the_output_is_closed_or_not_read() {
    let config = "{ stopTimeout: 2, jobs: [
        { name: 'noisy', exec: 'yes', timeout: '300ms', restarts: 'unlimited' },
        { name: 'tick', exec: ['sh', '-c', 'echo x >> @/ticks'], when: { interval: '20ms' } },
        { name: 'end', exec: ['touch', '@/end'], when: { source: 'noisy', once: 'stopping' } } ] }";
    for mode in modes() {
        for (script, output) in [
            ("exec >&-", Stdout::Read),
            ("", Stdout::Closed),
            ("", Stdout::Unread),
            ("exec >&- 2>&- <&-", Stdout::Read),
        ] {
            let run = if script.is_empty() {
                Supervisor::with_stdout(mode, output, config)
            } else {
                Supervisor::with_setup(mode, script, config)
            };
            wait_until("the periodic job keeps running", || run.size("ticks") > 40);
            let end = run.file("end");
            let began = Instant::now();
            run.signal("-TERM");
            wait_until("the hook runs", || end.exists());
            assert_eq!(run.wait().0, 0);
            assert!(began.elapsed() < Duration::from_secs(30), "{mode:?} {script} {output:?}");
        }
    }
}

#[test]
fn s4_job_that_ignores_sigterm_is_killed_after_the_stop_timeout() {
    let config = "{ stopTimeout: 1, jobs: [{ name: 'deaf', exec: ['@programs/on-signal.sh', 'TERM', '', 'INT', ''] }] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("ready");
        let began = Instant::now();
        let log = assert_stops(run);
        assert!(began.elapsed() >= Duration::from_secs(1));
        assert!(log.contains("stop timeout of ") && log.contains("deaf exited on SIGKILL"));
    }
}

#[test]
fn p4_job_that_closes_its_output_keeps_running_without_cpu_cost() {
    let config = "{ jobs: [{ name: 'mute', exec: ['sh', '-c',
        'exec >&- 2>&-; touch @/mute; while :; do sleep 0.2; echo x >> @/alive; done'] }] }";
    for mode in modes() {
        let run = Supervisor::start(mode, config);
        wait_until("the job runs", || run.file("mute").exists());
        let before = run.cpu_ticks();
        wait_until("the job keeps running", || run.size("alive") >= 6);
        assert!(run.cpu_ticks() - before < 15, "the closed pipe is polled again and again");
        let log = assert_stops(run);
        assert!(log.contains("mute exited on SIGTERM"));
    }
}

#[test]
fn p1_p4_daemon_without_the_mark_of_a_run_is_not_killed_and_is_reaped() {
    let config = "{ logging: { level: 'debug' }, jobs: [
        { name: 'forks', exec: ['sh', '-c', 'env -i setsid sh -c \"echo x > @/daemon; while [ -e @/daemon ]; do sleep 0.02; done\" & \
          while [ ! -e @/daemon ]; do sleep 0.02; done'] },
        { name: 'rest', exec: 'sleep 1000', when: { source: 'forks', once: 'exitSuccess' } } ] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("rest started");
        if run.log_so_far().contains("each run has a cgroup of its own") {
            skip("cgroup v2 is delegated to this test, so the daemon is found without its mark");
            return;
        }
        let pid = run.pid();
        assert_eq!(child_states(pid).len(), 2, "the daemon is not a child of the supervisor");
        fs::remove_file(run.file("daemon")).unwrap();
        wait_until("the daemon is reaped", || child_states(pid).len() == 1);
        assert_stops(run);
    }
}

#[test]
fn p1_ten_thousand_orphans_that_exit_at_once_are_reaped() {
    let config = "{ jobs: [
        { name: 'storm', exec: ['sh', '-c', 'echo ready; while [ ! -e @/go ]; do sleep 0.02; done; \
          i=0; while [ $i -lt 10000 ]; do ( : & ); i=$((i+1)); done; touch @/made; exec sleep 1000'] },
        { name: 'hook', exec: 'echo still here', when: { source: 'SIGHUP' } } ] }";
    // SIGSTOP keeps the supervisor from reaping while they exit.
    let mode = *modes().last().unwrap();
    let mut run = Supervisor::start(mode, config);
    run.wait_for_line("ready");
    let pid = run.pid();
    run.signal("-STOP");
    fs::write(run.file("go"), "").unwrap();
    wait_until("all orphans are created", || run.file("made").exists());
    assert!(child_states(pid).len() >= 9_000, "the orphans are not zombies");
    run.signal("-CONT");
    run.signal("-HUP");
    run.wait_for_line("still here");
    wait_until("all orphans are reaped", || child_states(pid).len() <= 1);
    assert_stops(run);
}

#[test]
fn w4_e7_after_sigstop_missed_ticks_are_skipped_and_pending_events_are_handled() {
    let config = "{ jobs: [
        { name: 'tick', exec: ['sh', '-c', 'echo x >> @/ticks'], when: { interval: '50ms' } },
        { name: 'ends', exec: ['sh', '-c', 'while [ ! -e @/go ]; do sleep 0.01; done; echo ended > @/ended; exit 3'] },
        { name: 'after', exec: 'echo it was seen', when: { source: 'ends', once: 'exitFailed' } } ] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        wait_until("the periodic job runs", || run.size("ticks") >= 4);
        run.signal("-STOP");
        let began = Instant::now();
        fs::write(run.file("go"), "").unwrap();
        wait_until("the job exits", || run.file("ended").exists());
        let before = run.size("ticks") / 2;
        wait_until("a second has passed", || began.elapsed() > Duration::from_millis(1000));
        let stopped = run.size("ticks") / 2;
        assert!(stopped <= before + 1, "a job was started while the supervisor was stopped");
        run.signal("-CONT");
        let continued = Instant::now();
        run.wait_for_line("it was seen");
        let ticks = run.size("ticks") / 2 - stopped;
        let most = continued.elapsed().as_millis() / 50 + 3;
        assert!(u128::from(ticks) <= most, "{ticks} ticks, expected at most {most}");
        run.signal("-STOP");
        run.signal("-TERM");
        run.signal("-CONT");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn p1_inherited_ignored_and_blocked_signals_lose_no_exit_status() {
    let probe =
        Command::new("env").args(["--ignore-signal=CHLD", "--block-signal=CHLD", "true"]).output_in_time();
    if !probe.is_ok_and(|output| output.status.success()) {
        skip("`env` cannot ignore and block signals");
        return;
    }
    let script = "set -- env --ignore-signal=CHLD,TERM,HUP --block-signal=CHLD,TERM,USR2,HUP \"$@\"";
    for mode in modes() {
        let (code, log) = Supervisor::with_setup(
            mode,
            script,
            "{ jobs: [{ name: 'a', exec: ['sh', '-c', 'exit 2'] },
              { name: 'b', exec: 'grep -E ^Sig(Blk|Ign) /proc/self/status' }] }",
        )
        .wait();
        assert_eq!((code, log.matches("\t0000000000000000").count()), (2, 2));
        let mut run = Supervisor::with_setup(mode, script, "{ jobs: [{ name: 'a', exec: 'sleep 1000' }] }");
        run.wait_for_line("a started");
        assert_stops(run);
    }
}

#[test]
fn h4_processes_left_by_checks_do_not_accumulate() {
    let config =
        "{ jobs: [{ name: 'a', exec: 'sleep 1000', health: { interval: '50ms', ttl: 5, timeout: '10s',
        exec: ['sh', '-c', 'trap \"\" TERM; echo x >> @/checks; sleep 1000 & exit 0'] } }] }";
    for mode in modes() {
        let run = Supervisor::start(mode, config);
        wait_until("ten checks have run", || run.size("checks") / 2 >= 10);
        // The job, a check, and the process which that check has just left.
        assert!(child_states(run.pid()).iter().filter(|state| **state != 'Z').count() <= 3);
        assert_stops(run);
    }
}

#[test]
fn s4_job_stopped_by_sigstop_counts_as_running_and_is_killed_at_shutdown() {
    let config =
        "{ stopTimeout: 1, jobs: [{ name: 'a', exec: ['sh', '-c', 'echo ready; kill -STOP $$; echo on'] }] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("ready");
        let pid = run.pid();
        wait_until("the job is stopped", || child_states(pid) == ['T']);
        let log = assert_stops(run);
        assert!(log.contains("a exited on SIGKILL"));
    }
}

#[test]
fn l1_log_file_that_cannot_be_opened_is_reported_by_name() {
    let run = Supervisor::start(
        Mode::Plain,
        "{ logging: { output: '@/no/such/log' }, jobs: [{ name: 'a', exec: 'true' }] }",
    );
    let stderr = run.file("stderr");
    wait_until("the error is written to standard error", || {
        let text = fs::read_to_string(&stderr).unwrap_or_default();
        text.contains("no/such/log: no such file or directory")
    });
    assert_eq!(run.wait().0, 1);
}

#[test]
fn w15_job_runs_at_its_time_of_day() {
    let (folder, program) = clock_jumps("cron");
    if let Some(program) = program {
        let config = "{ jobs: [
            { name: 'server', exec: 'sleep 1000' },
            { name: 'nightly', exec: ['sh', '-c', 'echo \"by $CONTAINERPILOT_EVENT\"'],
              when: { cron: '0 3 * * *', timezone: 'Europe/Berlin' } } ] }";
        for mode in modes() {
            // Three seconds before 03:00 in winter.
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            let shift = (1_767_225_600_i64 + 2 * 3_600 - 3) - i64::try_from(now).unwrap();
            let script = format!("export CLOCK_SHIFT={shift}; exec {} \"$@\"", program.display());
            let mut run = Supervisor::with_setup(mode, &script, config);
            run.wait_for_line("nightly started");
            run.wait_for_line("by startup");
            let log = run.log_so_far();
            let started = log.lines().find(|line| line.contains("nightly started")).unwrap();
            assert!(started.starts_with("2026-01-01T02:00:0") && started.contains("cause: cron"));
            assert_stops(run);
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn w4_p5_wall_clock_jumps_do_not_move_deadlines() {
    let (folder, program) = clock_jumps("clock");
    if let Some(program) = program {
        let config = "{ stopTimeout: 1, jobs: [
            { name: 'tick', exec: ['/bin/sh', '-c', 'echo x >> @/ticks'], when: { interval: '50ms' } },
            { name: 'slow', exec: 'sleep 1000', timeout: '700ms' },
            { name: 'deaf', exec: ['sh', '-c', 'trap \"\" TERM; while :; do sleep 0.05; done'] } ] }";
        for mode in modes() {
            let script = format!("exec {} \"$@\"", program.display());
            let began = Instant::now();
            let mut run = Supervisor::with_setup(mode, &script, config);
            run.wait_for_line("slow timeout after 700ms");
            let waited = began.elapsed();
            assert!(waited >= Duration::from_millis(700) && waited < Duration::from_secs(30), "{waited:?}");
            let ticks = run.size("ticks") / 2;
            assert!((1..=waited.as_millis() as u64 / 50 + 2).contains(&ticks), "{ticks} ticks in {waited:?}");
            // The clock does jump: the timestamps of the log are not sorted.
            let timestamps: Vec<String> = run
                .log_so_far()
                .lines()
                .filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
                .collect();
            assert!(!timestamps.is_sorted(), "{timestamps:?}");
            let began = Instant::now();
            assert_stops(run);
            assert!((Duration::from_secs(1)..Duration::from_secs(30)).contains(&began.elapsed()));
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn modes_include_pid_1_when_run_as_root() {
    // Without this test, a machine that forbids namespaces would silently skip half of the cases.
    if is_root() && std::env::var_os("CONTAINERPILOT_NO_NAMESPACES").is_none() {
        assert!(modes().contains(&Mode::Pid1));
    }
}
