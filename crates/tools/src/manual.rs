//! `help TOPIC`: the pages of the manual, which are a part of this program.

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::help;
use containerpilot_command_line::output::print;
use containerpilot_command_line::table::{COMMANDS, Program, TOOLS};
use containerpilot_command_line::terminal::stdout_screen;
use containerpilot_config::suggest;
use containerpilot_manual::contents::Page;
use containerpilot_manual::links;
use containerpilot_manual::manual::Manual;
use containerpilot_text::screen::{Screen, Tone, sanitized, table};

/// Made by `build.rs`.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/manual.lzma"));

/// Lines of text have this length if the output is not a terminal, and at most the other one if it is.
const WIDTH: usize = 80;
const MAX_WIDTH: usize = 100;

/// The pages, unpacked.
pub(crate) fn manual() -> Manual {
    Manual::unpack(PACKED)
}

/// Prints the help of a command, a page of the manual, what the reference says about a key, or the entries of the
/// index. Commands go first: `manual/health` is the page.
pub(crate) fn show(words: &str) -> Result<(), Failure> {
    let (manual, screen) = (manual(), stdout_screen());
    for (program, commands) in [(Program::Tools, TOOLS), (Program::Containerpilot, COMMANDS)] {
        if let Some(command) = commands.iter().find(|command| command.name == words) {
            return print(&help::command(program, command));
        }
    }
    if words == "topics" {
        return print(&topics(&manual, screen));
    }
    let (topic, anchor) = links::split(words.strip_prefix("manual/").unwrap_or(words));
    let width = screen.width.unwrap_or(WIDTH).min(MAX_WIDTH);
    if let Some(page) = manual.find(topic) {
        let Some(text) = manual.render(page, anchor, width, screen.colour) else {
            let anchors = links::anchors(manual.text(page)).join(", ");
            return Err(Failure::Usage(format!("`{topic}` has no section `{anchor}`; it has {anchors}")));
        };
        let more = "[NAME] is another page: containerpilot help NAME. All pages: containerpilot help topics";
        return print(&format!("{text}\n{}\n", screen.paint(Tone::Faint, more)));
    }
    let words = sanitized(words);
    let list = |head: &str, found: Vec<(String, String)>| {
        let row = |(term, place)| vec![(Tone::Plain, term), (Tone::Plain, place)];
        let rows: Vec<_> = found.into_iter().map(row).collect();
        if rows.is_empty() { String::new() } else { table(screen, &[head, "EXPLAINED IN"], &rows) }
    };
    let index = list("TERM", manual.index(&words));
    let more = screen.paint(Tone::Faint, "[NAME]: containerpilot help NAME");
    if let Some(keys) = manual.render_keys(&words, width, screen.colour) {
        let index = if index.is_empty() { index } else { format!("The index has:\n\n{index}\n") };
        return print(&format!("{keys}\n{index}{more}\n"));
    }
    let topics: Vec<String> = manual.pages().map(Page::topic).collect();
    let long = topics.iter().map(String::as_str);
    let short = topics.iter().filter_map(|topic| topic.rsplit('/').next());
    let keys = manual.keys();
    let keys = keys.iter().map(|(name, _)| name.as_str());
    let known = COMMANDS
        .iter()
        .chain(TOOLS)
        .map(|command| command.name)
        .chain(long)
        .chain(short)
        .chain(keys)
        .chain(["topics"]);
    let hint = suggest::nearest(&words, known).map(|near| format!("did you mean `{near}`?"));
    let (what, found) = match index.is_empty() {
        true => ("These sections have the words", list("SECTION", manual.headings(&words))),
        false => ("The index has", index),
    };
    if found.is_empty() {
        let hint =
            hint.unwrap_or_else(|| "`containerpilot help topics` lists the pages of the manual".to_owned());
        return Err(Failure::Usage(format!("unknown command, topic or key `{words}`: {hint}")));
    }
    let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    print(&format!("`{words}` is not a topic{hint}. {what}:\n\n{found}\n{more}\n"))
}

/// All pages with a line about each.
fn topics(manual: &Manual, screen: Screen) -> String {
    let mut rows = Vec::new();
    for section in manual.sections() {
        rows.push(vec![(Tone::Faint, section.name.clone())]);
        for page in &section.pages {
            let about = format!("{}: {}", page.title, page.about.trim_end_matches('.'));
            rows.push(vec![(Tone::Plain, format!("  {}", page.topic())), (Tone::Plain, about)]);
        }
    }
    let list = table(screen, &["TOPIC", "ABOUT"], &rows);
    format!(
        "{list}\nRead a page: containerpilot help TOPIC. A part of it: containerpilot help TOPIC#SECTION\n"
    )
}
