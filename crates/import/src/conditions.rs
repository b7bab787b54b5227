//! Values of `when` that several importers need.

use crate::document::{Field, Value};

/// `{ source, once: event }`; `key` is `once`, `each`, or `event` for a part of another condition.
pub(crate) fn on(source: &str, key: &str, event: &str) -> Value {
    Value::Object(vec![Field::new("source", source), Field::new(key, event)])
}

/// When a job has sent this event, or has failed.
pub(crate) fn or_failed(source: &str, event: &str) -> Value {
    let any = vec![on(source, "event", event), on(source, "event", "exitFailed")];
    Value::Object(vec![Field::new("any", any)])
}

/// When a job has ended, with success or not.
pub(crate) fn ended(source: &str) -> Value {
    or_failed(source, "exitSuccess")
}

/// At the shutdown, when these jobs have stopped.
pub(crate) fn at_shutdown(jobs: &[String]) -> Value {
    if jobs.is_empty() {
        return Value::Object(vec![Field::new("once", "shutdown")]);
    }
    let mut all = vec![Value::Object(vec![Field::new("event", "shutdown")])];
    all.extend(jobs.iter().map(|job| on(job, "event", "stopped")));
    Value::Object(vec![Field::new("all", all)])
}
