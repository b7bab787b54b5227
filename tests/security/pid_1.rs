//! SECURITY.md says what runs as PID 1: the crates of the program `containerpilot`, with their size.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::deadline::InTime;
use crate::support::program::repository;

/// The crates that are linked into the program, without those that only write code at compile time.
fn linked() -> Vec<String> {
    let edges = "normal,no-proc-macro";
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--prefix=none",
            "--edges",
            edges,
            "--package=containerpilot",
        ])
        .current_dir(repository())
        .output_in_time()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<String> =
        text.lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The lines of code in a folder: without comments, empty lines and tests.
fn lines_of_code(folder: &Path) -> usize {
    let mut lines = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
        if is_test {
            continue;
        }
        if path.is_dir() {
            lines += lines_of_code(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
            lines += text.lines().filter(is_code).count();
        }
    }
    lines
}

fn description(manifest: &Path) -> String {
    let text = fs::read_to_string(manifest).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("description = "));
    line.unwrap().trim_matches('"').to_owned()
}

/// The rows of the table: name, description, lines.
fn rows(own: &[String]) -> Vec<(String, String, usize)> {
    let row = |name: &String| {
        let folder = name.strip_prefix("containerpilot-");
        let folder =
            folder.map_or_else(|| repository().to_owned(), |folder| repository().join("crates").join(folder));
        let lines = lines_of_code(&folder.join("src"));
        let name = name.strip_prefix("containerpilot-").unwrap_or("src").to_owned();
        (name, description(&folder.join("Cargo.toml")), lines)
    };
    own.iter().map(row).collect()
}

/// A number as in the table, or written by hand.
fn thousands(lines: usize) -> String {
    format!("{}.{}", lines / 1000, lines % 1000 / 100)
}

const BEGIN: &str = "| crate | what it does | 1,000 lines |\n| --- | --- | --: |\n";

/// The figures may be a tenth behind the code, so that not every change touches the page.
#[test]
fn security_md_says_what_runs_as_pid_1() {
    let (own, others): (Vec<_>, Vec<_>) =
        linked().into_iter().partition(|name| name.starts_with("containerpilot"));
    let rows = rows(&own);
    let total = rows.iter().map(|(.., lines)| lines).sum();
    let table: String = rows
        .iter()
        .map(|(name, what, lines)| format!("| `{name}` | {what} | {} |\n", thousands(*lines)))
        .collect();
    let all = format!("| all {} | | {} |\n", rows.len(), thousands(total));
    let list = others.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let crates = format!("{} crates of others are linked into it: {list}.", others.len());

    let page = repository().join("SECURITY.md");
    let text = fs::read_to_string(&page).unwrap();
    let at = text.find(BEGIN).unwrap() + BEGIN.len();
    let end = at + text[at..].find("\n\n## ").unwrap();
    if std::env::var_os("BLESS").is_some() {
        let wrapped = wrap(&crates);
        fs::write(&page, format!("{}{table}{all}\n{wrapped}{}", &text[..at], &text[end..])).unwrap();
        return;
    }
    let again = "BLESS=1 cargo test --test integration security_md_says writes it again";
    let (found, sentence) = text[at..end].split_once("\n\n").unwrap();
    let words = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words == crates, "SECURITY.md says: {words}\nand the program has: {crates}\n{again}");
    let found: Vec<Vec<&str>> = found.lines().map(|line| line.split(" | ").collect()).collect();
    assert_eq!(found.len(), rows.len() + 1, "SECURITY.md has other crates; {again}");
    for ((name, what, lines), found) in rows.iter().zip(&found) {
        assert_eq!(found[..2], [&*format!("| `{name}`"), what], "in SECURITY.md; {again}");
        let written: f64 = found[2].trim_end_matches(" |").parse().unwrap();
        #[expect(clippy::cast_precision_loss, reason = "lines of code are fewer than 2^52")]
        let now = *lines as f64 / 1000.0;
        assert!((written - now).abs() <= now / 10.0 + 0.1, "{name} has {now} thousand lines; {again}");
    }
}

/// Lines of at most 120 characters.
fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().unwrap();
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= 120 {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}
