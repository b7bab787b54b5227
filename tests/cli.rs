//! The command line of the real binary: output and exit codes (X3, X4, X6, C1, C7, C8, S5).

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::deadline::InTime;
use crate::support::program::{Folder, code, command, containerpilot, err, out};

fn pilot<A: AsRef<OsStr>>(args: &[A]) -> Command {
    command(containerpilot(), args)
}

fn run<A: AsRef<OsStr>>(args: &[A]) -> Output {
    pilot(args).output_in_time().unwrap()
}

const GHOST: &str = "{ jobs: [{ name: 'a', exec: 'true', when: { source: 'ghost', once: 'healthy' } }] }";
const GOOD: &str = "{ jobs: [{ name: 'a', exec: 'true' }], watches: [{ name: 'db', interval: 5 }], consul: 'localhost:8500' }";

#[test]
fn x4_check_prints_ok_and_a_summary_of_jobs_and_watches() {
    let folder = Folder::new("check-ok");
    let file = folder.file("a.json5", GOOD);
    let output = run(&[OsStr::new("check"), file.as_os_str()]);
    assert_eq!((code(&output), err(&output).as_str()), (0, ""));
    let text = out(&output);
    assert!(text.starts_with("ok: ") && text.contains("\n1 job\n  a  at startup\n"), "{text}");
    assert!(text.contains("\n1 watch\n  db  polled at least every 5s\n"), "{text}");
}

#[test]
fn x4_check_says_when_jobs_run_and_how_they_are_checked() {
    let folder = Folder::new("check-summary");
    let jobs = [
        ("when: { interval: 1 }, restarts: 2", "at startup and every 1s; 2 further ticks"),
        ("when: { interval: 1 }, restarts: 'never'", "at startup and every 1s; no further tick"),
        ("restarts: 2", "at startup; restarted 2 times"),
        ("health: { interval: 1, ttl: 5 }", "at startup; healthy while it runs"),
        ("health: { exec: 'true', interval: 1, ttl: 5 }", "at startup; checked every 1s"),
        (
            "health: [{ exec: 'true', interval: 1, ttl: 5 }, { exec: 'true', interval: 1, ttl: 5 }]",
            "at startup; 2 checks, every 1s",
        ),
        (
            "when: { all: [{ source: 'j0', event: 'exitSuccess' }, { source: 'j2', event: 'exitSuccess' }], each: true }",
            "whenever all of these become true: j0 exits successfully, j2 exits successfully",
        ),
        (
            "when: { any: [{ event: 'startup' }, { source: 'j2', event: 'exitSuccess' }], each: true }",
            "at startup, or each time j2 exits successfully",
        ),
        ("when: { any: [{ event: 'startup' }], each: true }", "at startup"),
    ];
    let config: Vec<String> = (0..)
        .zip(jobs)
        .map(|(nth, (keys, _))| format!("{{ name: 'j{nth}', exec: 'true', {keys} }}"))
        .collect();
    let file = folder.file("a.json5", &format!("{{ jobs: [{}] }}", config.join(", ")));
    let output = run(&[OsStr::new("check"), file.as_os_str()]);
    let text = out(&output);
    for (nth, (_, words)) in (0..).zip(jobs) {
        assert!(text.contains(&format!("\n  j{nth}  {words}\n")), "{words}\n{text}");
    }
}

#[test]
fn x16_check_shows_who_runs_a_job_where_it_logs_and_what_ends_the_container() {
    let folder = Folder::new("check-all");
    let file = folder.file(
        "a.json5",
        "{ consul: '127.0.0.1:1', locks: [{ name: 'primary', slots: 2 }], logging: { output: '/nowhere/log' }, jobs: [
            { name: 'a', exec: 'true', user: 'nobody', requires: ['lock.primary'], onFailure: 'shutdown',
              logging: { file: '/tmp/a.log' } },
            { name: 'b', exec: 'true', onSuccess: 'shutdown', onFailure: 'shutdown',
              secrets: { TOKEN: { file: '/nowhere/token' } } },
            { name: 'c', exec: 'true', restarts: 9, startLimit: { count: 3, within: '1m', then: 'shutdown' } }] }",
    );
    let output = run(&[OsStr::new("check"), file.as_os_str()]);
    let (text, warnings) = (out(&output), err(&output));
    assert_eq!(code(&output), 0, "{warnings}");
    for words in [
        "requires lock.primary; stopped without lock.primary; as nobody; logs to /tmp/a.log; its failure ends the container\n",
        "  b  at startup; its success or its failure ends the container\n",
        "its start limit ends the container\n",
        "1 lock\n  primary  key containerpilot/locks/primary in Consul; 2 slots; TTL 15s\n",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    for warning in [
        "directory `/nowhere` of the log not found",
        "cannot read the secret `/nowhere/token`: no such file or directory",
    ] {
        assert!(warnings.contains(warning), "{warning}\n{warnings}");
    }
}

#[test]
fn x6_check_prints_the_errors_and_exits_with_1() {
    let folder = Folder::new("check-bad");
    let file = folder.file("a.json5", "{\n  jobs: [{ name: 'a', exce: 'true' }],\n}\n");
    let output = run(&[OsStr::new("check"), file.as_os_str()]);
    assert_eq!((code(&output), out(&output).as_str()), (1, ""));
    let text = err(&output);
    assert!(text.contains("unknown key `exce`") && text.contains("a.json5:2:23"), "{text}");
    assert!(text.ends_with("\n1 error\n"), "{text}");
    assert!(!text.contains('\u{1b}'), "colours without a terminal");
}

#[test]
fn c5_errors_of_the_configuration_are_on_standard_error() {
    let folder = Folder::new("stderr");
    let file = folder.file("a.json5", "{ jobs: [{ name: 'a', exce: 'true' }] }");
    let output = run(&[OsStr::new("-config"), file.as_os_str()]);
    assert_eq!((code(&output), out(&output).as_str()), (1, ""));
    assert!(err(&output).contains("unknown key `exce`"), "{}", err(&output));
}

#[test]
fn c7_check_fails_for_a_job_that_can_never_run() {
    let folder = Folder::new("fault");
    let file = folder.file("a.json5", GHOST);
    let output = run(&[OsStr::new("check"), file.as_os_str()]);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("error: unknown job or watch `ghost`"), "{}", err(&output));
}

#[test]
fn c9_check_strict_treats_warnings_as_errors() {
    let folder = Folder::new("strict");
    let text = "{ jobs: [{ name: 'a', exec: 'true', health: { interval: 5, ttl: 5 } }] }";
    let file = folder.file("a.json5", text);
    let output = run(&[OsStr::new("check"), file.as_os_str()]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(err(&output).contains("warning: `ttl` must be longer than `interval`"), "{}", err(&output));
    let output = run(&[OsStr::new("check"), OsStr::new("--strict"), file.as_os_str()]);
    assert_eq!((code(&output), out(&output).as_str()), (1, ""));
    let text = err(&output);
    assert!(text.contains("error: `ttl` must be longer") && text.ends_with("\n1 error\n"), "{text}");
    let json = ["check", "-strict", "-format", "json"].map(OsStr::new);
    let output = run(&[&json[..], &[file.as_os_str()]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((code(&output), &json["ok"]), (1, &false.into()));
    assert_eq!(json["problems"][0]["severity"], "error");
    let good = folder.file("b.json5", GOOD);
    assert_eq!(code(&run(&[OsStr::new("check"), OsStr::new("--strict"), good.as_os_str()])), 0);
    assert_eq!(code(&run(&["check", "--strict", "--diff"])), 2);
}

/// The pid of the supervisor for a command that a job runs, else that of the command.
#[test]
fn p7_templates_have_the_pid_of_the_supervisor() {
    let folder = Folder::new("template-pid");
    let file = folder.file("a.json5", "{{ .CONTAINERPILOT_PID }}");
    let mut render = pilot(&[OsStr::new("render"), file.as_os_str()]);
    let inherited = render.env("CONTAINERPILOT_PID", "17").output_in_time().unwrap();
    assert_eq!(out(&inherited), "17");
    let child = render.env_remove("CONTAINERPILOT_PID").stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id().to_string();
    assert_eq!(out(&child.output_in_time().unwrap()), pid);
}

#[test]
fn c7_run_only_warns_about_a_job_that_can_never_run() {
    let folder = Folder::new("fault-run");
    let file = folder.file("a.json5", GHOST);
    let output = run(&[OsStr::new("-config"), file.as_os_str()]);
    assert!(err(&output).contains("warning: unknown job or watch `ghost`"), "{}", err(&output));
}

#[test]
fn x4_check_prints_json_on_request() {
    let folder = Folder::new("check-json");
    let bad = folder.file("a.json5", "{ jobs: [{ name: 'a', exce: '{{ .X }}' }] }");
    let output = run(&[OsStr::new("check"), OsStr::new("--format=json"), bad.as_os_str()]);
    assert_eq!(code(&output), 1);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["ok"], false);
    let problem = &json["problems"][0];
    assert_eq!((&problem["line"], &problem["column"]), (&1.into(), &23.into()));
    assert_eq!(problem["help"], "did you mean `exec`?");
    let good = folder.file("b.json5", GOOD);
    let output = run(&[OsStr::new("check"), good.as_os_str(), OsStr::new("-format"), OsStr::new("json")]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((code(&output), &json["ok"], &json["jobs"][0]["name"]), (0, &true.into(), &"a".into()));
    assert_eq!(code(&run(&["check", "--format", "xml"])), 2);
}

#[test]
fn x3_template_prints_the_rendered_text_and_nothing_else() {
    let folder = Folder::new("template");
    let file = folder.file("a.json5", "{ consul: \"{{ .HOST | default \"none\" }}\" } // {{ .B }}\n");
    let args = [OsStr::new("-template"), OsStr::new("-config"), file.as_os_str()];
    let output =
        pilot(&args).env("HOST", "c=1:8500").env("B", OsStr::from_bytes(b"\xff")).output_in_time().unwrap();
    assert_eq!((code(&output), err(&output).as_str()), (0, ""));
    assert_eq!(output.stdout, b"{ consul: \"c=1:8500\" } // \xff\n");
    let target = folder.0.join("out.json5");
    let args = [args.as_slice(), &[OsStr::new("-out"), target.as_os_str()]].concat();
    let output = run(&args);
    assert_eq!((code(&output), output.stdout.len(), err(&output).as_str()), (0, 0, ""));
    assert_eq!(fs::read(&target).unwrap(), b"{ consul: \"none\" } // \n");
    let output = run(&[OsStr::new("render"), file.as_os_str(), OsStr::new("--out"), OsStr::new("-")]);
    assert_eq!(out(&output), "{ consul: \"none\" } // \n");
}

#[test]
fn x3_template_error_leaves_stdout_empty() {
    let folder = Folder::new("template-bad");
    let file = folder.file("a.json5", "{ a: 1 }\n{{ if }}\n");
    let output = run(&[OsStr::new("-template"), OsStr::new("-config"), file.as_os_str()]);
    assert_eq!((code(&output), out(&output).as_str()), (1, ""));
    assert!(err(&output).contains("a.json5:2:"), "{}", err(&output));
}

#[test]
fn c1_directory_is_read_in_lexical_order_and_merged() {
    let folder = Folder::new("directory");
    folder.file("d/20.json", "{ \"jobs\": [{ \"name\": \"a\", \"exec\": \"echo second\" }] }");
    folder.file("d/10.json5", "{ jobs: [{ name: 'a', exec: 'echo first' }, { name: 'b', exec: 'true' }] }");
    folder.file("d/.hidden.json5", "{ broken");
    folder.file("d/notes.txt", "{ broken");
    folder.file("d/sub.json5/x.json5", "{ broken");
    let directory = folder.0.join("d");
    let output = run(&[OsStr::new("check"), directory.as_os_str()]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(out(&output).contains("2 jobs"), "{}", out(&output));
    let output = run(&[OsStr::new("render"), directory.as_os_str()]);
    let text = out(&output);
    assert!(text.find("echo first").unwrap() < text.find("echo second").unwrap(), "{text}");
    folder.file("broken/1.json5", "{{ if }}");
    folder.file("broken/2.json5", "{{ nosuch }}");
    let output = run(&[OsStr::new("render"), folder.0.join("broken").as_os_str()]);
    assert_eq!((code(&output), out(&output).as_str()), (1, ""));
    assert!(err(&output).contains("1.json5:1:") && err(&output).contains("2.json5:1:"), "{}", err(&output));
    let empty = folder.0.join("empty");
    fs::create_dir(&empty).unwrap();
    let output = run(&[OsStr::new("check"), empty.as_os_str()]);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("contains no *.json5"), "{}", err(&output));
}

#[test]
fn c1_configuration_comes_from_flag_environment_or_argument() {
    let folder = Folder::new("where");
    let file = folder.file("a.json5", GOOD);
    let ok = |output: Output| assert_eq!(code(&output), 0, "{}", err(&output));
    ok(pilot(&["check"]).env("CONTAINERPILOT", &file).output_in_time().unwrap());
    ok(run(&[OsStr::new("check"), OsStr::new("-config"), file.as_os_str()]));
    ok(run(&[OsStr::new("--config"), file.as_os_str(), OsStr::new("check")]));
    let url = format!("file://{}", file.display());
    ok(run(&["check", &url]));
    let mut child = pilot(&["check", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(GOOD.as_bytes()).unwrap();
    ok(child.output_in_time().unwrap());
    let missing = run(&["check", "/nonexistent/a.json5"]);
    assert_eq!(code(&missing), 1);
    assert!(err(&missing).contains("cannot read /nonexistent/a.json5: "), "{}", err(&missing));
}

#[test]
fn c1_error_without_a_configuration_lists_the_searched_locations() {
    if Path::new("/etc/containerpilot.json5").exists() || Path::new("/etc/containerpilot.d").exists() {
        return;
    }
    let output = run(&["check"]);
    assert_eq!(code(&output), 1);
    for location in ["-config", "CONTAINERPILOT", "/etc/containerpilot.json5", "/etc/containerpilot.d"] {
        assert!(err(&output).contains(location), "{}", err(&output));
    }
}

#[test]
fn x6_wrong_usage_exits_with_2() {
    for args in [
        &["-bogus"][..],
        &["-config"],
        &["chekc"],
        &["check", "a", "b"],
        &["check", "-nope"],
        &["schema", "x"],
        &["completions"],
        &["completions", "tcsh"],
        &["help", "nope"],
        &["-version=maybe"],
        &["-out", "x", "check"],
        &["-config", "x", "schema"],
        &["-putenv", "x"],
        &["-maintenance", "perhaps"],
        &["explain"],
        &["start"],
        &["signal", "a"],
        &["signal", "a", "HUP", "b"],
        &["maintenance"],
        &["maintenance", "perhaps"],
        &["putenv"],
        &["putenv", "x"],
        &["putenv", "=x"],
        &["wait", "a"],
        &["wait", "a", "happy"],
        &["wait", "a", "healthy", "--all"],
        &["wait", "a", "healthy", "--timeout", "soon"],
        &["wait", "a", "healthy", "--timeout", "-1s"],
        &["logs", "-n", "many"],
        &["status", "a", "b"],
        &["status", "--format", "xml"],
        &["events", "x"],
        &["-ping", "-socket", "x"],
    ] {
        let output = run(args);
        assert_eq!((code(&output), out(&output).as_str()), (2, ""), "{args:?}");
        assert!(err(&output).starts_with("containerpilot: "), "{args:?}: {}", err(&output));
    }
    assert!(err(&run(&["chekc"])).contains("did you mean `check`?"));
    assert!(err(&run(&["-confg", "x"])).contains("did you mean -config?"));
}

#[test]
fn c10_a_path_is_run_as_with_config() {
    let folder = Folder::new("path");
    let text = |word: &str| format!("{{ jobs: [{{ name: 'a', exec: 'echo from-{word}' }}] }}");
    let file = folder.file("a.json5", &text("file"));
    let plain = folder.file("settings", &text("settings"));
    let other = folder.file("other.json5", &text("other"));
    folder.file("all/b.json5", &text("folder"));
    let words = |output: &Output| {
        assert_eq!(code(output), 0, "{}", err(output));
        let text = out(output);
        ["from-file", "from-settings", "from-folder", "from-other", "main"].map(|word| text.contains(word))
    };
    let all = folder.0.join("all");
    for command in [&[][..], &["run"]] {
        let with = |args: &[&OsStr]| {
            let command: Vec<&OsStr> = command.iter().map(OsStr::new).collect();
            let mut pilot = pilot(&[&command, args].concat());
            pilot.current_dir(&folder.0);
            pilot
        };
        let run = |args: &[&OsStr]| words(&with(args).output_in_time().unwrap());
        assert_eq!(run(&[file.as_os_str()]), [true, false, false, false, false]);
        assert_eq!(run(&[OsStr::new("a.json5")]), [true, false, false, false, false]);
        assert_eq!(run(&[plain.as_os_str()]), [false, true, false, false, false]);
        assert_eq!(run(&[all.as_os_str()]), [false, false, true, false, false]);
        let program = ["a.json5", "--", "echo", "main", "-config", "x"].map(OsStr::new);
        assert!(run(&program)[4]);
        let output = with(&[file.as_os_str()]).env("CONTAINERPILOT", &other).output_in_time().unwrap();
        assert_eq!(words(&output), [true, false, false, false, false]);
    }
    // With a version 2 file in the environment, a bare word stays the main program, also if a folder has the same name.
    let old = folder.file("two.json", "{ \"services\": [] }");
    fs::create_dir_all(folder.0.join("echo")).unwrap();
    let output =
        pilot(&["echo", "main"]).current_dir(&folder.0).env("CONTAINERPILOT", &old).output_in_time().unwrap();
    assert_eq!(words(&output), [false, false, false, false, true]);
    assert!(err(&run(&["rnu"])).contains("unknown command `rnu`: did you mean `run`?"));
}

#[test]
fn x4_every_command_without_a_supervisor_fails_with_one_line() {
    let folder = Folder::new("no-supervisor");
    let socket = folder.0.join("absent.socket");
    let socket = socket.to_str().unwrap();
    let config = folder.file("a.json5", &format!("{{ control: {{ socket: '{socket}' }} }}"));
    let config = config.to_str().unwrap();
    let no_supervisor =
        format!("no supervisor answers at {socket}: is it running? (there is no such socket)\n");
    for args in [
        &["status"][..],
        &["status", "a"],
        &["explain", "a"],
        &["health"],
        &["health", "a"],
        &["wait", "a", "healthy"],
        &["logs"],
        &["logs", "a", "-f"],
        &["events", "-f"],
        &["start", "a"],
        &["stop", "a"],
        &["restart", "a", "b"],
        &["signal", "a", "HUP"],
        &["reload"],
        &["maintenance", "enable"],
        &["maintenance", "status"],
        &["putenv", "SECRET=hidden"],
        &["putmetric", "a=1"],
        &["ping"],
    ] {
        for location in [&["--socket", socket][..], &["-config", config]] {
            let output = run(&[args, location].concat());
            assert_eq!((code(&output), out(&output).as_str()), (1, ""), "{args:?}");
            assert_eq!(err(&output), format!("containerpilot: {no_supervisor}"), "{args:?}");
        }
    }
    for (args, words) in [
        (&["-reload"][..], "-reload: failed to run subcommand: "),
        (&["-maintenance", "enable"], "-maintenance: failed to run subcommand: "),
        (&["-putenv", "A=1"], "-putenv: failed to run subcommand: "),
        (&["-putmetric", "a=1"], "-putmetric: failed to run subcommand: "),
        (&["-ping"], "-ping: failed: "),
        (&["-ping", "-reload"], "-reload: failed to run subcommand: "),
    ] {
        let output = run(&[&["-config", config], args].concat());
        assert_eq!((code(&output), out(&output).as_str()), (1, ""), "{args:?}");
        assert_eq!(err(&output), format!("containerpilot: {words}{no_supervisor}"), "{args:?}");
    }
}

#[test]
fn x4_socket_of_an_unreadable_configuration_is_the_default() {
    let folder = Folder::new("hidden-socket");
    let config = folder.file("a.json5", "{{ if }}");
    let config = config.to_str().unwrap();
    for config in [config, "/nonexistent/a.json5"] {
        let output = pilot(&["ping", "-config", config])
            .env("CONTAINERPILOT_SOCKET", "/nonexistent/x")
            .output_in_time();
        let output = output.unwrap();
        let words = "no supervisor answers at /nonexistent/x: is it running? (there is no such socket; the \
                     configuration cannot be read completely: if it names another socket, use --socket)";
        assert_eq!((code(&output), err(&output)), (1, format!("containerpilot: {words}\n")));
    }
    let output = run(&["ping", "-config", config, "--socket", "/nonexistent/socket"]);
    assert!(err(&output).contains("no supervisor answers at /nonexistent/socket"), "{}", err(&output));
}

#[test]
fn x4_failures_are_json_on_request() {
    for args in [
        &["status"][..],
        &["status", "web"],
        &["explain", "web"],
        &["events"],
        &["reload"],
        &["check", "--diff"],
    ] {
        let output = run(&[args, &["--socket", "/nonexistent/socket", "--format", "json"]].concat());
        let printed: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
        let why = printed["error"].as_str().unwrap();
        assert!(code(&output) == 1 && why.contains("no supervisor answers"), "{args:?}: {printed}");
        assert_eq!(err(&output), format!("containerpilot: {why}\n"));
    }
}

#[test]
fn x3_version_and_help_are_printed() {
    for args in [&["-version"][..], &["--version"], &["version"], &["-version", "-template"]] {
        let output = run(args);
        assert_eq!(code(&output), 0, "{args:?}");
        let expected = concat!("Version: ", env!("CARGO_PKG_VERSION"), "\n");
        assert!(out(&output).starts_with(expected), "{args:?}");
        // The two lines of 3.8, and one more.
        let names: Vec<String> =
            out(&output).lines().map(|line| line.split(": ").next().unwrap().to_owned()).collect();
        assert_eq!(names, ["Version", "GitHash", "BuildDate"], "{args:?}");
    }
    let help = [
        &["-h"][..],
        &["--help"],
        &["help"],
        &["help", "check"],
        &["check", "-h"],
        &["check", "x", "--help"],
    ];
    for args in help {
        let output = run(args);
        assert_eq!((code(&output), err(&output).as_str()), (0, ""), "{args:?}");
        assert!(out(&output).contains("Usage:"), "{args:?}");
    }
}

/// Collects all configurations in a directory and its subdirectories.
fn configurations(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            configurations(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "json5")
            // `tests/tools/simulate.rs` runs these.
            && !path.to_string_lossy().ends_with(".scenario.json5")
        {
            found.push(path);
        }
    }
}

#[test]
fn check_accepts_every_example() {
    // Programs that the examples use need not be installed.
    let folder = Folder::new("examples");
    for program in [
        "consul",
        "nginx",
        "php-fpm",
        "httpd",
        "upstreams",
        "haproxy",
        "worker",
        "report",
        "import",
        "server",
        "client",
        "api",
        "database",
        "shop",
    ] {
        std::os::unix::fs::symlink("/bin/true", folder.0.join(program)).unwrap();
    }
    let path = format!("{}:{}", folder.0.display(), std::env::var("PATH").unwrap_or_default());
    let mut examples = Vec::new();
    configurations(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")), &mut examples);
    assert!(examples.len() > 5, "{examples:?}");
    // These need files of their images: `tests/example` and `tests/recipes` run them there.
    let needs_image = ["replicated-db", "distroless", "puid-pgid", "renewed-secret"];
    let here = |path: &&PathBuf| !path.iter().any(|part| needs_image.iter().any(|name| part == *name));
    for example in examples.iter().filter(here) {
        let mut check = pilot(&[OsStr::new("check"), example.as_os_str()]);
        let templates = example.parent().unwrap();
        let output = check.env("PATH", &path).env("TEMPLATES", templates).output_in_time().unwrap();
        assert_eq!((code(&output), err(&output).as_str()), (0, ""), "{}", example.display());
    }
}

#[test]
fn s5_configuration_error_exits_with_1() {
    let folder = Folder::new("exit");
    let file = folder.file("a.json5", "{ nope: 1 }");
    let output = run(&[OsStr::new("-config"), file.as_os_str()]);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("nothing was started"), "{}", err(&output));
}
