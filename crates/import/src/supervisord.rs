//! supervisord: an INI file with a section for each program, and the files that it includes.

mod expand;
mod groups;
mod include;
mod logs;
mod options;
mod program;
mod sections;
mod settings;
mod stop_order;

use std::collections::BTreeSet;

use crate::document::{Document, Fields, Value};
use crate::error::ImportError;
use crate::files::Files;
use expand::{Names, Piece};

/// Reads the files of supervisord.
pub(crate) fn import(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(), ImportError> {
    let (ini, unmatched) = include::read(paths, files, document)?;
    let groups = groups::groups(&ini, document)?;
    if groups.is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        let message = match unmatched.first() {
            None => "no file has a section [program:x]".to_owned(),
            Some(pattern) => format!(
                "it has no section [program:x], and no file matches {pattern}, which it includes: name its files as further arguments"
            ),
        };
        return Err(ImportError::Empty { path, message: message.into() });
    }
    let mut names = Names::default();
    names.set("host_node_name", vec![Piece::Action(".HOSTNAME".into())]);
    let mut defaults = settings::convert(&ini, &mut names, document)?;
    sections::other_sections(&ini, document);
    let mut converted = Vec::new();
    let mut log_files = BTreeSet::new();
    for group in &groups {
        for section in &group.sections {
            converted.extend(program::convert(section, group, &names, &mut log_files, document)?);
        }
    }
    stop_order::stop_order(&converted, document);
    if !converted.iter().any(|program| program.always_restarts) {
        document.remark(
            "supervisord keeps running when all of its programs have ended. containerpilot then exits, with the code of the \
             first that failed.",
        );
    }
    let mut all = program::defaults();
    all.append(&mut defaults);
    document.top.set("defaults", Value::Object(all), None);
    document.top.note("defaults", "What supervisord does with a program that sets nothing else.");
    document.sort_by_line();
    Ok(())
}
