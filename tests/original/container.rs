//! What a test does with a container: looks at its processes and files, sends signals to them, and executes commands.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::consul::{Agent, http};
use crate::support::deadline::InTime;
use crate::support::supervisor::{Mode, Supervisor, child_pids, modes, wait_until};

/// As PID 1, where that is permitted.
pub(crate) fn init() -> Mode {
    *modes().last().unwrap()
}

/// The pids of the supervisor's children with `word` in their command lines, in the namespace of the test.
pub(crate) fn running(run: &Supervisor, word: &str) -> Vec<u32> {
    let command_line = |pid: u32| {
        let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    // A child that has not executed its program yet has the command line of the supervisor.
    let own = command_line(run.pid());
    let is_running = |pid: &u32| command_line(*pid).contains(word) && command_line(*pid) != own;
    child_pids(run.pid()).into_iter().filter(is_running).collect()
}

/// Waits until exactly one child with `word` in its command line runs; returns its pid.
pub(crate) fn wait_for_process(run: &Supervisor, word: &str) -> u32 {
    wait_until(&format!("{word} runs"), || running(run, word).len() == 1);
    running(run, word)[0]
}

/// Ends a process of a job, as `pkill` does in a container.
pub(crate) fn terminate(pid: u32) {
    assert!(Command::new("kill").arg(pid.to_string()).status_in_time().unwrap().success());
}

/// The number of lines of a file in the test's directory.
pub(crate) fn lines(run: &Supervisor, name: &str) -> usize {
    fs::read_to_string(run.file(name)).unwrap_or_default().lines().count()
}

pub(crate) fn wait_for_lines(run: &Supervisor, name: &str, count: usize) {
    wait_until(&format!("{name} has {count} lines"), || lines(run, name) >= count);
}

/// Replaces `from` by `to` in the configuration file, as `sed -i` does in a container.
pub(crate) fn edit(run: &Supervisor, from: &str, to: &str) {
    let (file, new) = (run.file("config.json5"), run.file("config.new"));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&new, text.replace(from, to)).unwrap();
    fs::rename(new, file).unwrap();
}

/// Executes the program with `args` beside the supervisor.
pub(crate) fn execute(run: &Supervisor, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    command.args(args).env_remove("CONTAINERPILOT").stdin(Stdio::null());
    command.env("CONTAINERPILOT_SOCKET", run.file("socket")).output_in_time().unwrap()
}

pub(crate) fn reload(run: &Supervisor) {
    let output = execute(run, &["-reload"]);
    assert!(output.status.success(), "{output:?}");
}

/// Stops the container as `docker stop` does; returns the log. The exit code must be 0.
pub(crate) fn stop(run: Supervisor) -> String {
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    log
}

/// The healthy instances of a service in the catalog.
pub(crate) fn passing(agent: &Agent, name: &str) -> Vec<Value> {
    let entries = agent.try_get(&format!("/v1/health/service/{name}?passing"));
    entries.and_then(|entries| entries.as_array().cloned()).unwrap_or_default()
}

pub(crate) fn wait_for_instances(agent: &Agent, name: &str, count: usize) {
    wait_until(&format!("{name} has {count} healthy instances"), || passing(agent, name).len() == count);
}

/// A page of a telemetry server; `None` if it does not answer.
pub(crate) fn page(address: &str, path: &str) -> Option<String> {
    let (status, body) = http(address, "GET", path, None, "").ok()?;
    (status == 200).then_some(body)
}

/// The value of a metric without labels.
pub(crate) fn metric(address: &str, name: &str) -> Option<f64> {
    let page = page(address, "/metrics")?;
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// Requires that the instance in `route`, an answer of Consul that a job has written, is the service `name` and answers requests.
pub(crate) fn follow_route(run: &Supervisor, route: &str, name: &str) {
    let instance = || {
        let text = fs::read_to_string(run.file(route)).ok()?;
        let answer: Value = serde_json::from_str(&text).ok()?;
        Some(answer.get(0)?["Service"].clone())
    };
    wait_until(&format!("{route} has a route"), || instance().is_some());
    let service = instance().unwrap();
    assert_eq!(service["Service"], name, "{service}");
    let address = format!("{}:{}", service["Address"].as_str().unwrap(), service["Port"]);
    let (status, body) = http(&address, "GET", "/", None, "").unwrap();
    assert_eq!(status, 200, "{body}");
}

/// The number of zombies among the supervisor's children.
pub(crate) fn zombies(run: &Supervisor) -> usize {
    crate::support::supervisor::child_states(run.pid()).into_iter().filter(|state| *state == 'Z').count()
}

/// The process `beside`, which has the argument `first-words` and one restart, is killed twice. Then a reload gives it the argument
/// `other-words`, and its restart again. The process `1111` keeps running.
pub(crate) fn restarts_once_after_each_reload(mut run: Supervisor, reload: impl Fn(&Supervisor)) {
    let app = wait_for_process(&run, "1111");
    for words in ["first-words", "other-words"] {
        let first = wait_for_process(&run, words);
        terminate(first);
        wait_until("it runs again", || running(&run, words).iter().any(|pid| *pid != first));
        if words == "first-words" {
            terminate(wait_for_process(&run, words));
            run.wait_for_line("msg=failed job=beside");
            assert_eq!(running(&run, words), [0; 0], "it was restarted twice");
            edit(&run, "first-words", "other-words");
            reload(&run);
        }
    }
    assert_eq!(running(&run, "1111"), [app]);
    stop(run);
}
