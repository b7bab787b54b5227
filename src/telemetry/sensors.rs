//! Programs that measure: what a run has printed is a value of its metric (T2).
//!
//! When such a program runs, and for how long, is the core's affair as for any job. Its output waits in its pipe until the
//! run has ended and is then read at once: a number fits in there, and whoever writes more than that waits for its time-out.

use std::os::fd::{AsFd, OwnedFd};

use containerpilot_core::ids::RunId;
use std::collections::BTreeMap;

use super::Metrics;
use crate::process::sys;

/// More than the longest number. Of a longer output, this much of the end counts.
const LONGEST: usize = 1024;

/// The runs of sensors that go on.
#[derive(Debug)]
pub(crate) struct Sensors {
    metrics: Metrics,
    running: BTreeMap<RunId, Measuring>,
    /// What was last wrong with the output of a sensor, by its job, as long as it is: it is told once.
    wrong: BTreeMap<String, String>,
}

/// A run whose output is to be a value.
#[derive(Debug)]
struct Measuring {
    job: String,
    metric: String,
    output: OwnedFd,
}

/// What is wrong with what a sensor has printed.
#[derive(Debug, PartialEq)]
pub(crate) struct Complaint {
    pub(crate) job: String,
    pub(crate) message: String,
}

impl Sensors {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { metrics, running: BTreeMap::new(), wrong: BTreeMap::new() }
    }

    /// A run of a job has begun that measures a metric, with this output.
    pub(crate) fn started(&mut self, run: RunId, job: &str, metric: &str, output: OwnedFd) {
        // What cannot be read without waiting is not read.
        if sys::set_nonblocking(output.as_fd()).is_ok() {
            self.running.insert(run, Measuring { job: job.to_owned(), metric: metric.to_owned(), output });
        }
    }

    /// A run has ended. If it was one of a sensor and has succeeded, the last line that it printed is taken. What is wrong
    /// with that is said, unless it was already wrong in the same way the last time.
    pub(crate) fn ended(&mut self, run: RunId, success: bool) -> Option<Complaint> {
        let Measuring { job, metric, output } = self.running.remove(&run).filter(|_| success)?;
        let text = printed(&output);
        let last = text.trim_end().lines().last().unwrap_or_default();
        let Err(refusals) = self.metrics.put_all(&[(&metric, last)]) else {
            self.wrong.remove(&job);
            return None;
        };
        let why: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        let message = format!("has measured nothing: {}", why.join("; "));
        let before = self.wrong.insert(job.clone(), message.clone());
        (before.as_ref() != Some(&message)).then_some(Complaint { job, message })
    }
}

/// The end of what is in a pipe.
fn printed(output: &OwnedFd) -> String {
    let (mut kept, mut bytes) = (Vec::new(), [0; 4096]);
    // A pipe holds no more than this; somebody who has outlived the run may go on writing.
    let mut left = sys::pipe_size(output.as_fd()).unwrap_or(LONGEST);
    while let Ok(length @ 1..) = sys::read(output.as_fd(), &mut bytes) {
        kept.extend_from_slice(bytes.get(..length).unwrap_or_default());
        left = left.saturating_sub(length);
        if left == 0 {
            break;
        }
    }
    let from = kept.len().saturating_sub(LONGEST);
    String::from_utf8_lossy(kept.get(from..).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use containerpilot_core::plan::{Metric, MetricKind};

    use super::*;

    fn sensors(kind: MetricKind) -> Sensors {
        let load =
            Metric { name: "load".to_owned(), legacy_key: "__load".to_owned(), help: String::new(), kind };
        Sensors::new(Metrics::new(&[load]))
    }

    /// The complaint about a run that prints something.
    fn run(sensors: &mut Sensors, text: &str, success: bool) -> Option<String> {
        let (output, mut input) = std::io::pipe().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        sensors.started(RunId(1), "sensor.load", "load", output.into());
        // Somebody else may still hold the other end.
        let complaint = sensors.ended(RunId(1), success);
        drop(input);
        assert_eq!(sensors.ended(RunId(1), true), None, "the run of another job");
        complaint.map(|complaint| complaint.message)
    }

    fn page(sensors: &Sensors) -> String {
        let mut page = super::super::exposition::Page::default();
        sensors.metrics.shared().store.show(&mut page, std::time::Duration::ZERO);
        page.text().to_owned()
    }

    #[test]
    fn t2_the_last_line_that_a_sensor_prints_is_a_value() {
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
    fn t2_it_is_added_set_or_observed() {
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
    fn t2_a_sensor_that_fails_gives_no_value() {
        let mut sensors = sensors(MetricKind::Gauge);
        assert_eq!(run(&mut sensors, "3", false), None, "its failure is told by the core");
        assert!(page(&sensors).ends_with("load 0\n"));
    }

    #[test]
    fn t2_what_is_no_number_is_told_once_and_not_shown() {
        let mut sensors = sensors(MetricKind::Counter);
        let words = run(&mut sensors, "hunter2", true).unwrap();
        assert!(words.contains("the metric `load` is not a number") && !words.contains("hunter2"), "{words}");
        for text in ["", "1 2", "3\nhunter2\n"] {
            assert_eq!(run(&mut sensors, text, true), None, "it was told");
        }
        assert!(run(&mut sensors, "-1", true).unwrap().contains("is a counter"), "this is something else");
        assert_eq!(run(&mut sensors, "1", true), None);
        assert!(run(&mut sensors, "", true).is_some(), "it was well in between");
        assert!(page(&sensors).ends_with("load 1\n"));
    }
}
