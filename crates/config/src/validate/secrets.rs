//! Secrets that are not kept (P11, L5).

use containerpilot_core::secrets::SecretArguments;

use crate::decode::Spanned;
use crate::diagnostics::Severity;
use crate::fields::ConfigFields;
use crate::validate::Checker;

/// The files of all secrets.
pub(super) fn secret_files(fields: &ConfigFields) -> impl Iterator<Item = &Spanned<String>> {
    let jobs = fields.jobs.iter().flat_map(|given| &given.value);
    let all = fields.secrets.iter().chain(jobs.filter_map(|job| job.secrets.as_ref()));
    all.flat_map(|given| given.value.values()).filter_map(|secret| secret.value.file.as_ref())
}

impl<'a> Checker<'a> {
    /// Warns about files of secrets that cannot be read. One without an answer is reported when a process needs it.
    pub(super) fn secret_files(&mut self, fields: &ConfigFields) {
        for given in secret_files(fields) {
            if let Some(Err(why)) = self.examined.files.get(&given.value) {
                let message = format!("cannot read the secret `{}`: {why}", given.value);
                let help = "what needs it will fail unless the file exists when it runs";
                self.report(Severity::Warning, given.place, message, help);
            }
        }
    }

    /// Warns about secrets in arguments, which every process can read, and about output that is not redacted.
    pub(super) fn secrets(&mut self, fields: &'a ConfigFields) {
        for used in self.commands(fields) {
            let command = used.command;
            let mut arguments = SecretArguments::default();
            let texts: Vec<_> = command.value.arguments.iter().map(|word| word.text()).collect();
            let mut words = texts.iter().flat_map(|text| text.split_whitespace());
            if words.any(|word| arguments.offset(word).is_some()) {
                let message = "an argument looks like a secret: every process can read it".to_owned();
                let help = "put it in a file, and pass it as a variable: secrets: { NAME: { file: \"/run/secrets/name\" } }";
                self.report(Severity::Warning, command.key, message, help);
            }
        }
        for (fields, job) in self.pairs.clone() {
            if job.is_none_or(|job| job.process.secrets.is_empty()) {
                continue;
            }
            let checks = fields.health.iter().flat_map(|given| &given.value.items);
            let checks = checks.filter_map(|check| check.logging.as_ref()?.value.raw.as_ref());
            let own = fields.logging.iter().filter_map(|given| given.value.raw.as_ref());
            for raw in checks.chain(own) {
                self.raw_output(raw);
            }
        }
    }

    fn raw_output(&mut self, raw: &Spanned<bool>) {
        if raw.value {
            let message =
                "`raw` output is not redacted: secrets that the process prints are shown".to_owned();
            self.report(Severity::Warning, raw.key, message, "remove `raw`, or do not print secrets");
        }
    }
}
