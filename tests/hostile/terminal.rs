//! A supervisor on a terminal, with jobs of another user (P2).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::fixture::permitted;
use crate::support::deadline::InTime;
use crate::support::supervisor;

/// Jobs, checks and hooks have neither the terminal nor the session of the supervisor.
#[test]
fn p2_no_process_can_open_the_terminal_of_the_supervisor() {
    if !permitted() {
        return;
    }
    let folder = supervisor::folder();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let at = folder.display();
    // Field 6 of the status is the session, and 7 the terminal.
    let look = |name: &str| {
        let script = format!(
            "(: < /dev/tty) 2>/dev/null && tty=open || tty=closed; set -- $(cat /proc/$$/stat); echo $tty $(($1 - $6)) $7 > {at}/{name}"
        );
        serde_json::to_string(&["sh", "-c", &script]).unwrap()
    };
    let config = format!(
        "{{ control: {{ socket: '{at}/socket' }}, jobs: [
             {{ name: 'job', user: 'nobody', exec: {} }},
             {{ name: 'checked', user: 'nobody', exec: ['sh', '-c', 'until [ -s {at}/check ]; do sleep 0.05; done'],
                health: {{ exec: {}, interval: 1, ttl: 5 }} }},
             {{ name: 'after', exec: {}, when: {{ source: 'checked', once: 'exitSuccess' }} }}] }}",
        look("job"),
        look("check"),
        look("hook")
    );
    let file = folder.join("config.json5");
    fs::write(&file, config).unwrap();
    let pilot = env!("CARGO_BIN_EXE_containerpilot");
    // The supervisor itself has a terminal, or the test would show nothing.
    let line = format!("(: < /dev/tty) && echo has-terminal; exec {pilot} -config {}", file.display());
    let run = Command::new("script").args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output_in_time();
    let shown = String::from_utf8_lossy(&run.unwrap().stdout).into_owned();
    assert!(shown.contains("has-terminal"), "{shown}");
    for name in ["job", "check", "hook"] {
        let found = fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert_eq!(found, "closed 0 0\n", "{name}: {shown}");
    }
    fs::remove_dir_all(folder).unwrap();
}
