//! Rendered files (D15): what is on disk, and what a crash, a bad test or a bad template leaves there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::deadline::InTime;
use crate::support::supervisor::{Mode, Supervisor, modes, wait_until};

/// A template that lists the instances of `web`.
const TEMPLATE: &str = "cat > @/up.tmpl <<'END'
{{ range watch \"web\" }}server {{ .Address }}:{{ .Port }};{{ else }}none{{ end }} {{ .NAME }}
END\nexport NAME=value\n";

/// A service that is healthy while `@/ok` exists, and a file with its instances.
fn config(file: &str, jobs: &str) -> String {
    format!(
        "{{ control: {{ socket: '@/socket' }}, stopTimeout: 2, watches: [{{ name: 'web', interval: 1 }}],
            files: [{{ name: 'up', from: '@/up.tmpl', to: '@/up.conf', {file} }}],
            jobs: [{{ name: 'web', exec: 'sleep 1000', port: 8080, interfaces: 'static:10.1.2.3',
                      health: {{ exec: 'test -e @/ok', interval: 1, ttl: 5 }} }}, {jobs}] }}"
    )
}

fn command(run: &Supervisor, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    let output = command.args(args).arg("--socket").arg(run.file("socket")).output_in_time().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn wait_for_text(run: &Supervisor, text: &str) {
    wait_until(&format!("the file is `{text}`"), || {
        fs::read_to_string(run.file("up.conf")).is_ok_and(|found| found.trim_end() == text)
    });
}

fn temporary_files(run: &Supervisor) -> Vec<String> {
    let names = fs::read_dir(run.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.contains(".containerpilot-"))
        .collect()
}

#[test]
fn d15_a_file_follows_its_watch_and_jobs_follow_the_file() {
    let jobs =
        "{ name: 'server', exec: ['sh', '-c', 'cat @/up.conf; exec sleep 1000'], requires: ['file.up'] },
                { name: 'seen', exec: ['sh', '-c', 'echo now: $(cat @/up.conf)'],
                  when: { source: 'file.up', each: 'changed' } }";
    for mode in modes() {
        let mut run = Supervisor::with_setup(mode, TEMPLATE, &config("mode: '0600'", jobs));
        // Both jobs have read it.
        run.wait_for_lines("none value", 2);
        assert_eq!(fs::metadata(run.file("up.conf")).unwrap().permissions().mode() & 0o7777, 0o600);
        fs::write(run.file("ok"), "").unwrap();
        run.wait_for_line("now: server 10.1.2.3:8080; value");
        fs::remove_file(run.file("ok")).unwrap();
        run.wait_for_line("now: none value");
        assert!(command(&run, &["explain", "file.up"]).starts_with("file.up: rendered "));
        let status = command(&run, &["status"]);
        assert!(
            status.contains("FILE  STATE     WRITTEN") && status.contains("up    rendered  3"),
            "{status}"
        );
        let json = command(&run, &["status", "file.up", "--format", "json"]);
        assert!(json.contains("\"state\":\"rendered\"") && json.contains("\"changes\":3"), "{json}");
        assert_eq!(temporary_files(&run), [""; 0]);
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn d15_a_test_that_fails_or_hangs_keeps_the_old_file() {
    let test = "test: ['sh', '-c', 'grep -q none $CONTAINERPILOT_FILE || . @/test'], timeout: '300ms'";
    let mut run = Supervisor::with_setup(Mode::Plain, TEMPLATE, &config(test, ""));
    wait_for_text(&run, "none value");
    fs::write(run.file("test"), "echo refused; exit 3").unwrap();
    fs::write(run.file("ok"), "").unwrap();
    run.wait_for_line("refused");
    run.wait_for_line("up.conf is not changed: test: exited with code 3");
    wait_for_text(&run, "none value");
    fs::remove_file(run.file("ok")).unwrap();
    run.wait_for_line("web unhealthy");
    fs::write(run.file("test"), "echo hanging; exec sleep 1000").unwrap();
    fs::write(run.file("ok"), "").unwrap();
    run.wait_for_line("hanging");
    run.wait_for_line("up.conf is not changed: test: timeout after 300ms");
    assert!(command(&run, &["status"]).contains("test: timeout after 300ms"));
    wait_for_text(&run, "none value");
    wait_until("the temporary file is removed", || temporary_files(&run).is_empty());
    // It passes at the next change.
    fs::write(run.file("test"), "exit 0").unwrap();
    fs::remove_file(run.file("ok")).unwrap();
    run.wait_for_line("web unhealthy");
    fs::write(run.file("ok"), "").unwrap();
    wait_for_text(&run, "server 10.1.2.3:8080; value");
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn d15_failures_are_logged_with_their_reason_and_end_nothing() {
    let setup = "mkdir @/folder; printf '{{ define \"x\" }}{{ template \"x\" }}{{ end }}\\n{{ template \"x\" }}' > @/loops
                 printf 'top\\n {{ required \"NOT_SET\" }}' > @/unset; printf s3cret > @/secret";
    let config = "{ control: { socket: '@/socket' }, secrets: { KEY: { file: '@/secret' } }, files: [
            { name: 'loops', from: '@/loops', to: '@/a' },
            { name: 'unset', from: '@/unset', to: '@/b' },
            { name: 'folder', template: 'x', to: '@/folder' },
            { name: 'missing', template: 'x', to: '@/c', test: '@/no-such-test' },
            { name: 'nowhere', template: 'x', to: '@/none/d' },
            { name: 'secret', template: '{{`{{ range loop (secret \"KEY\") }}{{ end }}`}}', to: '@/e', mode: '0600' },
            { name: 'good', template: '{{`{{ secret \"KEY\" }}`}}', to: '@/good', mode: '0600' }],
        jobs: [{ name: 'main', exec: 'sleep 1000', requires: ['file.good'] },
               { name: 'told', exec: 'echo told', when: { source: 'file.loops', each: 'failed' } }] }";
    let mut run = Supervisor::with_setup(Mode::Plain, setup, config);
    run.wait_for_line("main started");
    wait_until("all have failed", || command(&run, &["status"]).matches("  failed").count() >= 6);
    run.wait_for_lines("is not changed", 6);
    run.wait_for_lines("told", 1);
    let log = run.log_so_far();
    for reason in [
        "loops:1:",
        "template calls are nested more than 10000 deep",
        "unset:2:14: the environment variable `NOT_SET` is required",
        "folder is a directory, not a file",
        "no-such-test: No such file or directory",
        "no such file or directory",
        "template:1:15: `loop` needs an integer, not \"***\"",
    ] {
        assert!(log.contains(reason), "{reason}");
    }
    assert!(!log.contains("s3cret") && !command(&run, &["status", "--format", "json"]).contains("s3cret"));
    assert_eq!(fs::read_to_string(run.file("good")).unwrap(), "s3cret");
    assert!(["a", "b", "c", "e"].iter().all(|name| !run.file(name).exists()));
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn d15_a_killed_supervisor_leaves_the_old_or_the_new_text() {
    // 5 MB, so that the supervisor is often killed while it writes.
    let setup = |value: &str| {
        format!(
            "export V={value}\nprintf '{{{{ .V }}}}{{{{ range loop 50000 }}}}{{{{ $.V }}}}%0100d{{{{ end }}}}{{{{ .V }}}}' 0 > $KEPT/big"
        )
    };
    let kept = std::env::temp_dir().join(format!("containerpilot-files-{}", std::process::id()));
    fs::create_dir_all(&kept).unwrap();
    let folder = kept.to_str().unwrap();
    let config = format!(
        "{{ control: {{ socket: '@/socket' }}, files: [{{ name: 'big', from: '{folder}/big', to: '{folder}/out' }}],
            jobs: [{{ exec: 'sleep 1000' }}] }}"
    );
    let is_whole = |text: &str| {
        let first = &text[..1];
        text.len() == 50_000 * 101 + 2 && text.ends_with(first) && text.matches(first).count() >= 50_002
    };
    for round in 0..12_u32 {
        let script = format!("KEPT={folder}\n{}", setup(&(round % 2 + 1).to_string()));
        let run = Supervisor::with_setup(Mode::Plain, &script, &config);
        wait_until("it renders", || {
            let names = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names = names.filter_map(|name| name.into_string().ok());
            names.any(|name| name.contains(".containerpilot-") || name == "out")
        });
        run.signal("-KILL");
        run.wait();
        if let Ok(text) = fs::read_to_string(kept.join("out")) {
            assert!(is_whole(&text), "round {round}: {} bytes", text.len());
        }
    }
    // The next one completes it, and removes what was left behind.
    let script = format!("KEPT={folder}\n{}", setup("3"));
    let run = Supervisor::with_setup(Mode::Plain, &script, &config);
    wait_until("it is written", || {
        fs::read_to_string(kept.join("out")).is_ok_and(|text| text.starts_with('3') && is_whole(&text))
    });
    let names = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    assert_eq!(names, ["big", "out"]);
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
    fs::remove_dir_all(kept).unwrap();
}

#[test]
fn d15_a_reload_renders_changed_templates_and_leaves_removed_files() {
    let jobs = "{ name: 'seen', exec: ['sh', '-c', 'echo now: $(cat @/up.conf)'],
                  when: { source: 'file.up', each: 'changed' } }";
    let mut run = Supervisor::with_setup(Mode::Plain, TEMPLATE, &config("", jobs));
    run.wait_for_line("now: none value");
    let template = fs::read_to_string(run.file("up.tmpl")).unwrap();
    fs::write(run.file("up.tmpl"), format!("new {template}")).unwrap();
    let answer = command(&run, &["reload"]);
    assert!(answer.contains("files"), "{answer}");
    run.wait_for_line("now: new none value");
    // A template with an error changes nothing.
    fs::write(run.file("up.tmpl"), "{{ watch \"wb\" }}").unwrap();
    let mut refused = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    let refused = refused.args(["reload", "--socket"]).arg(run.file("socket")).output_in_time().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("unknown watch `wb`") && message.contains("up.tmpl:1:10"), "{message}");
    let text = fs::read_to_string(run.file("config.json5")).unwrap();
    let without = text.split("files:").next().unwrap().to_owned() + "jobs: [{ exec: 'sleep 1000' }] }";
    fs::write(run.file("config.json5"), without).unwrap();
    command(&run, &["reload"]);
    assert!(!command(&run, &["status"]).contains("FILE"));
    assert!(run.read("up.conf").starts_with("new none value"));
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn d15_a_file_has_the_large_value_of_a_watched_file() {
    let setup = "head -c 1048576 /dev/zero | tr '\\0' x > @/data";
    let config = "{ control: { socket: '@/socket' }, watches: [{ name: 'data', file: '@/data' }],
        files: [{ name: 'copy', template: '{{`{{ watch \"data\" }}`}}', to: '@/copy' }],
        jobs: [{ exec: 'sleep 1000' }] }";
    let run = Supervisor::with_setup(Mode::Plain, setup, config);
    let is_copied = || {
        let (copy, data) = (fs::read(run.file("copy")), fs::read(run.file("data")));
        copy.is_ok_and(|copy| data.is_ok_and(|data| copy == data))
    };
    wait_until("the value is copied", || run.size("data") == 1024 * 1024 && is_copied());
    assert_eq!(run.size("copy"), 1024 * 1024);
    fs::write(run.file("new"), "y").unwrap();
    fs::rename(run.file("new"), run.file("data")).unwrap();
    wait_until("the change is copied", is_copied);
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}
