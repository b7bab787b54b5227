//! The manual as a web site: the input of mdBook, and the check of what it made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::Result;
use std::path::{Path, PathBuf};

use crate::contents::{self, Contents};
use crate::links::{anchors, is_address, join, split};
use crate::llms;
use crate::markdown::links;

/// The first page of the site.
const FRONT: &str = "README.md";

/// Files and folders that the pages link to; Markdown files among them are pages.
const FILES: [&str; 3] = ["docs", "examples", "LICENSE"];

/// Additions to the style of mdBook.
const STYLE: &str = include_str!("site.css");

/// The list of versions on each page.
const SCRIPT: &str = include_str!("site.js");

/// The pages of the site with their texts, first those that are not in the table of contents.
///
/// # Errors
/// Fails if a page cannot be read.
pub fn pages(root: &Path) -> Result<(Contents, Vec<(String, String)>)> {
    let read = |path: &str| {
        let read = std::fs::read_to_string(root.join(path));
        read.map_err(|error| std::io::Error::new(error.kind(), format!("{path}: {error}")))
    };
    let contents = Contents::parse(&read(contents::PATH)?);
    let paths = [FRONT, contents::PATH].into_iter().chain(contents.pages().map(|page| page.path.as_str()));
    let pages = paths.map(|path| Ok((path.to_owned(), read(path)?))).collect::<Result<Vec<_>>>()?;
    Ok((contents, pages))
}

/// All files below a folder, or the file itself, as paths from `root`.
///
/// # Errors
/// Fails if a folder cannot be read.
pub fn files(root: &Path, path: &str) -> Result<Vec<String>> {
    if root.join(path).is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join(path))? {
        let name = entry?.file_name();
        let separator = if path.is_empty() { "" } else { "/" };
        found.extend(files(root, &format!("{path}{separator}{}", name.to_string_lossy()))?);
    }
    found.sort();
    Ok(found)
}

/// The links of the pages that lead nowhere: a file that does not exist below `root`, or a heading that its page does not have.
#[must_use]
pub fn dead_links(root: &Path, pages: &[(String, String)]) -> Vec<String> {
    let mut headings: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut dead = Vec::new();
    for (page, text) in pages {
        for link in links(text).iter().filter(|link| !is_address(&link.target)) {
            let path = join(page, &link.target).unwrap_or_default();
            let (_, anchor) = split(&link.target);
            let read = || std::fs::read_to_string(root.join(&path)).unwrap_or_default();
            let mut has_anchor = || {
                headings
                    .entry(path.clone())
                    .or_insert_with(|| anchors(&read()))
                    .iter()
                    .any(|known| known == anchor)
            };
            if !root.join(&path).is_file() || !(anchor.is_empty() || has_anchor()) {
                dead.push(format!("{page}: {}", link.target));
            }
        }
    }
    dead
}

/// Writes the input of mdBook into the empty folder `out`. A link to a file that is not in the site becomes plain text, or, with
/// a `repository`, a link to that. Returns the links to files that do not exist at all.
///
/// # Errors
/// Fails if a file cannot be read or written.
pub fn stage(root: &Path, out: &Path, repository: Option<&str>) -> Result<Vec<String>> {
    let (contents, pages) = pages(root)?;
    let mut copied = BTreeSet::new();
    for path in FILES {
        copied.extend(files(root, path)?.into_iter().filter(|path| !path.ends_with(".md")));
    }
    let source = out.join("src");
    for path in &copied {
        create_folder_of(&source.join(path))?;
        std::fs::copy(root.join(path), source.join(path))?;
    }
    let mut known = copied;
    known.extend(pages.iter().map(|(path, _)| path.clone()));
    for (path, text) in &pages {
        let text = with_languages(&with_known_links(path, text, &known, repository));
        create_folder_of(&source.join(path))?;
        std::fs::write(source.join(path), text)?;
    }
    std::fs::write(source.join("SUMMARY.md"), summary(&contents))?;
    std::fs::write(out.join("site.css"), STYLE)?;
    std::fs::write(out.join("site.js"), SCRIPT)?;
    std::fs::write(out.join("book.toml"), settings(repository))?;
    Ok(dead_links(root, &pages))
}

fn create_folder_of(path: &Path) -> Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
}

fn with_known_links(page: &str, text: &str, known: &BTreeSet<String>, repository: Option<&str>) -> String {
    let mut out = text.to_owned();
    for link in links(text).iter().rev().filter(|link| !is_address(&link.target)) {
        let path = join(page, &link.target).unwrap_or_default();
        if !known.contains(&path) {
            let outside = repository.map(|address| format!("[{}]({address}/blob/HEAD/{path})", link.text));
            out.replace_range(link.range.clone(), outside.as_ref().unwrap_or(&link.text));
        }
    }
    out
}

/// The languages of code blocks, as the highlighter of mdBook knows them.
fn with_languages(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let language = match line.trim().strip_prefix("```").and_then(|info| info.split(' ').next()) {
            Some("json5") => "javascript",
            Some("console") => "console",
            Some("template" | "text") => "plaintext",
            _ => {
                out.push_str(line);
                continue;
            }
        };
        let _ = writeln!(out, "{}```{language}", line.split('`').next().unwrap_or_default());
    }
    out
}

/// mdBook's table of contents.
fn summary(contents: &Contents) -> String {
    let mut out = format!("# Summary\n\n[containerpilot]({FRONT})\n\n[Contents]({})\n", contents::PATH);
    for section in &contents.sections {
        let _ = write!(out, "\n# {}\n\n", section.name);
        for page in &section.pages {
            let _ = writeln!(out, "- [{}]({})", page.title, page.path);
        }
    }
    out
}

/// `book.toml`. Without mdBook's preprocessors: one would take `{{ … }}` for its own, the other would rename README.md.
fn settings(repository: Option<&str>) -> String {
    let repository =
        repository.map(|address| format!("git-repository-url = {address:?}\n")).unwrap_or_default();
    format!(
        "[book]\ntitle = \"containerpilot\"\nlanguage = \"en\"\n\n\
         [build]\nuse-default-preprocessors = false\n\n\
         [output.html]\nadditional-css = [\"site.css\"]\nadditional-js = [\"site.js\"]\nno-section-label = true\ninput-404 = \"\"\n\
         preferred-dark-theme = \"navy\"\n{repository}\n\
         [output.html.print]\nenable = false\n\n\
         [output.html.search]\nlimit-results = 20\nuse-boolean-and = true\n"
    )
}

/// Adds to a built site what mdBook does not make: the pages as Markdown, `llms.txt` and `llms-full.txt`.
///
/// # Errors
/// Fails if a file cannot be read or written.
pub fn finish(source: &Path, site: &Path) -> Result<()> {
    let source = source.join("src");
    let (contents, pages) = pages(&source)?;
    let mut full = String::new();
    for (path, text) in &pages {
        std::fs::write(site.join(path), text)?;
        let _ = write!(full, "<!-- {path} -->\n\n{text}\n");
    }
    std::fs::write(site.join("llms.txt"), llms::txt(&contents, |page| page.path.clone()))?;
    std::fs::write(site.join("llms-full.txt"), full)
}

/// Writes what joins the versions of the manual, each in a folder of `root`: `versions.json`, the newest first, and an
/// `index.html` that leads to that.
///
/// # Errors
/// Fails if a folder cannot be read or a file cannot be written.
pub fn join_versions(root: &Path) -> Result<()> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().filter(|name| !name.contains(['"', '\\', '<', '&']));
        found.extend(name.filter(|_| entry.path().join("index.html").is_file()));
    }
    found.sort_by_key(|name| std::cmp::Reverse(number(name)));
    let names: Vec<String> = found.iter().map(|name| format!("{name:?}")).collect();
    std::fs::write(root.join("versions.json"), format!("[{}]\n", names.join(", ")))?;
    let newest = found.first().map_or("", String::as_str);
    let page = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>containerpilot</title>\n\
         <meta http-equiv=\"refresh\" content=\"0; url={newest}/\">\n<a href=\"{newest}/\">containerpilot {newest}</a>\n"
    );
    std::fs::write(root.join("index.html"), page)
}

/// The numbers of a version. A name that is none, such as `main`, is older than all.
fn number(version: &str) -> Vec<u64> {
    let parts = version.split('.').map(|part| part.parse().ok());
    parts.collect::<Option<Vec<u64>>>().unwrap_or_default()
}

/// The problems of a built site: links to files or anchors that it does not have, and resources of other sites.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn check(site: &Path) -> Result<Vec<String>> {
    let all: BTreeSet<String> = files(site, "")?.into_iter().collect();
    let mut texts = BTreeMap::new();
    for path in all.iter().filter(|path| path.ends_with(".html")) {
        texts.insert(path.as_str(), std::fs::read_to_string(site.join(path))?);
    }
    let ids: BTreeMap<&str, BTreeSet<&str>> =
        texts.iter().map(|(path, text)| (*path, values(text, "id").collect())).collect();
    let mut wrong = Vec::new();
    for (page, text) in &texts {
        let loads =
            |tag: &&str| ["link ", "script ", "img ", "iframe "].iter().any(|name| tag.starts_with(name));
        let tags = text.split('<').skip(1).filter_map(|rest| rest.split('>').next());
        let outside = tags.filter(loads).filter(|tag| tag.contains("://"));
        wrong.extend(outside.map(|tag| format!("{page}: <{tag}> is on another site")));
        for target in values(text, "src").chain(values(text, "href")).filter(|target| !is_address(target)) {
            let target = target.split('?').next().unwrap_or_default();
            let path = join(page, target).unwrap_or_default();
            let (_, anchor) = split(target);
            let has_anchor = || ids.get(path.as_str()).is_none_or(|ids| ids.contains(anchor));
            if !all.contains(&path) || !(anchor.is_empty() || has_anchor()) {
                wrong.push(format!("{page}: {target} does not exist"));
            }
        }
    }
    for path in all.iter().filter(|path| path.ends_with(".css")) {
        if std::fs::read_to_string(site.join(path))?.contains("url(http") {
            wrong.push(format!("{path} uses a file of another site"));
        }
    }
    let pages: Vec<(String, String)> = all
        .iter()
        .filter(|path| path.ends_with(".md"))
        .map(|path| Ok((path.clone(), std::fs::read_to_string(site.join(path))?)))
        .collect::<Result<_>>()?;
    wrong.extend(dead_links(site, &pages));
    Ok(wrong)
}

/// The values of an attribute in HTML.
fn values<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {name}=\"");
    let found: Vec<&str> = html
        .split(&start)
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|value| !value.is_empty())
        .collect();
    found.into_iter()
}

/// The folder of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_listed_with_the_newest_first() {
        let root = std::env::temp_dir().join(format!("versions-{}", std::process::id()));
        for name in ["5.2", "main", "5.10", "4.9.1", "empty"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["5.2", "main", "5.10", "4.9.1"] {
            std::fs::write(root.join(name).join("index.html"), "").unwrap();
        }
        join_versions(&root).unwrap();
        let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
        assert_eq!(read("versions.json"), "[\"5.10\", \"5.2\", \"4.9.1\", \"main\"]\n");
        assert!(read("index.html").contains("url=5.10/"));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
