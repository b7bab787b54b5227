//! Processes that leave their group, their session or their parent, and exits that are hidden (P4, P5, S4, R3).

use super::fixture::{Hostile, Rank, as_init_and_child, permitted, request};
use crate::support::config::Config;
use crate::support::skip::skip;
use crate::support::supervisor::wait_until;

const LEAVES_ITS_GROUP: &str = "exec: ['@/hostile', 'leave-group'], user: 'nobody'";

#[test]
fn s4_job_that_left_its_process_group_is_killed_at_shutdown() {
    as_init_and_child(|rank| {
        let mut hostile = Hostile::start(rank, 1, &Config::new().job("a", LEAVES_ITS_GROUP));
        hostile.await_ready(1);
        hostile.stops();
    });
}

#[test]
fn p4_processes_cannot_pretend_to_belong_to_the_run_of_another_job() {
    as_init_and_child(|rank| {
        let config = "jobs: [{ name: 'victim', exec: 'sleep 1000', restarts: 'unlimited' },
            { name: 'forger', exec: '@/programs/forges-runs.sh', user: 'nobody' }]";
        let mut hostile = Hostile::start(rank, 5, config);
        hostile.await_ready(1);
        hostile.await_job("forger", "has exited", |job| !job["lastExit"].is_null());
        let pid = hostile.pid_of("victim");
        hostile.post("/v3/jobs/victim/restart");
        hostile.await_job("victim", "runs again", |job| job["state"] == "running" && job["pid"] != pid);
        assert!(!hostile.log().contains("victim left processes"), "{}", hostile.log());
        hostile.stops();
    });
}

#[test]
fn p5_run_that_left_its_process_group_is_killed_at_its_timeout() {
    as_init_and_child(|rank| {
        let config = Config::new()
            .job("a", format!("{LEAVES_ITS_GROUP}, timeout: '300ms'"))
            .job("next", "exec: 'sleep 1000', when: { source: 'a', once: 'exitFailed' }");
        let mut hostile = Hostile::start(rank, 1, &config);
        hostile.await_ready(1);
        wait_until("the run has ended", || hostile.job("next")["state"] == "running");
        hostile.stops();
    });
}

#[test]
fn p5_check_that_left_its_process_group_is_killed_at_its_timeout() {
    as_init_and_child(|rank| {
        let config = "jobs: [{ name: 'a', exec: 'sleep 1000', user: 'nobody',
            health: { exec: ['@/hostile', 'leave-group'], interval: 1, timeout: '200ms', ttl: 5 } }]";
        let mut hostile = Hostile::start(rank, 1, config);
        wait_until("two checks have failed", || {
            hostile.job("a")["checks"][0]["failures"].as_u64() >= Some(2)
        });
        wait_until("no check is left", || hostile.hostile_processes().len() <= 2);
        hostile.stops();
    });
}

#[test]
fn x2_job_that_left_its_process_group_is_stopped_and_restarted_by_hand() {
    if !permitted() {
        return;
    }
    let config = Config::new().job("a", LEAVES_ITS_GROUP).job("main", "exec: 'sleep 1000'");
    let mut hostile = Hostile::start(Rank::Init, 1, &config);
    hostile.await_ready(1);
    let pid = hostile.pid_of("a");
    hostile.post("/v3/jobs/a/restart");
    wait_until("it runs again", || {
        let job = hostile.job("a");
        job["state"] == "running" && job["pid"] != pid
    });
    hostile.await_ready(2);
    hostile.post("/v3/jobs/a/stop");
    // Its process has exited before the one that left the group is gone.
    hostile.await_state("a", "stopped");
    assert_eq!(hostile.hostile_processes(), [0; 0]);
    hostile.stops();
}

#[test]
fn r3_reload_completes_when_a_changed_job_has_left_its_process_group() {
    as_init_and_child(|rank| {
        let main = Config::new().job("main", "exec: 'sleep 1000'");
        let config = |word| main.clone().job("a", format!("{LEAVES_ITS_GROUP}, env: {{ WORD: '{word}' }}"));
        let mut hostile = Hostile::start(rank, 1, &config("one"));
        hostile.await_ready(1);
        let reload = |config: &str| {
            hostile.rewrite(config);
            // SIGHUP, because a request is answered when the reload is complete.
            hostile.send(1);
        };
        let pid = hostile.pid_of("a");
        reload(&config("two"));
        wait_until("the changed job runs", || {
            let job = hostile.job("a");
            job["state"] == "running" && job["pid"] != pid
        });
        hostile.await_ready(2);
        reload(&main.job("late", "exec: 'sleep 1000'"));
        wait_until("the new plan is in force", || {
            request(&hostile.socket(), "GET", "/v3/status").is_ok_and(|status| status.contains("\"late\""))
        });
        wait_until("the new job runs", || hostile.job("late")["state"] == "running");
        wait_until("the removed job is gone", || hostile.hostile_processes().is_empty());
        hostile.stops();
    });
}

/// A job leaves a daemon, after a script has prepared the supervisor.
fn leave_daemon(script: &str) {
    as_init_and_child(|rank| {
        let config = "jobs: [{ name: 'a', exec: ['@/hostile', 'daemon', 'single', 'exit'], user: 'nobody' },
                             { name: 'main', exec: 'sleep 1000' }]";
        let mut hostile = Hostile::with_setup(rank, script, 1, config);
        hostile.await_state("a", "complete");
        wait_until("the daemon is killed", || hostile.hostile_processes().is_empty());
        hostile.stops();
    });
}

#[test]
fn p4_setsid_daemon_does_not_outlive_its_job() {
    leave_daemon("");
}

#[test]
fn p4_setsid_daemon_of_another_user_is_found_without_the_ptrace_capability() {
    // As in most containers.
    leave_daemon("set -- setpriv --bounding-set=-sys_ptrace \"$@\"");
}

#[test]
fn s4_setsid_daemons_do_not_outlive_the_supervisor() {
    as_init_and_child(|rank| {
        let exec = |kind| format!("exec: ['@/hostile', 'daemon', '{kind}', 'stay'], user: 'nobody'");
        let kinds = ["single", "double", "namespace"];
        let config = kinds.into_iter().fold(Config::new(), |config, kind| config.job(kind, exec(kind)));
        let mut hostile = Hostile::start(rank, 1, &config);
        hostile.await_ready(3);
        hostile.stops();
    });
}

#[test]
fn p4_group_member_whose_parent_lives_elsewhere_is_killed_after_the_stop_timeout() {
    as_init_and_child(|rank| {
        let config = "jobs: [{ name: 'a', exec: ['@/hostile', 'member'], user: 'nobody' },
                             { name: 'main', exec: 'sleep 1000' }]";
        let mut hostile = Hostile::start(rank, 1, config);
        hostile.await_ready(1);
        hostile.await_state("a", "complete");
        // The member of the group; its parent has left the group and may stay until the supervisor exits.
        wait_until("the member of the group is killed", || hostile.hostile_processes().len() <= 1);
        hostile.stops();
    });
}

#[test]
fn s4_exit_status_withheld_by_a_tracer_does_not_delay_the_shutdown() {
    as_init_and_child(|rank| {
        let traced = |end| format!("exec: ['@/hostile', 'traced', '{end}'], user: 'nobody', timeout: '1s'");
        let config = Config::new()
            .job("exit", traced("exit"))
            .job("stay", traced("stay"))
            .job("main", "exec: 'sleep 1000'");
        let mut hostile = Hostile::start(rank, 1, &config);
        hostile.await_ready(2);
        hostile.stops();
    });
}

#[test]
fn s4_process_without_its_main_thread_is_killed() {
    as_init_and_child(|rank| {
        let config = "jobs: [{ name: 'a', exec: ['@/hostile', 'headless'], user: 'nobody' }]";
        let mut hostile = Hostile::start(rank, 1, config);
        hostile.await_ready(1);
        assert_eq!(hostile.job("a")["state"], "running");
        hostile.stops();
    });
}

#[test]
fn s4_process_whose_command_line_cannot_be_read_holds_up_neither_ping_nor_sigterm() {
    as_init_and_child(|rank| {
        let long = "x".repeat(32 << 10);
        // As root, because userfaultfd is not permitted to other users by default.
        let config = Config::new().job("a", format!("exec: ['@/hostile', 'unreadable', '{long}']"));
        let mut hostile = Hostile::start(rank, 1, &config);
        hostile.await_ready(1);
        if hostile.log().contains("refused") {
            skip("userfaultfd is not permitted: only the shutdown is tested");
        }
        hostile.stops();
    });
}

#[test]
fn s4_hook_that_left_its_process_group_is_killed() {
    as_init_and_child(|rank| {
        let when = "timeout: '1s', when: { source: 'main', once: 'stopping' }";
        let config = Config::new()
            .job("main", "exec: 'sleep 1000'")
            .job("hook", format!("{LEAVES_ITS_GROUP}, {when}"));
        let mut hostile = Hostile::start(rank, 1, &config);
        hostile.stops_with_hooks();
    });
}
