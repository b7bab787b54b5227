//! Converts the configurations of other supervisors to a containerpilot configuration (C11).
//!
//! Each module reads the format of one program and builds a [`document::Document`]: the jobs of the new file, each key with the line
//! it comes from, and a list of everything that has no exact equivalent. Nothing of the original is dropped silently: a key that a module
//! does not know is in that list too.
//!
//! Everything here is a function of its arguments: files are read through [`files::Files`].
#![forbid(unsafe_code)]

pub mod command_line;
pub mod compose;
mod conditions;
mod cycles;
mod depends_on;
pub mod document;
mod durations;
mod error;
pub mod files;
mod ini;
mod merge;
mod pebble;
mod process_compose;
mod procfile;
mod s6;
mod supervisord;
mod systemd;
mod variables;
pub mod yaml;

use document::Document;
use files::Files;

pub use document::Imported;
pub use error::ImportError;

/// The program whose configuration is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    /// `supervisord.conf` and the files that it includes.
    Supervisord,
    /// `compose.yaml` of Docker Compose.
    Compose,
    /// `process-compose.yaml`.
    ProcessCompose,
    /// The layers of Pebble.
    Pebble,
    /// `Procfile` of foreman, overmind, honcho and others.
    Procfile,
    /// Service directories of s6, s6-rc and s6-overlay.
    S6,
    /// `.service`, `.timer` and `.target` files of systemd.
    Systemd,
}

impl ImportFormat {
    /// All formats, in the order of the help.
    pub const ALL: &[Self] = &[
        Self::Supervisord,
        Self::Procfile,
        Self::Compose,
        Self::ProcessCompose,
        Self::S6,
        Self::Systemd,
        Self::Pebble,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Supervisord => "supervisord",
            Self::Procfile => "procfile",
            Self::Compose => "compose",
            Self::ProcessCompose => "process-compose",
            Self::Pebble => "pebble",
            Self::S6 => "s6",
            Self::Systemd => "systemd",
        }
    }

    /// The format with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }
}

/// Converts the configuration at `paths`.
///
/// # Errors
/// If a file cannot be read, is not in the format of its program, or has nothing that could run.
pub fn import(source: ImportFormat, paths: &[String], files: &dyn Files) -> Result<Imported, ImportError> {
    let mut document = Document::default();
    match source {
        ImportFormat::Supervisord => supervisord::import(paths, files, &mut document)?,
        ImportFormat::Compose => compose::import(paths, files, &mut document)?,
        ImportFormat::ProcessCompose => process_compose::import(paths, files, &mut document)?,
        ImportFormat::Pebble => pebble::import(paths, files, &mut document)?,
        ImportFormat::Procfile => procfile::import(paths, files, &mut document)?,
        ImportFormat::S6 => s6::import(paths, files, &mut document)?,
        ImportFormat::Systemd => systemd::import(paths, files, &mut document)?,
    }
    Ok(document.print(source.name(), paths))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(String);

    impl Files for One {
        fn read(&self, _: &str) -> Result<Vec<u8>, String> {
            Ok(self.0.clone().into_bytes())
        }

        fn list(&self, _: &str) -> Option<Vec<String>> {
            None
        }
    }

    #[test]
    fn c11_extended_services_do_not_grow_without_limit() {
        let names: String = (0..2000).map(|n| format!("K{n}: 1, ")).collect();
        let services: String = (0..2000).map(|n| format!("  s{n}: {{ extends: b }}\n")).collect();
        let file = One(format!("services:\n  b: {{ command: a, environment: {{ {names} }} }}\n{services}"));
        let error = import(ImportFormat::Compose, &["c.yaml".to_owned()], &file).unwrap_err().to_string();
        assert!(error.ends_with("the files are too large when they are combined"), "{error}");
    }

    #[test]
    fn c11_a_long_cycle_of_dependencies_does_not_take_long() {
        let services: String = (0..20_000)
            .map(|n| format!("  s{n}: {{ command: a, depends_on: [s{}] }}\n", (n + 1) % 20_000))
            .collect();
        let file = One(format!("services:\n{services}"));
        let error = import(ImportFormat::Compose, &["c.yaml".to_owned()], &file).unwrap_err().to_string();
        assert_eq!(
            error,
            "c.yaml:2: more than 2000 services, processes or checks: split the file and convert each part"
        );
    }
}
