//! A report for a person: each problem with its line of the source and a caret.

use std::fmt;

use super::view::{LineView, one_line, printable, wrapped};
use super::{Located, Report, Severity};
use crate::limits;

/// The style of a displayed report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether a fault is shown as an error, as in `check`, or as a warning.
    pub faults_are_errors: bool,
    /// True if terminal colours are used.
    pub colour: bool,
}

/// A report that can be displayed.
pub struct Display<'a> {
    report: &'a Report,
    style: Style,
}

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[1;31m";
const YELLOW: &str = "\u{1b}[1;33m";
const BLUE: &str = "\u{1b}[1;34m";
const CYAN: &str = "\u{1b}[1;36m";
const PLAIN: &str = "\u{1b}[0m";

impl<'a> Display<'a> {
    pub(super) fn new(report: &'a Report, style: Style) -> Self {
        Self { report, style }
    }

    fn paint(&self, colour: &'static str) -> &'static str {
        if self.style.colour { colour } else { "" }
    }

    fn one(&self, out: &mut fmt::Formatter<'_>, located: &Located) -> fmt::Result {
        let Located { problem, location } = located;
        let plain = self.paint(PLAIN);
        let (word, colour) = match problem.severity {
            Severity::Error => ("error", RED),
            Severity::Fault if self.style.faults_are_errors => ("error", RED),
            Severity::Fault | Severity::Warning => ("warning", YELLOW),
        };
        let (colour, bold, blue, cyan) =
            (self.paint(colour), self.paint(BOLD), self.paint(BLUE), self.paint(CYAN));
        writeln!(out, "{colour}{word}{plain}{bold}: {}{plain}", one_line(&problem.message))?;
        let mut margin = 1;
        if let Some(at) = location
            && let Some(file) = self.report.files.get(usize::from(at.file.0))
        {
            let number = at.line.to_string();
            margin = number.len();
            let view = LineView::new(&file.source, at.span);
            writeln!(
                out,
                "{:margin$}{blue}-->{plain} {}:{}:{}",
                "",
                one_line(&file.name),
                at.line,
                at.column
            )?;
            writeln!(out, "{:margin$} {blue}|{plain}", "")?;
            writeln!(out, "{blue}{number} |{plain} {}", view.text)?;
            writeln!(
                out,
                "{:margin$} {blue}|{plain} {}{colour}{}{plain}",
                "",
                " ".repeat(view.before),
                "^".repeat(view.width)
            )?;
            if let Some(produced) = &at.produced {
                let note = one_line(&produced.rendered);
                writeln!(out, "{:margin$} {blue}={plain} {cyan}rendered{plain}: {note}", "")?;
            }
        }
        if let Some(help) = &problem.help {
            let help = printable(help);
            for (nth, line) in help.split('\n').flat_map(wrapped).enumerate() {
                let (sign, word) = if nth == 0 { ("=", "help: ") } else { (" ", "      ") };
                writeln!(out, "{:margin$} {blue}{sign}{plain} {cyan}{word}{plain}{line}", "")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Display<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, located) in self.report.problems.iter().take(limits::ERRORS).enumerate() {
            if nth > 0 {
                writeln!(out)?;
            }
            self.one(out, located)?;
        }
        match self.report.problems.len().saturating_sub(limits::ERRORS) {
            0 => Ok(()),
            more => writeln!(out, "\n… and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::{FileId, Place, Problem, SourceFile};
    use crate::span::{SourceMap, Span};

    fn report(source: &str, problem: Problem) -> String {
        let file = SourceFile {
            name: "a.json5".into(),
            source: source.into(),
            rendered: source.into(),
            map: SourceMap::identity(source.len()),
        };
        let style = Style { faults_are_errors: true, colour: false };
        Report::new(vec![file], vec![problem]).display(style).to_string()
    }

    fn at(start: usize, end: usize) -> Problem {
        let place = Place::rendered(FileId(0), Span::new(start, end));
        Problem::new(Severity::Error, place, "wrong")
    }

    #[test]
    fn c5_line_column_and_caret() {
        let text = report("{\n  a: 1,\n  b: x\n}\n", at(15, 16));
        assert_eq!(text, "error: wrong\n --> a.json5:3:6\n  |\n3 |   b: x\n  |      ^\n");
    }

    #[test]
    fn c5_the_caret_is_below_wide_characters_and_tabs() {
        let text = report("\t日本: x", at("\t日本: ".len(), "\t日本: x".len()));
        assert!(text.contains("1 |     日本: x\n  |           ^\n"), "{text}");
        assert!(text.contains("a.json5:1:6"), "{text}");
    }

    #[test]
    fn c5_an_empty_place_is_shown_after_the_text_before_it() {
        let text = report("{ a: 1\n  b: 2 }", at(6, 6));
        assert!(text.contains("a.json5:1:7"), "{text}");
        assert!(text.contains("1 | { a: 1\n  |       ^\n"), "{text}");
    }

    #[test]
    fn c5_a_long_line_is_shown_in_part() {
        let source = format!("{}x{}", "a".repeat(1 << 20), "b".repeat(1 << 20));
        let text = report(&source, at(1 << 20, (1 << 20) + 1));
        assert!(text.lines().all(|line| line.chars().count() < 130), "{text}");
        assert!(text.contains("axb"), "{text}");
    }

    #[test]
    fn c5_a_message_is_always_one_line() {
        let place = Place::rendered(FileId(0), Span::new(0, 1));
        let text = report("a", Problem::new(Severity::Error, place, "wrong: \"x\nerror: forged\""));
        assert_eq!(text.lines().filter(|line| line.starts_with("error")).count(), 1, "{text}");
    }

    #[test]
    fn c5_control_characters_are_replaced() {
        let text = report("a\u{1b}[2Jb \u{202e}c", at(0, 1).help("x\u{7}y"));
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{7}') && !text.contains('\u{202e}'),
            "{text:?}"
        );
    }

    #[test]
    fn c5_the_output_of_an_action_is_shown_with_its_value() {
        let mut map = SourceMap::default();
        map.copied(0, Span::new(0, 8));
        map.produced(8, Span::new(8, 19));
        map.copied(11, Span::new(19, 21));
        let file = SourceFile {
            name: "a".into(),
            source: "{ port: {{ .PORT }} }".into(),
            rendered: "{ port: abc }".into(),
            map,
        };
        let style = Style { faults_are_errors: true, colour: false };
        let text = Report::new(vec![file], vec![at(8, 11)]).display(style).to_string();
        assert!(text.contains("--> a:1:9"), "{text}");
        assert!(text.contains("|         ^^^^^^^^^^^\n"), "{text}");
        assert!(text.contains("= rendered: `abc`"), "{text}");
    }
}
