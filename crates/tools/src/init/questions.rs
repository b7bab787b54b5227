//! The questions of `init` on a terminal.

use std::io::{BufRead, Read, Write};

use containerpilot_command_line::failure::Failure;
use containerpilot_import::command_line;
use containerpilot_import::document::Value;
use containerpilot_process::error_text::describe;

use super::wanted::{Health, PORT, PROGRAM, Times, Wanted};

/// The longest answer.
const LONGEST: u64 = 64 << 10;

pub(super) fn ask() -> Result<Wanted, Failure> {
    let mut asking = Asking { input: std::io::stdin().lock(), output: std::io::stderr() };
    asking.say("Enter takes the answer in brackets. Ctrl-C ends without writing a file.\n")?;
    asking.wanted()
}

struct Asking<I, O> {
    input: I,
    output: O,
}

impl<I: BufRead, O: Write> Asking<I, O> {
    fn wanted(&mut self) -> Result<Wanted, Failure> {
        let program = self.ask("The program, with its arguments", PROGRAM, command)?;
        let port = self.ask("The TCP port that it listens on, or `none`", &PORT.to_string(), port)?;
        let (how, default) = match port {
            Some(_) => ("`tcp` for a connection, `http /path`, `exec COMMAND`, or `none`", "tcp"),
            None => ("`exec COMMAND`, or `none`", "none"),
        };
        let health = |answer: &str| health(answer, port);
        let health = self.ask(&format!("Its health check: {how}"), default, health)?;
        let beside = self.ask("Another program beside it, or `none`", "none", optional_command)?;
        let setup = self.ask("A setup that runs before, or `none`", "none", optional_command)?;
        Ok(Wanted { program, health, beside, setup, image: None })
    }

    /// Asks until the answer is valid.
    fn ask<T>(
        &mut self,
        question: &str,
        default: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        loop {
            self.say(&format!("{question} [{default}]: "))?;
            let mut answer = Vec::new();
            let mut line = self.input.by_ref().take(LONGEST);
            line.read_until(b'\n', &mut answer).map_err(|error| unread(&describe(&error)))?;
            if answer.last() != Some(&b'\n') {
                // The next text begins on a line of its own.
                self.say("\n")?;
                let why =
                    if answer.len() as u64 == LONGEST { "the answer is too long" } else { "end of input" };
                return Err(unread(why));
            }
            let answer = String::from_utf8(answer).map_err(|_| "it is not UTF-8 text".to_owned());
            let result = answer.and_then(|answer| match answer.trim() {
                "" => read(default),
                answer if answer.chars().any(char::is_control) => {
                    Err("it has a control character".to_owned())
                }
                answer => read(answer),
            });
            match result {
                Ok(value) => return Ok(value),
                Err(why) => self.say(&format!("{why}; please answer again\n"))?,
            }
        }
    }

    fn say(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush());
        written.map_err(|error| unread(&describe(&error)))
    }
}

fn unread(why: &str) -> Failure {
    Failure::Failed(format!("{why}: nothing was written"))
}

fn command(answer: &str) -> Result<Vec<String>, String> {
    if answer.eq_ignore_ascii_case("none") {
        return Err("a container needs a program".to_owned());
    }
    if shlex::split(answer).is_none() {
        return Err("a quote is not closed".to_owned());
    }
    Ok(shell(answer))
}

fn optional_command(answer: &str) -> Result<Option<Vec<String>>, String> {
    if answer.eq_ignore_ascii_case("none") { Ok(None) } else { command(answer).map(Some) }
}

/// The words of a shell line, which are those of `sh -c` if it needs a shell.
pub(super) fn shell(line: &str) -> Vec<String> {
    let word = |value: Value| if let Value::Text(word) = value { Some(word) } else { None };
    match command_line::shell(line) {
        Value::List(words) => words.into_iter().filter_map(word).collect(),
        _ => Vec::new(),
    }
}

fn port(answer: &str) -> Result<Option<u16>, String> {
    if answer.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    match answer.parse() {
        Ok(port @ 1..) => Ok(Some(port)),
        _ => Err("a port is a number from 1 to 65535".to_owned()),
    }
}

fn health(answer: &str, port: Option<u16>) -> Result<Option<Health>, String> {
    let (kind, rest) = answer.split_once(char::is_whitespace).unwrap_or((answer, ""));
    let rest = rest.trim();
    let of_port = || port.ok_or_else(|| format!("`{kind}` needs a port"));
    match (kind.to_ascii_lowercase().as_str(), rest) {
        ("none", "") => Ok(None),
        ("tcp", "") => Ok(Some(Health::Tcp(of_port()?))),
        ("http", path) if path.starts_with('/') && !path.contains(char::is_whitespace) => {
            Ok(Some(Health::Http(of_port()?, path.to_owned())))
        }
        ("http", _) => Err("write the path, such as `http /health`".to_owned()),
        ("exec", "") => Err("write the command, such as `exec /bin/check`".to_owned()),
        ("exec", line) => Ok(Some(Health::Exec(command(line)?, Times::default()))),
        _ => Err(format!("`{answer}` is neither `tcp`, `http /path`, `exec COMMAND` nor `none`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks with these answers. Returns what is wanted, and what was shown.
    fn asked(answers: &str) -> (Result<Wanted, Failure>, String) {
        let mut output = Vec::new();
        let wanted = Asking { input: answers.as_bytes(), output: &mut output }.wanted();
        (wanted, String::from_utf8(output).unwrap())
    }

    #[test]
    fn x20_answers_are_taken_over_and_wrong_ones_are_asked_again() {
        let answers = "none\n'open\nnode server.js --name 'a b'\n0\n70000\nx\n3000\nhttp\nhttp /health\n\
                       tail -f log | tee x\n/bin/setup\n";
        let (wanted, shown) = asked(answers);
        let wanted = wanted.unwrap();
        assert_eq!(wanted.program, ["node", "server.js", "--name", "a b"]);
        assert_eq!(wanted.health, Some(Health::Http(3000, "/health".to_owned())));
        assert_eq!(wanted.beside.unwrap(), ["sh", "-c", "tail -f log | tee x"]);
        assert_eq!(wanted.setup.unwrap(), ["/bin/setup"]);
        for why in
            ["a container needs a program", "a quote is not closed", "from 1 to 65535", "write the path"]
        {
            assert!(shown.contains(why), "{why}");
        }
    }

    #[test]
    fn x20_empty_answers_are_the_defaults() {
        let wanted = asked("\n\n\n\n\n").0.unwrap();
        assert_eq!(format!("{wanted:?}"), format!("{:?}", Wanted::default()));
        let wanted = asked("a\nnone\ntcp\nexec test -f 'a b'\n\n\n").0.unwrap();
        let words = ["test", "-f", "a b"].map(str::to_owned).to_vec();
        assert_eq!(wanted.health, Some(Health::Exec(words, Times::default())));
    }

    #[test]
    fn x20_the_end_of_the_input_is_an_error_at_every_question() {
        for answers in
            ["", "a\n", "a\n1\n", "a\n1\ntcp\n", "a\n1\ntcp\nnone\n", "a\n1\ntcp\nnone\nno newline"]
        {
            let failure = asked(answers).0.unwrap_err().to_string();
            assert_eq!(failure, "end of input: nothing was written", "{answers:?}");
        }
        let failure = asked(&"x".repeat(100_000)).0.unwrap_err().to_string();
        assert_eq!(failure, "the answer is too long: nothing was written");
    }
}
