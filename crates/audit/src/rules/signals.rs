//! The stop signal of the deployment against the signals that shut the supervisor down (S1, S8).

use containerpilot_core::event::Source;
use containerpilot_core::plan::{EventPattern, Signal};

use super::Audit;
use crate::model::Platform;

impl Audit<'_> {
    pub(super) fn signals(&mut self) {
        let plan = self.configuration.plan;
        if plan.pass_signals {
            return;
        }
        let (line, name, key) = match &self.container.signal {
            Some(signal) => (signal.line, signal.value.as_str(), self.key()),
            None => (self.container.line, self.container.default_signal, "the default stop signal"),
        };
        let names: Vec<String> = plan.stop_on.iter().map(ToString::to_string).collect();
        let stop_on = names.join(", ");
        let Some(signal) = Signal::from_name(name) else {
            if self.container.signal.is_some() {
                let message =
                    format!("`{name}` is not a signal, so the container cannot be stopped gracefully");
                self.fault(line, message, format!("use one of {stop_on}"), &["stopOn"]);
            }
            return;
        };
        if plan.stop_on.contains(&signal) {
            return;
        }
        let waits = |event: &EventPattern| event.source == Source::Signal(signal);
        let job = plan.jobs.iter().find(|job| job.when.patterns().iter().any(waits));
        let effect = match (signal, job) {
            (Signal::KILL, _) => {
                "ends everything at once: no job gets its stop signal, no service is deregistered".to_owned()
            }
            (_, Some(job)) => format!("runs the job {} and stops nothing", job.name),
            (Signal::HUP, None) => "reloads the configuration and stops nothing".to_owned(),
            (Signal::USR1, None) => "reopens the log file and stops nothing".to_owned(),
            _ => "is ignored".to_owned(),
        };
        let after =
            if signal == Signal::KILL { "" } else { "; SIGKILL follows when the grace period is over" };
        let message = format!("{key}, {signal}, {effect}{after}");
        let help = match (&self.container.signal, self.container.platform) {
            (Some(_), Platform::Compose | Platform::Kubernetes) => {
                format!("remove it if the image has one of {stop_on} as its STOPSIGNAL, or set one of these")
            }
            _ => format!("set {} to one of {stop_on}, or add {signal} to `stopOn`", self.key()),
        };
        // Without a setting of the file, the image may have another STOPSIGNAL.
        match self.container.signal.is_some() || self.container.platform == Platform::Nomad {
            true => self.fault(line, message, help, &["stopOn"]),
            false => self.warn(line, message, help, &["stopOn"]),
        }
    }

    fn key(&self) -> &'static str {
        match self.container.platform {
            Platform::Kubernetes => "`lifecycle.stopSignal`",
            Platform::Compose => "`stop_signal`",
            Platform::Image => "`STOPSIGNAL`",
            Platform::Nomad if self.container.is_nomad_json => "`KillSignal`",
            Platform::Nomad => "`kill_signal`",
        }
    }
}
