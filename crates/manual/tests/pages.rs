//! The pages of the repository: the table of contents, links, the text for a terminal, and the site.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use containerpilot_manual::contents::Contents;
use containerpilot_manual::links;
use containerpilot_manual::manual::{Manual, pack};
use containerpilot_manual::markdown::{self, Block, inline};
use containerpilot_manual::site::{self, check, dead_links, root};

const BESIDE: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

fn read(path: &str) -> std::io::Result<String> {
    std::fs::read_to_string(root().join(path))
}

fn manual() -> Manual {
    Manual::unpack(&pack(read).unwrap())
}

/// An empty folder, which is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("containerpilot-manual-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let contents = Contents::parse(&read("docs/README.md").unwrap());
    let listed: Vec<&str> = contents.pages().map(|page| page.path.as_str()).collect();
    let mut pages: BTreeSet<String> = ["SECURITY.md", "CHANGELOG.md"].map(str::to_owned).into();
    for folder in ["docs", "examples"] {
        pages.extend(site::files(&root(), folder).unwrap().into_iter().filter(|path| path.ends_with(".md")));
    }
    pages.remove("docs/README.md");
    assert_eq!(listed.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>(), pages);
    assert_eq!(listed.len(), pages.len(), "a page is listed twice in docs/README.md: {listed:?}");
    assert!(
        contents.pages().all(|page| !page.about.is_empty()),
        "a page in docs/README.md has no description"
    );
    let topics: BTreeSet<String> = contents.pages().map(|page| page.topic()).collect();
    assert_eq!(topics.len(), pages.len(), "two pages have the same topic: {topics:?}");
}

#[test]
fn every_link_and_picture_of_the_pages_has_a_target() {
    let (_, mut pages) = site::pages(&root()).unwrap();
    pages.extend(BESIDE.map(|path| (path.to_owned(), read(path).unwrap())));
    assert!(pages.len() > 40);
    assert_eq!(dead_links(&root(), &pages), [""; 0]);
}

#[test]
fn staged_site_has_every_file_that_its_pages_link_to() {
    let folder = Folder::new("staged");
    for (nth, repository) in [None, Some("https://example.com/repository")].into_iter().enumerate() {
        let out = folder.0.join(nth.to_string());
        assert_eq!(site::stage(&root(), &out, repository).unwrap(), [""; 0]);
        let (contents, pages) = site::pages(&out.join("src")).unwrap();
        assert_eq!(dead_links(&out.join("src"), &pages), [""; 0]);
        let links =
            |page: &(String, String)| page.1.matches("https://example.com/repository/blob/HEAD/").count();
        assert_eq!(pages.iter().map(links).sum::<usize>() > 0, repository.is_some());
        let summary = std::fs::read_to_string(out.join("src/SUMMARY.md")).unwrap();
        assert!(contents.pages().all(|page| summary.matches(&format!("]({})\n", page.path)).count() == 1));
    }
}

#[test]
fn check_of_a_site_finds_dead_links_anchors_pictures_and_outside_resources() {
    let folder = Folder::new("check");
    let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).unwrap();
    write("other.html", r#"<h2 id="there">There</h2>"#);
    write("good.svg", "<svg/>");
    write(
        "a.html",
        r##"<a href="other.html#there">x</a> <a href="https://example.com">x</a> <img src="good.svg"> <a href="#top" id="top">"##,
    );
    assert_eq!(check(&folder.0).unwrap(), [""; 0]);
    write(
        "b.html",
        r##"<a href="gone.html">x</a> <a href="other.html#gone">x</a> <img src="gone.svg"> <a href="#gone">x</a>"##,
    );
    write(
        "c.html",
        r#"<script src="https://example.com/x.js"></script><link rel="stylesheet" href="https://example.com/x.css">"#,
    );
    write("d.css", "@font-face { src: url(https://example.com/font) }");
    write("e.md", "[x](gone.md), `[x](code.md)` and [there](f.md#gone)\n");
    write("f.md", "# There\n");
    let wrong = check(&folder.0).unwrap().join("\n");
    for problem in [
        "b.html: gone.html does not exist",
        "b.html: other.html#gone does not exist",
        "b.html: gone.svg does not exist",
        "b.html: #gone does not exist",
        "c.html: <script",
        "c.html: <link",
        "d.css uses",
        "e.md: gone.md",
        "e.md: f.md#gone",
    ] {
        assert!(wrong.contains(problem), "{problem} is not in\n{wrong}");
    }
    assert_eq!(wrong.lines().count(), 9, "{wrong}");
}

#[test]
fn x13_every_page_is_text_without_marks_that_fits_the_terminal() {
    let manual = manual();
    assert!(manual.pages().count() > 30);
    for page in manual.pages() {
        assert_eq!(manual.text(page), read(&page.path).unwrap());
        let blocks = markdown::blocks(manual.text(page));
        let code: BTreeSet<String> = blocks.into_iter().flat_map(code_of).collect();
        for width in [20, 40, 80, 100] {
            let text = manual.render(page, "", width, false).unwrap();
            for line in text.lines().filter(|line| !code.contains(line.trim_start())) {
                let place = format!("{} at {width}: {line}", page.path);
                let line = &line.replace("`***`", "");
                assert!(!line.contains("](") && !line.contains("**") && !line.starts_with('|'), "{place}");
                // Only a word that is too long, and a heading, may be wider.
                let is_word = line.trim().trim_start_matches("- ").split(' ').count() <= 2;
                let is_heading =
                    manual.text(page).contains(&format!("# {line}\n")) || line.starts_with(['=', '-', '~']);
                assert!(line.chars().count() <= width || is_word || is_heading, "{place}");
            }
        }
        for anchor in links::anchors(manual.text(page)) {
            assert!(manual.render(page, &anchor, 80, false).is_some(), "{}#{anchor}", page.path);
        }
    }
}

/// The lines of code blocks, also in lists.
fn code_of(block: Block) -> Vec<String> {
    match block {
        Block::Code(lines) => lines.iter().map(|line| line.trim_start().to_owned()).collect(),
        Block::List(items) => items.into_iter().flat_map(|item| item.rest).flat_map(code_of).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn x13_references_of_the_pages_are_topics_that_exist() {
    let manual = manual();
    for page in manual.pages() {
        let text = manual.render(page, "", 1_000_000, false).unwrap();
        for link in markdown::links(manual.text(page)).iter().filter(|link| !links::is_address(&link.target))
        {
            let path = links::join(&page.path, &link.target).unwrap();
            let (file, anchor) = links::split(&link.target);
            if let Some(other) = manual.pages().find(|page| page.path == path && !file.is_empty()) {
                let hash = if anchor.is_empty() { "" } else { "#" };
                assert!(
                    text.contains(&format!(" [{}{hash}{anchor}]", other.topic())),
                    "{}: {}",
                    page.path,
                    link.target
                );
                assert!(manual.render(other, anchor, 80, false).is_some(), "{}: {}", page.path, link.target);
            }
        }
    }
    let entries = manual.index("Crash loop");
    assert_eq!(
        entries,
        [(
            "crash loop".to_owned(),
            "Start limit [jobs#start-limit], back-off [jobs#exits-and-restarts]".to_owned()
        )]
    );
    assert!(manual.index("rash").is_empty() && manual.index("").is_empty());
    assert_eq!(manual.find("DEPENDENCIES").unwrap().path, "docs/how-to/dependencies.md");
    assert_eq!(manual.find("examples/behind-nginx").unwrap().path, "examples/behind-nginx/README.md");
    assert_eq!(manual.find("behind-nginx").unwrap().path, "docs/how-to/behind-nginx.md");
    assert!(manual.find("rules").is_none() && manual.find("").is_none());
}

#[test]
fn pages_about_the_project_are_not_packed_and_broken_packs_are_empty() {
    let packed = pack(read).unwrap();
    assert_eq!(packed, pack(read).unwrap());
    assert!(packed.len() < 150_000, "the pages in the program have {} bytes", packed.len());
    assert_eq!(Manual::unpack(&packed[..packed.len() / 2]).pages().count(), 0);
    assert_eq!(Manual::unpack(b"").pages().count(), 0);
    assert!(pack(|_| Err(std::io::Error::other("no"))).is_err());
}

#[test]
fn markdown_is_read() {
    let text = "# A `b`\n\nOne *two* **three**\nfour.\n\n- [x](y.md): z\n  more\n\n  ```sh\n  # no heading\n  ```\n\n1. first\n2. second\n\n\
                | a | b |\n| --- | --- |\n| `x \\| y` | [z](u) |\n";
    let blocks = markdown::blocks(text);
    let item = |marker: &str, text: &str, rest| markdown::Item {
        marker: marker.to_owned(),
        text: text.to_owned(),
        rest,
    };
    let expected = [
        Block::Heading(1, "A `b`".to_owned()),
        Block::Paragraph("One *two* **three** four.".to_owned()),
        Block::List(vec![
            item("-", "[x](y.md): z more", vec![Block::Code(vec!["# no heading".to_owned()])]),
            item("1.", "first", Vec::new()),
            item("2.", "second", Vec::new()),
        ]),
        Block::Table(vec![
            vec!["a".to_owned(), "b".to_owned()],
            vec!["`x | y`".to_owned(), "[z](u)".to_owned()],
        ]),
    ];
    assert_eq!(blocks, expected);
    assert_eq!(links::anchors("# A `b`: c\n## D\n## D\n```\n# E\n```\n"), ["a-b-c", "d", "d-1"]);
    let odd = "a * b, ``c ` [d](e)``, [`f]` g](h \"i\"), ![j](k.png) [l] [m](n)";
    let found = inline(odd, &|link| format!("<{}>", link.target));
    assert_eq!(found, "a * b, ``c ` [d](e)``, [`f]` g](h \"i\"), j<k.png> [l] m<n>");
    assert_eq!(links::section("# A\n## B\nb\n### C\n## D\n", "b"), Some("## B\nb\n### C\n"));
    for (page, target, path) in [
        ("docs/a.md", "b.md#c", Some("docs/b.md")),
        ("docs/how-to/a.md", "../../README.md", Some("README.md")),
        ("docs/a.md", "#c", Some("docs/a.md")),
        ("a.md", "../b.md", None),
        ("a.md", "https://example.com", None),
        ("a.md", "/b", None),
    ] {
        assert_eq!(links::join(page, target).as_deref(), path, "{page} {target}");
    }
}
