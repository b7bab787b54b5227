//! A container that is expected to end, and a configuration that does not; and the other way round.

use super::Audit;
use crate::model::{Lifetime, Platform};

impl Audit<'_> {
    pub(super) fn lifetime(&mut self) {
        let plan = self.configuration.plan;
        let line = self.container.lifetime.line;
        match self.container.lifetime.value {
            Lifetime::Task => {
                let Some(job) = plan.endless_job() else { return };
                let message = format!(
                    "{} is expected to end, but the job {} never completes: it is started again after every exit",
                    self.container.parent, job.name
                );
                let help = "let the main job end the container with `onSuccess: \"shutdown\"`, or run this as a service";
                let name = job.name.clone();
                self.fault(line, message, help, &["jobs", &name, "restarts"]);
            }
            Lifetime::Service => {
                let Some(job) = plan.job_that_ends_the_container() else { return };
                let restarted = match self.container.platform {
                    Platform::Kubernetes => "which Kubernetes starts again and again (CrashLoopBackOff)",
                    Platform::Compose | Platform::Nomad | Platform::Image => {
                        "which is started again and again"
                    }
                };
                let message =
                    format!("the job {} runs once and then ends the container, {restarted}", job.name);
                let help = match self.container.platform {
                    Platform::Kubernetes => "run it as a Job, or remove `onSuccess: \"shutdown\"`",
                    Platform::Compose | Platform::Image => {
                        "set `restart: on-failure`, or remove `onSuccess: \"shutdown\"`"
                    }
                    Platform::Nomad => "set `type = \"batch\"`, or remove `onSuccess: \"shutdown\"`",
                };
                let name = job.name.clone();
                self.fault(line, message, help, &["jobs", &name, "onSuccess"]);
            }
            Lifetime::Unknown => {}
        }
    }
}
