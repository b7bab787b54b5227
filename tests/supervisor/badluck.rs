//! Bad luck: whatever goes wrong around it, the supervisor goes on, and hears its signals.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{As, Reader, Supervisor, children, is_root, until, ways};

/// The supervisor lives, and stops as it should.
fn stops(run: Supervisor) -> String {
    let began = Instant::now();
    run.signal("-TERM");
    let (code, log) = run.end();
    assert_eq!(code, 0, "{log}");
    assert!(began.elapsed() < Duration::from_secs(10), "{log}");
    log
}

/// A place of its own for a mount, also where the supervisor is a plain process.
const MOUNTS: &str = "[ $$ = 1 ] || [ -n \"$INSIDE\" ] || INSIDE=1 exec unshare --mount sh -c";

#[test]
fn p3_s5_a_program_that_cannot_run_says_why_in_the_systems_words() {
    let cases = [
        ("/no/such", 127, "/no/such: No such file or directory"),
        ("no-such-program", 127, "no-such-program: not found in PATH: No such file or directory"),
        ("@/plain", 126, "/plain: Permission denied"),
        ("@/folder", 126, "/folder: Is a directory"),
        ("@/script", 127, "/script: its interpreter /no/such/shell: No such file or directory"),
        ("@/garbage", 126, "/garbage: Exec format error"),
    ];
    let script = "echo x > @/plain; mkdir @/folder; printf '#!/no/such/shell -x\\n' > @/script
        printf 'garbage' > @/garbage; chmod +x @/script @/garbage";
    for how in ways() {
        for (program, code, words) in cases {
            let config = format!("{{ jobs: [{{ name: 'bad', exec: ['{program}'] }}] }}");
            let (found, log) = Supervisor::behind(how, script, &config).end();
            assert!(log.contains("bad could not be started: "), "{log}");
            assert!(log.contains(words), "{words}\n{log}");
            assert_eq!(found, code, "{log}");
        }
        let bad: Vec<String> = (0..cases.len())
            .map(|n| format!("{{ name: 'bad{n}', exec: ['{}'], restarts: 2 }}", cases[n].0))
            .collect();
        let config = format!("{{ jobs: [{}, {{ name: 'good', exec: 'sleep 1000' }}] }}", bad.join(","));
        let mut run = Supervisor::behind(how, script, &config);
        for _ in 0..3 * cases.len() {
            run.line("could not be started");
        }
        assert!(run.seen().contains("good started"), "{}", run.seen());
        stops(run);
    }
}

#[test]
fn p3_p9_a_user_that_has_vanished_is_a_failed_start() {
    if !is_root() {
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
        { name: 'rest', exec: 'sleep 1000', when: { source: 'by-number', once: 'exitSuccess' } } ] }";
    for how in ways() {
        let mut run = Supervisor::behind(how, &script, config);
        run.line("by-name could not be started: id: there is no user `vanishing`");
        run.line("I am 4242");
        run.line("rest started");
        stops(run);
    }
}

#[test]
fn p3_a_fork_that_fails_is_a_failed_start_and_the_next_one_may_succeed() {
    if !is_root() {
        return;
    }
    // The limit counts all processes of a user, so this user must be nobody else.
    let user = 1_000_000 + std::process::id();
    for (how, nth) in ways().into_iter().zip(0..) {
        let user = user * 2 + nth;
        let script = format!(
            "pilot=$1; shift; cp \"$pilot\" @/containerpilot; chmod 777 @/.; set -- @/containerpilot \"$@\"
             set -- setpriv --reuid {user} --regid {user} --clear-groups \"$@\"
             set -- prlimit --nproc=6:6 \"$@\""
        );
        let hogs: Vec<String> =
            (0..10).map(|n| format!("{{ name: 'hog{n}', exec: 'sleep 1000' }}")).collect();
        let config = format!(
            "{{ jobs: [{{ name: 'short', exec: 'sleep 1000', timeout: '1s' }}, {},
              {{ name: 'late', exec: 'sleep 1000', restarts: 'unlimited' }}] }}",
            hogs.join(",")
        );
        let mut run = Supervisor::behind(how, &script, &config);
        run.line("late could not be started: sleep: cannot create a process");
        run.line("short timeout after 1s");
        run.line("late started");
        let log = stops(run);
        assert!(log.contains("hog0 started") && log.contains("hog9 could not be started"), "{log}");
    }
}

#[test]
fn p3_descriptors_that_are_used_up_are_a_failed_start() {
    for how in ways() {
        let hogs: Vec<String> =
            (0..20).map(|n| format!("{{ name: 'hog{n}', exec: 'sleep 1000' }}")).collect();
        let config = format!(
            "{{ jobs: [{{ name: 'short', exec: 'sleep 1000', timeout: '500ms',
                 health: {{ tcp: '127.0.0.1:1', interval: 1, ttl: 5, timeout: '100ms' }} }}, {},
              {{ name: 'late', exec: 'sleep 1000', restarts: 'unlimited' }}] }}",
            hogs.join(",")
        );
        let mut run = Supervisor::behind(how, "ulimit -n 32", &config);
        run.line(
            "late could not be started: sleep: cannot create a pipe for its output: Too many open files",
        );
        run.line("short timeout after 500ms");
        run.line("late started");
        assert!(run.ticks() < 100, "it does not spin meanwhile");
        stops(run);
    }
}

#[test]
fn l1_a_full_disk_holds_nobody_and_what_was_said_is_written_when_there_is_room() {
    if !is_root() {
        return;
    }
    let mount =
        "mkdir @/disk; mount -t tmpfs -o size=256k none @/disk; head -c 200000 /dev/zero > @/disk/filler";
    let script = format!("{MOUNTS} '{mount}; exec \"$@\"' sh \"$@\"\n{mount}");
    // Half a megabyte does not fit, and then the pipe is full too.
    let config = "{ stopTimeout: 2, logging: { output: '@/disk/log' }, jobs: [
        { name: 'noisy', exec: ['sh', '-c', 'i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; echo all said; sleep 1000'] },
        { name: 'tick', exec: ['sh', '-c', 'echo x >> @/ticks'], when: { interval: '20ms' } },
        { name: 'room', exec: 'rm @/disk/filler', when: { source: 'SIGHUP' } } ] }";
    for how in ways() {
        let run = Supervisor::behind(how, &script, config);
        until("the disk is not full", || run.read("disk/log").len() > 40_000);
        let ticks = run.size("ticks");
        until("nothing happens any more", || run.size("ticks") > ticks + 10);
        assert!(!run.read("disk/log").contains("all said"), "there was no room for that");
        run.signal("-HUP");
        until("the log does not go on", || run.read("disk/log").contains("all said"));
        let log = run.read("disk/log");
        assert!((0..2000).all(|n| log.contains(&format!(" line {n}\n"))), "nothing is lost");
        stops(run);

        let run = Supervisor::behind(how, &script, config);
        until("the disk is not full", || run.read("disk/log").len() > 40_000);
        stops(run);
    }
}

#[test]
fn l4_without_an_output_the_work_goes_on() {
    let config = "{ stopTimeout: 2, jobs: [
        { name: 'noisy', exec: 'yes', timeout: '300ms', restarts: 'unlimited' },
        { name: 'tick', exec: ['sh', '-c', 'echo x >> @/ticks'], when: { interval: '20ms' } },
        { name: 'end', exec: ['touch', '@/end'], when: { source: 'noisy', once: 'stopping' } } ] }";
    for how in ways() {
        for (script, reader) in [
            ("exec >&-", Reader::All),
            ("", Reader::Gone),
            ("", Reader::Asleep),
            ("exec >&- 2>&- <&-", Reader::All),
        ] {
            let run = if script.is_empty() {
                Supervisor::read_by(how, reader, config)
            } else {
                Supervisor::behind(how, script, config)
            };
            until("nothing runs", || run.size("ticks") > 40);
            let end = run.file("end");
            let began = Instant::now();
            run.signal("-TERM");
            until("the hook does not run", || end.exists());
            assert_eq!(run.end().0, 0);
            assert!(began.elapsed() < Duration::from_secs(8), "{how:?} {script} {reader:?}");
        }
    }
}

#[test]
fn s4_a_job_that_ignores_the_signal_is_killed_after_the_stop_time() {
    let config = "{ stopTimeout: 1, jobs: [{ name: 'deaf', exec: ['sh', '-c',
        'trap \"\" TERM INT; echo ready; while :; do sleep 0.05; done'] }] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.line("ready");
        let began = Instant::now();
        let log = stops(run);
        assert!(began.elapsed() >= Duration::from_secs(1), "{log}");
        assert!(
            log.contains("the stop time has passed") && log.contains("deaf was ended by signal 9"),
            "{log}"
        );
    }
}

#[test]
fn p4_a_job_that_closes_its_output_lives_on_and_costs_nothing() {
    let config = "{ jobs: [{ name: 'mute', exec: ['sh', '-c',
        'exec >&- 2>&-; touch @/mute; while :; do sleep 0.2; echo x >> @/alive; done'] }] }";
    for how in ways() {
        let run = Supervisor::start(how, config);
        until("it does not run", || run.file("mute").exists());
        let before = run.ticks();
        until("it does not live on", || run.size("alive") >= 6);
        assert!(run.ticks() - before < 15, "a closed pipe is not looked at for ever");
        let log = stops(run);
        assert!(log.contains("mute was ended by signal 15"), "{log}");
    }
}

#[test]
fn p1_p4_a_daemon_that_is_forked_is_left_alone_and_reaped() {
    let config = "{ jobs: [
        { name: 'forks', exec: ['sh', '-c', 'setsid sh -c \"echo x > @/daemon; while [ -e @/daemon ]; do sleep 0.02; done\" & \
          while [ ! -e @/daemon ]; do sleep 0.02; done'] },
        { name: 'rest', exec: 'sleep 1000', when: { source: 'forks', once: 'exitSuccess' } } ] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.line("rest started");
        let pid = run.pid();
        assert_eq!(children(pid).len(), 2, "the daemon is ours now");
        fs::remove_file(run.file("daemon")).unwrap();
        until("the daemon is not reaped", || children(pid).len() == 1);
        stops(run);
    }
}

#[test]
fn p1_ten_thousand_orphans_that_ended_at_once_are_reaped() {
    let config = "{ jobs: [
        { name: 'storm', exec: ['sh', '-c', 'echo ready; while [ ! -e @/go ]; do sleep 0.02; done; \
          i=0; while [ $i -lt 10000 ]; do ( : & ); i=$((i+1)); done; touch @/made; exec sleep 1000'] },
        { name: 'hook', exec: 'echo still here', when: { source: 'SIGHUP' } } ] }";
    // Stopped, it cannot reap any of them while they end.
    let how = *ways().last().unwrap();
    let mut run = Supervisor::start(how, config);
    run.line("ready");
    let pid = run.pid();
    run.signal("-STOP");
    fs::write(run.file("go"), "").unwrap();
    until("the storm does not come", || run.file("made").exists());
    assert!(children(pid).len() >= 9_000, "they wait to be reaped");
    run.signal("-CONT");
    run.signal("-HUP");
    run.line("still here");
    until("somebody is left", || children(pid).len() <= 1);
    stops(run);
}

#[test]
fn w4_e7_a_supervisor_that_was_stopped_makes_no_turn_up_and_hears_what_came_meanwhile() {
    let config = "{ jobs: [
        { name: 'tick', exec: ['sh', '-c', 'echo x >> @/ticks'], when: { interval: '50ms' } },
        { name: 'ends', exec: ['sh', '-c', 'while [ ! -e @/go ]; do sleep 0.01; done; echo ended > @/ended; exit 3'] },
        { name: 'after', exec: 'echo it was seen', when: { source: 'ends', once: 'exitFailed' } } ] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        until("it does not run", || run.size("ticks") >= 4);
        run.signal("-STOP");
        let began = Instant::now();
        fs::write(run.file("go"), "").unwrap();
        until("it does not end", || run.file("ended").exists());
        let before = run.size("ticks") / 2;
        until("time passes", || began.elapsed() > Duration::from_millis(1000));
        let stopped = run.size("ticks") / 2;
        assert!(stopped <= before + 1, "nothing is started meanwhile");
        run.signal("-CONT");
        let continued = Instant::now();
        run.line("it was seen");
        let turns = run.size("ticks") / 2 - stopped;
        let most = continued.elapsed().as_millis() / 50 + 3;
        assert!(u128::from(turns) <= most, "{turns} turns, and not more than {most}");
        run.signal("-STOP");
        run.signal("-TERM");
        run.signal("-CONT");
        assert_eq!(run.end().0, 0);
    }
}

#[test]
fn p1_ignored_and_blocked_signals_that_were_inherited_cost_no_exit() {
    let probe = Command::new("env").args(["--ignore-signal=CHLD", "--block-signal=CHLD", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return;
    }
    let script = "set -- env --ignore-signal=CHLD,TERM,HUP --block-signal=CHLD,TERM,USR2,HUP \"$@\"";
    for how in ways() {
        let (code, log) = Supervisor::behind(
            how,
            script,
            "{ jobs: [{ name: 'a', exec: ['sh', '-c', 'exit 2'] },
              { name: 'b', exec: 'grep -E ^Sig(Blk|Ign) /proc/self/status' }] }",
        )
        .end();
        assert_eq!((code, log.matches("\t0000000000000000").count()), (2, 2), "{log}");
        let mut run = Supervisor::behind(how, script, "{ jobs: [{ name: 'a', exec: 'sleep 1000' }] }");
        run.line("a started");
        stops(run);
    }
}

#[test]
fn h4_what_a_check_leaves_behind_does_not_pile_up() {
    let config =
        "{ jobs: [{ name: 'a', exec: 'sleep 1000', health: { interval: '50ms', ttl: 5, timeout: '10s',
        exec: ['sh', '-c', 'trap \"\" TERM; echo x >> @/checks; sleep 1000 & exit 0'] } }] }";
    for how in ways() {
        let run = Supervisor::start(how, config);
        until("it is not checked", || run.size("checks") / 2 >= 10);
        // The job, a check, and what that one has just left.
        assert!(children(run.pid()).iter().filter(|state| **state != 'Z').count() <= 3);
        stops(run);
    }
}

#[test]
fn s4_a_job_that_is_stopped_is_not_taken_for_ended_and_is_killed_at_the_end() {
    let config =
        "{ stopTimeout: 1, jobs: [{ name: 'a', exec: ['sh', '-c', 'echo ready; kill -STOP $$; echo on'] }] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.line("ready");
        let pid = run.pid();
        until("it does not stop", || children(pid) == ['T']);
        let log = stops(run);
        assert!(log.contains("a was ended by signal 9"), "{log}");
    }
}

#[test]
fn l1_a_log_file_that_cannot_be_opened_is_named() {
    let run = Supervisor::start(
        As::Plain,
        "{ logging: { output: '@/no/such/log' }, jobs: [{ name: 'a', exec: 'true' }] }",
    );
    let stderr = run.file("stderr");
    until("it says nothing", || {
        let text = fs::read_to_string(&stderr).unwrap_or_default();
        text.contains("no/such/log: No such file or directory")
    });
    assert_eq!(run.end().0, 1);
}

/// A program that lets the clock of the day jump by days, back and forth, at every look of another program. It works
/// from outside and on any program, because ours is linked statically and no library can stand in its way.
const JUMPS: &str = include_str!("jumps.c");

#[test]
fn w4_p5_a_clock_that_jumps_moves_no_deadline() {
    let folder = std::env::temp_dir().join(format!("containerpilot-clock-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (source, jumps) = (folder.join("jumps.c"), folder.join("jumps"));
    fs::write(&source, JUMPS).unwrap();
    let made = Command::new("cc").arg("-o").arg(&jumps).arg(&source).status();
    if made.is_ok_and(|status| status.success()) {
        let config = "{ stopTimeout: 1, jobs: [
            { name: 'tick', exec: ['/bin/sh', '-c', 'echo x >> @/ticks'], when: { interval: '50ms' } },
            { name: 'slow', exec: 'sleep 1000', timeout: '700ms' },
            { name: 'deaf', exec: ['sh', '-c', 'trap \"\" TERM; while :; do sleep 0.05; done'] } ] }";
        for how in ways() {
            let script = format!("exec {} \"$@\"", jumps.display());
            let began = Instant::now();
            let mut run = Supervisor::behind(how, &script, config);
            run.line("slow timeout after 700ms");
            let waited = began.elapsed();
            assert!(waited >= Duration::from_millis(700) && waited < Duration::from_secs(5), "{waited:?}");
            let turns = run.size("ticks") / 2;
            assert!((3..=waited.as_millis() as u64 / 50 + 2).contains(&turns), "{turns} turns in {waited:?}");
            // The jumps are real: the stamps of the log go back.
            let stamps: Vec<String> =
                run.seen().lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
            assert!(!stamps.is_sorted(), "{stamps:?}");
            let began = Instant::now();
            stops(run);
            assert!((Duration::from_secs(1)..Duration::from_secs(5)).contains(&began.elapsed()));
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn ways_include_pid_1_where_this_is_root() {
    // Without this, a machine that forbids namespaces would make half of these tests pass for nothing.
    if is_root() && std::env::var_os("CONTAINERPILOT_NO_NAMESPACES").is_none() {
        assert!(ways().contains(&As::Init));
    }
}
