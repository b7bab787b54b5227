//! Logging (L1–L4, L6).

use std::fs;
use std::process::Command;

use crate::support::config::Config;
use crate::support::deadline::InTime;
use crate::support::program::{Folder, command, containerpilot};
use crate::support::supervisor::{Mode, Supervisor, modes, wait_until};

/// The lines that a job wrote, from a log in the format `default`.
fn output_of(log: &str, job: &str) -> Vec<String> {
    let parts = log.lines().map(|line| line.splitn(4, ' ').collect::<Vec<_>>());
    let own = parts.filter(|parts| parts.len() == 4 && parts[1] == job && parts[2].parse::<u32>().is_ok());
    own.map(|parts| parts[3].to_owned()).collect()
}

#[test]
fn l1_formats_default_text_and_json() {
    let config = |format: &str| {
        format!(
            "{{ logging: {{ format: '{format}' }}, jobs: [{{ name: 'a', exec: ['sh', '-c',
              'printf \"one \\\\\"two\\\\\" \\\\\\\\ three\\\\n\"; echo err >&2'] }}] }}"
        )
        .replace("',\n              '", "', '")
    };
    for mode in modes() {
        let (_, log) = Supervisor::start(mode, &config("default")).wait();
        let line = log.lines().find(|line| line.contains("two")).unwrap();
        let parts: Vec<&str> = line.splitn(4, ' ').collect();
        assert!(parts[0].ends_with('Z') && parts[0].contains('T'), "{line}");
        assert_eq!(
            (parts[1], parts[2].parse::<u32>().is_ok(), parts[3]),
            ("a", true, "one \"two\" \\ three")
        );

        let (_, log) = Supervisor::start(mode, &config("text")).wait();
        let line = log.lines().find(|line| line.contains("two")).unwrap();
        assert!(line.starts_with("time=\"") && line.contains(" level=info "), "{line}");
        assert!(line.contains(r#" msg="one \"two\" \\ three" job=a pid="#), "{line}");

        let (_, log) = Supervisor::start(mode, &config("json")).wait();
        let entries: Vec<serde_json::Value> =
            log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let entry = entries.iter().find(|entry| entry["msg"] == "one \"two\" \\ three").unwrap();
        assert_eq!((&entry["level"], &entry["job"]), (&"info".into(), &"a".into()));
        assert!(entry["pid"].is_u64() && entry["time"].is_string(), "{entry}");
        assert!(entries.iter().any(|entry| entry["msg"] == "err"));
    }
}

#[test]
fn l1_format_text_has_seconds_and_colours_on_a_terminal() {
    let folder = Folder::new("terminal-log");
    let file =
        folder.file("a.json5", "{ logging: { format: 'text' }, jobs: [{ name: 'a', exec: 'echo hello' }] }");
    let shown = |variables: &str| {
        // `script` runs a command with a terminal as its output.
        let line = format!("{variables} {} -config {}", containerpilot(), file.display());
        let output = command("script", &["-qec", &line, "/dev/null"]).output_in_time().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let coloured = shown("env -u NO_COLOR");
    let entry = coloured.lines().find(|line| line.contains("msg=hello")).unwrap();
    assert!(entry.contains(" level=\x1b[36minfo\x1b[0m msg=hello job=a "), "{entry:?}");
    let time = entry.split('"').nth(1).unwrap();
    assert!(time.len() == "2026-11-15T00:15:28Z".len() && time.ends_with('Z'), "{time}");
    let plain = shown("env NO_COLOR=1");
    assert!(plain.contains(" level=info msg=hello job=a "), "{plain:?}");
}

/// Jobs that write and exit at once: their last lines are read while their exits are noticed.
#[test]
fn l2_times_in_the_log_never_decrease() {
    let jobs = [
        ("two-streams", "echo one; echo two >&2; echo three"),
        ("no-newline", "printf end"),
        ("orphan", "(echo late) & echo one"),
    ];
    let config = jobs.into_iter().fold(Config::new(), |config, (name, script)| {
        config.job(name, format!("exec: ['sh', '-c', '{script}'], restarts: 200, restartBackoff: false"))
    });
    let (code, log) = Supervisor::start(Mode::Plain, &config).wait();
    assert_eq!(code, 0);
    let timed = || log.lines().map(|line| (line.split(' ').next().unwrap(), line));
    assert!(log.matches("exited with code 0").count() >= 600);
    for ((before, first), (after, second)) in timed().zip(timed().skip(1)) {
        assert!(before <= after, "{first}\n{second}");
    }
}

#[test]
fn l1_log_file_is_reopened_at_sigusr1_and_no_line_is_lost() {
    let config = "{ logging: { output: '@/log' }, jobs: [{ name: 'a', exec: ['sh', '-c',
        'i=0; while [ ! -e @/stop ]; do echo line $i; i=$((i+1)); sleep 0.005; done; echo the end'] }] }"
        .replace("',\n        '", "', '");
    for mode in modes() {
        let run = Supervisor::start(mode, &config);
        wait_until("the job writes", || run.size("log") > 500);
        fs::rename(run.file("log"), run.file("log.1")).unwrap();
        let old = run.size("log.1");
        wait_until("the renamed file grows", || run.size("log.1") > old);
        run.signal("-USR1");
        wait_until("the file is reopened", || run.size("log") > 500);
        fs::write(run.file("stop"), "").unwrap();
        wait_until("the supervisor has finished", || {
            fs::read_to_string(run.file("log"))
                .is_ok_and(|log| log.contains("all jobs that do work have ended"))
        });
        let all =
            fs::read_to_string(run.file("log.1")).unwrap() + &fs::read_to_string(run.file("log")).unwrap();
        let lines = output_of(&all, "a");
        assert_eq!(lines.last().unwrap(), "the end");
        for (nth, line) in lines[..lines.len() - 1].iter().enumerate() {
            assert_eq!(*line, format!("line {nth}"));
        }
        assert_eq!(run.wait(), (0, String::new()));
    }
}

#[test]
fn l1_level_warn_and_output_stderr() {
    let run = Supervisor::start(
        modes()[0],
        "{ logging: { level: 'warn', output: 'stderr' }, jobs: [{ name: 'a', exec: 'echo quiet' }, { name: 'b', exec: '/no/such' }] }",
    );
    let file = run.file("stderr");
    wait_until("the warning is logged", || {
        fs::read_to_string(&file).is_ok_and(|text| text.contains("b failed to start"))
    });
    assert_eq!(output_of(&run.stderr(), "a"), [""; 0], "job output has level info and must be filtered");
    assert_eq!(run.wait(), (127, String::new()));
}

#[test]
fn l2_raw_output_goes_straight_to_the_supervisors_streams() {
    for mode in modes() {
        let config = "{ logging: { output: '@/log' }, jobs: [
            { name: 'raw', exec: ['sh', '-c', 'echo out; echo err >&2'], logging: { raw: true } },
            { name: 'cooked', exec: 'echo logged' },
            { name: 'rest', exec: 'sleep 1000', when: { all: [{ source: 'raw', event: 'exitSuccess' },
              { source: 'cooked', event: 'exitSuccess' }] } } ] }";
        let mut run = Supervisor::start(mode, config);
        assert_eq!(run.wait_for_line("out"), "out");
        wait_until("the start is logged", || run.read("log").contains("rest started"));
        assert_eq!(run.stderr(), "err\n");
        let log = run.read("log");
        assert!(log.contains("logged") && !log.contains(" out") && !log.contains(" err"));
        run.signal("-TERM");
        assert_eq!(run.wait(), (0, "out".to_owned()));
    }
}

#[test]
fn l3_lines_of_any_length_with_any_bytes_are_logged() {
    let config = "{ jobs: [
        { name: 'long', exec: ['sh', '-c', 'head -c 1048576 /dev/zero | tr \"\\\\000\" x; echo; echo after'] },
        { name: 'nul', exec: ['printf', 'a\\\\000b\\\\377c\\\\n'] },
        { name: 'cut', exec: ['printf', 'first\\\\nno newline'] },
        { name: 'empty', exec: ['printf', '\\\\n\\\\n'] } ] }";
    for mode in modes() {
        let (code, log) = Supervisor::start(mode, config).wait();
        assert_eq!(code, 0);
        let long = output_of(&log, "long");
        assert_eq!(long.iter().map(String::len).collect::<Vec<_>>(), [1_048_576, 5]);
        assert!(long[0].bytes().all(|byte| byte == b'x'));
        assert_eq!(
            output_of(&log, "nul"),
            ["a\0b\u{fffd}c"],
            "bytes are unchanged; the test itself decodes them lossily"
        );
        assert_eq!(output_of(&log, "cut"), ["first", "no newline"]);
        assert_eq!(output_of(&log, "empty"), ["", ""]);
        let json = config.replacen('{', "{ logging: { format: 'json' },", 1);
        let (_, log) = Supervisor::start(mode, &json).wait();
        for line in log.lines() {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(entry["msg"].is_string());
        }
    }
}

#[test]
fn l3_lines_of_concurrent_writers_are_never_mixed() {
    let jobs: Vec<String> = (0..8)
        .map(|n| {
            let word = n.to_string().repeat(300);
            format!("{{ name: 'w{n}', exec: ['sh', '-c', 'i=0; while [ $i -lt 300 ]; do echo {word}; echo {word} >&2; i=$((i+1)); done'] }}")
        })
        .collect();
    let (code, log) = Supervisor::start(modes()[0], &format!("{{ jobs: [{}] }}", jobs.join(","))).wait();
    assert_eq!(code, 0);
    for n in 0..8 {
        let lines = output_of(&log, &format!("w{n}"));
        assert_eq!(lines.len(), 600);
        assert!(lines.iter().all(|line| *line == n.to_string().repeat(300)));
    }
}

#[test]
fn l4_memory_stays_bounded_while_the_output_is_not_read() {
    for mode in modes() {
        let config = "{ stopTimeout: 1, jobs: [
            { name: 'noisy', exec: 'yes' }, { name: 'long', exec: 'cat /dev/zero' },
            { name: 'tick', exec: ['sh', '-c', 'echo x >> @/ticks'], when: { interval: '20ms' } } ] }";
        let run = Supervisor::with_stdout(mode, crate::support::supervisor::Stdout::Unread, config);
        wait_until("the periodic job keeps running", || run.size("ticks") / 2 > 50);
        let status = fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: u64 = memory.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kilobytes < 64 * 1024, "{kilobytes} kB");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn l6_failed_exit_is_logged_with_the_last_lines_of_output() {
    for mode in modes() {
        let config = "{ jobs: [
            { name: 'bad', exec: ['sh', '-c', 'for i in 1 2 3 4 5 6 7 8; do echo said $i; done; printf last >&2; exit 3'] },
            { name: 'good', exec: ['sh', '-c', 'echo all is well; exit 0'] } ] }";
        let (code, log) = Supervisor::start(mode, config).wait();
        assert_eq!(code, 3);
        let exit = log.lines().find(|line| line.contains("bad exited with code 3")).unwrap();
        assert!(exit.contains("last") && exit.contains("said 8") && !exit.contains("said 1"), "{exit}");
        let exit = log.lines().find(|line| line.contains("good exited with code 0")).unwrap();
        assert!(!exit.contains("well"), "{exit}");
    }
}

#[test]
fn l7_s12_failed_container_says_why_at_level_warn() {
    for mode in modes() {
        let config = "{ logging: { level: 'WARN' }, jobs: [
            { name: 'app', exec: ['sh', '-c', 'echo no disk; exit 41'], restarts: 1 } ] }";
        let (code, log) = Supervisor::start(mode, config).wait();
        assert_eq!(code, 41);
        let lines: Vec<&str> = log.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
        let exits =
            |line: &str| line.starts_with("app exited with code 41 after ") && line.ends_with("no disk");
        assert!(matches!(lines.as_slice(), [first, second, last] if exits(first) && exits(second)
                && *last == "exiting with code 41: app exited with code 41"));
    }
}

#[test]
fn l7_levels_and_fields_are_in_json_and_text() {
    let config = |format: &str| {
        format!(
            "{{ logging: {{ format: '{format}' }}, jobs: [
               {{ name: 'app', exec: ['sh', '-c', 'echo out; echo err >&2; exit 3'], restarts: 1 }},
               {{ name: 'next', exec: ['sh', '-c', 'kill -KILL $$'], when: {{ source: 'app', once: 'stopped' }} }} ] }}"
        )
    };
    let (code, log) = Supervisor::start(modes()[0], &config("json")).wait();
    assert_eq!(code, 3);
    let entries: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |job: &str, key: &str, value: &str| {
        let is = |entry: &&serde_json::Value| entry["job"] == job && entry[key] == value;
        entries.iter().filter(is).collect::<Vec<_>>()
    };
    assert_eq!(of("app", "stream", "stdout")[0]["msg"], "out");
    assert_eq!(of("app", "stream", "stderr")[0]["msg"], "err");
    let exits = of("app", "event", "exitFailed");
    assert_eq!(exits.iter().map(|entry| &entry["level"]).collect::<Vec<_>>(), ["warning", "error"]);
    assert!(exits.iter().all(|exit| exit["code"] == 3 && exit["pid"].is_u64() && exit["duration"].is_f64()));
    assert_eq!(of("next", "event", "started")[0]["cause"], "app stopped");
    assert_eq!(of("next", "event", "exitFailed")[0]["signal"], "SIGKILL");
    let last = entries.last().unwrap();
    assert_eq!((&last["event"], &last["code"]), (&"exiting".into(), &3.into()));

    let (_, log) = Supervisor::start(modes()[0], &config("text")).wait();
    let line = log.lines().find(|line| line.contains("event=exitFailed")).unwrap();
    assert!(
        line.contains(" level=warning ") && line.contains(" job=app pid=") && line.contains(" code=3 "),
        "{line}"
    );
}

#[test]
fn s12_last_line_is_the_exit_code_also_after_what_a_left_process_writes() {
    for mode in modes() {
        let config = "{ jobs: [{ name: 'app',
            exec: ['sh', '-c', 'trap \"\" TERM; (while :; do echo left; sleep 0.01; done) & sleep 1000'] }], stopTimeout: 1 }";
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("left");
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        let last = log.lines().last().unwrap_or_default();
        assert!(last.ends_with("Z exiting with code 0: received SIGTERM"), "{last}");
    }
}

#[test]
fn s12_kubernetes_finds_the_reason_in_the_termination_log() {
    if !modes().contains(&Mode::Pid1) {
        return;
    }
    // A `/dev` of its own, with the file that Kubernetes mounts there.
    let script = "mount -t tmpfs none /mnt && mknod -m 666 /mnt/null c 1 3 && echo so it said > /mnt/termination-log &&
        mount --move /mnt /dev && \"$0\" -config '{ jobs: [{ name: \"app\", exec: [\"sh\", \"-c\", \"exit 3\"] }] }' > /dev/null
        echo $?; cat /dev/termination-log";
    let binary = env!("CARGO_BIN_EXE_containerpilot");
    let output =
        Command::new("unshare").args(["--mount", "sh", "-c", script, binary]).output_in_time().unwrap();
    let expected = "3\nso it said\nexiting with code 3: app exited with code 3\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
}
