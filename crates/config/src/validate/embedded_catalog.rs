//! Services that cannot be found from outside, because the catalog is embedded (D2).

use containerpilot_core::plan::WatchKind;

use crate::diagnostics::{Severity, is_reported};
use crate::fields::ConfigFields;
use crate::lower::{Draft, TELEMETRY_JOB};
use crate::validate::Checker;

impl Checker<'_> {
    /// Warns about services that cannot be found from outside, and about watches of services from outside.
    pub(super) fn embedded_catalog(&mut self, fields: &ConfigFields, draft: &Draft) {
        if fields.consul.is_some() || is_reported(self.problems, None, "consul") {
            return;
        }
        self.unseen_services(fields, draft);
        let ports = self.pairs.iter().filter_map(|(job, _)| job.port.as_ref());
        if let Some(place) = ports.filter(|port| port.value.first != 0).map(|port| port.key).next() {
            let message = "without `consul`, services can be found only inside this container".to_owned();
            self.report(
                Severity::Warning,
                place,
                message,
                "add consul: \"localhost:8500\" to advertise them",
            );
        }
    }

    fn unseen_services(&mut self, fields: &ConfigFields, draft: &Draft) {
        // What has an error may be the service.
        if self.problems.iter().any(|problem| problem.severity == Severity::Error) {
            return;
        }
        let has_telemetry = fields.telemetry.is_some();
        let watches = fields.watches.iter().flat_map(|given| &given.value);
        for (fields, watch) in watches.zip(&draft.watches) {
            let (Some(name), Some(watch)) = (&fields.name, watch) else { continue };
            let mut services = draft.jobs.iter().flatten().filter_map(|job| job.service.as_ref());
            let is_telemetry = has_telemetry && watch.name == TELEMETRY_JOB;
            if is_telemetry || services.any(|service| watch.sees(service)) {
                continue;
            }
            if let Some(given) = fields.key.as_ref().or(fields.prefix.as_ref()) {
                let message = format!(
                    "the watch `{}` is never answered: its keys are in Consul, and there is no `consul`",
                    watch.name
                );
                self.report(Severity::Fault, given.key, message, "add consul: \"localhost:8500\"");
            }
            let WatchKind::Service { tag, dc: _ } = &watch.kind else { continue };
            let tag = tag.as_ref().map(|tag| format!(" and the tag `{tag}`")).unwrap_or_default();
            let message = format!(
                "the watch `{0}` never sees a service: no job named `{0}` has a `port`{tag}, and there is no `consul`",
                watch.name
            );
            self.report(Severity::Warning, name.place, message, "add consul: \"localhost:8500\"");
        }
    }
}
