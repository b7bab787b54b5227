//! D14: locks in a real Consul. Its shortest TTL is 10 seconds.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::connection::with_acls;
use crate::support::consul::{Agent, http};
use crate::support::deadline::InTime;
use crate::support::supervisor::{Mode, Supervisor, wait_until};

const KEY: &str = "/v1/kv/containerpilot/locks/primary";
const TTL: Duration = Duration::from_secs(10);

/// An agent with a lock that was released. A key that does not exist would be left alone for a TTL.
fn agent() -> Agent {
    let agent = Agent::dev();
    agent.put(KEY, &json!({ "Released": true }));
    agent
}

/// A supervisor whose job writes its fencing number into `runs`.
fn contender(agent: &Agent, more: &str) -> Supervisor {
    contender_with(&format!("'{}'", agent.address()), more)
}

fn contender_with(consul: &str, more: &str) -> Supervisor {
    Supervisor::start(
        Mode::Plain,
        &format!(
            "{{ consul: {consul}, stopTimeout: 3, control: {{ socket: '@/control' }},
                locks: [{{ name: 'primary', ttl: '10s' {more} }}],
                jobs: [{{ name: 'app', restarts: 'unlimited', requires: ['lock.primary'],
                          exec: ['sh', '-c', 'echo $CONTAINERPILOT_LOCK_PRIMARY >> @/runs; exec sleep 1000'] }}] }}"
        ),
    )
}

fn runs(supervisor: &Supervisor) -> Vec<u64> {
    let text = std::fs::read_to_string(supervisor.file("runs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn wait_for_run(supervisor: &Supervisor, count: usize) {
    wait_until("the job runs", || runs(supervisor).len() == count);
}

fn delete(agent: &Agent, path: &str) {
    let (status, answer) = http(&agent.address(), "DELETE", path, None, "").unwrap();
    assert_eq!(status, 200, "{answer}");
}

fn session(agent: &Agent) -> Option<String> {
    agent.get(KEY)[0]["Session"].as_str().map(str::to_owned)
}

#[test]
fn d14_a_clean_shutdown_passes_the_lock_on_at_once() {
    let agent = agent();
    let mut first = contender(&agent, "");
    wait_for_run(&first, 1);
    let mut second = contender(&agent, "");
    second.wait_for_line("which is not held: Consul has not answered yet");
    assert!(runs(&second).is_empty());
    first.signal("-TERM");
    let stopping = Instant::now();
    let released = first.wait_for_line("exiting with code 0");
    wait_for_run(&second, 1);
    // A session that is not destroyed expires after one TTL at the earliest, and is left alone for another one.
    assert!(stopping.elapsed() < 2 * TTL, "{:?} after {released}", stopping.elapsed());
    assert!(runs(&second)[0] > runs(&first)[0], "{:?} {:?}", runs(&first), runs(&second));
    second.signal("-TERM");
    assert_eq!(second.wait().0, 0);
    assert_eq!(session(&agent), None);
    assert_eq!(agent.get("/v1/session/list"), json!([]));
}

#[test]
#[ignore = "slow: waits for TTLs of 10 s"]
fn d14_a_job_is_stopped_before_the_ttl_ends_while_consul_is_away() {
    let mut agent = agent();
    let mut holder = contender(&agent, "");
    wait_for_run(&holder, 1);
    agent.kill();
    let away = Instant::now();
    holder.wait_for_line("lock.primary given up");
    holder.wait_for_line("app exited on SIGTERM");
    assert!(away.elapsed() < TTL, "it was stopped after {:?}", away.elapsed());
    // Consul has lost the key, and is left alone for a TTL.
    agent.start();
    agent.wait_for_leader();
    let back = Instant::now();
    wait_for_run(&holder, 2);
    assert!(back.elapsed() + Duration::from_secs(1) > TTL, "{:?}", back.elapsed());
    holder.signal("-TERM");
    assert_eq!(holder.wait().0, 0);
}

#[test]
#[ignore = "slow: waits for TTLs of 10 s"]
fn d14_a_deleted_key_is_taken_back_and_a_destroyed_session_stops_the_job() {
    let agent = agent();
    let mut holder = contender(&agent, "");
    wait_for_run(&holder, 1);
    delete(&agent, KEY);
    wait_until("the key is locked again", || {
        agent.try_get(KEY).is_some_and(|key| !key[0]["Session"].is_null())
    });
    assert_eq!(runs(&holder).len(), 1);
    let old = session(&agent).unwrap();
    agent.put(&format!("/v1/session/destroy/{old}"), &Value::Null);
    holder.wait_for_line("lock.primary lost: Consul has invalidated its session");
    holder.wait_for_line("app exited on SIGTERM");
    wait_for_run(&holder, 2);
    assert_ne!(session(&agent).unwrap(), old);
    assert!(runs(&holder)[1] > runs(&holder)[0]);
    holder.signal("-TERM");
    assert_eq!(holder.wait().0, 0);
}

#[test]
#[ignore = "slow: waits for TTLs of 10 s"]
fn d14_a_frozen_supervisor_kills_its_job_when_it_continues() {
    let agent = agent();
    let mut frozen = contender(&agent, "");
    wait_for_run(&frozen, 1);
    // The job can run before its supervisor has read that its program was executed.
    frozen.wait_for_line("app started");
    let other = contender(&agent, "");
    frozen.signal("-STOP");
    // Its session expires after two TTLs, and is left alone for one more.
    wait_for_run(&other, 1);
    assert!(runs(&other)[0] > runs(&frozen)[0]);
    frozen.signal("-CONT");
    frozen.wait_for_line("sending SIGKILL: another supervisor may get lock.primary");
    frozen.wait_for_line("app exited on SIG");
    // The other one dies, and so does its job, as in a container.
    let children = crate::support::supervisor::child_pids(other.pid());
    other.signal("-KILL");
    for child in children {
        let _ = std::process::Command::new("kill").args(["-KILL", &child.to_string()]).status_in_time();
    }
    wait_for_run(&frozen, 2);
    assert!(runs(&frozen)[1] > runs(&other)[0]);
    frozen.signal("-TERM");
    assert_eq!(frozen.wait().0, 0);
}

#[test]
fn d14_a_semaphore_has_as_many_holders_as_slots() {
    let agent = Agent::dev();
    agent.put(&format!("{KEY}/.lock"), &json!({ "Limit": 2, "Holders": {} }));
    let contenders: Vec<Supervisor> = (0..3).map(|_| contender(&agent, ", slots: 2")).collect();
    let holders = || contenders.iter().filter(|one| !runs(one).is_empty()).count();
    wait_until("two of them have a slot", || holders() == 2);
    let waits = contenders.iter().position(|one| runs(one).is_empty()).unwrap();
    let mut rest = contenders;
    let waiting = rest.remove(waits);
    let numbers: Vec<u64> = rest.iter().map(|one| runs(one)[0]).collect();
    assert_ne!(numbers[0], numbers[1]);
    let leaving = rest.remove(0);
    leaving.signal("-TERM");
    let stopping = Instant::now();
    assert_eq!(leaving.wait().0, 0);
    wait_for_run(&waiting, 1);
    assert!(stopping.elapsed() < 2 * TTL, "{:?}", stopping.elapsed());
    assert!(runs(&waiting)[0] > numbers[0].max(numbers[1]));
}

#[test]
fn d14_a_token_without_rights_is_reported() {
    let agent = with_acls();
    agent.put(KEY, &json!({ "Released": true }));
    // The right to create sessions is given later.
    let keys = "key_prefix \"containerpilot/\" { policy = \"write\" }";
    let policy = json!({ "Name": "keys", "Rules": keys });
    agent.put("/v1/acl/policy", &policy);
    let token = "77777777-2222-3333-4444-555555555555";
    agent.put("/v1/acl/token", &json!({ "SecretID": token, "Policies": [{ "Name": "keys" }] }));
    let mut pilot = contender_with(&format!("{{ address: '{}', token: '{token}' }}", agent.address()), "");
    let line = pilot.wait_for_line("a lock needs session:write for the node, and key:write for its key");
    assert!(line.contains("403") && !line.contains(token), "{line}");
    assert!(runs(&pilot).is_empty());
    let id = agent.get("/v1/acl/policy/name/keys")["ID"].as_str().unwrap().to_owned();
    let both = format!("{keys} session_prefix \"\" {{ policy = \"write\" }}");
    agent.put(&format!("/v1/acl/policy/{id}"), &json!({ "ID": id, "Name": "keys", "Rules": both }));
    wait_for_run(&pilot, 1);
    pilot.signal("-TERM");
    assert_eq!(pilot.wait().0, 0);
}
