//! X20: `init` writes a first configuration, the lines for a Dockerfile, and a scenario.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::support::deadline::InTime;
use crate::support::program::{Folder, code, command, err, out};
use crate::support::tmux::Tmux;
use crate::tools;

const NAMES: [&str; 3] =
    ["containerpilot.json5", "Dockerfile.containerpilot", "containerpilot.scenario.json5"];

/// Runs the tools in a folder.
fn run(folder: &Folder, args: &[&str]) -> Output {
    command(tools(), args).current_dir(&folder.0).output_in_time().unwrap()
}

/// Writes the files for a Dockerfile. Returns the texts of the configuration and of the lines for the Dockerfile; the
/// scenario is played, and its expectations hold.
fn from_dockerfile(dockerfile: &[u8]) -> (String, String) {
    let folder = Folder::new(&format!("init-{}", thread_name()));
    let _ = fs::remove_dir_all(folder.0.join("new"));
    fs::write(folder.0.join("Dockerfile"), dockerfile).unwrap();
    let output = run(&folder, &["init", "new", "--from", "Dockerfile"]);
    assert_eq!((code(&output), err(&output).as_str()), (0, ""), "{}", out(&output));
    let new = folder.0.join("new");
    plays(&new);
    let [config, lines, _] = NAMES.map(|name| fs::read_to_string(new.join(name)).unwrap());
    (config, lines)
}

fn thread_name() -> String {
    std::thread::current().name().unwrap().replace("::", "-")
}

/// Plays the scenario of a folder; all expectations hold.
fn plays(folder: &Path) {
    let args = ["simulate", NAMES[0], NAMES[2]];
    let output = command(tools(), &args).current_dir(folder).output_in_time().unwrap();
    assert_eq!((code(&output), err(&output).as_str()), (0, ""), "{}", out(&output));
    assert!(out(&output).contains("expectations are met"), "{}", out(&output));
}

/// What is printed for a Dockerfile that cannot be converted. Nothing is written then.
fn refused(dockerfile: &[u8]) -> String {
    let folder = Folder::new(&format!("init-{}", thread_name()));
    fs::write(folder.0.join("Dockerfile"), dockerfile).unwrap();
    let output = run(&folder, &["init", "new", "--from", "Dockerfile"]);
    assert_eq!((code(&output), out(&output).as_str()), (2, ""), "{}", err(&output));
    assert!(!folder.0.join("new").exists());
    err(&output).trim_start_matches("containerpilot-tools: ").trim_end().to_owned()
}

#[test]
fn x20_without_a_terminal_the_defaults_are_used() {
    let folder = Folder::new("init-defaults");
    let output = run(&folder, &["init"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(
        err(&output).contains("no terminal, so nothing is asked and the defaults are used"),
        "{}",
        err(&output)
    );
    let text = out(&output);
    for line in
        ["wrote containerpilot.json5, ", "ok: containerpilot.json5", "ok: container image of", "next: "]
    {
        assert!(text.lines().any(|one| one.starts_with(line)), "{line}: {text}");
    }
    plays(&folder.0);
    // What the user can run again says the same.
    let audit = run(&folder, &["audit", NAMES[0], "--with", NAMES[1], "--strict"]);
    assert_eq!(code(&audit), 0, "{}", err(&audit));
    // The folder, and those above it, are created.
    let output = run(&folder, &["init", "a/b/"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(NAMES.iter().all(|name| folder.0.join("a/b").join(name).is_file()));
}

#[test]
fn x20_nothing_is_overwritten_and_the_existing_file_is_named() {
    for name in NAMES {
        let folder = Folder::new("init-exists");
        let _ = fs::remove_dir_all(&folder.0);
        fs::create_dir(&folder.0).unwrap();
        folder.file(name, "mine");
        let output = run(&folder, &["init"]);
        let expected = format!(
            "containerpilot-tools: {name} exists, and `init` overwrites nothing: move it away, or name another folder; \
             nothing was written\n"
        );
        assert_eq!((code(&output), out(&output).as_str()), (2, ""));
        assert!(err(&output).ends_with(&expected), "{}", err(&output));
        assert_eq!(fs::read_to_string(folder.0.join(name)).unwrap(), "mine");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
        // Neither is what a link leads to, also if that is not there.
        fs::remove_file(folder.0.join(name)).unwrap();
        symlink("elsewhere", folder.0.join(name)).unwrap();
        let output = run(&folder, &["init"]);
        assert_eq!(code(&output), 2, "{}", err(&output));
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }
}

#[test]
fn x20_a_folder_that_cannot_be_written_is_an_error() {
    let folder = Folder::new("init-folder");
    folder.file("file", "");
    let output = run(&folder, &["init", "file"]);
    let expected = "containerpilot-tools: cannot write file/containerpilot.json5: not a directory\n";
    assert_eq!((code(&output), err(&output).as_str()), (1, expected));
    let output = run(&folder, &["init", "/proc/none"]);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("cannot create /proc/none: no such file or directory"), "{}", err(&output));
    assert_eq!(code(&run(&folder, &["init", ""])), 2);
    assert_eq!(code(&run(&folder, &["init", "--from", ""])), 2);
    assert_eq!(code(&run(&folder, &["init", "--from", "missing"])), 2);
    assert_eq!(code(&run(&folder, &["init", "a", "b"])), 2);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn x20_a_dockerfile_becomes_a_job_with_its_health_check_user_and_stop_signal() {
    let (config, lines) = from_dockerfile(
        b"\xef\xbb\xbf# syntax=docker/dockerfile:1\r\nARG NODE=20\r\nFROM node:${NODE} AS build\r\nUSER builder\r\nRUN <<X\r\n\
          CMD wrong\r\nX\r\nFROM node:${NODE}-slim AS run\r\nARG ID=1000\r\nENV WHO=$ID:$ID\r\nUSER $WHO\r\nFROM run\r\n\
          EXPOSE 3000\r\nSTOPSIGNAL sigquit\r\nHEALTHCHECK --interval=5s --timeout=3s --start-period=1m --retries=5 \\\r\n  \
          # a comment\r\n  CMD curl -f http://localhost:3000/ || exit 1\r\nENTRYPOINT [\"/usr/bin/tini\", \"-g\", \"--\"]\r\n\
          CMD node server.js \\\r\n    --name 'a b'\r\n",
    );
    for expected in [
        r#"name: "node""#,
        r#"exec: ["node", "server.js", "--name", "a b"]"#,
        "// Dockerfile:19  CMD node server.js",
        r#"exec: ["sh", "-c", "curl -f http://localhost:3000/ || exit 1"]"#,
        r#"interval: "5s""#,
        r#"timeout: "3s""#,
        r#"startPeriod: "1m""#,
        "failures: 5",
        r#"stopSignal: "SIGQUIT""#,
        r#"control: { socket: "/tmp/containerpilot.socket" }"#,
        "/usr/bin/tini is left out",
    ] {
        assert!(config.contains(expected), "{expected}: {config}");
    }
    for expected in ["\nUSER 1000:1000\n", "\nSTOPSIGNAL SIGTERM\n", "\nCMD []\n", "Dockerfile:11  USER $WHO"]
    {
        assert!(lines.contains(expected), "{expected}: {lines}");
    }
}

#[test]
fn x20_commands_of_a_dockerfile_are_those_that_docker_executes() {
    let exec = |dockerfile: &str| {
        let (config, _) = from_dockerfile(format!("FROM scratch\n{dockerfile}\n").as_bytes());
        config.lines().find_map(|line| line.trim().strip_prefix("exec: ").map(str::to_owned)).unwrap()
    };
    let expected = [
        ("CMD a b", r#"["a", "b"],"#),
        ("CMD a && b", r#"["sh", "-c", "a && b"],"#),
        ("CMD [\"a\", \"{{ b }}\"]", r#"["a", "\u007b{ b }}"],"#),
        ("CMD [\"a\", \"$b\"]", r#"["a", "$b"],"#),
        ("ENTRYPOINT [\"a\"]\nCMD [\"b\"]", r#"["a", "b"],"#),
        ("ENTRYPOINT [\"a\"]\nCMD b c", r#"["a", "sh", "-c", "b c"],"#),
        ("ENTRYPOINT a b\nCMD [\"c\"]", r#"["a", "b"],"#),
        ("ENTRYPOINT [\"a\"]\nENTRYPOINT []\nCMD [\"b\"]", r#"["b"],"#),
        ("SHELL [\"/bin/bash\", \"-ec\"]\nCMD a b", r#"["/bin/bash", "-ec", "a b"],"#),
        ("ENTRYPOINT [\"dumb-init\"]\nCMD [\"a\"]", r#"["a"],"#),
        ("ENTRYPOINT [\"tini\", \"-e\", \"143\", \"a\"]", r#"["tini", "-e", "143", "a"],"#),
        ("CMD a\nENTRYPOINT [\"b\"]\nONBUILD CMD c", r#"["b", "sh", "-c", "a"],"#),
    ];
    for (dockerfile, words) in expected {
        assert_eq!(exec(dockerfile), words, "{dockerfile}");
    }
    // The ENTRYPOINT of a base image is in no file.
    let (config, _) = from_dockerfile(b"FROM nginx:1\nCMD [\"nginx\"]\nEXPOSE 53/udp 80\n");
    assert!(config.contains("docker image inspect nginx:1"), "{config}");
    assert!(config.contains(r#"health: { tcp: "localhost:80", interval: "10s" }"#), "{config}");
    // A variable that only the build or the base image knows.
    let unknown = b"FROM nginx\nARG A\nUSER $A\nEXPOSE $A\nSTOPSIGNAL $A\nCMD [\"a\"]\nHEALTHCHECK NONE\n";
    let (config, lines) = from_dockerfile(unknown);
    for line in ["Dockerfile:3  USER $A:", "Dockerfile:4  EXPOSE $A:", "Dockerfile:5  STOPSIGNAL $A:"] {
        assert!(config.contains(line), "{line}: {config}");
    }
    assert!(config.contains("/tmp/containerpilot.socket") && !config.contains("health:"), "{config}");
    assert!(!lines.contains("\nUSER") && !lines.contains("\nSTOPSIGNAL"), "{lines}");
}

#[test]
fn x20_variables_of_a_dockerfile_have_the_values_of_a_build() {
    let user = |dockerfile: &str| {
        let (_, lines) =
            from_dockerfile(format!("ARG G=global\nFROM scratch\n{dockerfile}\nCMD a\n").as_bytes());
        lines.lines().find_map(|line| line.strip_prefix("USER ").map(str::to_owned))
    };
    let expected = [
        ("USER $G", None),
        ("ARG G\nUSER $G", Some("global")),
        ("ARG G=own\nUSER ${G}", Some("own")),
        ("ENV G=env\nARG G=own\nUSER $G", Some("env")),
        ("ENV A=1\nENV A=2 B=x$A\nUSER $B", Some("x1")),
        ("ENV A b c\nUSER \"$A\"", Some("\"b c\"")),
        ("USER ${X:-default}", Some("default")),
        ("ARG X=a\nUSER ${X:+set}", Some("set")),
        ("ARG X=a\nUSER \\$X", Some("$X")),
        ("USER ${X", None),
    ];
    for (dockerfile, user_of) in expected {
        assert_eq!(user(dockerfile).as_deref(), user_of, "{dockerfile}");
    }
    // A value that doubles with each line stays small.
    let doubled = "ENV A=$A$A\n".repeat(200);
    assert_eq!(user(&format!("ENV A=xxxxxxxx\n{doubled}USER $A")), None);
}

#[test]
fn x20_a_dockerfile_that_cannot_be_converted_is_refused_with_its_line() {
    let expected: &[(&[u8], &str)] = &[
        (b"", "Dockerfile:1: expected at least one FROM instruction"),
        (b"FROM x\nRUN a\nSTOP INT\n", "Dockerfile:3: unknown instruction 'STOP'"),
        (
            b"FROM a\n\n# no program\nFROM nginx AS x\nRUN b\n",
            "Dockerfile:4: the last stage has neither ENTRYPOINT nor CMD",
        ),
        (b"FROM x\nCMD <<E\necho\nE\n", "Dockerfile:3: "),
        (b"FROM x AS a\nONBUILD CMD b\nFROM a\nCMD c\n", "Dockerfile:2: an ONBUILD of a stage"),
        (
            b"FROM x\nCMD [\"/bin/containerpilot\", \"-config\", \"x\"]\n",
            "Dockerfile:2: this starts containerpilot already",
        ),
        (b"FROM x\nCMD a\nEXPOSE http\n", "Dockerfile:3: `http` is not a port"),
        (b"FROM x\nCMD a\nSTOPSIGNAL STOPP\n", "Dockerfile:3: `STOPP` is not a signal"),
        (
            b"FROM x\nCMD a\nHEALTHCHECK --interval=soon CMD b\n",
            "Dockerfile:3: `--interval=soon` is not a duration",
        ),
        (
            b"FROM x\nCMD a\nHEALTHCHECK --timeout=1us CMD b\n",
            "Dockerfile:3: `--timeout=1us` is not at least 1ms",
        ),
        (
            b"FROM x\nCMD a\nHEALTHCHECK --retries=9999999 CMD b\n",
            "Dockerfile:3: `--retries=9999999` is not a number",
        ),
        (b"FROM x\nCMD [\"a\\u0000\"]\n", "Dockerfile:2: a command cannot contain a NUL byte"),
        (b"FROM x\nCMD a\nHEALTHCHECK --retries=x CMD b\n", "Dockerfile:3: `--retries=x` is not a number"),
        (b"FROM x\nCMD a\nHEALTHCHECK CMD containerpilot health\n", "Dockerfile:3: this asks containerpilot"),
        (
            b"FROM x\nENTRYPOINT [\"tini\", \"--\"]\n",
            "Dockerfile:2: an init program is started without a program",
        ),
        (b"FROM x\nRUN \xff\xfe\n", "Dockerfile:2: this is not UTF-8 text"),
        (b"\x7fELF\x02\x01\x01\0\0\0\xff", "Dockerfile:1: "),
    ];
    for (dockerfile, message) in expected {
        let found = refused(dockerfile);
        assert!(found.starts_with(message), "{found}");
    }
    let large = [b"FROM x\n".as_slice(), &b"# comment\n".repeat(1_000_000)].concat();
    assert!(refused(&large).starts_with("cannot read Dockerfile: it is larger than"));
}

#[test]
fn x20_a_dockerfile_can_come_from_standard_input() {
    let folder = Folder::new("init-stdin");
    let mut command = command(tools(), &["init", "new", "--from", "-"]);
    let mut child =
        command.current_dir(&folder.0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"FROM scratch\nCMD [\"/app\"]\n").unwrap();
    let output = child.output_in_time().unwrap();
    assert_eq!(code(&output), 0, "{}", out(&output));
    plays(&folder.0.join("new"));
}

#[test]
fn x20_a_terminal_is_asked_and_ctrl_c_or_the_end_of_input_write_nothing() {
    let folder = Folder::new("init-terminal");
    let Some(tmux) = Tmux::open(&folder.0.join("tmux")) else { return };
    let start = |name: &str| {
        let line = format!("clear; {} init {}/{name}; echo code $?", tools(), folder.0.display());
        tmux.keys(&[&line, "Enter"]);
        tmux.wait_for("the first question", |screen| screen.contains("[/bin/server]:"));
    };
    for (key, ending) in [("C-c", "^C"), ("C-d", "end of input: nothing was written")] {
        start("none");
        tmux.keys(&["node server.js", "Enter"]);
        tmux.wait_for("the second question", |screen| screen.contains("[8080]:"));
        tmux.keys(&[key]);
        // After SIGINT, the shell may not run what follows.
        tmux.wait_for("the prompt", |screen| {
            screen.contains(ending) && screen.trim_end().ends_with("prompt>")
        });
        assert!(!folder.0.join("none").exists());
    }
    start("some");
    for (answer, next) in [
        ("node server.js", "[8080]:"),
        ("http", "please answer again"),
        ("3000", "[tcp]:"),
        ("http /health", "Another program"),
        ("/bin/agent --quiet", "A setup"),
        ("/bin/migrate", "code 0"),
    ] {
        tmux.keys(&[answer, "Enter"]);
        tmux.wait_for(next, |screen| screen.contains(next));
    }
    let some = folder.0.join("some");
    let config = fs::read_to_string(some.join(NAMES[0])).unwrap();
    for expected in [
        r#"name: "setup""#,
        r#"exec: ["/bin/migrate"]"#,
        r#"exec: ["node", "server.js"]"#,
        r#"http: "http://localhost:3000/health""#,
        r#"exec: ["/bin/agent", "--quiet"]"#,
        r#"when: { source: "setup", once: "exitSuccess" }"#,
    ] {
        assert!(config.contains(expected), "{expected}: {config}");
    }
    plays(&some);
}
