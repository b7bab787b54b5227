//! CPU time and memory of jobs (T4).

use crate::support::delegated::Delegated;
use crate::support::skip::skip;
use crate::support::supervisor::wait_until;
use crate::support::telemetry_client::Telemetry;

/// A job with a child in a session of its own, one with a daemon in a session of its own, one that does nothing, and one that is
/// restarted. The first two use about a second of CPU time, and then none: a session that uses all it can get would hold up other tests.
const JOBS: &str = "jobs: [
    { name: 'child', exec: ['sh', '-c', 'setsid sh -c \"$0\" & wait',
                            'i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; exec sleep 1000'] },
    { name: 'daemon', exec: ['sh', '-c', '(setsid sh -c \"$0\" &); exec sleep 1000',
                             'i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; exec sleep 1000'] },
    { name: 'quiet', exec: 'sleep 1000' },
    { name: 'again', restarts: 'unlimited', restartBackoff: false,
      exec: ['sh', '-c', 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'] },
  ],
  telemetry: { port: 0, interfaces: 'lo' }";

fn cpu(served: &Telemetry, job: &str) -> f64 {
    served.value(&format!("containerpilot_job_cpu_seconds_total{{name=\"{job}\"}}")).unwrap_or(0.0)
}

fn assert_usage(served: &Telemetry) {
    let mut highest = 0.0;
    wait_until("all processes are found, and the counter of a job goes on with the next run", || {
        let again = cpu(served, "again");
        assert!(again >= highest, "{again} after {highest}");
        highest = again;
        let restarts = served.value("containerpilot_job_restarts_total{name=\"again\"}").unwrap();
        restarts > 5.0 && highest > 0.5 && ["child", "daemon"].into_iter().all(|job| cpu(served, job) > 0.3)
    });
    assert!(cpu(served, "quiet") < 0.3);
    let memory =
        |job: &str| served.value(&format!("containerpilot_job_memory_bytes{{name=\"{job}\"}}")).unwrap();
    assert!(memory("child") > memory("quiet") && memory("daemon") > memory("quiet"));
}

#[test]
fn t4_usage_of_a_job_has_its_processes_in_other_sessions() {
    assert_usage(&Telemetry::start(JOBS));
}

#[test]
fn t4_usage_of_a_job_is_that_of_its_cgroup() {
    let Some(group) = Delegated::new() else {
        skip("no cgroup v2 with cgroup.kill can be made here");
        return;
    };
    let config = format!("logging: {{ level: 'debug' }}, {JOBS}");
    let served = Telemetry::with_setup(&group.enter(), &config);
    assert!(served.supervisor.log_so_far().contains("each run has a cgroup of its own in"));
    assert_usage(&served);
}
