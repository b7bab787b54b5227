//! One budget for the whole stop: no matter what is slow, the bound is the stop timeout plus a second, or twice the stop
//! timeout plus a second with hooks (S4).

use std::net::TcpListener;

use super::fixture::{Hostile, Rank, as_init_and_child, own_address};
use crate::support::config::Config;

/// A Consul agent that accepts connections and never responds.
fn silent_agent() -> TcpListener {
    TcpListener::bind((own_address(), 0)).unwrap()
}

/// A job that ignores SIGTERM, one that has left its group, a registered service, and output that is not read.
fn config(agent: &TcpListener, hooks: &str) -> String {
    format!(
        "consul: '{}', logging: {{ output: 'stdout' }}, jobs: [
            {{ name: 'ignores-term', exec: ['sh', '-c', 'trap \"\" TERM; touch @/ready1; while :; do sleep 0.1; done'] }},
            {{ name: 'escaped', exec: ['sh', '-c', 'touch @/ready2; exec @/hostile leave-group'] }},
            {{ name: 'daemon', exec: ['@/hostile', 'daemon', 'double', 'stay'] }},
            {{ name: 'flood', exec: ['@/hostile', 'count', '@/count', '1000000'] }},
            {{ name: 'service', exec: 'sleep 1000', port: 80, interfaces: 'lo', initial_status: 'passing',
               health: {{ exec: 'true', interval: 1, ttl: 5 }} }}{hooks} ]",
        agent.local_addr().unwrap()
    )
}

/// Starts it and waits until every job is slow.
fn start(rank: Rank, agent: &TcpListener, hooks: &str) -> Hostile {
    let hostile = Hostile::with_setup(rank, "mkfifo @/out; exec 1<>@/out", 2, &config(agent, hooks));
    for file in ["ready1", "ready2", "count"] {
        hostile.await_file(file);
    }
    hostile.await_state("service", "running");
    hostile
}

#[test]
fn s4_everything_slow_at_once_shares_one_stop_timeout() {
    let agent = silent_agent();
    as_init_and_child(|rank| start(rank, &agent, "").stops());
}

#[test]
fn s4_s15_everything_slow_at_once_with_hooks_shares_two_stop_timeouts_and_their_time() {
    let agent = silent_agent();
    as_init_and_child(|rank| {
        let hooks = ", { name: 'hook', exec: ['@/hostile', 'leave-group'], timeout: '1s', when: { source: 'ignores-term', once: 'stopping' } },
            { name: 'after', exec: ['@/hostile', 'leave-group'], timeout: '1s', when: { source: 'service', once: 'stopped' } },
            { name: 'end', exec: ['@/hostile', 'daemon', 'single', 'stay'], timeout: '1s', when: { once: 'shutdown' } }";
        start(rank, &agent, hooks).stops_with_hooks();
    });
}

#[test]
fn s4_d5_silent_consul_alone_does_not_exceed_the_stop_timeout() {
    let agent = silent_agent();
    as_init_and_child(|rank| {
        let config = Config::new().consul(agent.local_addr().unwrap()).job(
            "service",
            "exec: ['sh', '-c', 'trap \"\" TERM; while :; do sleep 0.1; done'], port: 80,
                     interfaces: 'lo', initial_status: 'passing',
                     health: { exec: 'true', interval: 1, ttl: 5 }",
        );
        let mut hostile = Hostile::start(rank, 2, &config);
        hostile.await_job("service", "is healthy", |job| job["health"] == "healthy");
        hostile.stops();
    });
}
