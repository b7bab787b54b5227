//! Processes that report too much about themselves (H11).

use std::time::Instant;

use super::fixture::{Hostile, as_init_and_child};
use crate::support::supervisor::{cpu_ticks, wait_until};

/// A job whose runs are counted to see that the loop goes on.
const CLOCK: &str = "{ name: 'clock', exec: 'true', when: { interval: '100ms' } }";

/// Waits for 20 runs of [`CLOCK`], in which the supervisor must not use half of a CPU.
fn has_time(hostile: &Hostile) {
    let runs = || hostile.job("clock")["runs"]["success"].as_u64().unwrap();
    let (first, began, before) = (runs(), Instant::now(), cpu_ticks(hostile.pid));
    wait_until("the clock has run 20 times", || runs() >= first + 20);
    let (used, elapsed) = (cpu_ticks(hostile.pid) - before, began.elapsed());
    assert!(u128::from(used) * 10 < elapsed.as_millis() / 2, "the supervisor used {used}0 ms of {elapsed:?}");
}

/// A Perl program that has the address of its `NOTIFY_SOCKET` in `$to`, and a socket for it in `S`.
fn perl(script: &str) -> String {
    let start = "use Socket; socket(S, AF_UNIX, SOCK_DGRAM, 0); (my $n = $ENV{NOTIFY_SOCKET}) =~ s{^@}{\\0}; \
                 my $to = pack_sockaddr_un($n); ";
    serde_json::to_string(&["perl", "-e", &format!("{start}{script}")]).unwrap()
}

#[test]
fn h11_floods_of_messages_do_not_slow_the_loop() {
    let jobs = [
        ("ready", perl("while (1) { send(S, qq(READY=1\\nRELOADING=1\\n) x 100, 0, $to) }")),
        ("status", perl("my $i = 0; while (1) { $i++; send(S, qq(STATUS=$i\\nWATCHDOG=1), 0, $to) }")),
        ("huge", perl("while (1) { send(S, q(STATUS=) . (q(x) x 100000), 0, $to) }")),
        ("junk", perl("while (1) { send(S, join(q(), map { chr(rand 256) } 1 .. 500), 0, $to) }")),
    ];
    let jobs: Vec<String> = jobs
        .iter()
        .map(|(name, exec)| {
            format!("{{ name: '{name}', user: 'nobody', exec: {exec}, ready: 'notify', watchdog: '5s' }}")
        })
        .collect();
    as_init_and_child(|rank| {
        // The fixture asks for an answer within a second all the time.
        let mut hostile = Hostile::start(rank, 5, &format!("jobs: [{CLOCK}, {}]", jobs.join(",")));
        hostile.await_job("ready", "is healthy", |job| job["health"] == "healthy");
        hostile.await_job("status", "shows its status", |job| job["processStatus"].is_string());
        has_time(&hostile);
        assert_eq!(hostile.job("huge")["processStatus"], serde_json::Value::Null, "too long a message");
        hostile.stops();
    });
}

/// The names of sockets can be read by every user. What others send does not count, and must not keep the process from
/// reporting either.
#[test]
fn h11_messages_of_other_users_do_not_keep_a_process_from_reporting() {
    // It prints how long the longest of its messages took, and ends if one took too long.
    let victim = perl(
        r"use Time::HiRes qw(time sleep); send(S, q(READY=1), 0, $to); my $most = 0;
          for my $n (1 .. 1000) {
              my $began = time; send(S, q(WATCHDOG=1), 0, $to); my $took = time - $began;
              exit 3 if $took > 2;
              $most = $took if $took > $most;
              printf STDERR qq(longest of %d messages: %d ms\n), $n, $most * 1000 if $n % 50 == 0;
              sleep 0.02;
          }",
    );
    let config = format!(
        "jobs: [{CLOCK}, {{ name: 'victim', exec: {victim}, ready: 'notify', watchdog: '5s', restarts: 'unlimited' }},
                {{ name: 'attack', user: 'nobody', exec: '@/programs/floods-sockets.pl' }}]"
    );
    as_init_and_child(|rank| {
        let mut hostile = Hostile::start(rank, 5, &config);
        hostile.await_log("longest of 50 messages");
        assert!(!hostile.log().contains("victim exited"), "{}", hostile.log());
        assert_eq!(hostile.job("victim")["health"], "healthy");
        has_time(&hostile);
        hostile.stops();
    });
}

#[test]
fn h11_s4_descriptors_that_take_long_to_close_hold_up_neither_the_loop_nor_sigterm() {
    as_init_and_child(|rank| {
        let config = format!(
            "jobs: [{CLOCK}, {{ name: 'slow', exec: ['@/hostile', 'linger'], user: 'nobody', ready: 'notify' }}]"
        );
        let mut hostile = Hostile::start(rank, 2, &config);
        hostile.await_ready(1);
        has_time(&hostile);
        hostile.stops();
    });
}

#[test]
fn h11_a_descriptor_that_is_written_without_end_does_not_slow_the_loop() {
    let flood = r#"["sh", "-c", "yes >&3"]"#;
    let dots = r#"["perl", "-e", "open(F, q(>&=), 4); $| = 1; select(F); print q(.) while 1"]"#;
    let config = format!(
        "jobs: [{CLOCK}, {{ name: 'flood', exec: {flood}, ready: {{ fd: 3 }} }}, {{ name: 'dots', exec: {dots}, ready: {{ fd: 4 }} }},
                {{ name: 'silent', exec: 'sleep 1000', ready: {{ fd: 5 }} }}]"
    );
    as_init_and_child(|rank| {
        let mut hostile = Hostile::start(rank, 5, &config);
        hostile.await_job("flood", "is healthy", |job| job["health"] == "healthy");
        has_time(&hostile);
        for name in ["dots", "silent"] {
            assert_eq!(hostile.job(name)["readiness"], "starting");
        }
        wait_until("the others run", || hostile.job("dots")["state"] == "running");
        hostile.stops();
    });
}

#[test]
fn h11_lines_without_end_do_not_hide_the_one_that_counts() {
    let script =
        "perl -e 'print qq(listen) x 200000' ; @programs/lines.sh 20000; echo; echo listening now; yes";
    let exec = serde_json::to_string(&["sh", "-c", script]).unwrap();
    let config =
        format!("jobs: [{{ name: 'web', exec: {exec}, ready: {{ line: '^listening (now|soon)$' }} }}]");
    as_init_and_child(|rank| {
        let mut hostile = Hostile::start(rank, 5, &config);
        hostile.await_job("web", "is healthy", |job| job["health"] == "healthy");
        hostile.stops();
    });
}
