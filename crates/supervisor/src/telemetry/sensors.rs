//! Sensors: programs whose last output line is a value of a metric (T2).
//!
//! The core decides when a sensor runs and for how long, as for any job. Its output stays in the pipe until the run
//! exits and is then read at once. A program that fills the pipe blocks until its timeout.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use containerpilot_core::SortedMap;
use containerpilot_core::ids::RunId;
use containerpilot_process::sys;

use super::Metrics;

/// How much of the end of the output is used: more than the longest number.
const OUTPUT_BYTES: usize = 1024;

/// The running sensors and their output.
#[derive(Debug)]
pub(crate) struct SensorOutputs {
    metrics: Metrics,
    running: SortedMap<RunId, SensorRun>,
    /// The last error by job, while it persists: it is logged once.
    errors: BTreeMap<String, String>,
}

#[derive(Debug)]
struct SensorRun {
    job: String,
    metric: String,
    output: OwnedFd,
}

/// The output of a sensor is not a valid value.
#[derive(Debug, PartialEq)]
pub(crate) struct InvalidOutput {
    pub(crate) job: String,
    pub(crate) message: String,
}

impl SensorOutputs {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { metrics, running: SortedMap::new(), errors: BTreeMap::new() }
    }

    /// A run of a sensor has started.
    pub(crate) fn started(&mut self, run: RunId, job: &str, metric: &str, output: OwnedFd) {
        // Output that could block the event loop is not read.
        if sys::set_nonblocking(output.as_fd()).is_ok() {
            self.running.insert(run, SensorRun { job: job.to_owned(), metric: metric.to_owned(), output });
        }
    }

    /// A run has exited. If it was a successful run of a sensor, records the last line of its output. An invalid output
    /// is returned, unless the previous run failed in the same way.
    pub(crate) fn exited(&mut self, run: RunId, success: bool) -> Option<InvalidOutput> {
        let SensorRun { job, metric, output } = self.running.remove(&run).filter(|_| success)?;
        let text = read_end(&output);
        let last = text.trim_end().lines().last().unwrap_or_default();
        let Err(errors) = self.metrics.put_all(&[(&metric, last)]) else {
            self.errors.remove(&job);
            return None;
        };
        let reasons: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let message = format!("no value recorded: {}", reasons.join("; "));
        let before = self.errors.insert(job.clone(), message.clone());
        (before.as_ref() != Some(&message)).then_some(InvalidOutput { job, message })
    }
}

/// The last bytes in a pipe.
fn read_end(output: &OwnedFd) -> String {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    // At most one full pipe: an orphan of the run may continue to write.
    let mut left = sys::pipe_size(output.as_fd()).unwrap_or(OUTPUT_BYTES);
    while let Ok(length @ 1..) = sys::read(output.as_fd(), &mut buffer) {
        bytes.extend_from_slice(buffer.get(..length).unwrap_or_default());
        left = left.saturating_sub(length);
        if left == 0 {
            break;
        }
    }
    let start = bytes.len().saturating_sub(OUTPUT_BYTES);
    String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use containerpilot_core::plan::{Metric, MetricKind};

    use super::*;

    fn sensors(kind: MetricKind) -> SensorOutputs {
        let load =
            Metric { name: "load".to_owned(), legacy_key: "__load".to_owned(), help: String::new(), kind };
        SensorOutputs::new(Metrics::new(&[load]))
    }

    /// Runs a sensor that prints `text`; the error message, if any.
    fn run(sensors: &mut SensorOutputs, text: &str, success: bool) -> Option<String> {
        let (output, mut input) = std::io::pipe().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        sensors.started(RunId(1), "sensor.load", "load", output.into());
        // An orphan may still hold the other end of the pipe.
        let invalid = sensors.exited(RunId(1), success);
        drop(input);
        assert_eq!(sensors.exited(RunId(1), true), None, "the run of another job");
        invalid.map(|invalid| invalid.message)
    }

    fn page(sensors: &SensorOutputs) -> String {
        let mut page = super::super::exposition::MetricsPage::default();
        sensors.metrics.shared().store.add_to(&mut page, std::time::Duration::ZERO);
        page.text()
    }

    #[test]
    fn t2_the_last_line_that_a_sensor_prints_is_recorded() {
        let mut sensors = sensors(MetricKind::Gauge);
        let long = format!("{}\n12\n", "x".repeat(50_000));
        for (text, value) in
            [(" 0.25\n", "0.25"), ("-3", "-3"), ("of no use\n7\n\n", "7"), ("1e3\r\n", "1000"), (&long, "12")]
        {
            assert_eq!(run(&mut sensors, text, true), None);
            assert!(page(&sensors).ends_with(&format!("load {value}\n")), "{text:?}: {}", page(&sensors));
        }
    }

    #[test]
    fn t2_sensor_values_are_added_set_or_observed() {
        let histogram = MetricKind::Histogram { buckets: vec![1.0] };
        for (kind, line) in [
            (MetricKind::Counter, "load 5"),
            (MetricKind::Gauge, "load 3"),
            (histogram, "load_sum 5"),
            (MetricKind::Summary, "load_count 2"),
        ] {
            let mut sensors = sensors(kind);
            assert_eq!((run(&mut sensors, "2", true), run(&mut sensors, "3", true)), (None, None));
            assert!(page(&sensors).lines().any(|found| found == line), "{}", page(&sensors));
        }
    }

    #[test]
    fn t2_a_failed_sensor_run_records_nothing() {
        let mut sensors = sensors(MetricKind::Gauge);
        assert_eq!(run(&mut sensors, "3", false), None, "the core logs the failure");
        assert!(page(&sensors).ends_with("load 0\n"));
    }

    #[test]
    fn t2_output_that_is_not_a_number_is_logged_once_and_not_shown() {
        let mut sensors = sensors(MetricKind::Counter);
        let message = run(&mut sensors, "hunter2", true).unwrap();
        assert!(
            message.contains("the metric `load` is not a number") && !message.contains("hunter2"),
            "{message}"
        );
        for text in ["", "1 2", "3\nhunter2\n"] {
            assert_eq!(run(&mut sensors, text, true), None, "it was logged already");
        }
        assert!(run(&mut sensors, "-1", true).unwrap().contains("is a counter"), "another error");
        assert_eq!(run(&mut sensors, "1", true), None);
        assert!(run(&mut sensors, "", true).is_some(), "it was valid in between");
        assert!(page(&sensors).ends_with("load 1\n"));
    }
}
