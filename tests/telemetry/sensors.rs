//! Metrics whose values come from programs (T2).

use crate::support::supervisor::{Mode, Supervisor, wait_until};
use crate::support::telemetry_client::{Telemetry, request};

#[test]
fn t2_output_of_a_sensor_is_the_value_and_is_not_logged() {
    let mut served = Telemetry::start(
        "jobs: [{ name: 'a', exec: 'sleep 1000' }],
        telemetry: { port: 0, interfaces: 'lo', metrics: [
            { name: 'load', type: 'gauge', exec: ['sh', '-c', 'echo measuring >&2; echo 4711.5'], interval: '50ms' },
            { name: 'turns', type: 'counter', exec: 'echo 2', interval: '50ms' },
            { name: 'seen', type: 'histogram', exec: 'echo 0.3', interval: '50ms' },
            { name: 'sent', type: 'gauge' },
        ] }",
    );
    served.wait_for_line("load 4711.5");
    // Values may change between two requests.
    let value = |name: &str| {
        let page = served.metrics();
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u32>().ok());
        value.unwrap_or_else(|| panic!("no metric {name} in\n{page}"))
    };
    wait_until("the counter has grown", || value("turns ") >= 6 && value("turns ") % 2 == 0);
    wait_until("the histogram has grown", || value("seen_count ") >= 3);
    served.supervisor.wait_for_line("measuring");
    let page = served.metrics();
    assert!(page.contains("\nsent 0\n") && !page.contains("job_up{name=\"sensor"), "{page}");
    let status = served.get("/status").2;
    assert!(!status.contains("sensor"), "{status}");
    let status = served.control("GET", "/v3/status", "").2;
    assert!(status.contains("\"sensor.load\"") && status.contains("\"role\":\"sensor\""), "{status}");
    served.supervisor.signal("-TERM");
    let (code, log) = served.supervisor.wait();
    assert!(code == 0 && !log.contains("4711.5"), "exit code {code}");
}

#[test]
fn t2_failing_sensor_gives_no_value_and_is_logged_once() {
    // The text is not in the arguments, which the entry about a timeout has: on a busy machine its time may be over.
    let served = Telemetry::start(
        "jobs: [{ name: 'a', exec: 'sleep 1000' }],
        telemetry: { port: 0, interfaces: 'lo', metrics: [
            { name: 'words', type: 'gauge', interval: '500ms',
              exec: ['sh', '-c', 'echo run >> @/words; echo some hun\"\"ter2'] },
            { name: 'slow', type: 'gauge', interval: '500ms', timeout: '50ms',
              exec: ['sh', '-c', 'echo run >> @/slow; echo 3; exec sleep 1000'] },
            { name: 'fails', type: 'gauge', interval: '500ms',
              exec: ['sh', '-c', 'echo run >> @/fails; echo 3; exit 9'] },
            { name: 'missing', type: 'gauge', interval: '500ms', exec: '@/nothing/there' },
        ] }",
    );
    for file in ["words", "slow", "fails"] {
        wait_until("it has run four times", || served.supervisor.size(file) >= 5 * 4);
    }
    let page = served.metrics();
    for line in ["words 0", "slow 0", "fails 0", "missing 0"] {
        assert!(page.lines().any(|found| found == line), "{page}");
    }
    served.supervisor.signal("-TERM");
    let (code, log) = served.supervisor.wait();
    assert_eq!(code, 0);
    for words in [
        "the metric `words` is not a number",
        "sensor.slow timeout after 50ms",
        "exited with code 9",
        "failed to start",
    ] {
        assert_eq!(log.matches(words).count(), 1, "{words}");
    }
    assert!(!log.contains("hunter2"));
}

#[test]
fn w10_s5_running_sensor_does_not_keep_the_supervisor_running() {
    let supervisor = Supervisor::start(
        Mode::Plain,
        "{ control: { socket: '@/control' },
           jobs: [{ name: 'a', exec: ['sh', '-c', 'until [ -e @/measuring ]; do sleep 0.01; done'] }],
           telemetry: { port: 0, interfaces: 'lo', metrics: [
               { name: 'slow', type: 'gauge', interval: 1000,
                 exec: ['sh', '-c', 'touch @/measuring; exec sleep 1000'] }] } }",
    );
    assert_eq!(supervisor.wait().0, 0);
}

#[test]
fn c8_sensors_of_a_version_2_file_run_unchanged() {
    let text = r#"{ "telemetry": { "port": 0, "interfaces": "lo", "sensors": [
        { "namespace": "my", "subsystem": "app", "name": "load", "help": "Load.", "type": "gauge", "poll": 1,
          "check": ["sh", "-c", "echo 0.75"] }] } }"#;
    let mut supervisor = Supervisor::with_args(Mode::Plain, &["-config", text, "sleep", "1000"]);
    let line = supervisor.wait_for_line("telemetry: serving at ");
    let address = line.rsplit(' ').next().unwrap().parse().unwrap();
    wait_until("the value is published", || {
        request(address, "GET", "/metrics").2.contains("\nmy_app_load 0.75\n")
    });
    assert!(!supervisor.stderr().contains("not run"), "{}", supervisor.stderr());
    supervisor.signal("-TERM");

    assert_eq!(supervisor.wait().0, 0);
}
