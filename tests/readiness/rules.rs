//! The rules, with small scripts as programs.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use super::{job, wait_healthy};
use crate::support::config::Config;
use crate::support::deadline::InTime;
use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, is_root, modes, wait_until};

/// A Perl function that sends a message to the `NOTIFY_SOCKET`.
const NOTIFY: &str = "use Socket; sub notify { socket(S, AF_UNIX, SOCK_DGRAM, 0); (my $n = $ENV{NOTIFY_SOCKET}) =~ s{^@}{\\0}; \
                      send(S, $_[0], 0, pack_sockaddr_un($n)) or die qq($!); }";

/// The `exec` of a job that runs this Perl script.
fn perl(script: &str) -> String {
    serde_json::to_string(&["perl", "-e", &format!("$| = 1; {NOTIFY} {script}")]).unwrap()
}

#[test]
fn h11_a_job_that_notifies_is_ready_and_healthy_and_its_status_is_shown() {
    let exec =
        perl(r#"sleep 1 until -e "@/go"; notify("READY=1\nSTATUS=Serving \x1b[31m5 clients"); sleep 1000"#);
    let config = Config::new()
        .job("web", format!("exec: {exec}, ready: 'notify'"))
        .job("app", "exec: 'echo after it', when: { source: 'web', once: 'ready' }")
        .job("too", "exec: 'echo healthy, too', when: { source: 'web', once: 'becameHealthy' }");
    for mode in modes() {
        let mut run = Supervisor::start(mode, &config);
        wait_until("it runs", || job(&run, "web")["state"] == "running");
        let web = job(&run, "web");
        assert_eq!((&web["readiness"], &web["health"]), (&"starting".into(), &"unknown".into()));
        fs::write(run.file("go"), "").unwrap();
        run.wait_for_line("after it");
        run.wait_for_lines("healthy, too", 1);
        wait_healthy(&run, "web");
        let web = job(&run, "web");
        assert_eq!(web["readiness"], "ready");
        assert_eq!(web["processStatus"], "Serving [31m5 clients");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn h11_a_newline_on_any_descriptor_makes_a_job_ready() {
    // The supervisor itself uses some of these numbers while it starts a program.
    let jobs: Vec<String> = (3..=9)
        .map(|fd| {
            let script = format!(
                "echo early >&2; printf x >&{fd}; sleep 0.2; echo >&{fd}; echo more >&{fd}; exec sleep 1000"
            );
            let exec = serde_json::to_string(&["sh", "-c", &script]).unwrap();
            format!("{{ name: 'fd{fd}', exec: {exec}, ready: {{ fd: {fd} }} }}")
        })
        .collect();
    let mut all = jobs;
    let script = "open(F, '>&=', 1000) or die; print F qq(\\n); close F; sleep 1000";
    all.push(format!("{{ name: 'fd1000', exec: {}, ready: {{ fd: 1000 }} }}", perl(script)));
    for mode in modes() {
        let run = Supervisor::start(mode, &format!("{{ jobs: [{}] }}", all.join(",\n")));
        for name in (3..=9).map(|fd| format!("fd{fd}")).chain(["fd1000".to_owned()]) {
            wait_healthy(&run, &name);
        }
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn h11_a_program_that_cannot_be_executed_is_reported_although_its_descriptor_has_the_number_of_the_result() {
    for fd in 3..=12 {
        let run = Supervisor::start(
            modes()[0],
            &format!("{{ jobs: [{{ name: 'none', exec: '/does/not/exist', ready: {{ fd: {fd} }} }}] }}"),
        );
        let (code, log) = run.wait();
        assert_eq!(code, 127);
        assert!(log.contains("No such file or directory"));
    }
}

#[test]
fn h11_a_line_of_output_makes_a_job_ready() {
    let script = "echo starting; sleep 0.2; echo 'listening on port 80' >&2; exec sleep 1000";
    let exec = serde_json::to_string(&["sh", "-c", script]).unwrap();
    let config = format!(
        r"{{ jobs: [ {{ name: 'web', exec: {exec}, ready: {{ line: 'port \\d+$' }} }},
          {{ name: 'app', exec: 'echo after it', when: {{ source: 'web', once: 'ready' }} }} ] }}"
    );
    for mode in modes() {
        let mut run = Supervisor::start(mode, &config);
        run.wait_for_line("after it");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn h11_a_process_that_is_ready_and_exits_at_once_was_ready() {
    let exec = perl(r#"notify("READY=1"); exit 0"#);
    let config = Config::new()
        .job("once", format!("exec: {exec}, ready: 'notify'"))
        .job("app", "exec: 'echo after it', when: { source: 'once', once: 'ready' }");
    for mode in modes() {
        let (code, log) = Supervisor::start(mode, &config).wait();
        assert_eq!(code, 0);
        assert!(log.contains("after it"));
    }
}

#[test]
fn h12_a_job_that_hangs_misses_its_watchdog_and_is_restarted() {
    let script = r#"die "pid $ENV{WATCHDOG_PID}" if $ENV{WATCHDOG_PID} != $$; print "usec $ENV{WATCHDOG_USEC}\n"; notify("READY=1");
        for (1 .. 5) { select(undef, undef, undef, 0.2); notify("WATCHDOG=1"); } print "it hangs\n"; sleep 1000"#;
    let config = Config::new().job(
        "web",
        format!(
            "exec: {}, ready: 'notify', watchdog: '2s', restarts: 1,
                 health: {{ interval: 10, ttl: 30, onUnhealthy: 'restart' }}",
            perl(script)
        ),
    );
    for mode in modes() {
        let mut run = Supervisor::start(mode, &config);
        run.wait_for_line("usec 2000000");
        run.wait_for_line("it hangs");
        run.wait_for_line("unhealthy: check.web: no WATCHDOG=1 within 2s");
        run.wait_for_line("usec 2000000");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn h11_the_service_manager_of_the_supervisor_is_told_and_jobs_do_not_see_it() {
    let config = r#"{ jobs: [ { name: "setup", exec: ["sh", "-c", "echo \"socket: ${NOTIFY_SOCKET-none}\""] },
        { name: "web", exec: ["sh", "-c", "sleep 0.2; echo up; exec sleep 1000"], ready: { line: "^up$" }, restarts: "unlimited" } ] }"#;
    for mode in modes() {
        let path =
            std::env::temp_dir().join(format!("containerpilot-manager-{}-{mode:?}", std::process::id()));
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let told = || {
            let mut message = [0; 100];
            let length = manager.recv(&mut message).unwrap();
            String::from_utf8_lossy(&message[..length]).into_owned()
        };
        let script = format!("export NOTIFY_SOCKET={}", path.display());
        let mut run = Supervisor::with_setup(mode, &script, config);
        assert_eq!(told(), "READY=1");
        assert_eq!(job(&run, "web")["health"], "healthy");
        run.wait_for_line("socket: none");
        run.signal("-TERM");
        assert_eq!(told(), "STOPPING=1");
        assert_eq!(run.wait().0, 0);
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn h11_a_job_of_another_user_can_notify_and_other_users_cannot() {
    if !is_root() {
        skip("needs root");
        return;
    }
    let own = perl(
        r#"print "at $ENV{NOTIFY_SOCKET} as $>\n"; sleep 1 until -e "@/sent"; notify("STATUS=Loading"); sleep 1 until -e "@/go"; notify("READY=1"); sleep 1000"#,
    );
    let config = format!("{{ jobs: [ {{ name: 'web', exec: {own}, user: '65534', ready: 'notify' }} ] }}");
    let mut run = Supervisor::start(modes()[0], &config);
    let line = run.wait_for_line("at @");
    let name = line.split("at @").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    // Another user sends first.
    let other = format!("$> = $< = 12345; $ENV{{NOTIFY_SOCKET}} = q(@{name}); {NOTIFY} notify(q(READY=1));");
    let sent = std::process::Command::new("perl").args(["-e", &other]).status_in_time().unwrap();
    assert!(sent.success());
    // The job sends later, over the same socket: messages arrive in order.
    fs::write(run.file("sent"), "").unwrap();
    wait_until("its status is shown", || job(&run, "web")["processStatus"] == "Loading");
    assert_eq!(job(&run, "web")["readiness"], "starting");
    fs::write(run.file("go"), "").unwrap();
    wait_healthy(&run, "web");
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn h11_a_job_gets_no_socket_without_ready() {
    let (code, log) =
        Supervisor::start(modes()[0], "{ jobs: [{ exec: ['sh', '-c', 'echo ${NOTIFY_SOCKET-none}'] }] }")
            .wait();
    assert_eq!(code, 0);
    assert!(log.contains("none"));
}

#[test]
fn p11_h11_secrets_are_hidden_in_what_a_process_says_about_itself() {
    let script = perl(r#"notify("STATUS=the key is $ENV{KEY}!\nREADY=1"); sleep 1000"#);
    let config = Config::new()
        .keys("secrets: { KEY: { file: '@/key' } }")
        .job("a", format!("exec: {script}, ready: 'notify'"));
    let run = Supervisor::with_setup(Mode::Plain, "printf hunter2-hunter2 > @/key", &config);
    wait_healthy(&run, "a");
    assert_eq!(job(&run, "a")["processStatus"], "the key is ***!");
    let shown = |command: &str| {
        let mut asked = std::process::Command::new(env!("CARGO_BIN_EXE_containerpilot"));
        let asked = asked.args([command, "a"]).env("CONTAINERPILOT_SOCKET", run.file("socket"));
        String::from_utf8(asked.output_in_time().unwrap().stdout).unwrap()
    };
    for command in ["status", "explain"] {
        let text = shown(command);
        assert!(text.contains("the key is ***!") && !text.contains("hunter2"), "{command}: {text}");
    }
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}
