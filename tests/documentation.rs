//! The pages that are written by hand: their form, and what they say about the code.

use std::collections::BTreeSet;
use std::path::Path;

use containerpilot_core::event::Code;
use containerpilot_core::log_entry::LogEvent;
use containerpilot_core::plan::RequiredSource;
use containerpilot_core::report::status::DeadlineKind;

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

fn page(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap()
}

/// The text below a heading, up to the next one.
fn section(path: &str, heading: &str) -> String {
    let text = page(path);
    let (_, rest) =
        text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{path} has no {heading}"));
    rest.split("\n#").next().unwrap().to_owned()
}

/// What is between backquotes.
fn code_of(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The event codes between backquotes.
fn codes_of(text: &str) -> BTreeSet<&'static str> {
    code_of(text).iter().filter_map(|name| Code::from_name(name)).map(Code::name).collect()
}

fn names(codes: &[Code]) -> BTreeSet<&'static str> {
    codes.iter().map(|code| code.name()).collect()
}

/// Each kind of source, as the pages name it, and its codes.
fn codes_by_source() -> [(&'static str, BTreeSet<&'static str>); 5] {
    [
        ("the supervisor", names(&Code::GLOBAL)),
        ("a job", names(&Code::OF_JOBS)),
        ("`watch.NAME`", names(&Code::OF_WATCHES)),
        ("`file.NAME`", names(&Code::OF_FILES)),
        ("`lock.NAME`", names(&Code::OF_LOCKS)),
    ]
}

#[test]
fn e1_pages_list_every_event_of_every_source() {
    let rule = section("docs/rules.md", "### E1");
    let items: Vec<&str> = rule.split("\n- from ").skip(1).collect();
    let table = page("docs/events.md");
    let rows = || table.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let mut all = BTreeSet::new();
    for (source, codes) in codes_by_source() {
        let item = items.iter().find(|item| item.starts_with(source)).unwrap();
        assert_eq!(codes_of(item), codes, "left: E1 in docs/rules.md; right: the codes of {source}");
        let of_source = rows().filter(|(_, rest)| rest.starts_with(&format!("{source} |")));
        let listed: BTreeSet<&str> = of_source.flat_map(|(events, _)| codes_of(events)).collect();
        assert_eq!(listed, codes, "left: docs/events.md; right: the codes of {source}");
        all.extend(codes);
    }
    assert_eq!(all, names(&Code::NAMED), "every code has a source");
}

#[test]
fn w12_pages_name_every_event_that_can_become_false() {
    let names = Code::NAMED.iter().filter_map(|code| code.ended_by().map(|_| code.name()));
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    let rule = section("docs/rules.md", "### W12").replace('\n', " ");
    let told = rule.split("can become false again: ").nth(1).unwrap().split(". ").next().unwrap();
    let ends = Code::NAMED.iter().filter_map(|code| code.ended_by()).map(|code| code.name().to_owned());
    assert_eq!(code_of(told), names.iter().cloned().chain(ends).collect());
    let guide = section("docs/jobs.md", "## When it runs").replace('\n', " ");
    let told = guide.split("once it was seen. Only ").nth(1).unwrap().split(" stop holding").next().unwrap();
    assert_eq!(code_of(told), names);
}

#[test]
fn w20_pages_name_every_event_that_needs_all_replicas() {
    let (all, any): (Vec<Code>, Vec<Code>) =
        Code::OF_JOBS.into_iter().partition(|code| code.needs_all_replicas());
    let rule = section("docs/rules.md", "### W20").replace('\n', " ");
    let (any_told, rest) =
        rule.split_once("any replica for").unwrap().1.split_once("; all of them for").unwrap();
    assert_eq!(codes_of(any_told), names(&any));
    assert_eq!(codes_of(rest.split(". ").next().unwrap()), names(&all));
    let guide = section("docs/jobs.md", "## Replicas").replace('\n', " ");
    let told = guide.split("is the group. ").nth(1).unwrap().split(" need all replicas").next().unwrap();
    assert_eq!(codes_of(told), names(&all));
}

/// What the pages call a kind of requirement. A new kind does not compile without a name here.
const fn called(source: &RequiredSource) -> &'static str {
    match source {
        RequiredSource::Job(_) => "job",
        RequiredSource::Watch(_) => "watch",
        RequiredSource::File(_) => "file",
        RequiredSource::Lock(_) => "lock",
    }
}

#[test]
fn w18_pages_list_everything_that_a_job_can_require() {
    let name = || "NAME".to_owned();
    let all = [
        RequiredSource::Job(name()),
        RequiredSource::Watch(name()),
        RequiredSource::File(name()),
        RequiredSource::Lock(name()),
    ];
    let guide = section("docs/jobs.md", "### What it requires");
    let rule = section("docs/rules.md", "### W18").replace('\n', " ");
    for source in all {
        let (kind, written) = (called(&source), source.to_string());
        assert!(
            guide.contains(&format!("\n| a {kind}")),
            "the table in docs/jobs.md has no row for a {kind}"
        );
        if kind != "job" {
            assert!(guide.contains(&format!("`{written}`")), "docs/jobs.md does not name {written}");
            assert!(rule.contains(&format!("\"{kind}.")), "W18 has no example of {written}");
        }
        assert!(rule.to_lowercase().contains(&format!("a {kind} ")), "W18 does not say when a {kind} counts");
    }
}

/// The log events that are not events of the supervisor or the end of a job. A new one does not compile without a place
/// in this match.
const fn has_a_name_of_its_own(event: LogEvent) -> bool {
    match event {
        LogEvent::Event(_) | LogEvent::Ended(_) => false,
        LogEvent::Started
        | LogEvent::Restarting
        | LogEvent::MissingRequirement
        | LogEvent::CheckFailed
        | LogEvent::WatchFailed
        | LogEvent::WatchRecovered
        | LogEvent::VariableTooLong
        | LogEvent::Timeout
        | LogEvent::TickSkipped
        | LogEvent::EventsDropped
        | LogEvent::Draining
        | LogEvent::Killing
        | LogEvent::Abandoned
        | LogEvent::Orphans
        | LogEvent::Deadlock
        | LogEvent::Reloaded
        | LogEvent::Recorded
        | LogEvent::Exiting
        | LogEvent::Bug => true,
    }
}

#[test]
fn l7_page_about_logging_lists_every_value_of_the_field_event() {
    let all = [
        LogEvent::Started,
        LogEvent::Restarting,
        LogEvent::MissingRequirement,
        LogEvent::CheckFailed,
        LogEvent::WatchFailed,
        LogEvent::WatchRecovered,
        LogEvent::VariableTooLong,
        LogEvent::Timeout,
        LogEvent::TickSkipped,
        LogEvent::EventsDropped,
        LogEvent::Draining,
        LogEvent::Killing,
        LogEvent::Abandoned,
        LogEvent::Orphans,
        LogEvent::Deadlock,
        LogEvent::Reloaded,
        LogEvent::Recorded,
        LogEvent::Exiting,
        LogEvent::Bug,
    ];
    assert!(all.into_iter().all(has_a_name_of_its_own));
    let ends = ["complete", "failed", "skipped"];
    let names: BTreeSet<String> =
        all.into_iter().map(LogEvent::name).chain(ends).map(str::to_owned).collect();
    let fields = section("docs/logging.md", "## Fields");
    let told = fields.split("Otherwise it is ").nth(1).unwrap().split("(an error in").next().unwrap();
    assert_eq!(code_of(told), names);
}

/// The kind of timer after this one. A new kind does not compile without a place in this chain.
const fn next_deadline(kind: DeadlineKind) -> Option<DeadlineKind> {
    match kind {
        DeadlineKind::StartTimeout => Some(DeadlineKind::Tick),
        DeadlineKind::Tick => Some(DeadlineKind::Restart),
        DeadlineKind::Restart => Some(DeadlineKind::ExecTimeout),
        DeadlineKind::ExecTimeout => Some(DeadlineKind::RunTimeout),
        DeadlineKind::RunTimeout => Some(DeadlineKind::Hooks),
        DeadlineKind::Hooks => Some(DeadlineKind::Deregister),
        DeadlineKind::Deregister => Some(DeadlineKind::Drain),
        DeadlineKind::Drain => Some(DeadlineKind::Escalate),
        DeadlineKind::Escalate => Some(DeadlineKind::Kill),
        DeadlineKind::Kill => None,
    }
}

#[test]
fn x2_openapi_lists_every_kind_of_deadline() {
    let api: serde_json::Value = serde_json::from_str(&page("docs/openapi.json")).unwrap();
    let listed = &api["components"]["schemas"]["Deadline"]["properties"]["what"]["enum"];
    let listed: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    let all = std::iter::successors(Some(DeadlineKind::StartTimeout), |kind| next_deadline(*kind));
    assert_eq!(listed, all.map(DeadlineKind::name).collect::<Vec<_>>());
}

#[test]
fn page_about_reliability_lists_every_fuzz_target() {
    let files = std::fs::read_dir(repository().join("fuzz/fuzz_targets")).unwrap();
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let targets: BTreeSet<String> = files.map(|file| stem(&file.unwrap().path())).collect();
    let table = section("docs/reliability.md", "## Fuzzing");
    let listed = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(listed.map(str::to_owned).collect::<BTreeSet<_>>(), targets);
}
