//! Environment variables and secrets of processes: P10 and P11.

use std::collections::BTreeMap;
use std::sync::Arc;

use containerpilot_core::inserted;
use containerpilot_core::plan::Process;

use super::Lower;
use crate::decode::{Section, Spanned};
use crate::diagnostics::Place;
use crate::dotenv;
use crate::fields::{ConfigFields, EnvFileFields, JobFields, SecretFields};
use crate::host::FileError;
use crate::values::{Either, value_of};

type Variables = BTreeMap<String, String>;
type EnvFiles = Option<Spanned<Vec<Spanned<Either<EnvFileFields>>>>>;
type SecretMap = Option<Spanned<BTreeMap<String, Spanned<SecretFields>>>>;

impl Lower<'_> {
    /// What every process has: the variables and secrets of the top level.
    pub(super) fn shared_process(&mut self, fields: &ConfigFields) -> Option<Process> {
        let env = self.variables(&fields.env_file, &fields.env);
        let secrets = self.secrets(&fields.secrets, &fields.env);
        Some(Process { shared_env: Arc::new(env?), secrets: secrets?, ..Process::default() })
    }

    /// The variables and secrets of a job, beside those of the top level.
    pub(super) fn job_environment(&mut self, fields: &JobFields) -> Option<Process> {
        let env = self.variables(&fields.env_file, &fields.env);
        let own = self.secrets(&fields.secrets, &fields.env);
        let (env, own) = (env?, own?);
        // The variables of the job replace secrets of the top level.
        let shared = self.shared.secrets.iter().filter(|(name, _)| !env.contains_key(*name));
        let mut secrets: Variables = inserted(shared.map(|(name, file)| (name.clone(), file.clone())));
        secrets.extend(own);
        Some(Process { env, secrets, ..self.shared.clone() })
    }

    /// The variables of files, and those of `env`, which win.
    fn variables(&mut self, files: &EnvFiles, env: &Option<Spanned<Variables>>) -> Option<Variables> {
        let mut all = Some(Variables::new());
        for file in files.iter().flat_map(|given| &given.value) {
            match self.env_file(file) {
                Some(variables) => all.iter_mut().for_each(|all| all.extend(variables.iter().cloned())),
                None => all = None,
            }
        }
        let mut all = all?;
        all.extend(value_of(env).unwrap_or_default());
        Some(all)
    }

    fn env_file(&mut self, given: &Spanned<Either<EnvFileFields>>) -> Option<Vec<(String, String)>> {
        let (path, place, optional) = match &given.value {
            Either::Text(path) => (path, given.place, false),
            Either::Object(fields) => {
                let Some(path) = &fields.path else {
                    self.required(&EnvFileFields::INFO, fields.place, fields.place.first_byte(), "path");
                    return None;
                };
                (&path.value, path.place, value_of(&fields.optional)?)
            }
        };
        let content = match self.host.read_file(path) {
            Ok(content) => content,
            Err(FileError::Missing) if optional => return Some(Vec::new()),
            Err(error) => {
                let help = match error {
                    FileError::Missing => "create it, or write { path: \"…\", optional: true }",
                    _ => "",
                };
                self.error(place, format!("cannot read `{path}`: {error}"), help);
                return None;
            }
        };
        let parsed = dotenv::parse(&content);
        parsed
            .map_err(|error| self.error(place, format!("{path}:{}: {}", error.line, error.message), ""))
            .ok()
    }

    /// The files of secrets by name. A name must not stand in `env` beside them.
    fn secrets(&mut self, given: &SecretMap, env: &Option<Spanned<Variables>>) -> Option<Variables> {
        let mut all = Some(Variables::new());
        for (name, secret) in given.iter().flat_map(|given| &given.value) {
            let path = self.secret(name, secret, env);
            match (path, &mut all) {
                (Some(path), Some(all)) => drop(all.insert(name.clone(), path)),
                _ => all = None,
            }
        }
        all
    }

    fn secret(
        &mut self,
        name: &str,
        secret: &Spanned<SecretFields>,
        env: &Option<Spanned<Variables>>,
    ) -> Option<String> {
        if env.as_ref().is_some_and(|env| env.value.contains_key(name)) {
            self.error(secret.key, format!("`{name}` is in both `env` and `secrets`"), "remove one of them");
            return None;
        }
        let fields = &secret.value;
        let Some(file) = &fields.file else {
            let at: Place = fields.place.first_byte();
            self.required(&SecretFields::INFO, fields.place, at, "file");
            return None;
        };
        if file.value.contains('\0') {
            self.error(file.place, "the path of a secret contains a NUL character", "");
            return None;
        }
        Some(file.value.clone())
    }
}
