//! The memory limits of jobs against that of the container.

use containerpilot_core::plan::{Job, LimitedResource};

use super::Audit;
use crate::model::Platform;
use crate::values::fmt_size;

impl Audit<'_> {
    /// Only if jobs have limits: nothing is known about the memory of other jobs.
    pub(super) fn memory(&mut self) {
        let Some(limit) = self.container.memory.clone() else { return };
        let jobs = self.configuration.plan.jobs.iter();
        let limited: Vec<(&Job, u64)> = jobs.filter_map(|job| Some((job, memory_of(job)?))).collect();
        let total = limited.iter().fold(0_u64, |sum, (_, size)| sum.saturating_add(*size));
        let Some((largest, _)) = limited.iter().max_by_key(|(_, size)| *size) else { return };
        if total <= limit.value {
            return;
        }
        let names: Vec<String> =
            limited.iter().map(|(job, size)| format!("{} {}", job.name, fmt_size(*size))).collect();
        let effect = match self.container.platform {
            Platform::Kubernetes => "the kernel can kill the container before a job reaches its own limit",
            Platform::Compose | Platform::Nomad | Platform::Image => {
                "the kernel can kill a process before a job reaches its own limit"
            }
        };
        let message = format!(
            "the container may use {}, and the `limits` of its jobs allow {} together ({}): {effect}",
            fmt_size(limit.value),
            fmt_size(total),
            names.join(", ")
        );
        let help = "raise the limit of the container, or lower `limits` of the jobs";
        let name = largest.name.clone();
        self.warn(limit.line, message, help, &["jobs", &name, "limits"]);
    }
}

/// The most memory that a process of a job may have.
fn memory_of(job: &Job) -> Option<u64> {
    let limits = job.process.limits.iter();
    let memory = limits.filter(|limit| matches!(limit.resource, LimitedResource::As | LimitedResource::Data));
    memory.filter_map(|limit| limit.soft.or(limit.hard)).min()
}
