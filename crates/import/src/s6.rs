//! Service directories of s6: s6-rc source directories, s6-overlay's `services.d`, `cont-init.d` and `cont-finish.d`, and plain scan
//! directories.
//!
//! A longrun becomes a job that is restarted, a oneshot a job that runs once, a bundle a group. A script that only executes one program
//! becomes that program; any other script is run where it was found.

mod find;
mod importer;
mod jobs;
mod relate;
mod script;
mod settings;

use crate::document::Document;
use crate::error::ImportError;
use crate::files::Files;
use importer::Importer;

/// Reads the service directories.
pub(crate) fn import(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let mut importer = Importer::new(files, document);
    for path in paths {
        importer.find(path)?;
    }
    importer.relate();
    importer.emit();
    if document.jobs.is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        return Err(ImportError::Empty {
            path,
            message: "there is no service with `run` or `up` here".into(),
        });
    }
    Ok(())
}
