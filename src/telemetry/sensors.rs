//! Programs that measure: what a run has printed is a value of its metric (T2).
//!
//! When such a program runs, and for how long, is the core's affair as for any job. Its output waits in its pipe until the
//! run has ended and is then read at once: a number fits in there, and whoever writes more than that waits for its time-out.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use containerpilot_core::ids::RunId;

use super::Metrics;
use crate::sys;

/// More than the longest number; the rest of a longer output makes it none.
const LONGEST: usize = 1024;

/// The runs of sensors that go on.
#[derive(Debug)]
pub(crate) struct Sensors {
    metrics: Metrics,
    running: BTreeMap<RunId, (String, OwnedFd)>,
}

impl Sensors {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { metrics, running: BTreeMap::new() }
    }

    /// A run for a metric has begun, with this output.
    pub(crate) fn started(&mut self, run: RunId, metric: &str, output: OwnedFd) {
        // What cannot be read without waiting is not read.
        if sys::set_nonblocking(output.as_fd()).is_ok() {
            self.running.insert(run, (metric.to_owned(), output));
        }
    }

    /// A run has ended. If it was one of a sensor and has succeeded, what it printed is taken; or why it was not.
    pub(crate) fn ended(&mut self, run: RunId, success: bool) -> Result<(), String> {
        let Some((metric, output)) = self.running.remove(&run).filter(|_| success) else { return Ok(()) };
        let mut bytes = [0; LONGEST];
        let length = sys::read(output.as_fd(), &mut bytes).unwrap_or(0);
        let text = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default());
        self.metrics.put_all(&[(&metric, &text)]).map_err(|refusals| {
            let why: Vec<String> = refusals.iter().map(ToString::to_string).collect();
            format!("a sensor has printed what cannot be taken: {}", why.join("; "))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use containerpilot_core::plan::{Metric, MetricKind};

    use super::*;

    fn sensors() -> Sensors {
        let load = Metric {
            name: "load".to_owned(),
            legacy_key: "__load".to_owned(),
            help: String::new(),
            kind: MetricKind::Gauge,
        };
        Sensors::new(Metrics::new(&[load]))
    }

    fn printed(sensors: &mut Sensors, run: u64, text: &str) {
        let (output, mut input) = std::io::pipe().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        sensors.started(RunId(run), "load", output.into());
        // Somebody else may still hold the other end.
        std::mem::forget(input);
    }

    fn value(sensors: &Sensors) -> String {
        let mut page = super::super::exposition::Page::default();
        sensors.metrics.shared().store.show(&mut page, std::time::Duration::ZERO);
        page.text().lines().last().unwrap().to_owned()
    }

    #[test]
    fn t2_what_a_sensor_prints_is_a_value() {
        let mut sensors = sensors();
        printed(&mut sensors, 1, " 0.25\n");
        assert_eq!(sensors.ended(RunId(1), true), Ok(()));
        assert_eq!(value(&sensors), "load 0.25");
        assert_eq!(sensors.ended(RunId(1), true), Ok(()), "the run of another job");
    }

    #[test]
    fn t2_a_sensor_that_fails_or_prints_something_else_gives_no_value() {
        let mut sensors = sensors();
        printed(&mut sensors, 1, "3");
        assert_eq!(sensors.ended(RunId(1), false), Ok(()), "its failure is told by the core");
        for (run, text) in ["", "hunter2", "1 2"].into_iter().enumerate() {
            printed(&mut sensors, run as u64, text);
            let words = sensors.ended(RunId(run as u64), true).unwrap_err();
            assert!(
                words.contains("the metric `load` is not a number") && !words.contains("hunter2"),
                "{words}"
            );
        }
        assert_eq!(value(&sensors), "load 0");
    }
}
