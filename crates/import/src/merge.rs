//! How Compose, process-compose and Pebble combine YAML files, and the first two `include` and `extends`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::error::ImportError;
use crate::files::Files;
use crate::yaml::{self, Map, YamlEntry, YamlNode};

/// How long a chain of `extends` or `include` may be.
const MAX_CHAIN: usize = 16;
/// The most keys that are combined, so that a hostile file does not take long.
const MAX_WORK: usize = 1_000_000;

pub(crate) struct Loader<'a> {
    files: &'a dyn Files,
    documents: BTreeMap<String, Rc<Map>>,
    work: usize,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(files: &'a dyn Files) -> Self {
        Self { files, documents: BTreeMap::new(), work: 0 }
    }

    /// A file as it is, with its documents combined.
    fn document(&mut self, path: &str) -> Result<Rc<Map>, ImportError> {
        if let Some(document) = self.documents.get(path) {
            return Ok(Rc::clone(document));
        }
        let mut project = Map::default();
        for document in yaml::read(self.files, path)? {
            match document.map() {
                Some(map) => project = self.merge_projects(&project, map)?,
                None if document.is_null() => {}
                None => return Err(document.error(format!("expected `services:`, not {}", document.what()))),
            }
        }
        let project = Rc::new(project);
        self.documents.insert(path.to_owned(), Rc::clone(&project));
        Ok(project)
    }

    /// A file with what it includes and extends.
    pub(crate) fn project(&mut self, path: &str, depth: usize) -> Result<Map, ImportError> {
        let own = self.document(path)?;
        let mut project = Map::default();
        // A file of process-compose extends another file, one of Compose includes others.
        if let Some(include) = own.entry("include").or_else(|| own.entry("extends")) {
            if depth >= MAX_CHAIN {
                return Err(include.error(format!("files include each other more than {MAX_CHAIN} deep")));
            }
            for item in items(&include.value) {
                let paths = item.get("path").unwrap_or(item);
                for path_of in items(paths) {
                    let name =
                        path_of.text().ok_or_else(|| path_of.error("`include` takes the paths of files"))?;
                    let included = self.project(&beside(path, name), depth + 1)?;
                    project = self.merge_projects(&project, &included)?;
                }
            }
        }
        let mut own_services = Map::default();
        for entry in services(&own).and_then(|services| services.value.map()).into_iter().flatten() {
            let service = self.service(path, &entry.key, entry, 0)?;
            own_services.set(entry.with(service));
        }
        let mut resolved = (*own).clone();
        if let Some(services) = services(&own) {
            resolved.set(services.with(services.value.with_map(own_services)));
        }
        self.merge_projects(&project, &resolved)
    }

    /// A service with what it extends.
    fn service(
        &mut self,
        path: &str,
        name: &str,
        from: &YamlEntry,
        depth: usize,
    ) -> Result<YamlNode, ImportError> {
        let document = self.document(path)?;
        let Some(service) = services(&document).and_then(|services| services.value.get(name)) else {
            return Err(from.error(format!("{path} does not define `{name}`")));
        };
        let Some(map) = service.map() else { return Ok(service.clone()) };
        let Some(extends) = map.entry("extends") else { return Ok(service.clone()) };
        if depth >= MAX_CHAIN {
            return Err(
                extends.error(format!("`extends` is nested more than {MAX_CHAIN} deep, or in a cycle"))
            );
        }
        let other = extends.value.get("service").unwrap_or(&extends.value);
        let Some(other) = other.text() else {
            return Err(extends.error("`extends` takes the name of a service, or `service` and `file`"));
        };
        let file = extends.value.get("file").and_then(YamlNode::text).map(|file| beside(path, file));
        let base = self.service(file.as_deref().unwrap_or(path), other, extends, depth + 1)?;
        // What is extended is converted again for each service.
        self.work = self.work.saturating_add(base.size());
        self.spend(extends)?;
        let own = service.with_map(map.without(&BTreeSet::from(["extends"])));
        self.merge_services(&base, &own)
    }

    fn spend(&mut self, on: &YamlEntry) -> Result<(), ImportError> {
        self.work += 1;
        match self.work > MAX_WORK {
            true => Err(on.error("the files are too large when they are combined")),
            false => Ok(()),
        }
    }

    pub(crate) fn merge_projects(&mut self, base: &Map, over: &Map) -> Result<Map, ImportError> {
        let mut merged = base.clone();
        self.work += base.entries().len();
        for entry in over {
            self.spend(entry)?;
            let value = match (merged.get(&entry.key), entry.key.as_str()) {
                (Some(old), "services" | "processes") => {
                    self.merge_maps(old, &entry.value, Self::merge_services)?
                }
                (Some(old), _) => self.merge_values(old, &entry.value)?,
                (None, _) => entry.value.clone(),
            };
            merged.set(entry.with(value));
        }
        Ok(merged)
    }

    fn merge_maps(
        &mut self,
        base: &YamlNode,
        over: &YamlNode,
        merge: impl Fn(&mut Self, &YamlNode, &YamlNode) -> Result<YamlNode, ImportError>,
    ) -> Result<YamlNode, ImportError> {
        let (Some(old), Some(new)) = (base.map(), over.map()) else { return Ok(over.clone()) };
        let reset = |entry: &&YamlEntry| entry.value.tag() == Some("!reset");
        let removed: BTreeSet<&str> = new.into_iter().filter(reset).map(|entry| entry.key.as_str()).collect();
        let mut merged = old.without(&removed);
        self.work += old.entries().len();
        for entry in new.into_iter().filter(|entry| !reset(entry)) {
            self.spend(entry)?;
            let value = match merged.get(&entry.key) {
                Some(old) if entry.value.tag() != Some("!override") => merge(self, old, &entry.value)?,
                _ => entry.value.clone(),
            };
            merged.set(entry.with(value));
        }
        Ok(over.with_map(merged))
    }

    fn merge_services(&mut self, base: &YamlNode, over: &YamlNode) -> Result<YamlNode, ImportError> {
        let by_name = |service: &YamlNode| match service.map() {
            None => service.clone(),
            Some(map) => {
                let mut map = map.clone();
                for key in ["environment", "depends_on", "labels"] {
                    if let Some(entry) = map.entry(key).cloned() {
                        map.set(entry.with(names_of_list(&entry.value)));
                    }
                }
                if let Some(entry) = map.entry("env_file").cloned() {
                    map.set(entry.with(entry.value.with_list(items(&entry.value).to_vec())));
                }
                service.with_map(map)
            }
        };
        let (base, over) = (by_name(base), by_name(over));
        let whole = over.map().into_iter().flatten().filter(|entry| is_replaced(&entry.key)).cloned();
        let whole: Vec<YamlEntry> = whole.filter(|entry| entry.value.tag() != Some("!reset")).collect();
        let merged = self.merge_maps(&base, &over, |loader, old, new| loader.merge_values(old, new))?;
        let Some(mut map) = merged.map().cloned() else { return Ok(merged) };
        whole.into_iter().for_each(|entry| map.set(entry));
        let test = over.get("healthcheck").and_then(YamlNode::map).and_then(|check| check.entry("test"));
        if let (Some(test), Some(check)) = (test, map.entry("healthcheck").cloned())
            && let Some(mut inner) = check.value.map().cloned()
        {
            inner.set(test.clone());
            map.set(check.with(check.value.with_map(inner)));
        }
        Ok(merged.with_map(map))
    }

    /// Mappings are combined, lists are appended, and everything else is replaced.
    pub(crate) fn merge_values(&mut self, base: &YamlNode, over: &YamlNode) -> Result<YamlNode, ImportError> {
        match (base.list(), over.list()) {
            (Some(old), Some(new)) => {
                self.work += old.len() + new.len();
                Ok(over.with_list(old.iter().chain(new).cloned().collect()))
            }
            _ => self.merge_maps(base, over, |loader, old, new| loader.merge_values(old, new)),
        }
    }
}

fn is_replaced(key: &str) -> bool {
    matches!(key, "command" | "entrypoint")
}

/// The services of Compose, or the processes of process-compose.
fn services(document: &Map) -> Option<&YamlEntry> {
    document.entry("services").or_else(|| document.entry("processes"))
}

/// The items of a list; anything else is its only item.
fn items(node: &YamlNode) -> &[YamlNode] {
    node.list().unwrap_or(std::slice::from_ref(node))
}

/// The files of a directory that a program looks for: the first of `names`, and of `overrides`. Any other path is the only file.
///
/// # Errors
/// If a directory has none of these files.
pub(crate) fn in_directory(
    path: &str,
    files: &dyn Files,
    names: [&str; 4],
    overrides: [&str; 4],
) -> Result<Vec<String>, ImportError> {
    let Some(present) = files.list(path) else { return Ok(vec![path.to_owned()]) };
    let find = |wanted: [&str; 4]| {
        let name = wanted.into_iter().find(|wanted| present.iter().any(|name| name == wanted))?;
        Some(format!("{}/{name}", path.trim_end_matches('/')))
    };
    match find(names) {
        Some(file) => Ok(std::iter::once(file).chain(find(overrides)).collect()),
        None => {
            let why = format!("the directory has none of {}", names.join(", "));
            Err(ImportError::Unreadable { path: path.to_owned(), why })
        }
    }
}

/// A path of a file, relative to another file.
pub(crate) fn beside(file: &str, path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    match file.rsplit_once('/') {
        Some((directory, _)) if !path.starts_with('/') => format!("{directory}/{path}"),
        _ => path.to_owned(),
    }
}

/// A list of `NAME=value`, or of names, as a mapping. A later item wins.
pub(crate) fn names_of_list(node: &YamlNode) -> YamlNode {
    let Some(items) = node.list() else { return node.clone() };
    let mut map = Map::default();
    for item in items {
        let Some(text) = item.text() else { continue };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, item.with_text(value)),
            None => (text, item.with_nothing()),
        };
        map.set(YamlEntry::at(name, value, item));
    }
    node.with_map(map)
}
