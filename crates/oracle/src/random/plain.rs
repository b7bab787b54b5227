//! Plain plans, jobs and services.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use containerpilot_core::plan::{
    Backoff, Catalog, Check, Command, Consul, ConsulAddress, Control, DEFAULT_STOP_ON, Exec, Format, Health,
    Job, JobOutput, Level, Logging, OnCompletion, OnUnhealthy, Output, Plan, Probe, Process, Record,
    RestartOn, Restarts, Role, Service, Status, Stop, Tls, Trigger, When,
};
use std::collections::BTreeMap;

pub(super) fn command(program: &str) -> Command {
    Command { program: program.into(), arguments: Vec::new() }
}

/// A plain plan: a stop timeout of five seconds, and log level warn.
#[must_use]
pub fn plain_plan(jobs: Vec<Job>) -> Plan {
    Plan {
        jobs,
        replicas: Vec::new(),
        watches: Vec::new(),
        files: Vec::new(),
        locks: Vec::new(),
        catalog: Catalog::Embedded,
        control: Control {
            socket: "/run/containerpilot.socket".into(),
            required: false,
            mode: 0o600,
            group: None,
        },
        logging: Logging { level: Level::Warn, format: Format::Default, output: Output::Stdout },
        telemetry: None,
        record: Record { memory: 0, file: None },
        otlp: None,
        stop_timeout: Duration::from_secs(5),
        process: Process::default(),
        stop_on: DEFAULT_STOP_ON.into(),
        pass_signals: false,
        legacy_maintenance: false,
    }
}

/// A Consul catalog.
#[must_use]
pub fn consul() -> Catalog {
    let tls = Tls {
        ca_file: None,
        ca_path: None,
        client_cert: None,
        client_key: None,
        server_name: None,
        verify: true,
    };
    let address = ConsulAddress::Network("localhost:8500".into());
    Catalog::Consul(Consul { address, https: false, token: None, token_file: None, token_source: None, tls })
}

/// A plain job: it runs once, at startup.
#[must_use]
pub fn plain_job(name: &str) -> Job {
    Job {
        name: name.into(),
        role: Role::User,
        groups: Vec::new(),
        exec: Exec::Program(command(name)),
        when: When::at_startup(),
        requires: Vec::new(),
        stop_after: Vec::new(),
        timeout: None,
        restarts: Restarts::Limited(0),
        restart_on: RestartOn::Exit,
        success_codes: Vec::new(),
        start_limit: None,
        backoff: Some(Backoff::DEFAULT),
        stop: Stop::DEFAULT,
        on_failure: OnCompletion::Continue,
        on_success: OnCompletion::Continue,
        ready: None,
        health: None,
        service: None,
        process: Process::default(),
        output: JobOutput::default(),
        replica: None,
    }
}

/// C6: a coprocess starts at startup, without health checks and without a service.
pub(super) fn make_coprocess(job: &mut Job) {
    job.role = Role::Coprocess;
    job.exec = Exec::Program(command("coprocess"));
    job.when = When::at_startup();
    job.timeout = None;
    (job.health, job.ready, job.service) = (None, None, None);
    (job.on_failure, job.on_success) = (OnCompletion::Continue, OnCompletion::Continue);
}

/// T2: a sensor runs at an interval, without health checks and without a service.
pub(super) fn make_sensor(job: &mut Job, seconds: u64) {
    let interval = Duration::from_secs(seconds);
    job.role = Role::Sensor(0);
    job.exec = Exec::Program(command("sensor"));
    job.when = When { trigger: Trigger::every(interval), timeout: None };
    (job.timeout, job.restarts, job.backoff) = (Some(interval), Restarts::Unlimited, None);
    (job.health, job.ready, job.service) = (None, None, None);
    (job.on_failure, job.on_success) = (OnCompletion::Continue, OnCompletion::Continue);
}

pub(super) fn telemetry_job() -> Job {
    let five = Duration::from_secs(5);
    let check = Check {
        name: "running".into(),
        probe: Probe::Running,
        interval: five,
        timeout: five,
        failures: 1,
        successes: 1,
        start_period: Duration::ZERO,
        raw_output: false,
    };
    Job {
        role: Role::Telemetry,
        groups: Vec::new(),
        exec: Exec::Nothing,
        health: Some(Health {
            checks: vec![check],
            ttl: 3 * five,
            heartbeat: None,
            on_unhealthy: OnUnhealthy::Report,
        }),
        service: Some(service("containerpilot", None)),
        ..plain_job("containerpilot")
    }
}

/// A plain service.
#[must_use]
pub fn service(name: &str, initial_status: Option<Status>) -> Service {
    Service {
        name: name.into(),
        id: format!("{name}-host"),
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 80,
        tagged_addresses: BTreeMap::new(),
        tags: Vec::new(),
        meta: BTreeMap::new(),
        ttl: Duration::from_secs(15),
        initial_status,
        legacy_check: false,
        enable_tag_override: false,
        deregister_critical_after: None,
    }
}
