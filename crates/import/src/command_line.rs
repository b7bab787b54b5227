//! Command lines of other programs as `exec`.

use containerpilot_core::plan::Signal;

use crate::document::Value;

/// A shell line: its words if it needs no shell, else `sh -c`.
#[must_use]
pub fn shell(line: &str) -> Value {
    let needs_shell = |c: char| "$`|&;<>(){}*?[]~#!\n".contains(c);
    let words = shlex::split(line).filter(|words| !words.is_empty());
    match words {
        Some(words)
            if !line.contains(needs_shell) && !words.first().is_some_and(|word| is_shell_only(word)) =>
        {
            words.into()
        }
        _ => vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()].into(),
    }
}

fn is_shell_only(word: &str) -> bool {
    word.contains('=') || matches!(word, "." | "cd" | "exec" | "export" | "source" | "ulimit" | "umask")
}

/// The full name of a signal that is given by name, with or without `SIG`, or by number. `None` if there is no such signal.
#[must_use]
pub fn signal(text: &str) -> Option<String> {
    Signal::from_name(&text.trim().to_uppercase()).map(|signal| signal.to_string())
}
