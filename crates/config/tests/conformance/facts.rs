//! A plan in the format of the `facts` in `decode.json`.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    Catalog, Command, ConsulAddress, Format, Job, Level, MetricKind, Output, Plan, Probe, Repeat, Restarts,
    Status, Trigger, Watch, WatchKind,
};
use serde_json::{Value, json};

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn words(command: &Command) -> Vec<String> {
    let words = std::iter::once(&command.program).chain(&command.arguments);
    words.map(|word| word.text().into_owned()).collect()
}

/// The facts of a plan.
pub(crate) fn facts(plan: &Plan) -> Value {
    let consul = match &plan.catalog {
        Catalog::Embedded => Value::Null,
        Catalog::Consul(consul) => json!({
            "address": match &consul.address {
                ConsulAddress::Network(address) | ConsulAddress::Unix(address) => address,
            },
            "scheme": if consul.https { "https" } else { "http" },
            "token": consul.token.clone().unwrap_or_default(),
            "tls": {
                "ca_file": consul.tls.ca_file.clone().unwrap_or_default(),
                "ca_path": consul.tls.ca_path.clone().unwrap_or_default(),
                "cert_file": consul.tls.client_cert.clone().unwrap_or_default(),
                "key_file": consul.tls.client_key.clone().unwrap_or_default(),
                "server_name": consul.tls.server_name.clone().unwrap_or_default(),
                "verify": consul.tls.verify,
            },
        }),
    };
    json!({
        "consul": consul,
        "control": { "socket": plan.control.socket },
        "jobs": plan.jobs.iter().map(|job| job_facts(plan, job)).collect::<Vec<_>>(),
        "logging": {
            "level": match plan.logging.level {
                Level::Debug => "debug",
                Level::Info => "info",
                Level::Warn => "warn",
                Level::Error => "error",
                Level::Fatal => "fatal",
                Level::Panic => "panic",
            },
            "format": match plan.logging.format {
                Format::Default => "default",
                Format::Text => "text",
                Format::Json => "json",
            },
            "output": match &plan.logging.output {
                Output::Stdout => "stdout",
                Output::Stderr => "stderr",
                Output::File(path) => path,
            },
        },
        "stop_timeout": plan.stop_timeout.as_secs_f64(),
        "telemetry": plan.telemetry.as_ref().map(|telemetry| json!({
            "address": telemetry.address.to_string(),
            "port": telemetry.port,
            "tags": telemetry.tags,
            "metrics": telemetry.metrics.iter().map(|metric| json!({
                "exposed": metric.name,
                "key": metric.legacy_key,
                "help": metric.help,
                "type": match metric.kind {
                    MetricKind::Counter => "counter",
                    MetricKind::Gauge => "gauge",
                    MetricKind::Histogram { .. } => "histogram",
                    MetricKind::Summary => "summary",
                },
            })).collect::<Vec<_>>(),
        })),
        "watches": plan.watches.iter().map(watch_facts).collect::<Vec<_>>(),
    })
}

fn watch_facts(watch: &Watch) -> Value {
    let (tag, dc) = match &watch.kind {
        WatchKind::Service { tag, dc } => (tag, dc),
        _ => (&None, &None),
    };
    json!({
        "name": format!("watch.{}", watch.name),
        "service": watch.name,
        "interval": watch.interval.as_secs_f64(),
        "tag": tag.clone().unwrap_or_default(),
        "dc": dc.clone().unwrap_or_default(),
    })
}

fn job_facts(plan: &Plan, job: &Job) -> Value {
    let frequency = match job.when.trigger {
        Trigger::Interval { every: interval, .. } => nanoseconds(interval),
        _ => 0,
    };
    json!({
        "name": job.name,
        "exec": job.exec.program().map(words),
        "exec_timeout_ns": job.timeout.map_or(0, nanoseconds),
        "frequency_ns": frequency,
        "restart_limit": match job.restarts {
            Restarts::Limited(count) => i64::try_from(count).unwrap_or(i64::MAX),
            Restarts::Unlimited => -1,
        },
        "stop_timeout_ns": job.stop.hook_timeout.map_or(0, nanoseconds),
        // The jobs that this one waits for before it stops (S2). 3.8 has only the last one.
        "stopping_wait": plan.jobs.iter().filter(|other| waits_for_stopping(other, &job.name)).map(|other| &other.name)
            .collect::<Vec<_>>(),
        "raw_logging": job.output.is_raw(),
        "when": when_facts(job),
        "health": job.health.as_ref().map(|health| {
            let check = &health.checks[0];
            let exec = match &check.probe {
                Probe::Exec(command) => Some(words(command)),
                _ => None,
            };
            json!({
                "name": exec.as_ref().map(|_| &check.name),
                "timeout_ns": exec.as_ref().map(|_| nanoseconds(check.timeout)),
                "exec": exec,
                "interval_ns": nanoseconds(check.interval),
                "raw_logging": check.raw_output,
                "ttl": health.ttl.as_secs_f64(),
            })
        }),
        "service": job.service.as_ref().map(|service| json!({
            "name": service.name,
            "id": service.id,
            "address": service.address.to_string(),
            "port": service.port,
            "tags": service.tags,
            "ttl": service.ttl.as_secs_f64(),
            "initial_status": match service.initial_status {
                None => "",
                Some(Status::Passing) => "passing",
                Some(Status::Warning) => "warning",
                Some(Status::Critical) => "critical",
            },
            "enable_tag_override": service.enable_tag_override,
            "deregister_after": service.deregister_critical_after.map(nanoseconds),
        })),
    })
}

fn waits_for_stopping(job: &Job, name: &str) -> bool {
    matches!(&job.when.trigger, Trigger::Event { event, .. }
        if event.code == Code::Stopping && event.source == Source::Job(name.to_owned()))
}

fn when_facts(job: &Job) -> Value {
    let (event, source, limit) = match &job.when.trigger {
        Trigger::Interval { .. } => ("Startup", "global".to_owned(), 1),
        Trigger::Event { event, repeat } => {
            (event.code.legacy_name(), event.source.to_string(), if *repeat == Repeat::Once { 1 } else { -1 })
        }
        _ => ("None", String::new(), 0),
    };
    json!({
        "event": event,
        "source": source,
        "starts_limit": limit,
        "timeout_ns": job.when.timeout.map_or(0, nanoseconds),
    })
}
