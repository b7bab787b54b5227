//! A cluster of three servers, of which the leader dies (D5, D7).

use serde_json::json;

use crate::consul::Agent;
use crate::pilot::{Pilot, config};
use crate::supervisor::until;

fn leader(of: &Agent) -> Option<String> {
    let leader = of.try_get("/v1/status/leader")?;
    Some(leader.as_str()?.split(':').next()?.to_owned()).filter(|ip| !ip.is_empty())
}

#[test]
fn d5_the_leader_is_killed_while_services_stay_and_watches_go_on() {
    let settings = json!({ "performance": { "raft_multiplier": 1 }, "log_level": "warn" });
    let mut agents: Vec<Agent> =
        (0..3).map(|_| Agent::prepared(&["-server", "-bootstrap-expect=3"], &settings)).collect();
    let addresses: Vec<String> = agents.iter().map(|agent| agent.ip.clone()).collect();
    for agent in &mut agents {
        agent.join(&addresses);
        agent.start();
    }
    until("there is no leader", || agents.iter().all(|agent| leader(agent).is_some()));
    let first = leader(&agents[0]).unwrap();
    // Ours is not the one that will die, and neither is the one that somebody else is registered with.
    agents.sort_by_key(|agent| agent.ip == first);
    let [ours, theirs, dying] = &mut agents[..] else { panic!("three") };
    let more = "watches: [{ name: 'db', interval: 2 }]";
    let config = config(&format!("'{}'", ours.address()), "1h", more).replace(
        "}], watches",
        "}, { name: 'seen', exec: ['sh', '-c', 'echo x >> @/seen'], when: { source: 'watch.db', each: 'changed' } }], watches",
    );
    let pilot = Pilot::start(&config);
    ours.until_status("web", Some("passing"));
    theirs.register("db", "db-1", 1, &[]);
    until("the first is not seen", || pilot.run.size("seen") >= 2);
    let seen = pilot.run.size("seen");
    dying.kill();
    until("there is no new leader", || leader(ours).is_some_and(|ip| ip != first));
    ours.until_status("web", Some("passing"));
    theirs.until_status("web", Some("passing"));
    theirs.register("db", "db-2", 1, &[]);
    until("the second is not seen", || pilot.run.size("seen") > seen);
    pilot.unharmed();
    ours.until_status("web", None);
}
