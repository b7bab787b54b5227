//! A cluster of three Consul servers whose leader is killed (D5, D7).

use serde_json::json;

use super::faults::SEEN;
use super::pilot::{Pilot, config};
use crate::support::consul::Agent;
use crate::support::supervisor::wait_until;

pub(crate) fn leader(of: &Agent) -> Option<String> {
    let leader = of.try_get("/v1/status/leader")?;
    Some(leader.as_str()?.split(':').next()?.to_owned()).filter(|ip| !ip.is_empty())
}

#[test]
fn d5_d7_services_and_watches_survive_the_death_of_the_consul_leader() {
    let settings = json!({ "performance": { "raft_multiplier": 1 }, "log_level": "warn" });
    let mut agents: Vec<Agent> =
        (0..3).map(|_| Agent::prepared(&["-server", "-bootstrap-expect=3"], &settings)).collect();
    let addresses: Vec<String> = agents.iter().map(|agent| agent.ip.clone()).collect();
    for agent in &mut agents {
        agent.join(&addresses);
        agent.start();
    }
    wait_until("there is a leader", || agents.iter().all(|agent| leader(agent).is_some()));
    let first = leader(&agents[0]).unwrap();
    // The leader is the one to be killed; the supervisor and the other services use the other two.
    agents.sort_by_key(|agent| agent.ip == first);
    let [ours, theirs, dying] = &mut agents[..] else { panic!("there are not three agents") };
    let more = "watches: [{ name: 'db', interval: 2 }]";
    let config = config("1h").consul(ours.address()).keys(more).job("seen", SEEN);
    let pilot = Pilot::start(&config);
    ours.wait_for_status("web", Some("passing"));
    theirs.register("db", "db-1", 1, &[]);
    wait_until("the first instance is seen", || pilot.run.size("seen") >= 2);
    let seen = pilot.run.size("seen");
    dying.kill();
    wait_until("there is a new leader", || leader(ours).is_some_and(|ip| ip != first));
    ours.wait_for_status("web", Some("passing"));
    theirs.wait_for_status("web", Some("passing"));
    theirs.register("db", "db-2", 1, &[]);
    wait_until("the second instance is seen", || pilot.run.size("seen") > seen);
    pilot.assert_unharmed();
    ours.wait_for_status("web", None);
}
