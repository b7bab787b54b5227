//! Reads YAML.

use std::collections::BTreeMap;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Tag};

use super::node::{Kind, MAX_DEPTH, MAX_SIZE, Map, Source, YamlEntry, YamlNode, YamlValue, kind_of};
use crate::error::ImportError;
use crate::files::{Files, Text};

/// Reads a file: its documents, of which an empty file has none.
///
/// # Errors
/// If the file cannot be read, is not YAML, or exceeds a limit.
pub fn read(files: &dyn Files, path: &str) -> Result<Vec<YamlNode>, ImportError> {
    parse(&Text::read(files, path)?)
}

/// Reads YAML: its documents, of which an empty text has none.
///
/// # Errors
/// If it is not YAML, has a key twice or a key that is not a text, or exceeds a limit.
pub fn parse(text: &Text) -> Result<Vec<YamlNode>, ImportError> {
    let source = Source::new(text);
    let mut reader = Reader {
        source: Rc::clone(&source),
        open: Vec::new(),
        anchors: BTreeMap::new(),
        documents: Vec::new(),
        size: 0,
    };
    for event in Parser::new_from_str(&text.text) {
        let (event, span) = event.map_err(|error: ScanError| {
            source.error(error.marker().line().max(1), format!("this is not YAML: {}", error.info()))
        })?;
        reader.event(event, span.start.line().max(1))?;
    }
    Ok(reader.documents)
}

/// Builds nodes from events, without recursion.
struct Reader {
    source: Rc<Source>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, YamlNode>,
    documents: Vec<YamlNode>,
    size: usize,
}

/// A list or mapping whose end has not been read.
struct Open {
    contents: Contents,
    anchor: usize,
    tag: Option<Rc<str>>,
    line: usize,
    depth: usize,
    size: usize,
}

enum Contents {
    List(Vec<YamlNode>),
    Map { map: Map, key: Option<(String, usize)>, merge: Vec<YamlNode> },
}

impl Reader {
    fn event(&mut self, event: Event<'_>, line: usize) -> Result<(), ImportError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let as_text =
                    tag.as_ref().is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let kind = match style {
                    ScalarStyle::Plain if !as_text => kind_of(&text),
                    _ => Kind::Text,
                };
                self.grow(text.len() + 1, line)?;
                let size = text.len() + 1;
                let merge = style == ScalarStyle::Plain && text == "<<";
                let tag = self.tag(tag.as_deref(), line)?;
                let node = self.node(YamlValue::Scalar(kind, text.into_owned()), tag, line, 1, size);
                self.complete(node, anchor, merge)
            }
            Event::SequenceStart(anchor, tag) => {
                let tag = self.tag(tag.as_deref(), line)?;
                self.begin(Contents::List(Vec::new()), anchor, tag, line)
            }
            Event::MappingStart(anchor, tag) => {
                let tag = self.tag(tag.as_deref(), line)?;
                let contents = Contents::Map { map: Map::default(), key: None, merge: Vec::new() };
                self.begin(contents, anchor, tag, line)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    let message = "this alias refers to a value that is not complete here";
                    return Err(self.source.error(line, message));
                };
                self.grow(node.size, line)?;
                if self.open.len() + node.depth > MAX_DEPTH {
                    return Err(self.too_deep(line));
                }
                self.complete(node, 0, false)
            }
            Event::DocumentEnd => {
                self.anchors.clear();
                Ok(())
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => Ok(()),
        }
    }

    fn grow(&mut self, by: usize, line: usize) -> Result<(), ImportError> {
        self.size = self.size.saturating_add(by);
        match self.size > MAX_SIZE {
            true => {
                let message =
                    format!("the file has more than {MAX_SIZE} bytes when its aliases are expanded");
                Err(self.source.error(line, message))
            }
            false => Ok(()),
        }
    }

    fn too_deep(&self, line: usize) -> ImportError {
        self.source.error(line, format!("lists and mappings are nested more than {MAX_DEPTH} deep"))
    }

    fn tag(&mut self, tag: Option<&Tag>, line: usize) -> Result<Option<Rc<str>>, ImportError> {
        let Some(tag) = tag else { return Ok(None) };
        // The prefix of a tag may be long, and is copied for each tag.
        self.grow(tag.handle.len(), line)?;
        let own = !tag.is_yaml_core_schema() && !tag.suffix.is_empty();
        Ok(own.then(|| format!("{}{}", tag.handle, tag.suffix).into()))
    }

    fn node(
        &self,
        value: YamlValue,
        tag: Option<Rc<str>>,
        line: usize,
        depth: usize,
        size: usize,
    ) -> YamlNode {
        YamlNode { value: Rc::new(value), tag, source: Rc::clone(&self.source), line, depth, size }
    }

    fn begin(
        &mut self,
        contents: Contents,
        anchor: usize,
        tag: Option<Rc<str>>,
        line: usize,
    ) -> Result<(), ImportError> {
        self.grow(1, line)?;
        self.open.push(Open { contents, anchor, tag, line, depth: 1, size: 1 });
        match self.open.len() > MAX_DEPTH {
            true => Err(self.too_deep(line)),
            false => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), ImportError> {
        let Some(Open { contents, anchor, tag, line, depth, mut size }) = self.open.pop() else {
            return Ok(());
        };
        let value = match contents {
            Contents::List(items) => YamlValue::List(items),
            Contents::Map { mut map, merge, .. } => {
                for from in &merge {
                    size = size.saturating_add(self.merge(&mut map, from)?);
                }
                YamlValue::Map(map)
            }
        };
        let node = self.node(value, tag, line, depth, size);
        self.complete(node, anchor, false)
    }

    /// Adds the keys of the mappings at `<<` that the mapping itself does not have.
    fn merge(&mut self, map: &mut Map, from: &YamlNode) -> Result<usize, ImportError> {
        let sources = from.list().unwrap_or(std::slice::from_ref(from));
        let mut added = 0;
        for source in sources {
            let Some(other) = source.map() else {
                return Err(from.error("`<<` takes a mapping, or a list of mappings"));
            };
            for entry in other {
                self.grow(entry.key.len() + entry.value.size, from.line)?;
                if map.get(&entry.key).is_none() {
                    added += entry.key.len() + entry.value.size;
                    map.set(entry.clone());
                }
            }
        }
        Ok(added)
    }

    /// Puts a complete node where it belongs.
    fn complete(&mut self, node: YamlNode, anchor: usize, is_merge: bool) -> Result<(), ImportError> {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        open.depth = open.depth.max(node.depth + 1);
        open.size = open.size.saturating_add(node.size);
        match &mut open.contents {
            Contents::List(items) => items.push(node),
            Contents::Map { map, key, merge } => match key.take() {
                None => match &*node.value {
                    // `<<` as a key is not a key.
                    YamlValue::Scalar(_, text) if is_merge => *key = Some((text.clone(), 0)),
                    YamlValue::Scalar(_, text) => *key = Some((text.clone(), node.line)),
                    YamlValue::List(_) | YamlValue::Map(_) => {
                        return Err(node.error("a key must be a text: use quotes"));
                    }
                },
                Some((_, 0)) => merge.push(node),
                Some((key, line)) => {
                    if map.get(&key).is_some() {
                        return Err(self.source.error(line, format!("the key `{key}` is there twice")));
                    }
                    map.set(YamlEntry { key, value: node, source: Rc::clone(&self.source), line });
                }
            },
        }
        Ok(())
    }
}
