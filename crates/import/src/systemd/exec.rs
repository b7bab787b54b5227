//! Command lines of `ExecStart=` and others.

use super::unit::{Unit, UnitSetting};
use super::words::{self, Word};
use crate::document::{Document, Value};
use crate::files::SourceLine;

/// A command.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// The program and its arguments, with variables.
    pub(crate) words: Vec<String>,
    /// `-`: a failure is a success.
    pub(crate) ignore_failure: bool,
    pub(crate) privileges: Privileges,
    /// `@`: the second word is the name of the program in its argument list.
    pub(crate) renamed: bool,
    /// `:`: without variables.
    literal: bool,
    /// Its line.
    pub(crate) place: SourceLine,
}

/// The privileges of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privileges {
    /// Those of the service. `!!` has no effect on a kernel with ambient capabilities.
    Service,
    /// `!`: without `User=` and `Group=`.
    NoUser,
    /// `+`: without any limit.
    Full,
}

/// The commands of a line, which are separated by `;`.
///
/// # Errors
/// Why systemd does not accept the line.
pub(crate) fn lines(value: &str) -> Result<Vec<Vec<Word>>, &'static str> {
    let all = words::command(value).ok_or("a quote is not closed: add its end, or `\\` before it")?;
    let parts = all.split(|word| word.plain && word.text == ";").filter(|part| !part.is_empty());
    let lines: Vec<Vec<Word>> = parts.map(<[Word]>::to_vec).collect();
    if lines.is_empty() {
        return Err("it names no program");
    }
    for line in &lines {
        match line.first().map_or("", |first| program(&first.text)) {
            "" => return Err("it names no program"),
            path if path.ends_with('/') => return Err("the path of the program is that of a directory"),
            path if path.contains('/') && !path.starts_with(['/', '%']) || matches!(path, "." | "..") => {
                return Err("the path of the program must be absolute, or a name without `/`");
            }
            _ => {}
        }
    }
    Ok(lines)
}

/// The first word of a command without `-`, `+` and others before it.
fn program(word: &str) -> &str {
    word.trim_start_matches(['-', '@', ':', '+', '!', '|'])
}

/// Whether a failure of the command is ignored: `-` before the program.
pub(crate) fn ignores_failure(value: &str) -> bool {
    value.strip_suffix(program(value)).is_some_and(|prefix| prefix.contains('-'))
}

impl Command {
    /// The commands of a line. A specifier that is unknown stays as it is, and is listed.
    pub(crate) fn parse(unit: &Unit, entry: &UnitSetting, document: &mut Document) -> Vec<Self> {
        let mut commands = Vec::new();
        for part in lines(&entry.value).unwrap_or_default() {
            let Some((first, rest)) = part.split_first() else { continue };
            let program = program(&first.text);
            let prefix = first.text.strip_suffix(program).unwrap_or_default();
            let mut command = Self {
                words: Vec::new(),
                ignore_failure: ignores_failure(&first.text),
                privileges: match prefix {
                    _ if prefix.contains('+') => Privileges::Full,
                    _ if prefix.contains('!') && !prefix.contains("!!") => Privileges::NoUser,
                    _ => Privileges::Service,
                },
                renamed: prefix.contains('@'),
                literal: prefix.contains(':'),
                place: entry.place.clone(),
            };
            let arguments = rest.iter().skip(usize::from(command.renamed)).map(|word| word.text.as_str());
            for word in std::iter::once(program).chain(arguments) {
                let word = if word == "\\;" { ";" } else { word };
                let expanded = unit.expand(word).unwrap_or_else(|unknown| {
                    document.inexact(&entry.place, unknown_specifier(unknown));
                    word.to_owned()
                });
                command.words.push(expanded);
            }
            commands.push(command);
        }
        commands
    }

    /// The command as `exec`. `pid` is the variable with the process id of the service. A failure counts unless `tolerant`.
    pub(crate) fn exec(&self, pid: &str, tolerant: bool) -> Value {
        let pieces: Vec<Vec<Piece>> = self
            .words
            .iter()
            .enumerate()
            .map(|(index, word)| match self.literal {
                true => vec![Piece::Text(word.clone())],
                false => pieces(word, index == 0, pid),
            })
            .collect();
        let plain = pieces.iter().map(|pieces| match pieces.as_slice() {
            [] => Some(String::new()),
            [Piece::Text(text)] => Some(text.clone()),
            _ => None,
        });
        match plain.collect::<Option<Vec<String>>>() {
            Some(words) if !tolerant => words.into(),
            Some(words) => {
                let start = ["sh", "-c", "\"$@\" || true", "sh"].map(str::to_owned);
                start.into_iter().chain(words).collect::<Vec<_>>().into()
            }
            None => {
                let words: Vec<String> = pieces.iter().map(|pieces| shell_word(pieces)).collect();
                let line = match tolerant {
                    false => format!("set -f; exec {}", words.join(" ")),
                    true => format!("set -f; {} || true", words.join(" ")),
                };
                vec!["sh".to_owned(), "-c".to_owned(), line].into()
            }
        }
    }

    /// The signal, if the command is `kill -HUP $MAINPID`.
    pub(crate) fn kills_main(&self) -> Option<String> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let (program, rest) = words.split_first()?;
        let signal = match rest {
            [pid] if is_main(pid) => "TERM",
            ["-s" | "--signal", signal, pid] if is_main(pid) => signal,
            [signal, pid] if is_main(pid) => {
                signal.strip_prefix("--signal=").or_else(|| signal.strip_prefix('-'))?
            }
            _ => return None,
        };
        let known = crate::command_line::signal(signal)?;
        matches!(program.rsplit('/').next(), Some("kill")).then_some(known)
    }
}

fn is_main(word: &str) -> bool {
    matches!(word, "$MAINPID" | "${MAINPID}")
}

/// Why a key with an unknown specifier is left out.
pub(crate) fn unknown_specifier(specifier: char) -> String {
    format!("`%{specifier}` is known only on the machine of systemd: write its value")
}

enum Piece {
    Text(String),
    /// A variable in a word.
    Variable(String),
    /// A variable that is split into words.
    Words(String),
}

fn pieces(word: &str, program: bool, pid: &str) -> Vec<Piece> {
    let name = |name: &str| if name == "MAINPID" { pid.to_owned() } else { name.to_owned() };
    let whole = word.strip_prefix('$').filter(|rest| is_name(rest) && !program);
    if let Some(variable) = whole {
        return vec![Piece::Words(name(variable))];
    }
    let (mut out, mut text) = (Vec::new(), String::new());
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        let after = after.get(1..).unwrap_or_default();
        let braced =
            after.strip_prefix('{').and_then(|inner| inner.split_once('}')).filter(|(n, _)| is_name(n));
        match braced {
            Some((variable, behind)) if !program => {
                if !text.is_empty() {
                    out.push(Piece::Text(std::mem::take(&mut text)));
                }
                out.push(Piece::Variable(name(variable)));
                rest = behind;
            }
            _ => {
                text.push('$');
                rest = after.strip_prefix('$').unwrap_or(after);
            }
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        out.push(Piece::Text(text));
    }
    out
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn shell_word(pieces: &[Piece]) -> String {
    let word: String = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => quote(text),
            Piece::Variable(name) => format!("\"${name}\""),
            Piece::Words(name) => format!("${name}"),
        })
        .collect();
    if word.is_empty() { "''".to_owned() } else { word }
}

/// A text as one word of a shell.
pub(crate) fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
