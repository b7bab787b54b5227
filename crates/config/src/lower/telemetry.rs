//! The telemetry server and its metrics: T1 and T2.

use std::time::Duration;

use containerpilot_core::plan::{
    Check, Command, Exec, Health, Job, JobOutput, Metric, MetricKind, OnCompletion, OnUnhealthy, Page, Probe,
    Process, RestartOn, Restarts, Role, Service, Stop, Telemetry, Trigger, When,
};
use std::collections::BTreeMap;

use super::{Lower, defaults};
use crate::decode::Section;
use crate::default_names::{metric_name, metric_parts};
use crate::diagnostics::{Place, Severity};
use crate::fields::{MetricFields, PageFields, TelemetryFields};
use crate::metrics;
use crate::values::{MetricType, to_duration, value_of};

/// The name of the job that advertises the telemetry server (T1).
pub(crate) const TELEMETRY_JOB: &str = "containerpilot";
const TTL: Duration = Duration::from_secs(15);
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The live page of the telemetry server (T5). `None` after an error that was reported already.
fn page(fields: &TelemetryFields) -> Option<Option<Page>> {
    let Some(section) = &fields.page.as_ref()?.value else { return Some(None) };
    let PageFields { arguments, logs, hosts, .. } = section;
    let hosts = value_of(hosts).unwrap_or_default();
    Some(Some(Page { arguments: value_of(arguments)?, logs: value_of(logs)?, hosts }))
}

impl Lower<'_> {
    /// The telemetry server and its jobs: the one that advertises it, and one per metric with `exec`.
    pub(super) fn telemetry(&mut self, fields: &TelemetryFields) -> Option<(Telemetry, Vec<Job>)> {
        let metrics = self.metrics(fields);
        let address = self.address(fields.interfaces.as_ref())?;
        let port = u16::try_from(value_of(&fields.port)?).ok()?;
        let mut tags = value_of(&fields.tags).unwrap_or_default();
        tags.push(self.version.to_owned());
        let service = (port != 0).then(|| Service {
            name: TELEMETRY_JOB.to_owned(),
            id: defaults::service_id(TELEMETRY_JOB, self.host),
            address,
            port,
            tagged_addresses: BTreeMap::new(),
            tags: tags.clone(),
            meta: BTreeMap::new(),
            ttl: TTL,
            initial_status: None,
            legacy_check: false,
            enable_tag_override: false,
            deregister_critical_after: None,
        });
        let check = Check {
            name: format!("check.{TELEMETRY_JOB}"),
            probe: Probe::Running,
            interval: HEARTBEAT,
            timeout: HEARTBEAT,
            failures: 1,
            successes: 1,
            start_period: Duration::ZERO,
            raw_output: false,
        };
        let health =
            Health { checks: vec![check], ttl: TTL, heartbeat: None, on_unhealthy: OnUnhealthy::Report };
        let job = Job {
            name: TELEMETRY_JOB.to_owned(),
            role: Role::Telemetry,
            groups: Vec::new(),
            exec: Exec::Nothing,
            when: When::at_startup(),
            requires: Vec::new(),
            stop_after: Vec::new(),
            timeout: None,
            restarts: Restarts::Limited(0),
            restart_on: RestartOn::Exit,
            success_codes: Vec::new(),
            start_limit: None,
            backoff: None,
            stop: Stop::DEFAULT,
            on_failure: OnCompletion::Continue,
            on_success: OnCompletion::Continue,
            ready: None,
            health: Some(health),
            service,
            process: Process::default(),
            output: JobOutput::default(),
            replica: None,
        };
        let process = &self.shared;
        let (metrics, sensors) = metrics?.into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        let measured = (0..).zip(&metrics).zip(sensors);
        let sensors = measured
            .filter_map(|((place, metric), sensor)| Some(sensor?.job(place, metric, process.clone())));
        let jobs = std::iter::once(job).chain(sensors).collect();
        let page = page(fields)?;
        Some((Telemetry { address, port, tags, metrics, page }, jobs))
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
            let place = fields.name.as_ref().map_or(fields.place.first_byte(), |given| given.place);
            if let Some((other, _)) = metrics.iter().find(|(other, _)| other.name == metric.name) {
                let message = format!("two metrics are named `{}`", metric.name);
                // 3.8 accepts two metrics with the same name and help, although their values cannot be distinguished.
                let severity = if other.help == metric.help { Severity::Warning } else { Severity::Error };
                self.report(severity, place, message, "rename one of them");
                complete &= severity != Severity::Error;
            } else {
                self.clashes(&metric, place, &mut series);
            }
            metrics.push((metric, sensor));
        }
        complete.then_some(metrics)
    }

    /// The program that measures a metric, if any.
    fn sensor(&mut self, fields: &MetricFields) -> Option<Option<Sensor>> {
        let Some(exec) = &fields.exec else {
            let unused = [("interval", &fields.interval), ("timeout", &fields.timeout)];
            for (key, given) in unused {
                if let Some(given) = given {
                    let message = format!("`{key}` of a metric has no effect without `exec`");
                    self.error(given.key, message, "add the program that measures it, or remove this key");
                    return None;
                }
            }
            return Some(None);
        };
        let info = &MetricFields::INFO;
        let interval = self.positive(info, fields.place, exec.key, fields.interval.as_ref(), "interval")?;
        let timeout = value_of(&fields.timeout).filter(|time| *time > 0);
        let timeout = timeout.map_or_else(|| defaults::check_timeout(interval), to_duration);
        Some(Some(Sensor { command: exec.value.clone(), interval, timeout }))
    }

    /// Reports two metrics with the same series: Prometheus would keep either value.
    fn clashes(&mut self, metric: &Metric, place: Place, series: &mut BTreeMap<String, String>) {
        if metrics::SELF_METRICS.contains(&metric.name.as_str()) {
            let message =
                format!("`{}` is a metric of containerpilot itself, which replaces this one", metric.name);
            return self.report(Severity::Fault, place, message, "rename it");
        }
        for name in metrics::series(metric) {
            if let Some(other) = series.get(&name) {
                let message = format!("`{}` and `{other}` both have a series `{name}`", metric.name);
                return self.report(Severity::Fault, place, message, "rename one of them");
            }
        }
        series.extend(metrics::series(metric).map(|name| (name, metric.name.clone())));
    }

    fn metric(&mut self, fields: &MetricFields) -> Option<Metric> {
        let parts = metric_parts(fields);
        let name = metric_name(fields);
        let place = fields.name.as_ref().map_or(fields.place.first_byte(), |given| given.place);
        // The client library of Prometheus accepts no metric without a `name`.
        if parts[2].is_empty() || !is_metric_name(&name) {
            let message = format!("`{name}` is not a valid metric name");
            let rule = "a letter, `_` or `:` first, then letters, digits, `_` and `:`";
            let valid: String =
                parts[2].chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            if parts[2].is_empty() {
                self.required(&MetricFields::INFO, fields.place, place, "name");
            } else if is_metric_name(&valid) && !name.is_empty() {
                self.error(place, message, &format!("for example \"{valid}\": {rule}"));
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
        Some(Metric {
            name,
            legacy_key: parts.join("_"),
            help: value_of(&fields.help).unwrap_or_default(),
            kind,
        })
    }

    fn buckets(&mut self, fields: &MetricFields, kind: MetricType) -> Option<Vec<f64>> {
        let Some(given) = &fields.buckets else { return Some(defaults::BUCKETS.to_vec()) };
        if kind != MetricType::Histogram {
            self.error(given.key, "only a histogram can have `buckets`", "");
            return None;
        }
        let rising = given.value.windows(2).all(|pair| matches!(pair, [low, high] if low < high));
        if given.value.is_empty() || !rising {
            self.error(
                given.place,
                "`buckets` must be at least one number, in ascending order",
                "for example: [0.1, 1, 10]",
            );
            return None;
        }
        Some(given.value.clone())
    }
}

/// A program that prints the value of a metric. A run that fails, times out or prints anything but a number gives no value.
struct Sensor {
    command: Command,
    interval: Duration,
    timeout: Duration,
}

impl Sensor {
    /// The job that measures the metric at `index`.
    fn job(self, index: u32, metric: &Metric, process: Process) -> Job {
        Job {
            name: format!("sensor.{}", metric.name),
            role: Role::Sensor(index),
            groups: Vec::new(),
            exec: Exec::Program(self.command),
            when: When { trigger: Trigger::every(self.interval), timeout: None },
            requires: Vec::new(),
            stop_after: Vec::new(),
            timeout: Some(self.timeout),
            restarts: Restarts::Unlimited,
            restart_on: RestartOn::Exit,
            success_codes: Vec::new(),
            start_limit: None,
            backoff: None,
            stop: Stop::DEFAULT,
            on_failure: OnCompletion::Continue,
            on_success: OnCompletion::Continue,
            ready: None,
            health: None,
            service: None,
            process,
            output: JobOutput::default(),
            replica: None,
        }
    }
}

fn is_metric_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ':');
    name.chars().enumerate().all(|(nth, c)| fits(c) || (nth > 0 && c.is_ascii_digit())) && !name.is_empty()
}
