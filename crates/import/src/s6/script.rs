//! `run` scripts and execline command lines that are only one program.

use crate::files::{SourceLine, Text};

/// A script that only executes one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    pub(crate) user: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) umask: Option<String>,
    pub(crate) env: Vec<(String, String)>,
    /// The lines of the script.
    pub(crate) lines: Vec<SourceLine>,
}

/// The language of a script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Shell,
    Execline,
}

fn language(text: &Text) -> Option<Language> {
    let mut words = text.text.lines().next()?.strip_prefix("#!")?.split_whitespace();
    loop {
        match base(words.next()?) {
            "with-contenv" | "env" => {}
            "sh" | "bash" | "ash" | "dash" => {
                let options =
                    |word: &str| word.starts_with('-') && word.chars().skip(1).all(|c| "eux".contains(c));
                return words.all(options).then_some(Language::Shell);
            }
            "execlineb" => return Some(Language::Execline),
            _ => return None,
        }
    }
}

/// The program of a path.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The one program that a script executes; `None` if it does anything else.
pub(crate) fn simplify(text: &Text) -> Option<Simple> {
    match language(text)? {
        Language::Shell => shell(text),
        Language::Execline => execline(text),
    }
}

/// The commands of a script without comments, one per line; `None` if it is not a script of a known language.
pub(crate) fn commands(text: &Text) -> Option<Vec<SourceLine>> {
    language(text)?;
    Some(text.lines().map(|(place, _)| place).filter(|place| !is_comment(&place.text)).collect())
}

fn is_comment(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

fn shell(text: &Text) -> Option<Simple> {
    let mut simple = Simple::default();
    let mut joined = String::new();
    for (place, line) in text.lines() {
        if joined.is_empty() && is_comment(line.trim()) {
            continue;
        }
        simple.lines.push(place);
        match line.strip_suffix('\\') {
            Some(start) => joined.push_str(&(start.to_owned() + " ")),
            None => {
                let command = std::mem::take(&mut joined) + line;
                if !simple.words.is_empty() || !statement(&mut simple, command.trim())? {
                    return None;
                }
            }
        }
    }
    (joined.is_empty() && !simple.words.is_empty()).then_some(simple)
}

/// One line of a shell script. Returns false if it is not understood.
fn statement(simple: &mut Simple, line: &str) -> Option<bool> {
    let line = line.strip_suffix("2>&1").unwrap_or(line).trim_end();
    let words = shell_words(line)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["set", options @ ..] => {
            return Some(options.iter().all(|word| *word == "pipefail" || word.starts_with(['-', '+'])));
        }
        ["exec"] => {}
        ["cd", directory] if directory.starts_with('/') => simple.cwd = Some((*directory).to_owned()),
        ["umask", mask] => simple.umask = Some((*mask).to_owned()),
        ["export", assignment] => {
            let (name, value) = assignment.split_once('=')?;
            simple.env.push((name.to_owned(), value.to_owned()));
        }
        ["exec", program @ ..] => return Some(chain(simple, program)),
        _ => return Some(false),
    }
    Some(true)
}

/// The words of a shell command without expansions and redirections.
fn shell_words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' => return None,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            '#' if word.is_none() => break,
            c if "$`|&;<>(){}*?[]~!".contains(c) => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

/// Programs that only set something up and execute the rest of their command line. Returns false if the rest is not one program.
fn chain(simple: &mut Simple, mut words: &[&str]) -> bool {
    loop {
        words = match words {
            [first, rest @ ..] if base(first) == "with-contenv" => rest,
            ["exec", rest @ ..] if !rest.first().is_some_and(|word| word.starts_with('-')) => rest,
            [first, account, rest @ ..] if base(first) == "s6-setuidgid" && !account.starts_with('-') => {
                simple.user = Some((*account).to_owned());
                rest
            }
            [first, "-c", "2", "1", rest @ ..] if base(first) == "fdmove" => rest,
            ["cd", directory, rest @ ..] if directory.starts_with('/') => {
                simple.cwd = Some((*directory).to_owned());
                rest
            }
            ["umask", mask, rest @ ..] => {
                simple.umask = Some((*mask).to_owned());
                rest
            }
            ["export", name, value, rest @ ..] => {
                simple.env.push(((*name).to_owned(), (*value).to_owned()));
                rest
            }
            _ => break,
        }
    }
    let relative =
        |word: &&str| word.starts_with("./") || word.starts_with("../") || matches!(*word, "." | "..");
    let is_program = words.first().is_some_and(|program| {
        let is_relative = program.contains('/') && !program.starts_with('/');
        !program.is_empty() && !is_relative && !BUILT_IN.contains(program)
    });
    simple.words = words.iter().map(|word| (*word).to_owned()).collect();
    is_program && !words.iter().any(relative)
}

/// Words that are not programs, or that read the rest of the command line.
const BUILT_IN: [&str; 24] = [
    "cd",
    "exec",
    "export",
    "unexport",
    "umask",
    "if",
    "ifelse",
    "ifte",
    "foreground",
    "background",
    "backtick",
    "define",
    "import",
    "importas",
    "elglob",
    "multisubstitute",
    "pipeline",
    "redirfd",
    "fdmove",
    "fdclose",
    "eval",
    "source",
    ".",
    "trap",
];

/// The one program of an execline script; `None` if it does anything else.
pub(crate) fn execline(text: &Text) -> Option<Simple> {
    let mut words: Vec<String> = Vec::new();
    let mut simple = Simple::default();
    for (place, line) in text.lines() {
        if !is_comment(line.trim()) {
            simple.lines.push(place);
            words.extend(execline_words(line)?);
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    chain(&mut simple, &words).then_some(simple)
}

/// The words of a line without blocks and substitutions.
fn execline_words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut quoted = false;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' => {
                let c = chars.next()?;
                let c = match c {
                    'n' if quoted => '\n',
                    't' if quoted => '\t',
                    c if c.is_ascii_alphanumeric() => return None,
                    c => c,
                };
                word.get_or_insert_default().push(c);
            }
            '$' => return None,
            c if quoted => word.get_or_insert_default().push(c),
            ' ' | '\t' => words.extend(word.take()),
            '#' if word.is_none() => break,
            c => word.get_or_insert_default().push(c),
        }
    }
    if quoted {
        return None;
    }
    words.extend(word);
    let block = |word: &String| word == "{" || word == "}";
    (!words.iter().any(block)).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<Vec<String>> {
        let text = Text::new("run", text);
        simplify(&text).map(|simple| {
            let mut out = simple.words;
            out.extend(simple.user.map(|user| format!("user {user}")));
            out.extend(simple.cwd.map(|cwd| format!("cwd {cwd}")));
            out.extend(simple.env.into_iter().map(|(name, value)| format!("{name}={value}")));
            out
        })
    }

    fn some(words: &[&str]) -> Option<Vec<String>> {
        Some(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn c11_a_script_of_one_program_is_that_program() {
        assert_eq!(words("#!/bin/sh\nexec nginx -g 'daemon off;'\n"), some(&["nginx", "-g", "daemon off;"]));
        assert_eq!(
            words(
                "#!/usr/bin/with-contenv bash\nset -e\n# hi\nexec 2>&1\ncd /srv\nexport A=1\nexec s6-setuidgid app \\\n  /bin/app \"x y\" 2>&1\n"
            ),
            some(&["/bin/app", "x y", "user app", "cwd /srv", "A=1"])
        );
        assert_eq!(
            words(
                "#!/command/execlineb -P\nwith-contenv\nfdmove -c 2 1 # both\ns6-setuidgid www\ncd /x\nhttpd \"a b\" -f\n"
            ),
            some(&["httpd", "a b", "-f", "user www", "cwd /x"])
        );
    }

    #[test]
    fn c11_a_script_that_does_more_is_run_as_it_is() {
        for script in [
            "exec app",
            "#!/bin/sh\napp\n",
            "#!/bin/sh\nexec app $ARGS\n",
            "#!/bin/sh\nexec app \"$HOME\"\n",
            "#!/bin/sh\nexec app > /dev/null\n",
            "#!/bin/sh\nexec ./app\n",
            "#!/bin/sh\nexec data/app\n",
            "#!/bin/sh\nmkdir /x\nexec app\n",
            "#!/bin/sh\nexec app\nexec other\n",
            "#!/bin/sh\nexec app \\\n",
            "#!/bin/sh\ncd data\nexec app\n",
            "#!/usr/bin/perl\nexec 'app';\n",
            "#!/bin/execlineb\nforeground { mkdir /x }\napp\n",
            "#!/bin/execlineb\nimportas -i X X\napp $X\n",
            "#!/bin/execlineb\n",
            "#!/bin/sh\nexec 'app\n",
            "#!\n",
            "",
        ] {
            assert_eq!(words(script), None, "{script}");
        }
    }
}
