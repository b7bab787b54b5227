//! Passes events to the health of jobs, and carries out its decisions for services (D4, H6).

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::effect::{DesiredService, Effect};
use crate::health::context::{HealthContext, HealthDecision, ProcessState};
use crate::health::state::JobHealth;
use crate::ids::{CheckIx, CheckRunId, JobIx};
use crate::input::CheckError;
use crate::plan::{Role, Status};
use crate::state::journal::Origin;
use crate::supervisor::Core;
use crate::supervisor::plan_state::PlanState;
use crate::time::Time;

impl Core {
    /// Calls the health of a job, if it has checks, and carries out its decisions.
    pub(crate) fn tell_health(
        &mut self,
        job: JobIx,
        message: impl FnOnce(&mut JobHealth, &mut HealthContext<'_>),
    ) {
        let state = self.job(job);
        let is_telemetry = self.planned(job).role == Role::Telemetry;
        let process = ProcessState {
            started_at: state.started_at.unwrap_or(Time::ZERO),
            is_ready: state.run().is_some_and(|run| run.readiness().is_ready()),
            telemetry_error: self.telemetry_error.as_ref().filter(|_| is_telemetry).cloned(),
        };
        let PlanState { plan, graph, health, check_runs, .. } = &mut self.plan_state;
        let Some(health) = health.of_mut(job) else { return };
        let mut context = HealthContext {
            now: self.now,
            job,
            process,
            plan,
            graph,
            timers: &mut self.timers,
            ids: &mut self.last_ids,
            starts: &mut self.starts,
            check_runs,
            decisions: Vec::new(),
        };
        message(health, &mut context);
        for decision in context.decisions {
            self.carry_out_health(job, decision);
        }
    }

    fn carry_out_health(&mut self, job: JobIx, decision: HealthDecision) {
        match decision {
            HealthDecision::Log(level, fields, message) => {
                self.log(level, Some(job), fields, format_args!("{message}"));
            }
            HealthDecision::Send(code) => self.send(Origin::Job(job), code),
            HealthDecision::RunCheck(check, run) => {
                let environment = self.check_environment(job);
                self.effects.push(Effect::RunCheck { job, check, run, environment });
            }
            HealthDecision::CancelCheck(run) => self.effects.push(Effect::CancelCheck { run }),
            HealthDecision::BecameHealthy => {
                self.enqueue_requirers(job);
                // D4: an initial status that is passing has had no heartbeats, and may have expired.
                if !self.send_heartbeat(job) {
                    self.advertise(job, DesiredService::Present(Status::Passing));
                }
            }
            HealthDecision::Heartbeat => {
                self.send_heartbeat(job);
            }
            HealthDecision::NoLongerHealthy => self.enqueue_requirers(job),
            HealthDecision::MarkCritical => self.advertise_critical(job),
            HealthDecision::ReplaceRun => self.plan_state.unhealthy.push_back(job),
        }
    }

    /// H3, H4: runs the first checks of a process, except in maintenance mode.
    pub(crate) fn begin_checks(&mut self, job: JobIx) {
        if !self.maintenance && !self.job(job).is_past_hooks() && !self.stops_by_itself(job) {
            self.tell_health(job, JobHealth::begin);
        }
    }

    /// H7: the process has exited, so the health is unknown.
    pub(crate) fn end_checks(&mut self, job: JobIx) {
        self.tell_health(job, JobHealth::end);
    }

    /// Suspends the checks of a job.
    pub(crate) fn stop_checks(&mut self, job: JobIx) {
        self.tell_health(job, JobHealth::stop);
    }

    /// The program or the request of a check is done.
    pub(crate) fn check_done(&mut self, run: CheckRunId, result: Result<(), CheckError>) {
        let Some((job, check)) = self.plan_state.check_runs.remove(&run) else { return };
        self.tell_health(job, |health, context| health.check_done(check, run, result, context));
    }

    /// T1: the telemetry server listens, or cannot.
    pub(crate) fn telemetry_listens(&mut self, result: Result<(), String>) {
        self.telemetry_error = result.err();
        let telemetry = self.all_jobs().find(|job| self.planned(*job).role == Role::Telemetry);
        if let Some(job) = telemetry {
            self.tell_health(job, JobHealth::telemetry_listens);
        }
    }

    /// H9: how long a job has been healthy whose process exits by itself, if that is suspiciously short.
    pub(crate) fn healthy_before_exit(&self, job: JobIx) -> Option<Duration> {
        let by_itself = self.job(job).run().is_some_and(|run| !run.signalled);
        self.health_of(job).filter(|_| by_itself)?.just_became_healthy(self.planned(job), self.now)
    }

    /// Runs a check, when it is its turn (P14).
    pub(crate) fn create_check(&mut self, job: JobIx, check: CheckIx, run: CheckRunId) {
        self.tell_health(job, |health, context| health.create_check(check, run, context));
    }

    /// The heartbeat interval has passed.
    pub(crate) fn heartbeat_due(&mut self, job: JobIx) {
        let sent = self.send_heartbeat(job);
        self.tell_health(job, |health, context| health.heartbeat_due(sent, context));
    }
}
