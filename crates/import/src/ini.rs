//! INI files as supervisord reads them: with Python's `RawConfigParser`, in which both `;` and `#` after a space begin a comment.

use std::collections::BTreeMap;

use crate::document::Document;
use crate::error::ImportError;
use crate::files::{SourceLine, Text, shortened};

/// A section with all its options, from all files.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// What is between the brackets.
    pub(crate) name: String,
    /// The line with the brackets; that of the first file that has it.
    pub(crate) place: SourceLine,
    /// The options by name, which is in lower case.
    pub(crate) options: BTreeMap<String, IniOption>,
}

/// An option.
#[derive(Clone, Debug)]
pub(crate) struct IniOption {
    /// The value. Its lines are separated by `\n`.
    pub(crate) value: String,
    /// The line of the option. Its text has the lines that continue it, too.
    pub(crate) place: SourceLine,
}

/// All sections, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ini {
    pub(crate) sections: Vec<Section>,
    by_name: BTreeMap<String, usize>,
}

impl Ini {
    /// The section with this name.
    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.get(*self.by_name.get(name)?)
    }

    fn section_mut(&mut self, name: &str, place: &SourceLine) -> Option<&mut Section> {
        let new = self.sections.len();
        let index = *self.by_name.entry(name.to_owned()).or_insert(new);
        if index == new {
            let (name, place) = (name.to_owned(), place.clone());
            self.sections.push(Section { name, place, options: BTreeMap::new() });
        }
        self.sections.get_mut(index)
    }

    /// Removes a section.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Section> {
        let section = self.sections.get_mut(*self.by_name.get(name)?)?;
        let nothing = Section { name: String::new(), place: section.place.clone(), options: BTreeMap::new() };
        self.by_name.remove(name);
        Some(std::mem::replace(section, nothing))
    }

    /// Adds the sections of a file. An option that is there already is replaced, and the earlier one listed as left out.
    pub(crate) fn read(&mut self, text: &Text, document: &mut Document) -> Result<(), ImportError> {
        let mut section: Option<(String, SourceLine)> = None;
        let mut option: Option<(String, IniOption)> = None;
        // The lines that continue the option.
        let mut lines = String::new();
        let mut indent_of_option = 0;
        for (place, line) in text.lines() {
            let content = without_comment(line);
            let value = content.trim();
            if value.is_empty() {
                // An empty line belongs to the value, unless it has a comment.
                if let Some((_, entry)) = option.as_mut().filter(|_| content.len() == line.len()) {
                    entry.value.push('\n');
                }
                continue;
            }
            let indent = line.chars().take_while(|c| c.is_whitespace()).count();
            if let Some((_, entry)) = option.as_mut().filter(|_| indent > indent_of_option) {
                entry.value.push('\n');
                entry.value.push_str(value);
                lines.push(' ');
                lines.push_str(value);
                continue;
            }
            indent_of_option = indent;
            self.add(section.as_ref(), option.take(), &lines, document);
            lines.clear();
            if let Some(name) = value.strip_prefix('[').and_then(|rest| Some(rest.rsplit_once(']')?.0)) {
                section = Some((name.to_owned(), place.clone()));
                self.section_mut(name, &place);
                continue;
            }
            if section.is_none() {
                return Err(place.error("expected a section such as [program:web] first"));
            }
            let (name, value) = value
                .split_once(['=', ':'])
                .ok_or_else(|| place.error("expected `name=value` or [section]"))?;
            let name = name.trim_end().to_lowercase();
            if name.is_empty() {
                return Err(place.error("the name before `=` is missing"));
            }
            option = Some((name, IniOption { value: value.trim().to_owned(), place }));
        }
        self.add(section.as_ref(), option, &lines, document);
        Ok(())
    }

    fn add(
        &mut self,
        section: Option<&(String, SourceLine)>,
        option: Option<(String, IniOption)>,
        lines: &str,
        document: &mut Document,
    ) {
        let (Some((section, place)), Some((name, mut entry))) = (section, option) else { return };
        entry.value.truncate(entry.value.trim_end().len());
        entry.place.text = shortened(&format!("{}{lines}", entry.place.text));
        let line = (entry.place.file.clone(), entry.place.line);
        let Some(section) = self.section_mut(section, place) else { return };
        if let Some(earlier) = section.options.insert(name, entry) {
            document.inexact(
                &earlier.place,
                format!("{}:{} sets it again, and the last one counts", line.0, line.1),
            );
        }
    }
}

/// A line without its comment.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with([';', '#']) {
        return "";
    }
    let mut after_space = true;
    for (at, c) in line.char_indices() {
        if after_space && matches!(c, ';' | '#') {
            return line.get(..at).unwrap_or_default();
        }
        after_space = c.is_whitespace();
    }
    line
}
