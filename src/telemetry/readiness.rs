//! Whether the container is ready for work, for a scheduler's probe (T1).

use std::fmt::Write;

use containerpilot_core::plan::Role;
use containerpilot_core::report::status::JobOverview;
use containerpilot_core::{Ending, Phase, State};

use crate::runtime::query::{JobProperties, Snapshot};

/// What is in the way, a line each; nothing if it is ready.
pub(super) fn obstacles(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    match snapshot.overview.phase {
        Phase::Beginning => text.push_str("containerpilot is starting\n"),
        Phase::Running => {}
        Phase::Stopping | Phase::Killing | Phase::Left => text.push_str("containerpilot is stopping\n"),
    }
    if snapshot.overview.maintenance {
        text.push_str("maintenance\n");
    }
    for (job, planned) in snapshot.jobs() {
        if let Some(why) = obstacle(job, planned) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {why}", job.name);
        }
    }
    text
}

/// Why a job is not as healthy as it ought to be. One without checks is taken as it is.
fn obstacle(job: &JobOverview, planned: JobProperties) -> Option<&'static str> {
    if !planned.has_health || job.role == Role::Telemetry || job.status.healthy == Some(true) {
        return None;
    }
    match (job.status.state, job.status.ending) {
        (State::Complete, Some(Ending::Failed)) => Some("has failed"),
        (State::Complete, Some(Ending::ByHand)) => Some("was stopped"),
        (State::Complete, Some(Ending::Unreachable)) => Some("can never be started"),
        (State::Complete, Some(Ending::GaveUp)) => Some("was not started in time"),
        // It has done what it was there for.
        (State::Complete, _) => None,
        (State::Waiting, _) if planned.runs_repeatedly => None,
        (State::Waiting, _) => Some("waits to be started"),
        (State::Starting, _) => Some("is being started"),
        (State::Delaying, _) => Some("is about to be restarted"),
        (State::Running, _) if job.status.healthy == Some(false) => Some("unhealthy"),
        (State::Running, _) => Some("is not known to be healthy yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stage;
    use super::*;

    #[test]
    fn t1_ready_means_started_and_healthy_and_neither_stopping_nor_in_maintenance() {
        let mut stage = Stage::new(
            "{ jobs: [
                { name: 'web', exec: 'web', health: { exec: 'true', interval: 1, ttl: 10 } },
                { name: 'later', exec: 'later', when: { source: 'web', once: 'healthy' },
                  health: { exec: 'true', interval: 1, ttl: 10 } },
                { name: 'plain', exec: 'plain' },
                { name: 'backup', exec: 'backup', when: { source: 'SIGHUP' },
                  health: { exec: 'true', interval: 1, ttl: 10 } },
            ] }",
        );
        assert!(obstacles(&stage.snapshot()).starts_with("containerpilot is starting\n"));
        stage.begin();
        let text = obstacles(&stage.snapshot());
        assert_eq!(text, "web: is not known to be healthy yet\nlater: waits to be started\n");
        stage.check("web", Ok(()));
        stage.check("later", Ok(()));
        assert_eq!(obstacles(&stage.snapshot()), "");
        stage.later(2);
        stage.check("web", Err("no".to_owned()));
        assert_eq!(obstacles(&stage.snapshot()), "web: unhealthy\n");
        stage.later(1);
        stage.check("web", Ok(()));
        stage.maintenance(true);
        assert!(obstacles(&stage.snapshot()).starts_with("maintenance\n"));
        stage.maintenance(false);
        stage.check("web", Ok(()));
        stage.check("later", Ok(()));
        assert_eq!(obstacles(&stage.snapshot()), "");
        stage.exit("later", 1);
        assert_eq!(obstacles(&stage.snapshot()), "later: has failed\n");
        stage.terminate();
        assert!(obstacles(&stage.snapshot()).starts_with("containerpilot is stopping\n"));
    }
}
