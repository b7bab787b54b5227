//! Jobs: what a process is given, when it runs, and whether it runs again (P2, P5–P9, W).

use std::fs;
use std::time::{Duration, Instant};

use crate::support::{Supervisor, is_root, until, ways};

/// Runs a configuration that ends by itself: the exit code and the log.
fn run(config: &str) -> (i32, String) {
    Supervisor::start(ways()[0], config).end()
}

/// How often a text stands in the log.
fn count(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

/// The place of a line in the log.
fn place(log: &str, text: &str) -> usize {
    log.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no `{text}` in\n{log}"))
}

#[test]
fn p2_a_process_starts_with_a_clean_slate() {
    let config = "{ jobs: [
        { name: 'fds', exec: 'ls /proc/self/fd' },
        { name: 'group', exec: ['cut', '-d', ' ', '-f', '1,5', '/proc/self/stat'] },
        { name: 'stdin', exec: 'readlink /proc/self/fd/0' },
        { name: 'signals', exec: 'grep -E ^Sig(Blk|Ign) /proc/self/status' } ] }";
    for how in ways() {
        // An open file and ignored signals are what a careless parent leaves behind.
        let (code, log) =
            Supervisor::behind(how, "exec 7</etc/passwd 9>/dev/null; trap '' HUP PIPE USR2 QUIT", config)
                .end();
        assert_eq!(code, 0, "{log}");
        let said = |job: &str| -> Vec<String> {
            let own = |line: &&str| line.split(' ').nth(1) == Some(job);
            let words = log.lines().filter(own).map(|line| line.splitn(4, ' ').skip(2).collect::<Vec<_>>());
            // The supervisor's own entries have no pid.
            words.filter(|words| words[0].parse::<u32>().is_ok()).map(|words| words[1].to_owned()).collect()
        };
        // The fourth is the directory that `ls` reads.
        assert_eq!(said("fds"), ["0", "1", "2", "3"], "{log}");
        let group = said("group");
        let (pid, group) = group[0].split_once(' ').unwrap();
        assert_eq!(pid, group, "{log}");
        assert_eq!(said("stdin"), ["/dev/null"], "{log}");
        for line in said("signals") {
            assert!(line.ends_with("\t0000000000000000"), "{line}");
        }
    }
}

#[test]
fn p5_a_run_that_takes_too_long_is_killed_with_its_group() {
    let config = "{ jobs: [
        { name: 'slow', exec: ['sh', '-c', 'trap \"\" TERM; sleep 1000 & sleep 1000'], timeout: '200ms' },
        { name: 'after', exec: 'echo it failed', when: { source: 'slow', once: 'exitFailed' } } ] }";
    for how in ways() {
        let (code, log) = Supervisor::start(how, config).end();
        assert!(log.contains("slow timeout after 200ms"), "{log}");
        assert!(log.contains("it failed"), "{log}");
        assert_eq!(code, 137, "{log}");
    }
}

#[test]
fn p5_w4_a_periodic_job_has_its_interval_as_timeout_unless_it_says_never() {
    let (_, log) =
        run("{ jobs: [{ name: 'slow', exec: 'sleep 1000', when: { interval: '200ms' }, restarts: 2 }] }");
    assert_eq!(count(&log, "slow timeout after 200ms"), 3, "{log}");
    assert_eq!(count(&log, "slow started"), 3, "{log}");

    let (code, log) =
        run("{ jobs: [{ name: 'slow', exec: 'sleep 0.5', when: { interval: '200ms' }, restarts: 1,
        timeout: 'never' }] }");
    assert_eq!((count(&log, "timeout"), count(&log, "slow started"), code), (0, 2, 0), "{log}");
}

#[test]
fn p6_w7_events_that_come_while_a_job_runs_make_one_more_run_and_never_two_at_once() {
    let config = "{ jobs: [
        { name: 'rest', exec: 'sleep 1000' },
        { name: 'each', when: { source: 'SIGHUP' }, exec: ['sh', '-c',
          'mkdir @/lock || echo two at once; echo run; while [ ! -e @/go ]; do sleep 0.01; done; rmdir @/lock; echo done'] } ] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.line("rest started");
        run.signal("-HUP");
        run.line(" run");
        for _ in 0..20 {
            run.signal("-HUP");
        }
        // They were all sent before it ends, and so they are all seen before its end is.
        fs::write(run.file("go"), "").unwrap();
        run.line(" run");
        run.line(" done");
        run.signal("-TERM");
        let (code, log) = run.end();
        assert_eq!((code, count(&log, " run"), count(&log, "two at once")), (0, 2, 0), "{log}");
    }
}

#[test]
fn p7_a_process_is_told_who_it_is_and_why_it_runs() {
    let config = "{ jobs: [
        { name: 'my-db', exec: 'sleep 1000', port: 5000, interfaces: 'static:10.1.2.3',
          health: { interval: 1, ttl: 5 } },
        { name: 'fails', exec: ['sh', '-c', 'exit 7'], when: { source: 'my-db', once: 'healthy' } },
        { name: 'shows', exec: 'env', when: { source: 'fails', once: 'exitFailed' } } ] }";
    for how in ways() {
        let mut run = Supervisor::behind(how, "export OF_OURS=kept", config);
        run.line("shows exited with code 0");
        let log = run.seen();
        let own = if how == crate::support::As::Init { 1 } else { run.pid() };
        let started = log.lines().find_map(|line| line.split_once("my-db started (pid ")).unwrap().1;
        for word in [
            "OF_OURS=kept".to_owned(),
            format!("CONTAINERPILOT_PID={own}"),
            format!("CONTAINERPILOT_MY_DB_PID={}", started.split(')').next().unwrap()),
            "CONTAINERPILOT_MY_DB_IP=10.1.2.3".to_owned(),
            "CONTAINERPILOT_JOB=shows".to_owned(),
            "CONTAINERPILOT_EVENT=exitFailed".to_owned(),
            "CONTAINERPILOT_EVENT_SOURCE=fails".to_owned(),
            "CONTAINERPILOT_EXIT_CODE=7".to_owned(),
            "CONTAINERPILOT_RESTARTS=0".to_owned(),
        ] {
            assert!(log.lines().any(|line| line.ends_with(&format!(" {word}"))), "{word}\n{log}");
        }
        assert!(!log.contains("CONTAINERPILOT_FAILS_PID"), "only those that run: {log}");
        run.signal("-TERM");
        assert_eq!(run.end().0, 0);
    }
}

#[test]
fn p9_limits_umask_groups_and_privileges() {
    let config = "{ jobs: [
        { name: 'limits', exec: ['sh', '-c', 'echo files $(ulimit -n) core $(ulimit -c) mask $(umask)'],
          limits: { nofile: 77, core: 0 }, umask: '027' },
        { name: 'privileges', exec: 'grep NoNewPrivs /proc/self/status', noNewPrivileges: true },
        { name: 'place', exec: 'pwd', cwd: '/no/such/place' } ] }";
    let (_, log) = run(config);
    assert!(log.contains("files 77 core 0 mask 0027"), "{log}");
    assert!(log.contains("NoNewPrivs:\t1"), "{log}");
    assert!(log.contains("place failed to start: pwd: its directory /no/such/place: No such file"), "{log}");
    if is_root() {
        let (_, log) = run("{ jobs: [
            { name: 'a', exec: ['sh', '-c', 'echo a $(id -u) $(id -g) $(id -G)'], user: 'daemon', group: 'mail' },
            { name: 'b', exec: ['sh', '-c', 'echo b $(id -u) $(id -g)'], user: 4711, group: 4712 } ] }");
        assert!(log.contains("a 1 8 8"), "{log}");
        assert!(log.contains("b 4711 4712"), "{log}");
        let bad =
            Supervisor::start(ways()[0], "{ jobs: [{ name: 'a', exec: 'true', user: 'nobody-here' }] }");
        let stderr = bad.file("stderr");
        until("nothing is said", || {
            fs::read_to_string(&stderr).is_ok_and(|text| text.contains("nobody-here"))
        });
        assert_eq!(bad.end().0, 1);
    }
}

#[test]
fn w2_once_is_once_and_each_is_every_time() {
    let (code, log) = run("{ jobs: [
        { name: 'source', exec: 'true', restarts: 3, restartBackoff: false },
        { name: 'once', exec: 'true', when: { source: 'source', once: 'exitSuccess' } },
        { name: 'each', exec: 'true', when: { source: 'source', each: 'exitSuccess' } },
        { name: 'seed', exec: 'true', when: { event: 'startup' } } ] }");
    assert_eq!(code, 0, "{log}");
    assert_eq!(count(&log, "source started"), 4, "{log}");
    assert_eq!((count(&log, "once started"), count(&log, "seed started")), (1, 1), "{log}");
    // One that comes while it runs is remembered, and not more (W7).
    assert!((2..=4).contains(&count(&log, "each started")), "{log}");
}

#[test]
fn w3_signals_start_jobs_every_time() {
    let config = "{ jobs: [ { name: 'rest', exec: 'sleep 1000' },
        { name: 'hup', exec: 'echo got hup', when: { source: 'SIGHUP' } },
        { name: 'usr2', exec: 'echo got usr2', when: { source: 'SIGUSR2' } } ] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.line("rest started");
        for _ in 0..3 {
            for (signal, words) in [("-HUP", "hup"), ("-USR2", "usr2")] {
                run.signal(signal);
                run.line(&format!("got {words}"));
                run.line(&format!("{words} exited with code 0"));
            }
        }
        run.signal("-TERM");
        assert_eq!(run.end().0, 0);
    }
}

#[test]
fn w4_turns_do_not_drift() {
    let config = "{ jobs: [{ name: 'tick', exec: ['sh', '-c', 'sleep 0.03'], when: { interval: '100ms' }, restarts: 15 }] }";
    let began = Instant::now();
    let (code, log) = run(config);
    let took = began.elapsed();
    assert_eq!((code, count(&log, "tick started")), (0, 16), "{log}");
    assert!(took >= Duration::from_millis(1500), "{took:?}");
    // Each run takes a third of its turn; had that added up, it would be half a second more.
    assert!(took < Duration::from_millis(1950), "{took:?}\n{log}");
}

#[test]
fn w5_a_job_that_is_not_started_in_time_gives_up() {
    let (code, log) = run("{ jobs: [
        { name: 'slow', exec: 'sleep 0.6' },
        { name: 'late', exec: 'true', when: { source: 'slow', once: 'exitSuccess', timeout: '100ms' } },
        { name: 'soon', exec: 'sleep 0.4', when: { once: 'startup', timeout: '100ms' } },
        { name: 'told', exec: 'echo told', when: { source: 'late', once: 'timerExpired' } } ] }");
    assert_eq!(code, 0, "{log}");
    assert_eq!(
        (count(&log, "late started"), count(&log, "told exited with code 0"), count(&log, "giving up")),
        (0, 1, 1),
        "{log}"
    );
    assert!(log.contains("soon exited with code 0"), "{log}");
}

#[test]
fn w6_restarts_are_counted_after_success_and_failure() {
    for (script, code) in [("true", 0), ("false", 1)] {
        for restarts in ["2", "'2'"] {
            let (found, log) = run(&format!(
                "{{ jobs: [{{ name: 'a', exec: '{script}', restarts: {restarts}, restartBackoff: false }}] }}"
            ));
            assert_eq!((found, count(&log, "a started")), (code, 3), "{log}");
        }
    }
}

#[test]
fn w8_restarts_back_off_and_false_means_at_once() {
    let began = Instant::now();
    let (_, log) = run("{ jobs: [{ name: 'a', exec: 'false', restarts: 4 }] }");
    let took = began.elapsed();
    // At once, and then 100, 200 and 400 ms.
    for delay in ["a restarting in 100ms", "a restarting in 200ms", "a restarting in 400ms"] {
        assert_eq!(count(&log, delay), 1, "{log}");
    }
    assert!(took >= Duration::from_millis(700), "{took:?}");
    let (_, log) = run(
        "{ jobs: [{ name: 'a', exec: 'false', restarts: 4, restartBackoff: { initial: '10ms', max: '15ms' } }] }",
    );
    assert_eq!((count(&log, "in 10ms"), count(&log, "in 15ms")), (1, 2), "{log}");
    let (_, log) = run("{ jobs: [{ name: 'a', exec: 'false', restarts: 200, restartBackoff: false }] }");
    assert_eq!((count(&log, "a started"), count(&log, "restarted in")), (201, 0), "{log}");
}

#[test]
fn w10_the_supervisor_leaves_when_all_work_is_done() {
    for how in ways() {
        let (code, log) = Supervisor::start(
            how,
            "{ jobs: [
            { name: 'work', exec: 'true' },
            { name: 'hup', exec: 'true', when: { source: 'SIGHUP' } },
            { name: 'mend', exec: 'true', when: { each: 'enterMaintenance' } },
            { name: 'bye', exec: 'echo goodbye', when: { once: 'shutdown' } } ] }",
        )
        .end();
        assert_eq!(code, 0, "{log}");
        assert!(place(&log, "all jobs are complete") < place(&log, "goodbye"), "{log}");
    }
}

#[test]
fn w10_a_job_that_waits_for_what_cannot_come_is_given_up_with_a_warning() {
    let (code, log) = run("{ jobs: [
        { name: 'fails', exec: 'false' },
        { name: 'waits', exec: 'true', when: { source: 'fails', once: 'exitSuccess' } },
        { name: 'waits-too', exec: 'true', when: { source: 'waits', once: 'exitSuccess' } } ] }");
    assert_eq!(code, 1, "{log}");
    assert!(log.contains("waits will never run: `fails exitSuccess`"), "{log}");
    assert!(log.contains("waits-too will never run"), "{log}");
    assert_eq!(count(&log, "waits started"), 0, "{log}");
}

#[test]
fn w11_a_job_without_a_program_is_checked_and_never_complete() {
    let config = "{ jobs: [
        { name: 'elsewhere', port: 5432, interfaces: 'static:10.0.0.1', health: { exec: 'test -e @/up', interval: 1, ttl: 5 } },
        { name: 'then', exec: 'echo it is up', when: { source: 'elsewhere', once: 'healthy' } },
        { name: 'work', exec: ['sh', '-c', 'echo worked > @/up'] } ] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.line("it is up");
        run.line("then complete");
        let ticks = Instant::now();
        until("time passes", || ticks.elapsed() > Duration::from_millis(200));
        run.signal("-TERM");
        let (code, log) = run.end();
        assert_eq!((code, count(&log, "all jobs are complete")), (0, 0), "{log}");
    }
}

#[test]
fn w12_all_and_any() {
    let (code, log) = run("{ jobs: [
        { name: 'a', exec: 'true' },
        { name: 'b', exec: 'sleep 0.2' },
        { name: 'all', exec: 'echo both', when: { all: [{ source: 'a', event: 'exitSuccess' }, { source: 'b', event: 'exitSuccess' }] } },
        { name: 'any', exec: 'echo one', when: { any: [{ source: 'a', event: 'exitSuccess' }, { source: 'b', event: 'exitSuccess' }] } },
        { name: 'every', exec: 'true', when: { each: true, any: [{ source: 'a', event: 'exitSuccess' }, { source: 'b', event: 'exitSuccess' }] } } ] }");
    assert_eq!(code, 0, "{log}");
    assert!(place(&log, "b exited") < place(&log, "all started"), "{log}");
    assert!(place(&log, "any started") < place(&log, "b exited"), "{log}");
    assert_eq!(
        (count(&log, "all started"), count(&log, "any started"), count(&log, "every started")),
        (1, 1, 2),
        "{log}"
    );
}
