//! `llms.txt`: the table of contents in the format of llmstxt.org, for programs that read documentation.

use std::fmt::Write;

use crate::contents::{Contents, Page};

/// The file, with the target of each page's link.
#[must_use]
pub fn txt(contents: &Contents, target: impl Fn(&Page) -> String) -> String {
    let mut out = format!("# containerpilot\n\n> {}\n", contents.summary);
    for section in &contents.sections {
        // llmstxt.org: a program with little room may skip a section of this name.
        let name = if section.is_project() { "Optional" } else { &section.name };
        let _ = write!(out, "\n## {name}\n\n");
        for page in &section.pages {
            let _ = writeln!(out, "- [{}]({}): {}", page.title, target(page), page.about);
        }
    }
    out
}
