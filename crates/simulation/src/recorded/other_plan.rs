//! The world of a recording with another configuration: what is known of it, and what has to be assumed.

use std::collections::BTreeSet;

use containerpilot_config::duration::exact;
use containerpilot_core::plan::{Job, Plan, Role};

use super::{RecordedScenario, RecordedWorld, scaled_plans};
use crate::defaults::{self, AwaitedJobs};
use crate::scenario::{Action, JobAction, Lifetime, Scenario};
use crate::timeline::SimulationRun;

/// A recorded world for another plan.
#[derive(Clone, Debug)]
pub struct OtherWorld {
    /// How it behaves.
    pub scenario: Scenario,
    /// What is not in the recording, as sentences.
    pub assumptions: Vec<String>,
}

impl RecordedWorld {
    /// The same world with another plan: programs and checks by the names of jobs, everything else by time.
    #[must_use]
    pub fn with_plan(&self, recorded: &RecordedScenario, old: &Plan, new: &Plan) -> OtherWorld {
        let mut scenario = recorded.scenario.clone();
        let mut assumptions = Vec::new();
        if !self.has_begin {
            assumptions.push(
                "the recording begins when the supervisor ran already: it is assumed to start then"
                    .to_owned(),
            );
        }
        // Replicas that were added later have names that the plan does not have.
        let (before, after) = (scaled_plans(old, &scenario), scaled_plans(new, &scenario));
        let mut known = BTreeSet::new();
        for plan in &after {
            for job in plan.jobs.iter().filter(|job| job.role != Role::Telemetry) {
                if known.insert(job.name.as_str()) {
                    let old = before.iter().flat_map(|plan| &plan.jobs).find(|old| old.name == job.name);
                    self.assume_of_job(old, plan, job, &mut scenario, &mut assumptions);
                }
            }
        }
        let has_job = |name: &str| after.iter().flat_map(|plan| &plan.jobs).any(|job| job.name == name);
        for name in self.jobs.iter().filter(|(_, job)| !job.runs.is_empty()).map(|(name, _)| name) {
            if !has_job(name) {
                assumptions.push(format!("there is no job {name}: what its program did is left out"));
            }
        }
        scenario.jobs.retain(|name, _| has_job(name));
        for watch in &new.watches {
            if !self.watches.contains_key(&watch.name) {
                let what = match defaults::observations(new, watch) {
                    Some(_) => "what it watches is assumed to be there after 1s",
                    None => "it sees the jobs that advertise its service",
                };
                assumptions.push(format!("watch {} is new: {what}", watch.name));
            }
        }
        scenario.watches.retain(|name, _| new.watches.iter().any(|watch| watch.name == *name));
        for lock in new.locks.iter().filter(|_| new.has_shared_locks()) {
            if !self.locks.contains_key(&lock.name) {
                assumptions.push(format!("lock {} is new: it is assumed to be acquired after 1s", lock.name));
            }
        }
        scenario
            .locks
            .retain(|name, _| new.has_shared_locks() && new.locks.iter().any(|lock| lock.name == *name));
        scenario.files.retain(|name, _| new.files.iter().any(|file| file.name == *name));
        scenario.actions.retain(|(at, action)| {
            let why = self.why_impossible(new, action);
            if let Some(why) = &why {
                assumptions.push(format!("at {} {why}: that is left out", exact(*at)));
            }
            why.is_none()
        });
        for what in &self.left_out {
            assumptions.push(format!("left out: {what}"));
        }
        OtherWorld { scenario, assumptions }
    }

    fn assume_of_job(
        &self,
        before: Option<&Job>,
        new: &Plan,
        job: &Job,
        scenario: &mut Scenario,
        assumptions: &mut Vec<String>,
    ) {
        let name = &job.name;
        let has_run = self.jobs.get(name).is_some_and(|job| !job.runs.is_empty());
        if job.exec.program().is_some() && !has_run {
            let known = if before.is_some() { "did not run" } else { "is new" };
            let assumed = match defaults::lifetime(&AwaitedJobs::of(new), job) {
                Lifetime::Forever => "to run until it is stopped".to_owned(),
                Lifetime::For(time) => format!("to succeed after {}", exact(time)),
            };
            assumptions.push(format!("job {name} {known}: its program is assumed {assumed}"));
        }
        let names = |job: &Job| -> Vec<String> {
            let checks = job.health.iter().flat_map(|health| &health.checks);
            checks.filter(|check| !check.probe.is_passive()).map(|check| check.name.clone()).collect()
        };
        let (known, all) = (before.map(names).unwrap_or_default(), names(job));
        for check in all.iter().filter(|check| before.is_some() && !known.contains(check)) {
            assumptions.push(format!("job {name}: its check {check} is new, and is assumed to pass"));
        }
        // What the only check did is not what every check does.
        if let ([only], Some(script)) = (known.as_slice(), scenario.jobs.get_mut(name)) {
            let of_runs = script.runs.iter_mut().flat_map(|run| &mut run.checks);
            for answers in script.checks.iter_mut().chain(of_runs) {
                answers.check.get_or_insert_with(|| only.clone());
            }
        }
    }

    fn why_impossible(&self, new: &Plan, action: &Action) -> Option<String> {
        let is_known = |name: &str| new.jobs.iter().any(|job| job.name == name || job.is_replica_of(name));
        match action {
            Action::Reload(..) => Some("another configuration was loaded".to_owned()),
            Action::Scale(name, count) => {
                let error = new.scaled(name, *count).err()?;
                Some(format!("the number of replicas of {name} was set to {count}, which cannot be: {error}"))
            }
            Action::Job(action, name) if !is_known(name) => {
                let done = match action {
                    JobAction::Start => "started",
                    JobAction::Stop => "stopped",
                    JobAction::Restart | JobAction::RollingRestart => "restarted",
                    JobAction::Send(_) => "sent a signal",
                };
                Some(format!("{name} was {done}, which does not exist"))
            }
            _ => None,
        }
    }

    /// The jobs that had more runs than in the recording: what the others are assumed to do.
    #[must_use]
    pub fn repeated_runs(&self, run: &SimulationRun) -> Vec<String> {
        let more = self.jobs.iter().filter_map(|(name, job)| {
            let known = job.runs.len();
            let is_more = run.histories.get(name)?.runs > known as u64;
            let unfinished = job.runs.last().is_some_and(|run| run.exited.is_none() && run.failed.is_none());
            let how = if unfinished { ", which was not over when the recording ended" } else { "" };
            (is_more && known > 0)
                .then(|| format!("job {name}: runs {} and later behave as run {known}{how}", known + 1))
        });
        more.collect()
    }
}
