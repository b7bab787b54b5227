//! What follows from the answers of a collector: retries with a growing delay, and what the log is told.
//!
//! As the OTLP specification says, a request is repeated if there was no answer or one of the statuses 429, 502, 503 and 504,
//! not before the time that the collector names in `Retry-After`. Any other status is final, and the items are dropped.

use std::time::Duration;

use containerpilot_core::plan::Level;
use containerpilot_core::time::fmt_duration;

/// The bounds of the delay before the next attempt; it doubles in between.
const DELAY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// The longest delay that a collector can ask for.
const LONGEST_DELAY: Duration = Duration::from_secs(600);
/// How often the log is told about items that are dropped or rejected while the collector answers.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExportKind {
    /// Log entries.
    Logs,
    /// Metrics.
    Metrics,
    /// Spans.
    Traces,
}

impl ExportKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Logs, Self::Metrics, Self::Traces];

    /// The name in a configuration, in the path of a request and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Metrics => "metrics",
            Self::Traces => "traces",
        }
    }

    /// The items of a request, for the log.
    const fn items(self) -> &'static str {
        match self {
            Self::Logs => "log entries",
            Self::Metrics => "metrics",
            Self::Traces => "spans",
        }
    }
}

/// What has become of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The collector has taken it.
    Accepted {
        /// How many items it has rejected.
        rejected: u64,
        /// Why, or a warning.
        message: String,
    },
    /// It may be sent again.
    Retry {
        /// The reason.
        why: String,
        /// How long the collector asks to wait.
        after: Option<Duration>,
    },
    /// It must not be sent again.
    Refused {
        /// The reason.
        why: String,
    },
}

impl DeliveryOutcome {
    /// The outcome of a request whose response has a status that is no success. `after` is the delay in `Retry-After`.
    #[must_use]
    pub const fn of_status(status: u16, why: String, after: Option<Duration>) -> Self {
        match status {
            429 | 502..=504 => Self::Retry { why, after },
            _ => Self::Refused { why },
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The items are sent.
    Sent,
    /// Send the same request again after this time.
    Again(Duration),
    /// The items are lost.
    Dropped,
}

/// An entry for the log.
type Report = (Level, String);

/// The state of the requests of one kind.
#[derive(Debug)]
pub struct Delivery {
    kind: ExportKind,
    /// The URL, for the log.
    url: String,
    /// Since when no request was accepted, and how often the last one was sent.
    failing: Option<(Duration, u32)>,
    /// Why the last request was refused.
    refused: Option<String>,
    /// The items that were dropped and not yet reported.
    dropped: u64,
    /// When the log was last told about dropped and about rejected items.
    reported: [Option<Duration>; 2],
}

impl Delivery {
    /// Requests to this URL, which must not contain a secret.
    #[must_use]
    pub const fn new(kind: ExportKind, url: String) -> Self {
        Self { kind, url, failing: None, refused: None, dropped: 0, reported: [None; 2] }
    }

    /// True if the last request was not accepted.
    #[must_use]
    pub const fn is_failing(&self) -> bool {
        self.failing.is_some()
    }

    /// Counts items that could not be kept.
    pub const fn dropped(&mut self, items: u64) {
        self.dropped = self.dropped.saturating_add(items);
    }

    /// Records the outcome of a request with this many items. `random` spreads the attempts of several supervisors.
    pub fn record(
        &mut self,
        now: Duration,
        items: u64,
        outcome: DeliveryOutcome,
        random: u64,
    ) -> (Next, Vec<Report>) {
        let (what, url) = (self.kind.items(), &self.url);
        let mut reports = Vec::new();
        let next = match outcome {
            DeliveryOutcome::Accepted { rejected, message } => {
                self.accepted(now, items, rejected, &message, &mut reports);
                Next::Sent
            }
            DeliveryOutcome::Refused { why } => {
                // The collector answers: nothing is wrong with the connection.
                self.failing = None;
                if self.refused.as_ref() != Some(&why) {
                    let message = format!("otlp: {url} refused {items} {what}, which are dropped: {why}");
                    reports.push((Level::Warn, message));
                    self.refused = Some(why);
                }
                Next::Dropped
            }
            DeliveryOutcome::Retry { why, after } => {
                if self.failing.is_none() {
                    let message = format!("otlp: cannot send {what} to {url}: {why}; retrying");
                    reports.push((Level::Warn, message));
                }
                let (since, attempts) = self.failing.unwrap_or((now, 0));
                self.failing = Some((since, attempts.saturating_add(1)));
                let [shortest, longest] = DELAY;
                let delay = shortest.saturating_mul(1 << attempts.min(8)).min(longest);
                let spread =
                    Duration::from_millis(random % 1000) * u32::try_from(delay.as_secs()).unwrap_or(1);
                let delay = delay / 2 + spread / 2;
                Next::Again(after.map_or(delay, |after| after.clamp(delay, LONGEST_DELAY)))
            }
        };
        (next, reports)
    }

    fn accepted(&mut self, now: Duration, items: u64, rejected: u64, why: &str, reports: &mut Vec<Report>) {
        let (what, url) = (self.kind.items(), &self.url);
        self.refused = None;
        let recovered = self.failing.take().map(|(since, _)| fmt_duration(now.saturating_sub(since)));
        let due =
            |last: Option<Duration>| last.is_none_or(|last| now.saturating_sub(last) >= REPORT_INTERVAL);
        let [dropped_at, rejected_at] = &mut self.reported;
        if let Some(time) = recovered {
            let lost = match self.dropped {
                0 => String::new(),
                lost => format!("; {lost} were dropped meanwhile"),
            };
            let level = if self.dropped == 0 { Level::Info } else { Level::Warn };
            reports.push((level, format!("otlp: sending {what} to {url} works again after {time}{lost}")));
            self.dropped = 0;
        } else if self.dropped > 0 && due(*dropped_at) {
            let lost = std::mem::take(&mut self.dropped);
            let message = format!("otlp: dropped {lost} {what}: {url} takes them too slowly");
            reports.push((Level::Warn, message));
            *dropped_at = Some(now);
        }
        if (rejected > 0 || !why.is_empty()) && due(*rejected_at) {
            let why = if why.is_empty() { "it gives no reason" } else { why };
            let message = format!("otlp: {url} rejected {rejected} of {items} {what}: {why}");
            reports.push((Level::Warn, message));
            *rejected_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn retry(after: Option<u64>) -> DeliveryOutcome {
        DeliveryOutcome::Retry { why: "status 503".into(), after: after.map(Duration::from_secs) }
    }

    fn accepted() -> DeliveryOutcome {
        DeliveryOutcome::Accepted { rejected: 0, message: String::new() }
    }

    fn delivery() -> Delivery {
        Delivery::new(ExportKind::Logs, "http://c:4318/v1/logs".into())
    }

    fn messages(reports: Vec<Report>) -> Vec<String> {
        reports.into_iter().map(|(_, message)| message).collect()
    }

    #[test]
    fn t6_delay_grows_up_to_half_a_minute_and_one_entry_tells_of_the_outage() {
        let mut delivery = delivery();
        let mut now = Duration::ZERO;
        let mut delays = Vec::new();
        let mut entries = Vec::new();
        for _ in 0..12 {
            // The greatest random number: the longest delays.
            let (next, reports) = delivery.record(now, 3, retry(None), 999);
            let Next::Again(delay) = next else { panic!("{next:?}") };
            delays.push(delay.as_secs_f64().round());
            entries.extend(messages(reports));
            now += delay;
        }
        assert_eq!(delays[..6], [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]);
        assert!(delays[6..].iter().all(|delay| *delay == 30.0));
        assert_eq!(entries, ["otlp: cannot send log entries to http://c:4318/v1/logs: status 503; retrying"]);
        let (next, _) = delivery.record(now, 3, retry(None), 0);
        assert_eq!(next, Next::Again(15 * SECOND), "the shortest delay is half of it");

        delivery.dropped(40);
        let (next, reports) = delivery.record(now, 3, accepted(), 0);
        let [entry] = messages(reports).try_into().unwrap();
        assert_eq!(next, Next::Sent);
        assert!(entry.starts_with("otlp: sending log entries to http://c:4318/v1/logs works again after "));
        assert!(entry.ends_with("; 40 were dropped meanwhile"), "{entry}");
        assert_eq!(delivery.record(now, 3, accepted(), 0), (Next::Sent, vec![]));
        let (next, reports) = delivery.record(now, 3, retry(None), 999);
        assert_eq!((next, reports.len()), (Next::Again(Duration::from_micros(999_500)), 1), "from the start");
    }

    #[test]
    fn t6_retry_after_is_the_shortest_delay_within_a_bound() {
        let mut delivery = delivery();
        let mut next = |after| delivery.record(Duration::ZERO, 1, retry(Some(after)), 0).0;
        assert_eq!(next(7), Next::Again(7 * SECOND));
        assert_eq!(next(0), Next::Again(SECOND), "not earlier than without it");
        assert_eq!(next(u64::MAX), Next::Again(600 * SECOND));
    }

    #[test]
    fn t6_other_statuses_are_final_and_said_once() {
        let mut delivery = delivery();
        let refused = |why: &str| DeliveryOutcome::Refused { why: why.into() };
        let (next, reports) = delivery.record(SECOND, 9, refused("status 400"), 0);
        let expected = "otlp: http://c:4318/v1/logs refused 9 log entries, which are dropped: status 400";
        assert_eq!((next, messages(reports)), (Next::Dropped, vec![expected.to_owned()]));
        assert_eq!(delivery.record(SECOND, 9, refused("status 400"), 0), (Next::Dropped, vec![]));
        assert_eq!(delivery.record(SECOND, 9, refused("status 401"), 0).1.len(), 1);
        assert_eq!(delivery.record(SECOND, 9, accepted(), 0), (Next::Sent, vec![]));
        assert_eq!(delivery.record(SECOND, 9, refused("status 401"), 0).1.len(), 1);
        assert!(!delivery.is_failing());
    }

    #[test]
    fn t6_partial_success_and_a_slow_collector_are_said_once_a_minute() {
        let mut delivery = delivery();
        let partial = || DeliveryOutcome::Accepted { rejected: 2, message: "too old".into() };
        let mut said = Vec::new();
        for second in 0..=120 {
            delivery.dropped(5);
            said.extend(messages(delivery.record(SECOND * second, 10, partial(), 0).1));
        }
        let rejected = "otlp: http://c:4318/v1/logs rejected 2 of 10 log entries: too old";
        let dropped = |count: u32| {
            format!("otlp: dropped {count} log entries: http://c:4318/v1/logs takes them too slowly")
        };
        let dropped = [5, 300, 300].map(dropped);
        let expected: Vec<String> =
            dropped.into_iter().flat_map(|text| [text, rejected.to_owned()]).collect();
        assert_eq!(said, expected);
    }
}
