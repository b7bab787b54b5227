//! `help TOPIC` of the real binary: the pages of the manual.

use std::process::{Command, Output};

use containerpilot_manual::manual::{Manual, pack};

use crate::support::deadline::InTime;
use crate::support::program::repository;
use crate::tools;

fn help(words: &[&str]) -> Output {
    Command::new(tools()).arg("help").args(words).output_in_time().unwrap()
}

fn printed(words: &[&str]) -> String {
    let output = help(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(words: &[&str]) -> String {
    let output = help(words);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The output on a terminal with this many columns.
fn on_terminal(columns: usize, before: &str, words: &str) -> String {
    let program = tools();
    let line = format!("stty cols {columns}; {before} '{program}' help {words}");
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .output_in_time()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().replace('\r', "")
}

#[test]
fn x13_every_topic_prints_the_page_of_the_repository() {
    let root = repository();
    let pages = Manual::unpack(&pack(|path| std::fs::read_to_string(root.join(path))).unwrap());
    let topics = printed(&["topics"]);
    for page in pages.pages() {
        let topic = page.topic();
        let text = pages.render(page, "", 80, false).unwrap();
        let found = printed(&[&format!("manual/{topic}")]);
        assert!(found.starts_with(&text), "help {topic} is not the text of {}:\n{found}", page.path);
        assert!(!found.contains('\x1b') && found.ends_with("All pages: containerpilot help topics\n"));
        assert!(topics.contains(&format!("\n  {topic} ")), "{topic}");
    }
    assert!(topics.contains("\nReference\n") && !topics.contains("The project"), "{topics}");
}

#[test]
fn x13_a_command_goes_before_a_page_and_names_it() {
    let command = printed(&["health"]);
    assert!(command.starts_with("containerpilot health: "), "{command}");
    assert!(command.ends_with("\nThe page of the manual: containerpilot help manual/health\n"), "{command}");
    assert!(printed(&["manual/health"]).starts_with("Health\n======\n"));
    assert!(!printed(&["check"]).contains("manual/"));
    assert!(printed(&["dependencies"]).starts_with("Handle dependencies\n"));
    let section = printed(&["jobs#start-limit"]);
    assert!(section.starts_with("Start limit\n") && !section.contains("\nHow a job ends\n"), "{section}");
}

#[test]
fn x13_other_words_are_looked_up_in_the_index_or_corrected() {
    for words in [&["crash loop"][..], &["crash", "loop"], &["CRASH"]] {
        let found = printed(words);
        assert!(
            found.contains("\ncrash loop ") && found.contains(" Start limit [jobs#start-limit]"),
            "{found}"
        );
    }
    // In any order, also in the plural; and headings, if the index has nothing.
    assert!(printed(&["log", "rotation"]).contains("rotation"));
    assert!(printed(&["rotation", "logs"]).contains("rotation"));
    assert!(printed(&["environment", "variables"]).contains("environment variable"));
    assert!(printed(&["depends", "on"]).contains("depends_on"));
    let sections = printed(&["file", "for", "each", "job"]);
    assert!(
        sections.contains("These sections have the words:")
            && sections.contains("[logging#a-file-for-each-job]")
    );
    assert!(printed(&["job"]).starts_with("`job` is not a topic (did you mean `jobs`?). The index has:\n"));
    assert!(refused(&["jbos"]).contains("unknown command, topic or key `jbos`: did you mean `jobs`?"));
    assert!(refused(&["how-to/dependancies"]).contains("did you mean `how-to/dependencies`?"));
    assert!(refused(&["nonsense"]).contains("`nonsense`: `containerpilot help topics` lists the pages"));
    assert!(
        refused(&["jobs#nonsense"]).contains("`jobs` has no section `nonsense`; it has jobs, what-runs, ")
    );
    assert!(refused(&["\x1b[31mx"]).contains("`\u{fffd}[31mx`"));
    refused(&[""]);
}

#[test]
fn x13_keys_of_the_configuration_are_explained() {
    let key = printed(&["stopTimeout"]);
    let (heading, entries) = key.split_once("\n\n").unwrap();
    assert_eq!(heading, "`stopTimeout`\n=============");
    let entries = entries.split_whitespace().collect::<Vec<_>>().join(" ");
    let first =
        "In The configuration [reference#the-configuration]: seconds or duration, default `5`. How long";
    assert!(entries.starts_with(first) && entries.contains(" In A job [reference#a-job]: "), "{key}");
    let key = printed(&["RESTARTS"]);
    assert!(key.starts_with("`restarts`\n==========\n") && key.contains("[reference#a-job]"), "{key}");
    let key = printed(&["replicas"]);
    assert!(key.contains("The index has:\n") && key.contains(" Replicas [jobs#replicas]"), "{key}");
    assert!(refused(&["stopTimout"]).contains("did you mean `stopTimeout`?"));
    assert!(printed(&["from others"]).starts_with("Come from "));
    assert!(printed(&["events.md"]).starts_with("Events\n"));
}

#[test]
fn x13_pages_fit_the_terminal_and_have_colour_only_there() {
    let text = on_terminal(40, "", "stopping");
    assert!(text.starts_with("\x1b[1mStopping\x1b[0m\n\n"), "{text}");
    let paragraph: Vec<&str> = text.split("\n\n").nth(1).unwrap().lines().collect();
    assert!(paragraph.len() > 1 && paragraph.iter().all(|line| line.chars().count() <= 40), "{paragraph:?}");
    let plain = on_terminal(40, "NO_COLOR=1", "stopping");
    assert!(plain.starts_with("Stopping\n========\n\n") && !plain.contains('\x1b'), "{plain}");
    let wide = on_terminal(300, "NO_COLOR=1", "stopping");
    let paragraph = wide.split("\n\n").nth(1).unwrap();
    assert!(paragraph.lines().all(|line| line.chars().count() <= 100), "{paragraph}");
}

#[test]
fn x13_completions_and_the_man_page_know_the_topics() {
    let output = |words: &[&str]| {
        String::from_utf8(Command::new(tools()).args(words).output_in_time().unwrap().stdout).unwrap()
    };
    for shell in ["bash", "zsh", "fish"] {
        let script = output(&["completions", shell]);
        for topic in ["topics", "jobs", "how-to/dependencies", "manual/health"] {
            assert!(script.split([' ', '(', ')', '\'']).any(|word| word == topic), "{shell}: {topic}");
        }
    }
    assert!(output(&["man"]).contains("containerpilot help topics"));
    assert!(output(&["help"]).contains("`containerpilot help topics` lists the pages."));
}
