//! Replays the manual: its examples must do what the manual shows.
//!
//! Each page of `docs/` gets its own directory, in which its code blocks are executed in order:
//!
//! - ```` ```json5 ```` is a configuration that `check` must accept. A block that begins with `// NAME` is also saved
//!   under that name. `json5 broken` must be refused by `check`; `json5 fragment` is only a part of a configuration;
//!   `json5 scenario` is a file for `simulate`, which is parsed and saved.
//! - ```` ```console ```` holds commands (`$ …`, continued by `> …`) and their whole output. `…` stands for any text
//!   within a line, and alone on a line for any lines. The commands of ```` ```console with FILE ```` run against a
//!   supervisor with the saved configuration FILE, one for all such blocks of a page; there, pids, times and the width
//!   of columns are not compared.
//! - ```` ```yaml ```` and ```` ```hcl ```` that begin with `# NAME` are saved under that name.
//! - ```` ```template ```` holds variables (optional), a template and its result, separated by `---`. A result
//!   `error: …` is the error message of the template.
//!
//! The examples of `examples/` are run too.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::deadline::{InTime, holds_within, wait_until_within};
use crate::support::failure::tail_of_file;
use crate::support::program::{Folder, containerpilot, repository};

/// Programs that the examples use and that need not be installed.
const PROGRAMS: [&str; 7] = ["nginx", "consul", "node", "consul-template", "backup", "pg_isready", "pkill"];

#[derive(Debug)]
struct Block {
    line: usize,
    language: String,
    text: String,
}

fn docs() -> PathBuf {
    repository().join("docs")
}

/// All pages, with their path below `docs/`.
fn pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    for folder in [docs(), docs().join("how-to")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(docs()).unwrap().to_str().unwrap().to_owned();
                pages.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    pages.sort();
    assert!(!pages.is_empty());
    pages
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (nth, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(_), true) => open = false,
            (Some(language), false) => {
                open = true;
                blocks.push(Block {
                    line: nth + 1,
                    language: language.trim().to_owned(),
                    text: String::new(),
                });
            }
            (None, true) => {
                if let Some(block) = blocks.last_mut() {
                    block.text += line;
                    block.text.push('\n');
                }
            }
            (None, false) => {}
        }
    }
    assert!(!open, "a code block is not closed");
    blocks
}

/// A port for the servers of a page. Other tests get ports from 32768 on from the kernel, and so do connections.
fn own_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let port = || {
        let number = std::process::id().wrapping_mul(100) + NEXT.fetch_add(1, Ordering::Relaxed);
        u16::try_from(10_000 + number % 20_000).unwrap()
    };
    std::iter::repeat_with(port).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// Creates the directory of a page, with a working directory and a `bin` directory for the programs of its examples.
fn folder(page: &str) -> Folder {
    let folder = Folder::new(&format!("manual-{}", page.replace('/', "-")));
    let path = &folder.0;
    std::fs::create_dir_all(path.join("here")).unwrap();
    std::fs::create_dir_all(path.join("bin")).unwrap();
    std::os::unix::fs::symlink(containerpilot(), path.join("bin/containerpilot")).unwrap();
    let examples = repository().join("examples");
    std::os::unix::fs::symlink(examples, path.join("here/examples")).unwrap();
    std::fs::write(path.join("port"), own_port().to_string()).unwrap();
    for program in PROGRAMS {
        std::os::unix::fs::symlink("/bin/true", path.join("bin").join(program)).unwrap();
    }
    folder
}

/// The logs of a page: those that its commands have written, and that of its supervisor.
fn logs(folder: &Path) -> String {
    let files = [folder.to_owned(), folder.join("here")].map(|folder| std::fs::read_dir(folder).unwrap());
    let paths = files.into_iter().flatten().map(|file| file.unwrap().path());
    let logs = paths.filter(|path| path.to_str().is_some_and(|path| path.ends_with("log")));
    logs.map(|path| format!("--- {}:\n{}", path.display(), tail_of_file(&path))).collect()
}

/// A command in the page's directory, with an almost empty environment.
fn command(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.join("bin").display());
    command.env_clear().env("PATH", path).current_dir(folder.join("here"));
    // A socket of its own, because tests run in parallel. It is not in the page's directory, whose path may be too
    // long.
    let page = folder.file_name().unwrap_or_default().to_string_lossy();
    let socket = format!("containerpilot-{}-{page}.socket", std::process::id());
    command.env("CONTAINERPILOT_SOCKET", std::env::temp_dir().join(socket));
    command.env("TELEMETRY_PORT", std::fs::read_to_string(folder.join("port")).unwrap());
    command
}

fn run_with_stdin(mut command: Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.output_in_time().unwrap()
}

/// Whether lines match the expected ones, in which `…` alone on a line stands for any lines.
fn lines_match(expected: &[&str], found: &[&str]) -> bool {
    match expected {
        [] => found.is_empty(),
        ["…", rest @ ..] => (0..=found.len()).any(|skipped| lines_match(rest, &found[skipped..])),
        [first, rest @ ..] => {
            found.first().is_some_and(|line| line_matches(first, line)) && lines_match(rest, &found[1..])
        }
    }
}

fn line_matches(expected: &str, found: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = found.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The commands of a console block, each with its expected output.
fn commands(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), line.strip_prefix("> "), commands.last_mut()) {
            (Some(command), _, _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some(more), Some((command, printed))) if printed.is_empty() => {
                command.push('\n');
                command.push_str(more);
            }
            (None, _, Some((_, printed))) => printed.push(line),
            (None, _, None) => panic!("output without a command: {line}"),
        }
    }
    commands
}

/// The supervisor that the commands of a page control; it is stopped when it is dropped.
struct Supervisor {
    config: String,
    child: Child,
}

impl Supervisor {
    fn start(folder: &Path, config: &str) -> Self {
        let mut run = command(folder, "containerpilot");
        let log = File::options().create(true).append(true).open(folder.join("supervisor.log")).unwrap();
        run.args(["-config", config]).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let started = Self { config: config.to_owned(), child: run.spawn().unwrap() };
        let what = || format!("the supervisor of {config} answers\n{}", logs(folder));
        wait_until_within(Duration::from_secs(60), what, || {
            let ping = command(folder, "containerpilot").args(["ping", "-config", config]).output_in_time();
            ping.unwrap().status.success()
        });
        started
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // SIGTERM lets it stop its jobs; SIGKILL follows after 20 s.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status_in_time();
        holds_within(Duration::from_secs(20), || !matches!(self.child.try_wait(), Ok(None)));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Replaces the words of a line that differ from run to run: durations, times, pids.
fn normalise(line: &str) -> String {
    let word = |word: &str| {
        let core = word.trim_matches([',', ';', '(', ')', ':']);
        let starts = core.starts_with(|c: char| c.is_ascii_digit());
        let duration = starts
            && core.ends_with(['s', 'm', 'h'])
            && core.chars().all(|c| c.is_ascii_digit() || ".dhms".contains(c));
        let moment = starts && core.contains('T') && core.ends_with('Z');
        let process = core.len() >= 3 && core.chars().all(|c| c.is_ascii_digit());
        let name = match (duration, moment, process) {
            (true, ..) => "TIME",
            (_, true, _) => "MOMENT",
            (_, _, true) => "PID",
            _ => return word.to_owned(),
        };
        word.replace(core, name)
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// Runs the commands of a block in one shell and compares the output of each.
fn replay(folder: &Path, text: &str, supervisor: Option<&Supervisor>) -> Result<(), String> {
    const MARK: &str = "--- the next command ---";
    let commands = commands(text);
    let mut script = "exec 2>&1\n".to_owned();
    for (command, _) in &commands {
        script += &format!("{command}\nstatus=$?; printf '%s\\n' '{MARK}'; (exit $status)\n");
    }
    // A command that hangs is killed, and fails the test.
    let mut shell = command(folder, "timeout");
    if let Some(supervisor) = supervisor {
        shell.env("CONTAINERPILOT", &supervisor.config);
    }
    shell.args(["--kill-after=10", "120", "sh", "-c"]).arg(script);
    let output = run_with_stdin(shell, "");
    let printed = String::from_utf8(output.stdout).unwrap();
    let mark = format!("{MARK}\n");
    let mut printed = printed.split(&mark);
    for (command, expected) in commands {
        let found = printed.next().unwrap_or_default();
        let lines = found.lines();
        let matched = if supervisor.is_some() {
            let expected: Vec<String> = expected.iter().map(|line| normalise(line)).collect();
            let found: Vec<String> = lines.map(normalise).collect();
            lines_match(
                &expected.iter().map(|line| &**line).collect::<Vec<_>>(),
                &found.iter().map(|line| &**line).collect::<Vec<_>>(),
            )
        } else {
            lines_match(&expected, &lines.collect::<Vec<_>>())
        };
        if !matched {
            // `timeout` exits with 124, or is killed together with the shell.
            let end = if matches!(output.status.code(), Some(124 | 137) | None) {
                "the block was killed after 120s, and until then it "
            } else {
                ""
            };
            return Err(format!(
                "`{command}`: {end}printed\n{found}\nwhere the page has\n{}\n{}",
                expected.join("\n"),
                logs(folder)
            ));
        }
    }
    Ok(())
}

/// Saves a block whose first line is a comment with the name of a file.
fn save(folder: &Path, text: &str, comment: &str, extensions: &[&str]) {
    if let Some(name) = text.lines().next().and_then(|line| line.strip_prefix(comment))
        && extensions.iter().any(|extension| name.ends_with(extension))
        && !name.contains(' ')
    {
        let path = folder.join("here").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn configuration(folder: &Path, language: &str, text: &str) -> Result<(), String> {
    save(folder, text, "// ", &[".json5", ".json"]);
    if language == "json5 scenario" {
        let good = containerpilot_config::json5::parse(text.as_bytes()).errors.is_empty();
        return if good { Ok(()) } else { Err("is not JSON5".to_owned()) };
    }
    if language == "json5 fragment" {
        let environment = Default::default();
        let wrapped = [format!("{{{text}}}"), format!("{{ list: [{text}] }}")];
        let parses = |text: &String| {
            let rendered = containerpilot_config::template::render(text.as_bytes(), &environment);
            rendered
                .is_ok_and(|rendered| containerpilot_config::json5::parse(&rendered.text).errors.is_empty())
        };
        return if wrapped.iter().any(parses) {
            Ok(())
        } else {
            Err("is not a part of a configuration".to_owned())
        };
    }
    let mut check = command(folder, containerpilot());
    check.args(["check", "-"]);
    let Output { status, stderr, .. } = run_with_stdin(check, text);
    let refused = language == "json5 broken";
    if status.code() == Some(i32::from(refused)) {
        Ok(())
    } else {
        Err(format!("check prints\n{}", String::from_utf8_lossy(&stderr)))
    }
}

fn template(folder: &Path, text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split("---\n").collect();
    let (variables, source, expected) = match parts[..] {
        [variables, source, expected] => (variables, source, expected),
        [source, expected] => ("", source, expected),
        _ => return Err("expected two or three parts".to_owned()),
    };
    let mut render = command(folder, containerpilot());
    render.args(["render", "-"]).env_clear();
    render.envs(variables.lines().map(|line| line.split_once('=').unwrap()));
    let Output { stdout, stderr, .. } = run_with_stdin(render, source.strip_suffix('\n').unwrap_or(source));
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    let found = if stderr.is_empty() { stdout } else { stderr.lines().next().unwrap().to_owned() };
    let expected = expected.strip_suffix('\n').unwrap_or(expected);
    if found == expected { Ok(()) } else { Err(format!("renders to\n{found}")) }
}

#[test]
fn every_code_block_of_the_manual_works_as_shown() {
    let (mut counts, mut wrong) = ([0; 3], Vec::new());
    for (page, text) in pages() {
        let folder = folder(&page);
        let folder = &*folder.0;
        let mut supervisor: Option<Supervisor> = None;
        for Block { line, language, text } in blocks(&text) {
            if let Some(config) = language.strip_prefix("console with ")
                && supervisor.as_ref().is_none_or(|running| running.config != config)
            {
                // The previous one is stopped first.
                drop(supervisor.take());
                supervisor = Some(Supervisor::start(folder, config));
            }
            let (kind, result) = match language.as_str() {
                "console" => (0, replay(folder, &text, None)),
                console if console.starts_with("console with ") => {
                    (0, replay(folder, &text, supervisor.as_ref()))
                }
                "json5" | "json5 broken" | "json5 fragment" | "json5 scenario" => {
                    (1, configuration(folder, &language, &text))
                }
                "yaml" | "hcl" => {
                    save(folder, &text, "# ", &[".yaml", ".yml", ".hcl"]);
                    continue;
                }
                "template" => (2, template(folder, &text)),
                other if other.starts_with("json5") || other.is_empty() => {
                    (1, Err(format!("unknown kind of block `{other}`")))
                }
                _ => continue,
            };
            counts[kind] += 1;
            if let Err(why) = result {
                wrong.push(format!("docs/{page}:{line}: {why}"));
            }
        }
    }
    let [consoles, configurations, templates] = counts;
    println!("{consoles} console blocks, {configurations} configurations, {templates} templates");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
    assert!(counts.iter().all(|count| *count > 0));
}

#[test]
fn c2_every_template_function_has_an_example_in_the_manual() {
    let source = repository().join("crates/template/src/functions.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let page = std::fs::read_to_string(docs().join("templates.md")).unwrap();
    let examples: String = blocks(&page)
        .into_iter()
        .filter(|block| block.language == "template")
        .map(|block| block.text)
        .collect();
    let table = source.split("FUNCTIONS: [").nth(1).unwrap();
    let names = table.split("entry(").skip(1).filter_map(|row| row.split('"').nth(1));
    // `call` needs a function value, which no template can have here.
    let names: Vec<&str> = names.filter(|name| *name != "call").collect();
    assert!(names.len() > 20, "{names:?}");
    let used = |name: &&str| examples.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == *name);
    let missing: Vec<_> = names.iter().filter(|name| !used(name)).collect();
    assert!(missing.is_empty(), "docs/templates.md has no example of {missing:?}");
}

#[test]
fn hooks_example_runs_hooks_in_order() {
    let folder = folder("hooks-example");
    let example = repository().join("examples/hooks.json5");
    let mut supervisor = command(&folder.0, "containerpilot");
    supervisor.arg("-config").arg(example).env("LIFE", "0.1");
    let Output { status, stdout, .. } = run_with_stdin(supervisor, "");
    let printed = String::from_utf8(stdout).unwrap();
    assert_eq!(status.code(), Some(3), "{printed}");
    let positions = ["serving", "the server goes", "the server is gone"].map(|text| printed.find(text));
    assert!(positions.iter().all(Option::is_some) && positions.is_sorted(), "{printed}");
}
