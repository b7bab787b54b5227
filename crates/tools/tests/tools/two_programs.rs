//! X15: `containerpilot` has what a container needs, `containerpilot-tools` what works on files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::deadline::{InTime, wait_until_within};
use crate::support::program::{Folder, code, command, containerpilot, err, out, repository};
use crate::tools;

/// Copies a program, in a process of its own: a descriptor that writes to it, inherited by a child of another test,
/// would make it busy.
fn copy(program: &str, to: &Path) {
    assert!(Command::new("cp").arg(program).arg(to).status_in_time().unwrap().success());
}

/// A copy of `containerpilot` in a folder, with the tools beside it or without.
fn installed(folder: &Folder, with_tools: bool) -> String {
    let bin = folder.0.join("bin");
    fs::create_dir_all(&bin).unwrap();
    copy(containerpilot(), &bin.join("containerpilot"));
    if with_tools {
        copy(tools(), &bin.join("containerpilot-tools"));
    }
    bin.join("containerpilot").to_str().unwrap().to_owned()
}

fn run(program: &str, path: &str, args: &[&str]) -> Output {
    command(program, args).env("PATH", path).current_dir(repository()).output_in_time().unwrap()
}

#[test]
fn x15_containerpilot_becomes_the_tools_beside_it() {
    let folder = Folder::new("beside");
    let program = installed(&folder, true);
    let scenario = folder.file("fails.json5", r#"{ expect: [{ at: "1s", job: "server", is: "stopped" }] }"#);
    let scenario = scenario.to_str().unwrap();
    for args in [
        &["simulate", "examples/quickstart.json5", "examples/quickstart.scenario.json5"][..],
        &["simulate", "examples/quickstart.json5", scenario],
        &["-config", "examples/quickstart.json5", "graph"],
        &["graph", "-format", "none"],
        &["help", "jobs"],
        &["help", "simulate"],
        &["completions", "bash"],
        &["schema"],
        &["man"],
    ] {
        let (through, direct) = (run(&program, "", args), run(tools(), "", args));
        assert_eq!(code(&through), code(&direct), "{args:?}: {}", err(&through));
        // Messages name the program that the user has called.
        let messages = err(&direct).replace("containerpilot-tools", "containerpilot");
        assert_eq!((out(&through), err(&through)), (out(&direct), messages), "{args:?}");
    }
}

#[test]
fn x15_containerpilot_finds_the_tools_in_path() {
    let (folder, other) = (Folder::new("path"), Folder::new("path-tools"));
    let program = installed(&folder, false);
    copy(tools(), &other.0.join("containerpilot-tools"));
    let path = format!("/nonexistent:{}", other.0.display());
    let found = run(&program, &path, &["graph", "examples/quickstart.json5"]);
    assert_eq!(code(&found), 0, "{}", err(&found));
    assert!(out(&found).starts_with("flowchart"), "{}", out(&found));
}

#[test]
fn x15_without_the_tools_one_line_says_what_to_install() {
    let folder = Folder::new("without");
    let program = installed(&folder, false);
    for (args, wanted) in [(&["simulate", "x.json5"][..], "simulate"), (&["help", "jobs"], "help jobs")] {
        let output = run(&program, "/nonexistent", args);
        let text = err(&output);
        assert_eq!((code(&output), text.lines().count()), (2, 1), "{text}");
        let expected =
            format!("containerpilot: `{wanted}` is a part of containerpilot-tools, which is neither beside");
        assert!(text.starts_with(&expected) && text.contains("install"), "{text}");
    }
    // What runs in a container needs no tools.
    let help = run(&program, "/nonexistent", &["help", "wait"]);
    assert_eq!((code(&help), err(&help).as_str()), (0, ""));
    let overview = out(&run(&program, "/nonexistent", &["help"]));
    assert!(overview.contains("containerpilot-tools") && overview.contains("\n  simulate "), "{overview}");
}

#[test]
fn x15_a_signal_reaches_the_tools() {
    let folder = Folder::new("signal");
    let program = installed(&folder, true);
    // It reads standard input, which stays open.
    let child = command(&program, &["migrate", "-"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    let name = || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let limit = std::time::Duration::from_secs(30);
    wait_until_within(limit, || format!("{} is the tools", name()), || name().starts_with("containerpilot-"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let status = child.status_in_time().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
}

#[test]
fn x15_another_version_is_a_warning_with_both() {
    let output = run(tools(), "", &["-called-by=0.1.0", "schema"]);
    let text = err(&output);
    assert_eq!(code(&output), 0, "{text}");
    let own = env!("CARGO_PKG_VERSION");
    assert!(text.starts_with("warning: ") && text.contains("0.1.0") && text.contains(own), "{text}");
    let same = run(tools(), "", &[&format!("-called-by={own}"), "schema"]);
    assert_eq!(err(&same), "");
}

#[test]
fn x15_an_unknown_command_says_which_program_has_it() {
    let other = run(tools(), "", &["status"]);
    assert_eq!(code(&other), 2);
    assert!(err(&other).contains("`status` is a command of containerpilot\n"), "{}", err(&other));
    let near = run(tools(), "", &["simulat"]);
    assert!(err(&near).contains("unknown command `simulat`: did you mean `simulate`?"), "{}", err(&near));
    let nothing = run(tools(), "", &[]);
    assert_eq!((code(&nothing), out(&nothing)), (0, out(&run(tools(), "", &["help"]))));
    assert!(out(&nothing).contains("\n  simulate ") && !out(&nothing).contains("\n  status "));
    let near = run(containerpilot(), "", &["simulat"]);
    assert!(err(&near).contains("did you mean `containerpilot-tools simulate`?"), "{}", err(&near));
}

/// What `cargo tree` shows of a program, a line for each entry.
fn tree(program: &str, edges: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--prefix=none", "--edges", edges, "--package", program])
        .current_dir(repository())
        .output_in_time()
        .unwrap();
    assert!(output.status.success(), "{}", err(&output));
    out(&output)
}

/// The crates that are linked into a program, and what builds them.
fn crates(program: &str) -> Vec<String> {
    let tree = tree(program, "normal,build");
    tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn x15_no_program_has_code_for_development_only() {
    for program in ["containerpilot", "containerpilot-tools"] {
        let tree = tree(program, "normal,build,features");
        assert!(tree.contains("containerpilot-config feature \"default\""), "{tree}");
        for feature in ["fuzzing", "fingerprint", "failpoints"] {
            assert!(!tree.contains(&format!("feature \"{feature}\"")), "{program} has {feature}: {tree}");
        }
    }
}

#[test]
fn x15_containerpilot_has_no_crate_of_the_tools() {
    let own = crates("containerpilot");
    assert!(own.iter().any(|name| name == "containerpilot-supervisor"), "{own:?}");
    let tools =
        ["simulation", "drawing", "oracle", "import", "audit", "manual", "tools", "fuzzing", "test-support"];
    let tools = tools.map(|name| format!("containerpilot-{name}"));
    let readers = ["saphyr-parser", "hcl-edit", "parse-dockerfile", "lzma-rust2"].map(str::to_owned);
    for name in tools.iter().chain(&readers) {
        assert!(!own.contains(name), "containerpilot depends on {name}");
    }
    let all = crates("containerpilot-tools");
    for name in tools[..1].iter().chain(&readers[..1]) {
        assert!(all.contains(name), "containerpilot-tools does not depend on {name}");
    }
    // It has no event loop, and needs no network.
    assert!(!all.iter().any(|name| name == "containerpilot-supervisor" || name == "tokio"), "{all:?}");
}
