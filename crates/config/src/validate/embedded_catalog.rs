//! Services that cannot be found from outside, because the catalog is embedded (D2).

use crate::diagnostics::Severity;
use crate::fields::ConfigFields;
use crate::validate::Checker;

impl Checker<'_> {
    /// Warns about services that cannot be found from outside.
    pub(super) fn embedded_catalog(&mut self, fields: &ConfigFields) {
        if fields.consul.is_some() {
            return;
        }
        let ports = self.pairs.iter().filter_map(|(job, _)| job.port.as_ref());
        if let Some(place) = ports.filter(|port| port.value != 0).map(|port| port.key).next() {
            let message = "without `consul`, services can be found only inside this container".to_owned();
            self.report(
                Severity::Warning,
                place,
                message,
                "add consul: \"localhost:8500\" to advertise them",
            );
        }
    }
}
