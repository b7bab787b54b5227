//! `docs/compared.md`: no cell without a reference, no reference without a version and an address, and the figures of
//! `docs/peers.md`.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::collections::{BTreeMap, BTreeSet};

use containerpilot_manual::links::{anchors, is_address, section, split};
use containerpilot_manual::markdown::{Block, Link, blocks, links, plain};
use containerpilot_manual::site::root;

const OURS: &str = "containerpilot";
/// The peers in the order of the rows, with the marks of their references.
const PEERS: [(&str, &str); 8] = [
    ("tini", "tini"),
    ("s6-overlay", "s6"),
    ("supervisord", "sup"),
    ("process-compose", "pc"),
    ("Pebble", "peb"),
    ("systemd", "sysd"),
    ("Kubernetes", "k8s"),
    ("ContainerPilot 3.8", "cp3"),
];

type Table = Vec<Vec<String>>;

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap()
}

fn tables(text: &str) -> Vec<Table> {
    let tables = blocks(text).into_iter().filter_map(|block| match block {
        Block::Table(rows) => Some(rows),
        _ => None,
    });
    tables.collect()
}

fn cell(row: &[String], nth: usize) -> &str {
    row.get(nth).map_or("", String::as_str)
}

fn references_heading(peer: &str) -> String {
    let name = peer.to_lowercase().replace(' ', "-").replace('.', "");
    format!("references-{name}")
}

/// The cells of the comparison that have no text, or no reference, or one of another program.
fn cells_without_reference(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for table in tables(section(text, "features").unwrap_or_default()) {
        let names: Vec<String> = table.iter().skip(1).map(|row| plain(cell(row, 0))).collect();
        let expected: Vec<&str> = [OURS].into_iter().chain(PEERS.map(|(name, _)| name)).collect();
        if names != expected {
            wrong.push(format!("the rows are {names:?}"));
        }
        let columns = table.first().map_or(0, Vec::len);
        for (row, name) in table.iter().skip(1).zip(&names) {
            let peer = PEERS.iter().find(|(peer, _)| peer == name);
            for nth in 1..columns {
                let (text, head) = (cell(row, nth), table.first().map_or("", |head| cell(head, nth)));
                let found = links(text);
                let is_complete = match peer {
                    // The whole cell is a link into the repository.
                    None => {
                        matches!(found.as_slice(), [link] if link.range == (0..text.len()) && !is_address(&link.target))
                    }
                    Some((peer, prefix)) => {
                        let own = |link: &Link| {
                            link.target == format!("#{}", references_heading(peer))
                                && link.text.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('-'))
                        };
                        let has_text = found.first().is_some_and(|link| link.range.start > 1);
                        has_text && found.iter().all(own)
                    }
                };
                if !is_complete {
                    wrong.push(format!("{name}, {head}: {text:?}"));
                }
            }
        }
    }
    wrong
}

/// What is wrong with the lists of references: their numbers, versions and addresses, and marks without a use or a list.
fn broken_references(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let outside = text.split("\n## References\n").next().unwrap_or_default();
    let used: BTreeSet<String> = links(outside)
        .into_iter()
        .filter(|link| link.target.starts_with("#references-"))
        .map(|l| l.text)
        .collect();
    let mut listed = BTreeSet::new();
    for (peer, prefix) in PEERS {
        let list = section(text, &references_heading(peer)).unwrap_or_default();
        let rows = tables(list).into_iter().flatten().skip(1);
        for (nth, row) in rows.enumerate() {
            let [mark, version, source, says] = row.as_slice() else {
                wrong.push(format!("{peer}: {row:?}"));
                continue;
            };
            let sources = links(source);
            let address = sources.first().map_or("", |link| link.target.as_str());
            let number = version.rsplit(' ').next().unwrap_or_default();
            let parts = || address.split('/');
            let is_commit =
                |part: &str| part.len() == 40 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
            let has_version =
                parts().any(|part| is_commit(part) || part.trim_start_matches('v').starts_with(number));
            let problem = if *mark != format!("{prefix}-{}", nth + 1) {
                "has another number"
            } else if number.is_empty() || !number.starts_with(|first: char| first.is_ascii_digit()) {
                "has no version"
            } else if !address.starts_with("https://") || !has_version {
                "has no address of that version"
            } else if says.is_empty() {
                "says nothing"
            } else if !used.contains(mark) {
                "is not used"
            } else {
                ""
            };
            if !problem.is_empty() {
                wrong.push(format!("{mark} {problem}"));
            }
            listed.insert(mark.clone());
        }
    }
    wrong.extend(used.difference(&listed).map(|mark| format!("{mark} is not in a list")));
    wrong
}

/// The figures of `docs/peers.md`: by section, by the name of the column with that of its table, and by program.
fn figures(peers: &str) -> BTreeMap<(String, String, String), String> {
    let mut found = BTreeMap::new();
    for anchor in anchors(peers) {
        for table in tables(section(peers, &anchor).unwrap_or_default()) {
            let Some((head, rows)) = table.split_first() else { continue };
            for row in rows {
                for (nth, column) in head.iter().enumerate().skip(1) {
                    let title = cell(head, 0);
                    let label = if title.is_empty() { column.clone() } else { format!("{title}: {column}") };
                    // The smallest and the largest sample follow the median.
                    let figure = plain(cell(row, nth).split(" <sub>").next().unwrap_or_default());
                    found.insert((anchor.clone(), label, plain(cell(row, 0))), figure);
                }
            }
        }
    }
    found
}

/// The rows of the table of speed that differ from `docs/peers.md`, with the row that is right.
fn other_figures(text: &str, peers: &str) -> Vec<String> {
    let figures = figures(peers);
    let mut wrong = Vec::new();
    for table in tables(section(text, "speed-and-memory").unwrap_or_default()) {
        let Some((head, rows)) = table.split_first() else { continue };
        for row in rows {
            let label = cell(row, 0);
            let link = links(label).into_iter().next();
            let anchor = link.as_ref().map_or("", |link| split(&link.target).1);
            let column = link.as_ref().and_then(|link| label.get(link.range.end..)?.strip_prefix(": "));
            let figure = |program: &String| {
                let key = (anchor.to_owned(), column.unwrap_or_default().to_owned(), program.clone());
                figures.get(&key).cloned().unwrap_or_else(|| "—".to_owned())
            };
            let right: Vec<String> = head.iter().skip(1).map(figure).collect();
            if right.first().is_none_or(|ours| ours == "—") || row.get(1..) != Some(&right) {
                wrong.push(format!("docs/peers.md says | {label} | {} |", right.join(" | ")));
            }
        }
    }
    wrong
}

#[test]
fn no_cell_of_the_comparison_is_without_a_reference() {
    let text = page("compared.md");
    assert!(tables(section(&text, "features").unwrap()).len() > 10);
    assert_eq!(cells_without_reference(&text), [""; 0]);
}

#[test]
fn every_reference_is_used_and_has_a_version_and_an_address_of_it() {
    let text = page("compared.md");
    assert!(tables(section(&text, "references").unwrap()).iter().flatten().count() > 100);
    assert_eq!(broken_references(&text), [""; 0]);
}

#[test]
fn figures_of_the_comparison_are_those_of_the_benchmark() {
    let text = page("compared.md");
    assert!(tables(section(&text, "speed-and-memory").unwrap()).iter().flatten().count() > 10);
    assert_eq!(other_figures(&text, &page("peers.md")), [""; 0]);
}

#[test]
fn missing_references_and_other_figures_are_found() {
    let text = page("compared.md");
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    let tini = "passes it on [tini-3](#references-tini)";
    for to in [
        "passes it on",
        "passes it on [pc-3](#references-tini)",
        "passes it on [tini-3](#references)",
        "[tini-3](#references-tini)",
        "",
    ] {
        assert_eq!(cells_without_reference(&changed(tini, to)).len(), 1, "{to}");
    }
    assert_eq!(cells_without_reference(&changed("[yes](rules.md#p1)", "yes")).len(), 1);
    assert_eq!(
        cells_without_reference(&changed("[yes](rules.md#p1)", "[yes](https://example.com)")).len(),
        1
    );
    assert_eq!(cells_without_reference(&changed("\n| supervisord |", "\n| another |")).len(), 5);
    let group = "with `-g` [tini-4](#references-tini)";
    let unknown = broken_references(&changed(group, "with `-g` [tini-999](#references-tini)"));
    assert_eq!(unknown, ["tini-4 is not used", "tini-999 is not in a list"]);
    for (from, to) in [
        ("| tini-3 | 0.19.0 |", "| tini-3 | |"),
        ("| tini-3 | 0.19.0 |", "| tini-3 | 0.18.0 |"),
        ("| tini-3 |", "| tini-33 |"),
    ] {
        assert!(!broken_references(&changed(from, to)).is_empty(), "{to}");
    }
    let first = tables(section(&text, "speed-and-memory").unwrap()).remove(0).remove(1);
    let row = format!("| {} |", first.join(" | "));
    let figure = format!(" | {} |", first.last().unwrap());
    assert_eq!(other_figures(&changed(&row, &row.replace(&figure, " | 1 |")), &page("peers.md")).len(), 1);
}
