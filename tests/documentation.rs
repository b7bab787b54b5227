//! The pages that are written by hand: their form, and what they say about the code.

use std::path::Path;

use crate::rules::markdown_pages;
use crate::support::program::repository;

/// Pages that a program writes. Their tests are in `crates/tools/tests` and `tests/peers.rs`.
const GENERATED: [&str; 3] = ["docs/peers.md", "docs/reference.md", "docs/scenario.md"];

/// The length of the longest line of prose, in characters.
const LINE: usize = 120;

/// The lines of prose that are longer than `LINE`, with their numbers. Code blocks, tables, headings, HTML and a single
/// long word, such as a link, cannot be broken.
fn long_lines(page: &str) -> Vec<(usize, &str)> {
    let mut in_block = false;
    let mut found = Vec::new();
    for (nth, line) in page.lines().enumerate() {
        let text = line.trim_start();
        in_block ^= text.starts_with("```");
        let is_word = !text.trim_start_matches("- ").contains(' ');
        if line.chars().count() > LINE && !in_block && !text.starts_with(['|', '#', '<']) && !is_word {
            found.push((nth + 1, line));
        }
    }
    found
}

#[test]
fn prose_of_hand_written_markdown_has_lines_of_at_most_120_characters() {
    let is_generated = |page: &Path| GENERATED.iter().any(|name| page == repository().join(name));
    let mut pages = markdown_pages();
    pages.retain(|page| !is_generated(page));
    assert!(pages.len() > 45, "{pages:?}");
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let long = long_lines(&text);
        assert!(long.is_empty(), "{} has lines of more than {LINE} characters: {long:#?}", page.display());
    }
}

#[test]
fn long_lines_are_found_in_prose_only() {
    let words = "word ".repeat(25);
    let found = |text: String| long_lines(&text).len();
    assert_eq!(found(format!("{words}\n- {words}\n  {words}\n")), 3);
    assert_eq!(found(format!("```\n{words}\n```\n| {words}|\n## {words}\n<a {words}>\n")), 0);
    assert_eq!(found("- ".to_owned() + &words.replace(' ', "-")), 0);
    assert_eq!(found("ä".repeat(60) + " " + &"ö".repeat(59)), 0);
}
