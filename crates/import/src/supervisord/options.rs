//! The options of a section, with their variables replaced.

use std::collections::{BTreeMap, BTreeSet};

use super::expand::{self, Expanded, Names, plain};
use crate::document::{Document, Field};
use crate::error::ImportError;
use crate::files::{SourceLine, directory};
use crate::ini::{IniOption, Section};

/// The options of a section that were not read yet.
pub(super) struct Options<'a> {
    pub(super) section: &'a Section,
    pub(super) names: Names,
    pub(super) left: BTreeSet<&'a str>,
}

impl<'a> Options<'a> {
    pub(super) fn new(section: &'a Section, names: &Names) -> Self {
        let left = section.options.keys().map(String::as_str).collect();
        Self { section, names: names.clone(), left }
    }

    /// The option as it is written.
    pub(super) fn raw(&mut self, name: &str) -> Option<&'a IniOption> {
        self.left.remove(name);
        self.section.options.get(name)
    }

    /// The option with everything replaced.
    pub(super) fn get(&mut self, name: &str) -> Result<Option<(Expanded, &'a SourceLine)>, ImportError> {
        let Some(entry) = self.raw(name) else { return Ok(None) };
        // `here` is the directory of the file with this line.
        self.names.set_text("here", directory(&entry.place.file));
        let value = self.names.expand(&entry.value).map_err(|why| entry.place.error(why))?;
        Ok(Some((value, &entry.place)))
    }

    /// The option, if it does not depend on a variable.
    pub(super) fn text(
        &mut self,
        name: &str,
        document: &mut Document,
    ) -> Result<Option<(String, &'a SourceLine)>, ImportError> {
        let Some((value, place)) = self.get(name)? else { return Ok(None) };
        let text = plain(&value);
        if text.is_none() {
            document.inexact(place, "it depends on a variable, which is not possible for this key");
        }
        Ok(text.map(|text| (text, place)))
    }

    pub(super) fn number(
        &mut self,
        name: &str,
        document: &mut Document,
    ) -> Result<Option<(u64, &'a SourceLine)>, ImportError> {
        let Some((text, place)) = self.text(name, document)? else { return Ok(None) };
        match text.trim().parse() {
            Ok(number) => Ok(Some((number, place))),
            Err(_) => Err(place.error(format!("`{name}` is not a number that supervisord accepts"))),
        }
    }

    pub(super) fn flag(
        &mut self,
        name: &str,
        document: &mut Document,
    ) -> Result<Option<(bool, &'a SourceLine)>, ImportError> {
        let Some((text, place)) = self.text(name, document)? else { return Ok(None) };
        match text.to_lowercase().as_str() {
            "yes" | "true" | "on" | "1" => Ok(Some((true, place))),
            "no" | "false" | "off" | "0" => Ok(Some((false, place))),
            _ => Err(place.error(format!("`{name}` is `true` or `false`"))),
        }
    }

    /// A size such as `50MB`.
    pub(super) fn bytes(
        &mut self,
        name: &str,
        document: &mut Document,
    ) -> Result<Option<(u64, &'a SourceLine)>, ImportError> {
        let Some((text, place)) = self.text(name, document)? else { return Ok(None) };
        let text = text.to_lowercase();
        let units = [("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30)];
        let unit = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
        let (digits, factor) = unit.unwrap_or((&text, 1));
        match digits.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(factor)) {
            Some(bytes) => Ok(Some((bytes, place))),
            None => Err(place.error(format!("`{name}` is not a size such as 50MB"))),
        }
    }

    /// Variables of processes. Those that follow can name them.
    pub(super) fn environment(
        &mut self,
        document: &mut Document,
    ) -> Result<Option<(Vec<Field>, &'a SourceLine)>, ImportError> {
        let Some((value, place)) = self.get("environment")? else { return Ok(None) };
        let (variables, skipped) = expand::environment(&value).map_err(|why| place.error(why))?;
        for text in skipped {
            document.inexact(
                place,
                format!("supervisord ignores `{text}`: a value with such characters needs quotes"),
            );
        }
        let mut env: Vec<Field> = Vec::new();
        let mut by_name = BTreeMap::new();
        for (name, text) in variables {
            let field = Field::new(&name, expand::value(&text));
            let index = *by_name.entry(name.clone()).or_insert(env.len());
            match env.get_mut(index) {
                Some(earlier) => *earlier = field,
                None => env.push(field),
            }
            self.names.set(&format!("ENV_{name}"), text);
        }
        Ok(Some((env, place)))
    }

    /// Lists all options that were not read.
    pub(super) fn inexact_others(&self, document: &mut Document) {
        let mut others: Vec<&IniOption> =
            self.left.iter().filter_map(|name| self.section.options.get(*name)).collect();
        others.sort_by_key(|entry| (&entry.place.file, entry.place.line));
        for entry in others {
            document.inexact(&entry.place, "supervisord does not know this key");
        }
    }
}

/// Octal digits as `umask` takes them.
pub(super) fn octal(text: &str) -> Option<String> {
    let digits = text.trim().trim_start_matches("0o");
    let mode = u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o777)?;
    Some(format!("{mode:04o}"))
}
