//! The telemetry server and the metrics that jobs send to it: T1 and T2.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    Check, Command, EventPattern, Health, Job, Metric, MetricKind, OnCompletion, OnUnhealthy, Probe, Process,
    Repeat, Restarts, Role, Service, Signal, Stop, Telemetry, Trigger, When,
};
use std::collections::BTreeMap;

use super::Lower;
use crate::decode::Section;
use crate::diagnose::{Place, Severity};
use crate::fields::{MetricFields, TelemetryFields};
use crate::kinds::{MetricType, span_of, value_of};
use crate::metrics;

/// The name of the job that advertises the telemetry server.
const NAME: &str = "containerpilot";
const TTL: Duration = Duration::from_secs(15);
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Prometheus' default buckets.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

impl Lower<'_> {
    /// The telemetry server, and the jobs that belong to it: the one that advertises it, and those that measure.
    pub(super) fn telemetry(&mut self, fields: &TelemetryFields) -> Option<(Telemetry, Vec<Job>)> {
        let metrics = self.metrics(fields);
        let address = self.address(fields.interfaces.as_ref())?;
        let port = u16::try_from(value_of(&fields.port)?).ok()?;
        let mut tags = value_of(&fields.tags).unwrap_or_default();
        tags.push(self.version.to_owned());
        let service = (port != 0).then(|| Service {
            name: NAME.to_owned(),
            id: format!("{NAME}-{}", self.host.hostname()),
            address,
            port,
            tags: tags.clone(),
            meta: BTreeMap::new(),
            ttl: TTL,
            initial_status: None,
            enable_tag_override: false,
            deregister_critical_after: None,
        });
        let check = Check {
            name: format!("check.{NAME}"),
            probe: Probe::Running,
            interval: HEARTBEAT,
            timeout: HEARTBEAT,
            failures: 1,
            raw_output: false,
        };
        let health =
            Health { checks: vec![check], ttl: TTL, heartbeat: None, on_unhealthy: OnUnhealthy::Report };
        let startup = EventPattern { source: Source::Global, code: Code::Startup };
        let job = Job {
            name: NAME.to_owned(),
            role: Role::Telemetry,
            exec: None,
            when: When { trigger: Trigger::Event { event: startup, repeat: Repeat::Once }, timeout: None },
            timeout: None,
            restarts: Restarts::Limited(0),
            backoff: None,
            stop: Stop { signal: Signal::TERM, hook_timeout: None, drain: Duration::ZERO },
            on_failure: OnCompletion::Continue,
            on_success: OnCompletion::Continue,
            health: Some(health),
            service,
            process: Process::default(),
            raw_output: false,
        };
        let (metrics, sensors) = metrics?.into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        let measured = (0..).zip(&metrics).zip(sensors);
        let sensors = measured.filter_map(|((place, metric), sensor)| Some(sensor?.job(place, metric)));
        let jobs = std::iter::once(job).chain(sensors).collect();
        Some((Telemetry { address, port, tags, metrics }, jobs))
    }

    fn metrics(&mut self, fields: &TelemetryFields) -> Option<Vec<(Metric, Option<Sensor>)>> {
        let all = fields.metrics.as_ref().map(|given| given.value.as_slice()).unwrap_or_default();
        let mut metrics: Vec<(Metric, Option<Sensor>)> = Vec::new();
        let mut complete = true;
        let mut series: BTreeMap<String, String> = BTreeMap::new();
        for fields in all {
            let metric = self.metric(fields);
            let sensor = self.sensor(fields);
            let (Some(metric), Some(sensor)) = (metric, sensor) else {
                complete = false;
                continue;
            };
            let place = fields.name.as_ref().map_or(super::opening(fields.place), |given| given.place);
            if let Some((other, _)) = metrics.iter().find(|(other, _)| other.name == metric.name) {
                let message = format!("there are two metrics `{}`", metric.name);
                // 3.8 takes two of one name with one help text; what they count is anybody's guess.
                let severity = if other.help == metric.help { Severity::Fault } else { Severity::Error };
                self.say(severity, place, message, "give each metric a name of its own");
                complete &= severity != Severity::Error;
            } else {
                self.clashes(&metric, place, &mut series);
            }
            metrics.push((metric, sensor));
        }
        complete.then_some(metrics)
    }

    /// The program that measures a metric, if there is one.
    fn sensor(&mut self, fields: &MetricFields) -> Option<Option<Sensor>> {
        let Some(exec) = &fields.exec else {
            let idle = [("interval", &fields.interval), ("timeout", &fields.timeout)];
            for (key, given) in idle {
                if let Some(given) = given {
                    let message = format!("`{key}` of a metric does nothing without `exec`");
                    self.error(given.key, message, "add the program that measures it, or remove this");
                    return None;
                }
            }
            return Some(None);
        };
        let info = &MetricFields::INFO;
        let interval = self.positive(info, fields.place, exec.key, fields.interval.as_ref(), "interval")?;
        let timeout = value_of(&fields.timeout).filter(|time| *time > 0).map_or(interval, span_of);
        Some(Some(Sensor { command: exec.value.clone(), interval, timeout }))
    }

    /// Two metrics under one name on the page: Prometheus keeps one of the values, and nobody can say which.
    fn clashes(&mut self, metric: &Metric, place: Place, series: &mut BTreeMap<String, String>) {
        if metrics::OWN.contains(&metric.name.as_str()) {
            let message =
                format!("`{}` is a metric of containerpilot itself, which hides this one", metric.name);
            return self.say(Severity::Fault, place, message, "give it another name");
        }
        for name in metrics::series(metric) {
            if let Some(other) = series.get(&name) {
                let message = format!("`{}` and `{other}` both have values called `{name}`", metric.name);
                return self.say(Severity::Fault, place, message, "give one of them another name");
            }
        }
        series.extend(metrics::series(metric).map(|name| (name, metric.name.clone())));
    }

    fn metric(&mut self, fields: &MetricFields) -> Option<Metric> {
        let part = |given: &Option<crate::decode::Given<String>>| value_of(given).unwrap_or_default();
        let parts = [part(&fields.namespace), part(&fields.subsystem), part(&fields.name)];
        let full: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let name = full.join("_");
        let place = fields.name.as_ref().map_or(super::opening(fields.place), |given| given.place);
        // Prometheus' client library calls a metric without a `name` by nothing at all.
        if parts[2].is_empty() || !is_metric_name(&name) {
            let message = format!("`{name}` cannot be the name of a metric");
            let rule = "a name begins with a letter or `_`, and goes on with letters, digits, `_` and `:`";
            let tame: String =
                parts[2].chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            if parts[2].is_empty() {
                self.required(&MetricFields::INFO, fields.place, place, "name");
            } else if is_metric_name(&tame) && !name.is_empty() {
                self.error(place, message, &format!("write for example \"{tame}\": {rule}"));
            } else {
                self.error(place, message, rule);
            }
            return None;
        }
        let Some(kind) = value_of(&fields.kind) else {
            self.required(&MetricFields::INFO, fields.place, place, "type");
            return None;
        };
        let buckets = self.buckets(fields, kind)?;
        let kind = match kind {
            MetricType::Counter => MetricKind::Counter,
            MetricType::Gauge => MetricKind::Gauge,
            MetricType::Summary => MetricKind::Summary,
            MetricType::Histogram => MetricKind::Histogram { buckets },
        };
        Some(Metric { name, legacy_key: parts.join("_"), help: part(&fields.help), kind })
    }

    fn buckets(&mut self, fields: &MetricFields, kind: MetricType) -> Option<Vec<f64>> {
        let Some(given) = &fields.buckets else { return Some(BUCKETS.to_vec()) };
        if kind != MetricType::Histogram {
            self.error(given.key, "only a histogram has `buckets`", "");
            return None;
        }
        let rising = given.value.windows(2).all(|pair| matches!(pair, [low, high] if low < high));
        if given.value.is_empty() || !rising {
            self.error(
                given.place,
                "`buckets` must be rising numbers, at least one",
                "write for example [0.1, 1, 10]",
            );
            return None;
        }
        Some(given.value.clone())
    }
}

/// A program that measures a metric: the number that it prints is the value. A run that fails, takes too long or prints
/// anything else gives no value.
struct Sensor {
    command: Command,
    interval: Duration,
    timeout: Duration,
}

impl Sensor {
    /// The job that runs it for the metric at a place.
    fn job(self, place: u32, metric: &Metric) -> Job {
        Job {
            name: format!("sensor.{}", metric.name),
            role: Role::Sensor(place),
            exec: Some(self.command),
            when: When { trigger: Trigger::Interval(self.interval), timeout: None },
            timeout: Some(self.timeout),
            restarts: Restarts::Unlimited,
            backoff: None,
            stop: Stop { signal: Signal::TERM, hook_timeout: None, drain: Duration::ZERO },
            on_failure: OnCompletion::Continue,
            on_success: OnCompletion::Continue,
            health: None,
            service: None,
            process: Process::default(),
            raw_output: false,
        }
    }
}

fn is_metric_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ':');
    name.chars().enumerate().all(|(nth, c)| fits(c) || (nth > 0 && c.is_ascii_digit())) && !name.is_empty()
}
