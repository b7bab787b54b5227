//! Random plans: the first, and its changes for reloads.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    Catalog, Drain, EventPattern, Exec, FirstTick, Format, Job, Level, Logging, OnCompletion, Output, Plan,
    Restarts, Role, Trigger, Watch, WatchKind, When,
};
use containerpilot_core::rng::Rng;

use super::jobs::JobGenerator;
use super::plain::{command, consul, make_coprocess, make_sensor, plain_plan, telemetry_job};
use super::scripts;
use super::times::time;
use crate::scenario::{JobScript, Version};

const NAMES: [&str; 12] =
    ["main", "db", "app", "web", "cron", "backup", "log", "queue", "proxy", "sync", "mail", "cache"];

/// The first version of a plan.
pub(super) fn first(rng: &mut Rng) -> Version {
    let most = rng.pick(&[1, 2, 2, 3, 3, 4, 5, 6, 8, 12]);
    let count = 1 + rng.index(most);
    let mut names: Vec<String> = NAMES.iter().take(count).map(|name| (*name).to_owned()).collect();
    if count > 1 && rng.percent(6) {
        let from = rng.index(count);
        let to = rng.index(count);
        names[to] = names[from].clone();
    }
    let embedded = rng.percent(40);
    let watches = watches(rng, embedded, &names);
    let mut generator = JobGenerator { rng, names: &names, watches: &watches };
    let mut jobs: Vec<Job> = names.iter().map(|name| generator.job(name)).collect();
    // R5: jobs with the same name may change places in a reload, which is no adjustment.
    for nth in 1..jobs.len() {
        if names[..nth].contains(&names[nth]) {
            jobs[nth].process.env.insert("TWIN".to_owned(), nth.to_string());
        }
    }
    let main = rng.percent(8);
    let pass_signals = main && count == 1 && rng.percent(70);
    if main && let Some(job) = jobs.first_mut() {
        job.role = Role::Main;
        job.exec = Exec::Program(command("main"));
        job.when.trigger = When::at_startup().trigger;
        job.when.timeout = None;
        job.restarts = Restarts::Limited(0);
        (job.on_failure, job.on_success) = (OnCompletion::Shutdown, OnCompletion::Shutdown);
    }
    if rng.percent(15) {
        let at = usize::from(main);
        for job in jobs.iter_mut().skip(at).take(2) {
            make_coprocess(job);
        }
    }
    if rng.percent(10)
        && let Some(job) = jobs.iter_mut().rfind(|job| job.role == Role::User)
    {
        make_sensor(job, rng.pick(&[1, 3, 10]));
    }
    if rng.percent(10) {
        jobs.push(telemetry_job());
    }
    let scripts: Vec<JobScript> = jobs.iter().map(|job| scripts::script(rng, job)).collect();
    let level = if rng.percent(5) { Level::Debug } else { Level::Warn };
    let plan = Plan {
        watches,
        catalog: if embedded { Catalog::Embedded } else { consul() },
        logging: Logging { level, format: Format::Default, output: Output::Stdout },
        stop_timeout: stop_timeout(rng),
        pass_signals,
        legacy_maintenance: rng.percent(10),
        ..plain_plan(jobs)
    };
    let plan = if plan.legacy_maintenance { with_later_ticks(plan) } else { plan };
    Version { plan, scripts, scaled_from: None }
}

/// The plan with periodic jobs that run first one interval after an event, as in ContainerPilot 2 (C8).
fn with_later_ticks(mut plan: Plan) -> Plan {
    let first = plan.jobs.first().map(|job| job.name.clone()).unwrap_or_default();
    for (nth, job) in plan.jobs.iter_mut().enumerate() {
        if let Trigger::Interval { first: tick, .. } = &mut job.when.trigger {
            *tick = FirstTick::IntervalAfter(if nth % 2 == 0 {
                EventPattern { source: Source::Global, code: Code::Startup }
            } else {
                EventPattern { source: Source::Job(first.clone()), code: Code::ExitSuccess }
            });
        }
    }
    plan
}

/// The nth version of a plan: jobs and watches are kept, changed, removed and added.
pub(super) fn other(rng: &mut Rng, from: &Version, nth: usize) -> Version {
    let mut plan = from.plan.clone();
    let names: Vec<String> = plan.jobs.iter().map(|job| job.name.clone()).collect();
    let embedded = plan.catalog == Catalog::Embedded;
    if rng.percent(30) {
        plan.watches = watches(rng, embedded, &names);
    } else if rng.percent(20) {
        plan.watches.reverse();
    } else if rng.percent(20)
        && let Some(watch) = plan.watches.first_mut()
    {
        watch.interval += Duration::from_secs(1);
    }
    // R5: another process in each version. The model does not know checks that change while the process keeps running.
    let version = nth.to_string();
    let mut generator = JobGenerator { rng, names: &names, watches: &plan.watches };
    let mut jobs: Vec<(Job, JobScript)> = Vec::new();
    for (job, script) in plan.jobs.iter().zip(&from.scripts) {
        let choice = generator.rng.below(100);
        // The main program and the telemetry job do not come from the configuration.
        let is_internal = matches!(job.role, Role::Main | Role::Telemetry);
        match choice {
            0..55 => jobs.push((job.clone(), script.clone())),
            _ if is_internal => jobs.push((job.clone(), script.clone())),
            55..70 => {
                let mut job = generator.job(&job.name);
                job.process.env.insert("VERSION".to_owned(), version.clone());
                if generator.rng.percent(8) {
                    make_coprocess(&mut job);
                }
                let script = scripts::script(generator.rng, &job);
                jobs.push((job, script));
            }
            // The same except for a detail, with the same script.
            70..82 => {
                let mut job = job.clone();
                job.stop.drain = match &job.stop.drain {
                    Drain::For(time) => Drain::For(*time + Duration::from_millis(10)),
                    Drain::Until { program, timeout } => {
                        let timeout = timeout.map(|time| time + Duration::from_millis(10));
                        Drain::Until { program: program.clone(), timeout }
                    }
                };
                jobs.push((job, script.clone()));
            }
            _ => {}
        }
    }
    let new = generator.rng.pick(&[0, 0, 1, 1, 2]);
    for _ in 0..new {
        let name = generator.rng.pick(&NAMES);
        let taken = jobs.iter().any(|(job, _)| job.name == name);
        if taken && generator.rng.percent(90) {
            continue;
        }
        let mut job = generator.job(name);
        job.process.env.insert("VERSION".to_owned(), version.clone());
        let script = scripts::script(generator.rng, &job);
        // The telemetry job stays last.
        let place = jobs.iter().position(|(job, _)| job.role == Role::Telemetry).unwrap_or(jobs.len());
        jobs.insert(generator.rng.index(place + 1), (job, script));
    }
    if rng.percent(15) {
        jobs.reverse();
    }
    if jobs.is_empty()
        && let (Some(job), Some(script)) = (plan.jobs.first(), from.scripts.first())
    {
        jobs.push((job.clone(), script.clone()));
    }
    let (jobs, scripts) = jobs.into_iter().unzip();
    plan.jobs = jobs;
    if rng.percent(25) {
        plan.stop_timeout = stop_timeout(rng);
    }
    Version { plan, scripts, scaled_from: None }
}

fn stop_timeout(rng: &mut Rng) -> Duration {
    time(rng, &[100, 500, 1_000, 5_000]).max(Duration::from_millis(1))
}

fn watches(rng: &mut Rng, embedded: bool, names: &[String]) -> Vec<Watch> {
    let count = rng.pick(&[0, 0, 1, 2]);
    let mut watches: Vec<Watch> = ["redis", "etcd"]
        .into_iter()
        .take(count)
        .map(|name| Watch {
            name: name.into(),
            interval: Duration::from_secs(1),
            kind: WatchKind::Service { tag: None, dc: None },
        })
        .collect();
    if embedded {
        // The embedded catalog knows only the services of jobs.
        for watch in &mut watches {
            watch.name.clone_from(&names[rng.index(names.len())]);
        }
        watches.dedup_by(|one, other| one.name == other.name);
    }
    watches
}
