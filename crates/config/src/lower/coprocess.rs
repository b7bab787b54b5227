//! Coprocesses (C6).

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{EventPattern, Job, Repeat, Role, Trigger};

use super::Lower;
use crate::decode::{DecodeContext, Section, Spanned};
use crate::default_names::coprocess_name;
use crate::fields::{CoprocessFields, JobFields};

/// The job after whose exit coprocesses start.
pub(crate) const PRE_START: &str = "preStart";

impl Lower<'_> {
    /// Lowers a coprocess to a job with its own role, so that the rules of starting, restarting and stopping apply to it.
    pub(super) fn coprocess(&mut self, fields: &CoprocessFields, pre_start: bool) -> Option<Job> {
        let Some(command) = &fields.command else {
            self.required(&CoprocessFields::INFO, fields.place, fields.place.first_byte(), "command");
            return None;
        };
        let mut plain = JobFields::from_members(
            &mut DecodeContext::new(fields.place.file, self.problems),
            fields.place.span,
            &[],
        );
        plain.name = fields.name.clone().or_else(|| {
            let value = coprocess_name(fields)?;
            Some(Spanned { value, place: command.place, key: command.key, written: false })
        });
        plain.exec = Some(command.clone());
        plain.restarts = fields.restarts.clone();
        let mut job = self.job(&plain)?;
        job.role = Role::Coprocess;
        if pre_start {
            let exit = |code| EventPattern { source: Source::Job(PRE_START.to_owned()), code };
            let conditions = vec![exit(Code::ExitSuccess), exit(Code::ExitFailed)];
            job.when.trigger = Trigger::Any { conditions, repeat: Repeat::Once };
        }
        Some(job)
    }
}
