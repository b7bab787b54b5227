//! The pages that are in the program, for `containerpilot help TOPIC`.

use std::io::{Read, Result, Write};

use lzma_rust2::{LzmaOptions, LzmaReader, LzmaWriter};

use crate::contents::{self, Contents, Page, Section};
use crate::links::{anchor, anchors, is_address, join, section, split};
use crate::markdown::{self, Block, Link, inline};
use crate::terminal::{Style, render};

/// The decoder may use this much memory, in KiB.
const MAX_MEMORY: u32 = 4096;
/// The page with the keys of a configuration.
const REFERENCE: &str = "docs/reference.md";

/// Compresses the table of contents and its pages, except those about the project. `read` returns the text of a file.
///
/// # Errors
/// Fails if `read` does.
pub fn pack(mut read: impl FnMut(&str) -> Result<String>) -> Result<Vec<u8>> {
    let text = read(contents::PATH)?;
    let mut all = format!("{}\0{text}", contents::PATH);
    for page in Contents::parse(&text).offline().flat_map(|section| &section.pages) {
        all.push_str(&format!("\0{}\0{}", page.path, read(&page.path)?));
    }
    // The bytes of a text have no position bits.
    let options = LzmaOptions { dict_size: 1 << 20, lc: 3, lp: 0, pb: 0, ..LzmaOptions::with_preset(9) };
    let mut packer = LzmaWriter::new_use_header(Vec::new(), &options, None)?;
    packer.write_all(all.as_bytes())?;
    packer.finish()
}

fn decompress(packed: &[u8]) -> Result<String> {
    let mut text = String::new();
    LzmaReader::new_mem_limit(packed, MAX_MEMORY, None)?.read_to_string(&mut text)?;
    Ok(text)
}

/// What the reference says about a key, as Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The heading of the object that has it.
    pub object: String,
    /// The type of its value.
    pub kind: String,
    /// Its default; empty if it has none.
    pub default: String,
    /// What it means.
    pub meaning: String,
}

/// The unpacked pages.
#[derive(Debug, Default)]
pub struct Manual {
    contents: Contents,
    /// Paths and texts.
    pages: Vec<(String, String)>,
}

impl Manual {
    /// Unpacks what [`pack`] returned; anything else is an empty manual.
    #[must_use]
    pub fn unpack(packed: &[u8]) -> Self {
        let all = decompress(packed).unwrap_or_default();
        let mut parts = all.split('\0').map(str::to_owned);
        let mut pages = Vec::new();
        while let (Some(path), Some(text)) = (parts.next(), parts.next()) {
            pages.push((path, text));
        }
        let contents = pages.first().map(|(_, text)| Contents::parse(text)).unwrap_or_default();
        Self { contents, pages }
    }

    /// The sections with their pages.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        self.contents.offline()
    }

    /// All pages in their order.
    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        self.sections().flat_map(|section| &section.pages)
    }

    /// The Markdown of a page.
    #[must_use]
    pub fn text(&self, page: &Page) -> &str {
        self.text_of(&page.path).unwrap_or_default()
    }

    fn text_of(&self, path: &str) -> Option<&str> {
        self.pages.iter().find(|(known, _)| known == path).map(|(_, text)| text.as_str())
    }

    /// The page with this topic, or else the first one whose topic ends with it. Blanks are dashes, and `.md` may follow.
    #[must_use]
    pub fn find(&self, topic: &str) -> Option<&Page> {
        let topic = topic.to_lowercase().replace(' ', "-");
        let topic = topic.strip_suffix(".md").unwrap_or(&topic);
        let last = |page: &&Page| page.topic().rsplit('/').next() == Some(topic);
        self.pages().find(|page| page.topic() == topic).or_else(|| self.pages().find(last))
    }

    /// A page for a terminal, or its part below the heading with this anchor.
    #[must_use]
    pub fn render(&self, page: &Page, anchor: &str, width: usize, bold: bool) -> Option<String> {
        let text = self.text(page);
        let text = if anchor.is_empty() { text } else { section(text, anchor)? };
        Some(render(text, Style { width, bold, reference: &|link| self.reference(&page.path, link) }))
    }

    /// The keys of the configuration, with what the reference says about each.
    #[must_use]
    pub fn keys(&self) -> Vec<(String, Key)> {
        let mut keys = Vec::new();
        let mut object = String::new();
        for block in markdown::blocks(self.text_of(REFERENCE).unwrap_or_default()) {
            match block {
                Block::Heading(_, text) => object = text,
                Block::Table(rows) => {
                    keys.extend(rows.iter().skip(1).filter_map(|row| match row.as_slice() {
                        [name, kind, default, meaning, _] => {
                            let [kind, default, meaning] = [kind, default, meaning].map(Clone::clone);
                            Some((
                                name.trim_matches('`').to_owned(),
                                Key { object: object.clone(), kind, default, meaning },
                            ))
                        }
                        _ => None,
                    }))
                }
                _ => {}
            }
        }
        keys
    }

    /// Keys with this name for a terminal: the objects that have it, its types, defaults and meanings. `None` if no object has it.
    #[must_use]
    pub fn render_keys(&self, name: &str, width: usize, bold: bool) -> Option<String> {
        let mut text = String::new();
        for (name, key) in self.keys().iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)) {
            let Key { object, kind, default, meaning } = key;
            if text.is_empty() {
                text = format!("# `{name}`\n");
            }
            let default = if default.is_empty() { String::new() } else { format!(", default {default}") };
            let anchor = anchor(object);
            let place = format!("In [{object}](reference.md#{anchor}): {kind}{default}.");
            text.push_str(&format!("\n{place} {meaning}\n"));
        }
        let style = Style { width, bold, reference: &|link| self.reference(REFERENCE, link) };
        (!text.is_empty()).then(|| render(&text, style))
    }

    /// The entries of the index whose term contains each of these words, with their text.
    #[must_use]
    pub fn index(&self, words: &str) -> Vec<(String, String)> {
        let path = "docs/index.md";
        let reference = |link: &Link| self.reference(path, link);
        let rows =
            markdown::blocks(self.text_of(path).unwrap_or_default()).into_iter().flat_map(
                |block| match block {
                    Block::Table(rows) => rows,
                    _ => Vec::new(),
                },
            );
        let entries = rows.skip(1).filter_map(|row| match row.as_slice() {
            [term, place] => Some((markdown::plain(term), inline(place, &reference))),
            _ => None,
        });
        entries.filter(|(term, _)| has_words(term, words)).collect()
    }

    /// The headings that contain each of these words, with their places.
    #[must_use]
    pub fn headings(&self, words: &str) -> Vec<(String, String)> {
        let all = self.pages().flat_map(|page| {
            let text = self.text(page);
            let headings = markdown::headings(text).into_iter().map(|heading| markdown::plain(&heading.text));
            let places = anchors(text).into_iter().map(|anchor| format!("[{}#{anchor}]", page.topic()));
            headings.zip(places).collect::<Vec<_>>()
        });
        all.filter(|(heading, _)| has_words(heading, words)).collect()
    }

    /// What follows the text of a link: the topic, the file or the address.
    fn reference(&self, page: &str, link: &Link) -> String {
        let (file, anchor) = split(&link.target);
        if is_address(&link.target) {
            return format!(" <{}>", link.target);
        }
        if file.is_empty() {
            return String::new();
        }
        let path = join(page, file).unwrap_or_default();
        let hash = if anchor.is_empty() { "" } else { "#" };
        match self.pages().find(|page| page.path == path) {
            Some(page) => format!(" [{}{hash}{anchor}]", page.topic()),
            None if path == contents::PATH => " [topics]".to_owned(),
            // A page that is not in the program.
            None if path.ends_with(".md") => String::new(),
            None if path.contains(link.text.trim_matches('`')) => String::new(),
            None => format!(" ({path})"),
        }
    }
}

/// Returns true if each of these words begins a word of the text. A plural finds the singular.
fn has_words(text: &str, words: &str) -> bool {
    let (text, words) = (text.to_lowercase(), words.to_lowercase());
    let begins_there = |at: usize| !text.get(..at).unwrap_or_default().ends_with(char::is_alphanumeric);
    let has = |word: &str| text.match_indices(word).any(|(at, _)| begins_there(at));
    !words.trim().is_empty() && words.split_whitespace().map(singular).all(has)
}

/// A word without the ending of a plural.
fn singular(word: &str) -> &str {
    word.strip_suffix('s').filter(|rest| rest.len() > 2 && !rest.ends_with('s')).unwrap_or(word)
}
