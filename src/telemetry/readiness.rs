//! `/readyz`: whether the container is ready, for a scheduler's readiness probe (T1).

use std::fmt::Write;

use containerpilot_core::plan::Role;
use containerpilot_core::report::status::JobOverview;
use containerpilot_core::{Phase, State, StopReason};

use crate::messages::query::{JobProperties, Snapshot};

/// The reasons why the container is not ready, one per line; empty if it is ready.
pub(super) fn not_ready_reasons(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    match snapshot.overview.phase {
        Phase::Starting => text.push_str("the supervisor is starting\n"),
        Phase::Running => {}
        Phase::Stopping | Phase::Terminating | Phase::Killing | Phase::Exited => {
            text.push_str("the supervisor is stopping\n")
        }
    }
    if snapshot.overview.maintenance {
        text.push_str("in maintenance mode\n");
    }
    for (job, planned) in snapshot.jobs() {
        if let Some(why) = not_ready_reason(job, planned) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {why}", job.name);
        }
    }
    text
}

/// Why a job is not ready. A job without checks counts as ready.
fn not_ready_reason(job: &JobOverview, planned: JobProperties) -> Option<&'static str> {
    if !planned.has_health || job.role == Role::Telemetry || job.status.healthy == Some(true) {
        return None;
    }
    match (job.status.state, job.status.stop_reason) {
        (State::Complete, Some(StopReason::Failed)) => Some("failed"),
        (State::Complete, Some(StopReason::ByHand)) => Some("stopped by hand"),
        (State::Complete, Some(StopReason::Unreachable)) => Some("can never start"),
        (State::Complete, Some(StopReason::StartTimeout)) => Some("did not start within its timeout"),
        // It has finished its work.
        (State::Complete, _) => None,
        (State::Waiting, _) if planned.runs_repeatedly => None,
        (State::Waiting, _) => Some("waiting to start"),
        (State::Starting, _) => Some("starting"),
        (State::Delaying, _) => Some("restarting"),
        (State::Running, _) if job.status.healthy == Some(false) => Some("unhealthy"),
        (State::Running, _) => Some("not checked yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestCore;
    use super::*;

    #[test]
    fn t1_ready_means_healthy_and_neither_starting_nor_stopping_nor_in_maintenance() {
        let mut core = TestCore::new(
            "{ jobs: [
                { name: 'web', exec: 'web', health: { exec: 'true', interval: 1, ttl: 10 } },
                { name: 'later', exec: 'later', when: { source: 'web', once: 'healthy' },
                  health: { exec: 'true', interval: 1, ttl: 10 } },
                { name: 'plain', exec: 'plain' },
                { name: 'backup', exec: 'backup', when: { source: 'SIGHUP' },
                  health: { exec: 'true', interval: 1, ttl: 10 } },
            ] }",
        );
        assert!(not_ready_reasons(&core.snapshot()).starts_with("the supervisor is starting\n"));
        core.start();
        let text = not_ready_reasons(&core.snapshot());
        assert_eq!(text, "web: not checked yet\nlater: waiting to start\n");
        core.check("web", Ok(()));
        core.check("later", Ok(()));
        assert_eq!(not_ready_reasons(&core.snapshot()), "");
        core.advance(2);
        core.check("web", Err("no".to_owned()));
        assert_eq!(not_ready_reasons(&core.snapshot()), "web: unhealthy\n");
        core.advance(1);
        core.check("web", Ok(()));
        core.maintenance(true);
        assert!(not_ready_reasons(&core.snapshot()).starts_with("in maintenance mode\n"));
        core.maintenance(false);
        core.check("web", Ok(()));
        core.check("later", Ok(()));
        assert_eq!(not_ready_reasons(&core.snapshot()), "");
        core.exit("later", 1);
        assert_eq!(not_ready_reasons(&core.snapshot()), "later: failed\n");
        core.terminate();
        assert!(not_ready_reasons(&core.snapshot()).starts_with("the supervisor is stopping\n"));
    }
}
