//! X19: `mcp` serves an agent.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::fixture;
use crate::support::deadline::InTime;
use crate::support::program::{Folder, code, command, containerpilot, err, out, repository};
use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, wait_until};
use crate::tools;

const CONFIG: &str = "{ control: { socket: '@/socket' }, jobs: [
    { name: 'web', exec: ['sh', '-c', 'echo serving; exec sleep 1000'], restarts: 'unlimited' },
    { name: 'later', exec: 'sleep 1000', when: { source: 'web', once: 'exitSuccess' } },
  ] }";

fn with_input(mut command: Command, folder: &Path, input: &[u8]) -> Output {
    let mut child = command
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.output_in_time().unwrap();
    // A server that ends early does not read everything.
    let _ = writer.join().unwrap();
    output
}

/// Sends these bytes to a server in a folder. Returns its answers.
fn answers(folder: &Path, args: &[&str], input: &[u8]) -> Vec<Value> {
    let output = with_input(command(tools(), &[&["mcp"], args].concat()), folder, input);
    assert_eq!((code(&output), err(&output).as_str()), (0, ""));
    out(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The answer to one line.
fn answer(line: &str) -> Value {
    let mut answers = answers(&std::env::temp_dir(), &[], line.as_bytes());
    assert_eq!(answers.len(), 1, "{line}: {answers:?}");
    answers.remove(0)
}

fn error_code(line: &str) -> (Value, i64) {
    let answer = answer(line);
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    (answer["id"].clone(), answer["error"]["code"].as_i64().unwrap())
}

fn request(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// Calls tools, one after the other. Returns the texts, each with whether it is an error.
fn calls(folder: &Path, args: &[&str], calls: &[(&str, Value)]) -> Vec<(String, bool)> {
    let line = |(name, arguments): &(&str, Value)| {
        request("tools/call", &json!({ "name": name, "arguments": arguments })) + "\n"
    };
    let input: String = calls.iter().map(line).collect();
    let text = |answer: &Value| {
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (text.to_owned(), result["isError"].as_bool().unwrap())
    };
    answers(folder, args, input.as_bytes()).iter().map(text).collect()
}

/// Writes the recording of a supervisor to a file.
fn record(it: &Supervisor, file: &Path) {
    let mut command = command(containerpilot(), &["record", "--out", file.to_str().unwrap()]);
    let written = command.env("CONTAINERPILOT_SOCKET", it.file("socket")).output_in_time().unwrap();
    assert_eq!(code(&written), 0, "{}", err(&written));
}

#[test]
fn x19_the_revision_of_the_protocol_is_negotiated() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2099-01-01", "2025-06-18"),
        ("", "2025-06-18"),
    ] {
        let params = json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
        let result = &answer(&request("initialize", &params))["result"];
        assert_eq!(result["protocolVersion"], agreed);
        assert_eq!(result["serverInfo"]["name"], "containerpilot");
        assert_eq!(result["capabilities"], json!({ "tools": {} }));
    }
    assert_eq!(error_code(&request("initialize", &json!({}))).1, -32602);
}

#[test]
fn x19_bad_messages_get_the_codes_of_json_rpc_and_the_next_one_is_answered() {
    let null = Value::Null;
    let expected = [
        ("x", null.clone(), -32700),
        ("{", null.clone(), -32700),
        ("{\"a\": \u{1}}", null.clone(), -32700),
        ("1", null.clone(), -32600),
        ("[]", null.clone(), -32600),
        (r#"{"id": 1, "method": "ping"}"#, null.clone(), -32600),
        (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, null.clone(), -32600),
        (r#"{"jsonrpc": "2.0", "id": {}, "method": "ping"}"#, null.clone(), -32600),
        (r#"{"jsonrpc": "2.0", "id": 1}"#, null.clone(), -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": 5}"#, null.clone(), -32600),
        (r#"{"jsonrpc": "2.0", "id": "a", "method": "none"}"#, json!("a"), -32601),
        (r#"{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}"#, json!(7), -32602),
        (
            r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"cursor": "x"}}"#,
            json!(7),
            -32602,
        ),
        (r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/call"}"#, json!(7), -32602),
    ];
    for (line, id, code) in expected {
        assert_eq!(error_code(line), (id, code), "{line}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(error_code(&deep).1, -32700);
    // Notifications and answers get none, and a batch only those that its messages get.
    let mut input = b"\n\xff\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"none\"}\n\
        {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n[{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}]\n\
        [{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"method\":\"ping\"},3]\n"
        .to_vec();
    input.extend(vec![b' '; 3 << 20]);
    input.extend(b"\r\n{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}\r\n");
    // The last line has no end.
    input.extend(br#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
    let answers = answers(&std::env::temp_dir(), &[], &input);
    let pong = |id: u8| json!({ "jsonrpc": "2.0", "id": id, "result": {} });
    let [not_text, batch, too_long, after, last] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(not_text["error"]["code"], -32700);
    assert_eq!((&batch[0], &batch[1]["error"]["code"]), (&pong(2), &json!(-32600)));
    assert_eq!(too_long["error"]["message"], "the message is longer than 1048576 bytes");
    assert_eq!((after, last), (&pong(4), &pong(5)));
    let batch = format!("[{}]", vec![request("ping", &json!({})); 17].join(","));
    assert_eq!(error_code(&batch).1, -32600);
}

#[test]
fn x19_tools_that_change_something_need_control() {
    let list = |args: &[&str]| {
        let list = request("tools/list", &json!({}));
        let answers = answers(&std::env::temp_dir(), args, list.as_bytes());
        answers[0]["result"]["tools"].as_array().unwrap().clone()
    };
    let names = |tools: &[Value]| {
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let reading = ["status", "explain", "logs", "events", "check", "simulate", "replay"];
    assert_eq!(names(&list(&[])), reading);
    let all = list(&["--control"]);
    assert_eq!(names(&all), [&reading[..], &["start", "stop", "restart", "reload"]].concat());
    for tool in &all {
        let (name, hints) = (tool["name"].as_str().unwrap(), &tool["annotations"]);
        assert_eq!(hints["readOnlyHint"], reading.contains(&name), "{name}");
        assert_eq!(hints["destructiveHint"], ["stop", "restart", "reload"].contains(&name), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
    }
    let stop = request("tools/call", &json!({ "name": "stop", "arguments": { "jobs": ["web"] } }));
    assert_eq!(answer(&stop)["error"]["message"], "`stop` is offered only with --control");
}

#[test]
fn x19_wrong_arguments_are_invalid_params_and_say_what_is_right() {
    let message = |name: &str, arguments: Value| {
        let answer = answer(&request("tools/call", &json!({ "name": name, "arguments": arguments })));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    };
    let tools =
        "unknown tool `rehearse`: the tools are status, explain, logs, events, check, simulate, replay";
    assert_eq!(message("rehearse", json!({})), tools);
    assert_eq!(message("status", json!([])), "`arguments` must be an object");
    assert_eq!(message("status", json!({ "jbo": "a" })), "`status` has no parameter `jbo`: job");
    assert_eq!(message("status", json!({ "job": 1 })), "`job` must be a string");
    assert_eq!(message("status", json!({ "job": "a\0" })), "`job` must be a string");
    assert!(message("explain", json!({})).starts_with("`job` is missing: "));
    for lines in [json!(0), json!(1001), json!(-1), json!(1.5), json!("5"), json!(1e300)] {
        assert_eq!(
            message("logs", json!({ "lines": lines })),
            "`lines` must be a whole number from 1 to 1000"
        );
    }
    assert_eq!(message("logs", json!({ "jobs": [] })), "`jobs` must be a list of 1 to 100 names");
    assert_eq!(message("check", json!({ "path": "a", "strict": 1 })), "`strict` must be true or false");
    assert!(message("replay", json!({})).starts_with("`file` is missing: "));
}

#[test]
fn x19_files_are_read_below_the_working_directory_only() {
    let (folder, other) = (Folder::new("mcp-files"), Folder::new("mcp-other"));
    let good = "{ jobs: [{ name: 'a', exec: 'true' }] }";
    let secret = other.file("secret.json5", "{ jobs: 'SECRET' }");
    folder.file("in/good.json5", good);
    folder.file("in/scenario.json5", "{ expect: [{ see: 'a starts' }] }");
    folder.file("in/wrong.json5", "{ expect: [{ exit: 9 }] }");
    folder.file("in/reload.json5", "{ happens: [{ at: '1s', reload: 'good.json5' }] }");
    let outside = format!("{{ happens: [{{ at: '1s', reload: '{}' }}] }}", secret.display());
    folder.file("in/outside.json5", &outside);
    folder.file("in/above.json5", "{ happens: [{ at: '1s', reload: '../../x/secret.json5' }] }");
    symlink(&secret, folder.0.join("leads-out.json5")).unwrap();
    symlink("in/good.json5", folder.0.join("stays.json5")).unwrap();
    symlink(&other.0, folder.0.join("out")).unwrap();
    symlink(other.0.join("nothing"), folder.0.join("to-nothing.json5")).unwrap();
    folder.file("in/missing.json5", "{ happens: [{ at: '1s', reload: 'typo.json5' }] }");
    let secret_path = secret.to_str().unwrap();
    let real = folder.0.join("in/good.json5");
    for path in ["in/good.json5", "stays.json5", "in/../in/good.json5", real.to_str().unwrap()] {
        let found = calls(&folder.0, &[], &[("check", json!({ "path": path }))]);
        assert!(!found[0].1 && found[0].0.starts_with("ok: "), "{path}: {}", found[0].0);
    }
    for path in [
        secret_path,
        "../mcp-other/secret.json5",
        "leads-out.json5",
        "out/secret.json5",
        "out/nonexistent",
        "to-nothing.json5",
        "/nonexistent",
        "../nonexistent",
    ] {
        for tool in [
            ("check", json!({ "path": path })),
            ("simulate", json!({ "config": path })),
            ("replay", json!({ "file": path })),
        ] {
            let found = calls(&folder.0, &[], &[tool]);
            let (text, is_error) = &found[0];
            assert!(*is_error && text.contains(" is not below the working directory "), "{path}: {text}");
            assert!(!text.contains("SECRET"), "{text}");
        }
    }
    let simulate = |scenario: &str| {
        let arguments = json!({ "config": "in/good.json5", "scenario": format!("in/{scenario}") });
        calls(&folder.0, &[], &[("simulate", arguments)]).remove(0)
    };
    let (text, is_error) = simulate("scenario.json5");
    assert!(!is_error && text.contains("met"), "{text}");
    let (text, is_error) = simulate("wrong.json5");
    assert!(is_error && text.contains("exit"), "{text}");
    let (text, is_error) = simulate("reload.json5");
    assert!(!is_error, "{text}");
    let (text, is_error) = simulate("missing.json5");
    assert!(is_error && text.contains("cannot read typo.json5: no such file"), "{text}");
    for scenario in ["outside.json5", "above.json5"] {
        let (text, is_error) = simulate(scenario);
        assert!(is_error && text.contains("is not below the working directory"), "{text}");
    }
    // Neither a folder, whose files may be links, nor what is no file.
    for path in ["in", ".", "none.json5", "-", ""] {
        let (text, is_error) = calls(&folder.0, &[], &[("check", json!({ "path": path }))]).remove(0);
        assert!(is_error, "{path}: {text}");
    }
    let explored = calls(
        &folder.0,
        &[],
        &[("simulate", json!({ "config": "in/good.json5", "explore": 5, "full": true }))],
    );
    assert!(explored[0].0.contains("variations"), "{}", explored[0].0);
}

#[test]
fn x19_a_running_supervisor_is_read_and_controlled() {
    let mut it = Supervisor::start(Mode::Plain, CONFIG);
    it.wait_for_line("serving");
    let socket = it.file("socket");
    let folder = Path::new(it.folder());
    let args = ["--socket", socket.to_str().unwrap()];
    let found = calls(
        folder,
        &args,
        &[
            ("status", json!({})),
            ("status", json!({ "job": "web" })),
            ("explain", json!({ "job": "later" })),
            ("logs", json!({ "jobs": ["web"], "lines": 1 })),
            ("events", json!({ "lines": 5 })),
            ("status", json!({ "job": "wbe" })),
            ("status", json!({ "job": "-socket=/x" })),
        ],
    );
    let expected = [
        "later",
        "running",
        "waiting until web exits successfully",
        "serving",
        "startup",
        "did you mean `web`?",
        "there is no job `-socket=/x`",
    ];
    for ((text, is_error), (nth, expected)) in found.iter().zip(expected.iter().enumerate()) {
        assert!(text.contains(expected) && *is_error == (nth >= 5), "{expected}: {text}");
    }
    // What it has done so far, from its recording.
    record(&it, &it.file("incident.cprec"));
    let end = "2100-01-01T00:00:00Z";
    let found = calls(
        folder,
        &[],
        &[
            ("replay", json!({ "file": "incident.cprec" })),
            ("replay", json!({ "file": "incident.cprec", "from": "2000-01-01T00:00:00Z", "full": true })),
            ("replay", json!({ "file": "incident.cprec", "at": end, "question": "status" })),
            ("replay", json!({ "file": "incident.cprec", "at": end, "question": "explain", "job": "later" })),
            ("replay", json!({ "file": "incident.cprec", "at": end, "question": "graph" })),
            ("replay", json!({ "file": "incident.cprec", "to": "2000-01-01T00:00:00Z" })),
            ("replay", json!({ "file": "incident.cprec", "at": end })),
            (
                "replay",
                json!({ "file": "incident.cprec", "at": end, "question": "explain", "job": "-out=/x" }),
            ),
        ],
    );
    let expected = [
        "startup",
        "web  starts",
        "web    running",
        "waiting until web exits successfully",
        "flowchart",
        "nothing was recorded then",
        "--at needs what to show",
        "there is no job `-out=/x`",
    ];
    assert_eq!(found.len(), expected.len());
    for ((text, is_error), (nth, expected)) in found.iter().zip(expected.iter().enumerate()) {
        assert!(text.contains(expected) && *is_error == (nth >= 5), "{expected}: {text}");
    }
    let control = [&args[..], &["--control"]].concat();
    let found = calls(
        folder,
        &control,
        &[
            ("start", json!({ "jobs": ["later"] })),
            ("restart", json!({ "jobs": ["web"] })),
            ("reload", json!({})),
            ("stop", json!({ "jobs": ["later"] })),
        ],
    );
    assert!(found.iter().all(|(_, is_error)| !is_error), "{found:?}");
    wait_until("later is stopped", || {
        calls(folder, &args, &[("status", json!({ "job": "later" }))])[0].0.contains("stopped")
    });
}

#[test]
fn x19_a_socket_without_a_supervisor_is_an_error_of_the_tool() {
    let folder = Folder::new("mcp-socket");
    let socket = folder.0.join("socket");
    let args = ["--socket", socket.to_str().unwrap()];
    let (text, is_error) = calls(&folder.0, &args, &[("status", json!({}))]).remove(0);
    assert!(is_error && text.contains("no supervisor answers at"), "{text}");
    // One that closes every connection.
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let found = calls(&folder.0, &args, &[("status", json!({})), ("events", json!({}))]);
    assert!(found.iter().all(|(_, is_error)| *is_error), "{found:?}");
}

#[test]
fn x19_without_containerpilot_the_server_says_what_to_install() {
    let folder = Folder::new("mcp-alone");
    let copy = folder.0.join("containerpilot-tools");
    assert!(Command::new("cp").arg(tools()).arg(&copy).status_in_time().unwrap().success());
    let mut command = command(copy.to_str().unwrap(), &["mcp"]);
    let output = command.env("PATH", "/nonexistent").output_in_time().unwrap();
    let message = "containerpilot-tools: containerpilot is neither beside this program nor in PATH: install the same release of both\n";
    assert_eq!((code(&output), err(&output).as_str()), (2, message));
}

#[test]
fn x19_the_client_of_the_official_sdk_uses_every_tool() {
    let script = repository().join("scripts/mcp-python");
    let sdk = Command::new(&script).args(["-c", "import mcp"]).output_in_time().unwrap();
    if !sdk.status.success() {
        let why = err(&sdk);
        return skip(&format!(
            "the SDK of PyPI cannot be installed: {}",
            why.lines().last().unwrap_or_default()
        ));
    }
    // The programs of a build are beside each other.
    assert_eq!(Path::new(containerpilot()).parent(), Path::new(tools()).parent());
    let mut it = Supervisor::start(Mode::Plain, CONFIG);
    it.wait_for_line("serving");
    fs::write(it.file("good.json5"), "{ jobs: [{ name: 'a', exec: 'true' }] }").unwrap();
    let socket = it.file("socket");
    record(&it, &it.file("incident.cprec"));
    let mut command = Command::new(&script);
    command.arg(fixture("mcp_client.py")).args([tools(), "mcp", "--control", "--socket"]).arg(socket);
    let wanted = [
        ("status", json!({}), "web"),
        ("explain", json!({ "job": "later" }), "exits successfully"),
        ("logs", json!({ "lines": 5 }), "serving"),
        ("events", json!({}), "startup"),
        ("check", json!({ "path": "good.json5" }), "1 job"),
        ("simulate", json!({ "config": "good.json5" }), "exit code 0"),
        ("replay", json!({ "file": "incident.cprec" }), "startup"),
        ("start", json!({ "jobs": ["later"] }), "later: start"),
        ("restart", json!({ "jobs": ["web"] }), "web: "),
        ("stop", json!({ "jobs": ["later"] }), "later: "),
        ("reload", json!({}), "reloaded"),
    ];
    let line = |(name, arguments, _): &(&str, Value, &str)| {
        format!("{}\n", json!({ "name": name, "arguments": arguments }))
    };
    let mut input: String = wanted.iter().map(line).collect();
    input += "{\"name\": \"status\", \"arguments\": {\"job\": 5}}\n";
    let output = with_input(command, Path::new(it.folder()), input.as_bytes());
    assert_eq!(code(&output), 0, "{}", err(&output));
    let lines: Vec<Value> = out(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], json!({ "server": "containerpilot", "version": "2025-06-18" }));
    assert_eq!(lines[1].as_object().unwrap().values().filter(|hint| **hint == true).count(), 7);
    for (answer, (name, _, text)) in lines[2..].iter().zip(&wanted) {
        assert_eq!(answer["error"], false, "{name}: {answer}");
        assert!(answer["text"].as_str().unwrap().contains(text), "{name}: {answer}");
    }
    assert_eq!(lines.last().unwrap()["code"], -32602, "{lines:?}");
}
