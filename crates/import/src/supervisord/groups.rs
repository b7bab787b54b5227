//! Programs and groups, and the order of their starts.

use std::collections::BTreeSet;

use crate::document::Document;
use crate::error::ImportError;
use crate::files::SourceLine;
use crate::ini::{Ini, Section};

/// The default of `priority`.
const PRIORITY: i64 = 999;

/// Programs that start and stop together. A program that is in no group is a group of its own.
pub(super) struct Group<'a> {
    pub(super) name: String,
    pub(super) priority: i64,
    /// The line that sets the priority.
    pub(super) priority_from: Option<SourceLine>,
    /// The line that lists the programs of a `[group:x]`.
    pub(super) from: Option<SourceLine>,
    pub(super) sections: Vec<&'a Section>,
}

/// The groups in the order of their starts.
pub(super) fn groups<'a>(ini: &'a Ini, document: &mut Document) -> Result<Vec<Group<'a>>, ImportError> {
    let mut priority = |section: &Section| match section.options.get("priority") {
        Some(entry) if entry.value.contains("%(") => {
            document.inexact(&entry.place, "it depends on a variable, which is not possible for this key");
            Ok((PRIORITY, None))
        }
        Some(entry) => {
            let priority = entry.value.trim().parse::<i64>();
            let priority = priority.map_err(|_| entry.place.error("the priority is not an integer"))?;
            Ok((priority, Some(entry.place.clone())))
        }
        None => Ok((PRIORITY, None)),
    };
    let mut groups = Vec::new();
    let mut in_groups = BTreeSet::new();
    for section in &ini.sections {
        let Some(name) = section.name.strip_prefix("group:") else { continue };
        let Some(entry) = section.options.get("programs") else {
            return Err(section.place.error("the group needs `programs=`"));
        };
        let mut members = Vec::new();
        for program in entry.value.split(',').map(str::trim).filter(|program| !program.is_empty()) {
            match (
                ini.section(&format!("program:{program}")),
                ini.section(&format!("fcgi-program:{program}")),
            ) {
                (Some(section), _) => {
                    if in_groups.insert(program) {
                        members.push(section);
                    }
                }
                // It is listed as left out.
                (None, Some(_)) => {}
                (None, None) => {
                    return Err(entry.place.error(format!("there is no [program:{program}]")));
                }
            }
        }
        let (priority, priority_from) = priority(section)?;
        let (name, from) = (name.trim().to_owned(), Some(entry.place.clone()));
        groups.push(Group { name, priority, priority_from, from, sections: members });
    }
    for section in &ini.sections {
        let Some(name) = section.name.strip_prefix("program:").map(str::trim) else { continue };
        if in_groups.contains(name) {
            continue;
        }
        let (priority, priority_from) = priority(section)?;
        let name = name.to_owned();
        groups.push(Group { name, priority, priority_from, from: None, sections: vec![section] });
    }
    groups.retain(|group| !group.sections.is_empty());
    groups.sort_by(|a, b| (a.priority, &a.name).cmp(&(b.priority, &b.name)));
    Ok(groups)
}
