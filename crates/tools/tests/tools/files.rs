//! The commands that work on files: graph, migrate, schema, man and completions (X4, X6, C8).

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::support::deadline::InTime;
use crate::support::program::{Folder, code, command, containerpilot, err, out};
use crate::tools;

fn pilot<A: AsRef<OsStr>>(args: &[A]) -> Command {
    command(tools(), args)
}

fn run<A: AsRef<OsStr>>(args: &[A]) -> Output {
    pilot(args).output_in_time().unwrap()
}

#[test]
fn x4_every_command_is_in_help_man_page_and_completions() {
    // The help of one program lists the commands of the other, too.
    let help = out(&command(containerpilot(), &["help"]).output_in_time().unwrap());
    let man = out(&run(&["man"]));
    let shells = ["bash", "zsh", "fish"].map(|shell| out(&run(&["completions", shell])));
    let commands = "run status explain health wait logs events start stop restart signal reload maintenance putenv \
                    putmetric ping check render graph simulate migrate schema version help completions man";
    for command in commands.split(' ') {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
        assert!(man.contains(&format!("\n.SS \"{command}")), "{command}");
        assert!(shells.iter().all(|text| text.contains(command)), "{command}");
        assert_eq!(code(&run(&["help", command])), 0);
    }
    for flag in
        ["config", "template", "out", "version", "reload", "maintenance", "putenv", "putmetric", "ping"]
    {
        assert!(help.contains(&format!("\n  -{flag}")), "{flag}");
        assert!(man.contains(&format!("\\-{flag}")), "{flag}");
        assert!(shells.iter().all(|text| text.contains(flag)), "{flag}");
    }
}

/// Runs an installed program with `text` as standard input. `scripts/test-deps` installs the programs that tests need.
fn feed(program: &str, args: &[&str], text: &str) -> Output {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let missing = |error| std::panic::panic_any(format!("{program}: {error}; run scripts/test-deps"));
    let mut child = command.spawn().unwrap_or_else(missing);
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.output_in_time().unwrap()
}

#[test]
fn x4_graph_writes_well_formed_svg_and_other_formats() {
    let folder = Folder::new("graph");
    let odd = r#"{ jobs: [{ name: "a\"]<b>&amp;'\u0001\n", exec: "true" },
                           { name: "b", exec: "true", when: { source: "a\"]<b>&amp;'\u0001\n", each: "exitFailed" } }] }"#;
    let file = folder.file("a.json5", odd);
    let file = file.to_str().unwrap();
    let output = run(&["graph", file, "--format", "svg"]);
    assert_eq!((code(&output), err(&output).as_str()), (0, ""));
    let read = "import sys, xml.etree.ElementTree as tree\n\
                root = tree.fromstring(sys.stdin.buffer.read())\n\
                print(root.tag, len(list(root.iter('{http://www.w3.org/2000/svg}rect'))))\n";
    let read = feed("/usr/bin/python3", &["-c", read], &out(&output));
    assert_eq!(out(&read), "{http://www.w3.org/2000/svg}svg 6\n", "{}", err(&read));
    let target = folder.0.join("web.mmd");
    let output = run(&["graph", "-config", file, "--out", target.to_str().unwrap()]);
    assert_eq!((code(&output), out(&output).as_str()), (0, ""));
    assert!(fs::read_to_string(target).unwrap().starts_with("flowchart LR\n"));
    assert!(out(&run(&["graph", file, "-format=dot"])).starts_with("digraph"));
    assert_eq!(code(&run(&["graph", file, "-format=png"])), 2);
    let broken = folder.file("b.json5", "{ jbos: [] }");
    let output = run(&["graph", broken.to_str().unwrap()]);
    assert_eq!((code(&output), out(&output).as_str()), (1, ""));
    assert!(err(&output).contains("so nothing was drawn"), "{}", err(&output));
}

#[test]
fn x4_man_page_passes_mandoc_lint() {
    let output = feed("mandoc", &["-T", "lint", "-W", "warning"], &out(&run(&["man"])));
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
}

#[test]
fn x4_bash_completes_commands_flags_and_values() {
    let script = out(&run(&["completions", "bash"]));
    let complete = |words: &[&str]| {
        let words = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let ask = format!(
            "{script}\ncontainerpilot() {{ printf 'web\\nworker\\n'; }}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1))\n\
             _containerpilot; echo \"${{COMPREPLY[@]}}\"\n"
        );
        let output = feed("bash", &["--norc"], &ask);
        assert_eq!(err(&output), "");
        out(&output)
    };
    assert_eq!(complete(&["containerpilot", "che"]), "check\n");
    assert_eq!(complete(&["containerpilot", "check", "-f"]), "-format\n");
    assert_eq!(complete(&["containerpilot", "check", "-format", "j"]), "json\n");
    assert_eq!(complete(&["containerpilot", "graph", "--format", "s"]), "svg\n");
    assert_eq!(complete(&["containerpilot", "-maintenance", "e"]), "enable\n");
    assert_eq!(complete(&["containerpilot", "maintenance", "s"]), "status\n");
    assert_eq!(complete(&["containerpilot", "logs", "-f"]), "-follow\n");
    assert_eq!(complete(&["containerpilot", "stop", "we"]), "web\n");
    assert_eq!(complete(&["containerpilot", "stop", "web", "w"]), "web worker\n");
    assert_eq!(complete(&["containerpilot", "-main"]), "-maintenance\n");
    assert_eq!(complete(&["containerpilot", "Cargo.to"]), "Cargo.toml\n");
    assert_eq!(complete(&["containerpilot", "run", "Cargo.to"]), "Cargo.toml\n");
    assert_eq!(complete(&["containerpilot", "completions", "z"]), "zsh\n");
    for flag in ["-config", "--out", "-socket"] {
        assert_eq!(complete(&["containerpilot", flag, "Cargo.to"]), "Cargo.toml\n", "{flag}");
    }
}

#[test]
fn x4_fish_completes_commands_and_zsh_accepts_the_script() {
    let script = out(&run(&["completions", "fish"]));
    let output = feed("fish", &["--no-config"], &format!("{script}\ncomplete -C 'containerpilot che'\n"));
    assert!(out(&output).starts_with("check\t"), "{}{}", out(&output), err(&output));
    let names = "function containerpilot; echo web; end\ncomplete -C 'containerpilot stop w'\n";
    let output = feed("fish", &["--no-config"], &format!("{script}\n{names}"));
    assert_eq!(out(&output), "web\n", "{}", err(&output));
    let output = feed("zsh", &["-f", "-n"], &out(&run(&["completions", "zsh"])));
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn x4_schema_is_valid_and_accepts_only_good_files() {
    let folder = Folder::new("schema");
    let schema = folder.file("schema.json", &out(&run(&["schema"])));
    let check = "import json, sys, jsonschema\n\
                 schema = json.load(open(sys.argv[1]))\n\
                 jsonschema.Draft7Validator.check_schema(schema)\n\
                 jsonschema.validate(json.loads(sys.argv[2]), schema)\n";
    let validates = |text: &str| {
        let args = [OsStr::new("-c"), OsStr::new(check), schema.as_os_str(), OsStr::new(text)];
        let output = Command::new("/usr/bin/python3").args(args).output_in_time().unwrap();
        (output.status.success(), err(&output))
    };
    let good = r#"{ "$schema": "x", "x-note": 1, "consul": "localhost:8500", "stopTimeout": "10s",
        "logging": { "level": "INFO" }, "watches": [{ "name": "db", "interval": 5 }],
        "jobs": [{ "name": "a", "exec": ["x", 1], "port": "80", "health": { "exec": "c", "interval": 5, "ttl": 15 },
                   "when": { "source": "b", "once": "healthy" }, "restarts": "unlimited", "interfaces": "eth0" }],
        "telemetry": { "metrics": [{ "name": "m", "type": "gauge" }] } }"#;
    assert_eq!(validates(good), (true, String::new()));
    for bad in [
        r#"{ "loging": {} }"#,
        r#"{ "jobs": {} }"#,
        r#"{ "jobs": [{ "name": "a", "exce": "x" }] }"#,
        r#"{ "watches": [{ "name": "db" }] }"#,
        r#"{ "jobs": [{ "name": "a", "initial_status": "good" }] }"#,
    ] {
        assert!(!validates(bad).0, "{bad}");
    }
}

#[test]
fn x6_closed_standard_output_is_not_a_failure() {
    let mut child = pilot(&["schema"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.output_in_time().unwrap();
    assert_eq!((code(&output), err(&output).as_str()), (0, ""));
}

#[test]
fn c8_migrate_prints_a_file_that_check_accepts() {
    let folder = Folder::new("migrate");
    let old = folder.file(
        "old.json",
        r#"{ "preStart": "echo {{ .WHO }}", "tasks": [{ "command": "true", "frequency": "1h" }], "postStop": "true" }"#,
    );
    let args = [OsStr::new("migrate"), old.as_os_str(), "--".as_ref(), "sleep".as_ref(), "-x 1".as_ref()];
    let printed = run(&args);
    assert_eq!(printed.status.code(), Some(0), "{}", err(&printed));
    assert!(out(&printed).contains(r#"exec: ["sleep", "-x 1"]"#), "{}", out(&printed));
    assert!(out(&printed).contains(r#"exec: "echo {{ .WHO }}""#), "{}", out(&printed));
    assert!(err(&printed).contains("note: Tasks and sensors also run at startup"), "{}", err(&printed));
    let new = folder.file("new.json5", &out(&printed));
    let checked =
        command(containerpilot(), &[OsStr::new("check"), new.as_os_str()]).output_in_time().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}", err(&checked));
    // With the file in the environment, only the program is an argument.
    let printed = pilot(&["migrate", "--", "sleep"]).env("CONTAINERPILOT", &old).output_in_time().unwrap();
    assert!(out(&printed).contains(r#"exec: ["sleep"]"#), "{}", err(&printed));
    let again = run(&[OsStr::new("migrate"), new.as_os_str()]);
    assert_eq!(again.status.code(), Some(1));
    assert!(err(&again).contains("is not a ContainerPilot 2 configuration"), "{}", err(&again));
    let broken = folder.file("broken.json", r#"{ "services": [{}] }"#);
    let refused = run(&[OsStr::new("migrate"), broken.as_os_str()]);
    assert_eq!((refused.status.code(), out(&refused)), (Some(1), String::new()));
    assert!(err(&refused).contains("a service needs `name`"), "{}", err(&refused));
}
