//! What is compared. Each module has the rules about one subject.

mod grace_period;
mod lifetime;
mod memory;
mod probes;
mod process;
mod signals;

use containerpilot_config::diagnostics::Severity;
use containerpilot_config::places::place_of;

use crate::model::{Container, Platform};
use crate::{Configuration, Finding};

/// Everything that will go wrong with a configuration in a container, in the order of the deployment's lines.
#[must_use]
pub fn audit(configuration: Configuration<'_>, container: &Container) -> Vec<Finding> {
    let mut audit = Audit { configuration, container, findings: Vec::new() };
    audit.mistakes();
    audit.grace_period();
    audit.signals();
    audit.probes();
    audit.memory();
    audit.lifetime();
    audit.process();
    let mut findings = audit.findings;
    findings.sort_by_key(|finding| (finding.line, finding.severity));
    findings.dedup();
    findings
}

struct Audit<'a> {
    configuration: Configuration<'a>,
    container: &'a Container,
    findings: Vec<Finding>,
}

impl Audit<'_> {
    fn report(&mut self, severity: Severity, line: usize, message: String, help: String, config: &[&str]) {
        let config = place_of(self.configuration.files, config);
        self.findings.push(Finding { severity, line, message, help, config });
    }

    /// Something that is certain to go wrong. `config` is the path of the key that it is about.
    fn fault(&mut self, line: usize, message: String, help: impl Into<String>, config: &[&str]) {
        self.report(Severity::Fault, line, message, help.into(), config);
    }

    /// Something that probably goes wrong.
    fn warn(&mut self, line: usize, message: String, help: impl Into<String>, config: &[&str]) {
        self.report(Severity::Warning, line, message, help.into(), config);
    }

    /// Values that the system refuses, or reads in another way than it seems.
    fn mistakes(&mut self) {
        for mistake in self.container.mistakes.clone() {
            self.report(mistake.severity, mistake.line, mistake.message, mistake.help, &[]);
        }
    }

    /// The word for what is stopped and started again.
    fn unit(&self) -> &'static str {
        match self.container.platform {
            Platform::Kubernetes => "the pod",
            Platform::Compose | Platform::Image => "the container",
            Platform::Nomad => "the task",
        }
    }
}
