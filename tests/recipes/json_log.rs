//! `examples/json-log`.

use serde_json::{Value, json};

use super::Container;

#[test]
fn l1_l2_every_line_of_the_log_of_two_programs_is_json() {
    let Some(mut container) = Container::start("json-log", "") else { return };
    container.supervisor.wait_for_lines("no disk", 1);
    container.supervisor.wait_for_lines("request", 1);
    container.supervisor.signal("-TERM");
    let (code, log) = container.supervisor.wait();
    assert_eq!(code, 0);
    let entries: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(entries.iter().all(|entry| entry["time"].is_string() && entry["level"].is_string()));
    let lines = |job: &str| -> Vec<(&str, &str, &str)> {
        let own = entries.iter().filter(|entry| entry["job"] == job && !entry["stream"].is_null());
        own.map(|entry| (&entry["stream"], &entry["level"], &entry["msg"]))
            .map(|(stream, level, text)| {
                (stream.as_str().unwrap(), level.as_str().unwrap(), text.as_str().unwrap())
            })
            .collect()
    };
    let mut worker = lines("worker");
    worker.sort_unstable_by_key(|(stream, ..)| *stream);
    let trace = "Error: no disk\n    at write (worker.js:3)\n    at main (worker.js:9)";
    assert_eq!(worker, [("stderr", "error", trace), ("stdout", "info", "working on \"the first\" task")]);
    let api = lines("api");
    let [("stdout", "info", request)] = api[..] else { panic!("{api:?}") };
    let request: Value = serde_json::from_str(request).unwrap();
    assert_eq!(request, json!({ "event": "request", "path": "/", "status": 200, "ms": 12 }));
    assert_eq!(entries.last().unwrap()["event"], "exiting");
}
