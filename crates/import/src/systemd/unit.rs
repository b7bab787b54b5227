//! Unit files: sections with `Key=value`, drop-ins and specifiers.

use std::collections::{BTreeMap, BTreeSet};

use super::keys;
use crate::document::Document;
use crate::error::ImportError;
use crate::files::{self, Files, SourceLine, Text, shortened};

/// The longest name of a unit, as in systemd.
const MAX_NAME: usize = 255;

/// An assignment of a unit file.
#[derive(Clone, Debug)]
pub(crate) struct UnitSetting {
    /// The section, without brackets.
    pub(crate) section: String,
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) place: SourceLine,
}

/// A unit with its drop-ins.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// Its full name, such as `app.service`.
    pub(crate) name: String,
    /// Its assignments, those of the drop-ins last.
    pub(crate) entries: Vec<UnitSetting>,
    /// The first line of its file.
    pub(crate) top: SourceLine,
    /// How many of the assignments are those of its file.
    own: usize,
    /// Whether its file is empty, which masks the unit.
    pub(crate) masked: bool,
}

impl Unit {
    /// Reads a unit file, without its drop-ins.
    pub(crate) fn read(
        files: &dyn Files,
        path: &str,
        name: &str,
        document: &mut Document,
    ) -> Result<Self, ImportError> {
        let text = Text::read(files, path)?;
        let mut unit = Self {
            name: name.to_owned(),
            entries: Vec::new(),
            top: text.place(1),
            own: 0,
            masked: text.text.is_empty(),
        };
        unit.add(&text, document);
        unit.own = unit.entries.len();
        Ok(unit)
    }

    /// Adds the assignments of a file.
    pub(crate) fn add(&mut self, text: &Text, document: &mut Document) {
        let mut section = String::new();
        let mut continued: Option<(SourceLine, String)> = None;
        let mut logical = Vec::new();
        for (place, line) in text.lines() {
            let comment = line.trim_start().starts_with(['#', ';']);
            if comment || (continued.is_none() && line.trim().is_empty()) {
                continue;
            }
            let (place, before) = continued.take().unwrap_or((place, String::new()));
            match line.strip_suffix('\\') {
                Some(line) => continued = Some((place, before + line.trim_start() + " ")),
                None => logical.push((place, before + line.trim())),
            }
        }
        logical.extend(continued);
        for (mut place, line) in logical {
            let line = line.trim();
            place.text = shortened(line);
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                name.clone_into(&mut section);
                continue;
            }
            match line.split_once('=') {
                Some((key, value)) if !section.is_empty() => self.entries.push(UnitSetting {
                    section: section.clone(),
                    key: key.trim_end().to_owned(),
                    value: value.trim_start().to_owned(),
                    place,
                }),
                Some(_) => document.inexact(&place, "it is in no section; systemd ignores it"),
                None => document.inexact(&place, "it is not `Key=value`; systemd ignores it"),
            }
        }
    }

    /// Removes the assignments that a later one resets or replaces, and lists them.
    pub(crate) fn remove_overridden(&mut self, document: &mut Document) {
        let mut later: BTreeMap<(String, String), (bool, SourceLine)> = BTreeMap::new();
        let mut kept = Vec::new();
        for entry in std::mem::take(&mut self.entries).into_iter().rev() {
            let id = (entry.section.clone(), keys::list_of(&entry.section, &entry.key).to_owned());
            let resets = entry.value.is_empty() && keys::can_be_reset(&entry.section, &entry.key);
            match later.get(&id) {
                Some((true, at)) => {
                    document.not_needed(&entry.place, format!("{}:{} resets it", at.file, at.line));
                    continue;
                }
                Some((false, at)) if keys::is_single(&entry.section, &entry.key) => {
                    document.not_needed(&entry.place, format!("{}:{} sets it again", at.file, at.line));
                    continue;
                }
                _ => {}
            }
            later.insert(id, (resets, entry.place.clone()));
            kept.push(entry);
        }
        kept.reverse();
        self.entries = kept;
    }

    /// The values of a key since it was last reset.
    pub(crate) fn all(&self, section: &str, key: &str) -> Vec<&UnitSetting> {
        let mut found: Vec<&UnitSetting> = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry.section == section && entry.key == key) {
            match entry.value.is_empty() {
                true => found.clear(),
                false => found.push(entry),
            }
        }
        found
    }

    /// The value of a key.
    pub(crate) fn last(&self, section: &str, key: &str) -> Option<&UnitSetting> {
        self.all(section, key).pop()
    }

    /// The name without the type.
    pub(crate) fn stem(&self) -> &str {
        self.name.rsplit_once('.').map_or(self.name.as_str(), |(stem, _)| stem)
    }

    /// The instance of a template.
    pub(crate) fn instance(&self) -> &str {
        self.stem().split_once('@').map_or("", |(_, instance)| instance)
    }

    /// The service that a timer starts.
    pub(crate) fn timed_service(&self) -> String {
        let own = || format!("{}.service", self.stem());
        let service = self.last("Timer", "Unit").map_or_else(own, |entry| entry.value.clone());
        self.expand(&service).unwrap_or(service)
    }

    /// Whether it is a template without an instance.
    pub(crate) fn is_template(&self) -> bool {
        self.stem().ends_with('@')
    }

    /// Replaces the specifiers of a value.
    ///
    /// # Errors
    /// The specifier that is unknown before the machine runs.
    pub(crate) fn expand(&self, text: &str) -> Result<String, char> {
        let mut out = String::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let prefix = self.stem().split_once('@').map_or(self.stem(), |(prefix, _)| prefix);
            let last = |text: &str| text.rsplit_once('-').map_or(text, |(_, last)| last).to_owned();
            match chars.next() {
                Some('%') | None => out.push('%'),
                Some('n') => out.push_str(&self.name),
                Some('N') => out.push_str(self.stem()),
                Some('p') => out.push_str(prefix),
                Some('P') => out.push_str(&unescape(prefix)),
                Some('i') => out.push_str(self.instance()),
                Some('I') => out.push_str(&unescape(self.instance())),
                Some('j') => out.push_str(&last(prefix)),
                Some('J') => out.push_str(&unescape(&last(prefix))),
                Some('f') => {
                    let path = if self.instance().is_empty() { prefix } else { self.instance() };
                    out.push('/');
                    out.push_str(unescape(path).trim_start_matches('/'));
                }
                Some('t') => out.push_str("/run"),
                Some('S') => out.push_str("/var/lib"),
                Some('C') => out.push_str("/var/cache"),
                Some('L') => out.push_str("/var/log"),
                Some('E') => out.push_str("/etc"),
                Some('T') => out.push_str("/tmp"),
                Some('V') => out.push_str("/var/tmp"),
                Some('h') => out.push_str("/root"),
                Some('u' | 'g') => out.push_str("root"),
                Some('U' | 'G') => out.push('0'),
                Some(other) => return Err(other),
            }
        }
        Ok(out)
    }
}

/// The name of an instance of a template; `None` if it is too long.
pub(crate) fn valid_name(name: &str) -> bool {
    name.len() <= MAX_NAME && !name.contains(['/', ' '])
}

/// The template of an instance: `x@.service` for `x@a.service`.
pub(crate) fn template_of(name: &str) -> Option<String> {
    let (prefix, rest) = name.split_once('@')?;
    let (instance, kind) = rest.rsplit_once('.')?;
    (!instance.is_empty()).then(|| format!("{prefix}@.{kind}"))
}

/// Undoes `systemd-escape`: `-` is `/`, `\x2d` is `-`.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let code = rest.strip_prefix("\\x").and_then(|hex| hex.get(..2));
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            out.push(byte);
            rest = rest.get(4..).unwrap_or_default();
        } else {
            let c_out = if c == '-' { '/' } else { c };
            out.extend(c_out.to_string().as_bytes());
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A link in a directory such as `x.target.wants`.
pub(crate) struct Link {
    /// The unit of the directory.
    pub(crate) unit: String,
    /// The key that it stands for: `Wants`.
    pub(crate) key: &'static str,
    /// The unit that it links to.
    pub(crate) target: String,
    pub(crate) place: SourceLine,
}

/// The units at the paths, and the names of those that a `.wants` directory enables.
pub(crate) struct Loaded {
    /// The units by name.
    pub(crate) units: BTreeMap<String, Unit>,
    /// The names in the order in which they were found.
    pub(crate) order: Vec<String>,
    /// The units that were named as a file.
    pub(crate) named: Vec<String>,
    pub(crate) links: Vec<Link>,
    /// The directories that can have drop-ins.
    directories: BTreeSet<String>,
    /// The drop-ins of the units.
    drop_ins: BTreeSet<String>,
}

/// Reads the units.
pub(crate) fn load(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<Loaded, ImportError> {
    let mut loaded = Loaded {
        units: BTreeMap::new(),
        order: Vec::new(),
        named: Vec::new(),
        links: Vec::new(),
        directories: BTreeSet::new(),
        drop_ins: BTreeSet::new(),
    };
    for path in paths {
        let path = path.trim_end_matches('/');
        let Some(names) = files.list(path) else {
            let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
            loaded.directories.insert(files::directory(path).to_owned());
            loaded.named.push(name.to_owned());
            loaded.add(files, path, name, document)?;
            continue;
        };
        loaded.directories.insert(path.to_owned());
        for name in names {
            let inner = format!("{path}/{name}");
            let link = [(".wants", "Wants"), (".requires", "Requires"), (".upholds", "Upholds")]
                .iter()
                .find_map(|(suffix, key)| Some((name.strip_suffix(suffix)?, *key)));
            match link {
                Some((unit, key)) => {
                    for target in files.list(&inner).unwrap_or_default() {
                        let place =
                            SourceLine { file: format!("{inner}/{target}"), line: 1, text: "link".into() };
                        loaded.links.push(Link { unit: unit.to_owned(), key, target, place });
                    }
                }
                None if is_unit(&name) => loaded.add(files, &inner, &name, document)?,
                None => {}
            }
        }
    }
    for name in loaded.order.clone() {
        loaded.add_drop_ins(&name, files, document)?;
    }
    Ok(loaded)
}

impl Loaded {
    fn add(
        &mut self,
        files: &dyn Files,
        path: &str,
        name: &str,
        document: &mut Document,
    ) -> Result<(), ImportError> {
        if !is_unit(name) {
            // A file that does not exist is the first thing to say.
            Text::read(files, path)?;
            let message = "the name of a unit file ends in `.service`, `.timer`, `.target` or another type";
            return Err(ImportError::Empty { path: path.to_owned(), message: message.into() });
        }
        if !self.units.contains_key(name) {
            let unit = Unit::read(files, path, name, document)?;
            self.order.push(name.to_owned());
            self.units.insert(name.to_owned(), unit);
        }
        Ok(())
    }

    /// Creates the unit with this name from its template, with its own drop-ins. Returns false if there is no template.
    pub(crate) fn instantiate(
        &mut self,
        name: &str,
        files: &dyn Files,
        document: &mut Document,
    ) -> Result<bool, ImportError> {
        let template = template_of(name).and_then(|template| self.units.get(&template));
        let Some(template) = template.filter(|_| valid_name(name)) else { return Ok(false) };
        let mut unit = Unit { name: name.to_owned(), ..template.clone() };
        unit.entries.truncate(unit.own);
        self.order.push(name.to_owned());
        self.units.insert(name.to_owned(), unit);
        self.add_drop_ins(name, files, document)?;
        Ok(true)
    }

    fn add_drop_ins(
        &mut self,
        name: &str,
        files: &dyn Files,
        document: &mut Document,
    ) -> Result<(), ImportError> {
        let Some(unit) = self.units.get_mut(name) else { return Ok(()) };
        for path in drop_ins(unit, &self.directories, files) {
            unit.add(&Text::read(files, &path)?, document);
            self.drop_ins.insert(path);
        }
        Ok(())
    }

    /// Lists the drop-ins that belong to no unit.
    pub(crate) fn list_other_drop_ins(
        &self,
        files: &dyn Files,
        document: &mut Document,
    ) -> Result<(), ImportError> {
        for directory in &self.directories {
            let owners = files.list(directory).unwrap_or_default();
            for owner in owners.iter().filter(|owner| owner.strip_suffix(".d").is_some_and(is_unit)) {
                let folder = format!("{directory}/{owner}");
                for name in files.list(&folder).unwrap_or_default() {
                    let path = format!("{folder}/{name}");
                    if name.ends_with(".conf") && !self.drop_ins.contains(&path) {
                        let why = "no unit among the files uses it";
                        document.inexact(&Text::read(files, &path)?.place(1), why);
                    }
                }
            }
        }
        Ok(())
    }
}

const KINDS: [&str; 10] =
    ["service", "timer", "target", "socket", "path", "mount", "automount", "swap", "slice", "device"];

fn is_unit(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, kind)| !stem.is_empty() && KINDS.contains(&kind))
}

/// The drop-ins of a unit, by name. Of two with one name, that of the more specific directory counts.
fn drop_ins(unit: &Unit, directories: &BTreeSet<String>, files: &dyn Files) -> Vec<String> {
    let kind = unit.name.rsplit_once('.').map_or("", |(_, kind)| kind).to_owned();
    let mut owners = vec![format!("{kind}.d")];
    let stem = template_of(&unit.name).map_or_else(
        || unit.stem().to_owned(),
        |_| unit.stem().split_once('@').map_or(unit.stem(), |(prefix, _)| prefix).to_owned(),
    );
    let dashes = stem.match_indices('-').map(|(at, _)| at + 1);
    owners.extend(dashes.filter_map(|end| Some(format!("{}.{kind}.d", stem.get(..end)?))));
    owners.extend(template_of(&unit.name).map(|template| format!("{template}.d")));
    owners.push(format!("{}.d", unit.name));
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for directory in directories {
        for owner in &owners {
            let path = format!("{directory}/{owner}");
            for name in files.list(&path).unwrap_or_default() {
                if name.ends_with(".conf") {
                    let file = format!("{path}/{name}");
                    found.insert(name, file);
                }
            }
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_specifiers_are_those_of_the_unit() {
        let top = SourceLine { file: String::new(), line: 1, text: String::new() };
        let name = "get-mail@a-b\\x2dc.service".into();
        let unit = Unit { name, entries: Vec::new(), top, own: 0, masked: false };
        let expand = |text| unit.expand(text);
        assert_eq!(expand("%n %p %i"), Ok("get-mail@a-b\\x2dc.service get-mail a-b\\x2dc".into()));
        assert_eq!(expand("%I %f %j %%"), Ok("a/b-c /a/b-c mail %".into()));
        assert_eq!(expand("%t/x"), Ok("/run/x".into()));
        assert_eq!(expand("%H"), Err('H'));
    }
}
