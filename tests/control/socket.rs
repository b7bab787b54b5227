//! The socket's file: whose it is, who may connect, and what becomes of it (X1, S6).

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::client::{Pilot, ask};
use crate::support::{As, Supervisor, is_root, until};

const SLEEPER: &str = "jobs: [{ name: 'main', exec: 'sleep 1000' }]";

fn mode(path: &std::path::Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn x1_it_is_for_its_owner_alone_unless_opened_further() {
    let pilot = Pilot::start(&format!("{{ {SLEEPER} }}"));
    assert_eq!(mode(&pilot.socket), 0o600);
    let pilot =
        Pilot::unawaited(&format!("{{ control: {{ socket: '@/new/folder/cp', mode: '0666' }}, {SLEEPER} }}"));
    let socket = pilot.supervisor.file("new/folder/cp");
    until("the socket is not there", || socket.exists() && mode(&socket) == 0o666);
    assert_eq!(ask(&socket, "GET", "/v3/ping", "").status, 200);
}

/// How much of the program's own code it holds, in KiB.
fn code_of(pid: u32) -> u64 {
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    let mappings = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut lines = mappings
        .lines()
        .skip_while(|line| !(line.contains(" r-xp ") && line.ends_with(program.to_str().unwrap())));
    let held = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
    held.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

/// Waits until a good part of the code that something has brought into memory is given back. How much comes with a page is the
/// system's affair.
fn gives_code_back(pid: u32, mut something: impl FnMut()) {
    let mut most = 0;
    let mut again = Instant::now();
    until("it keeps its code", || {
        // On a busy machine it may be over before it is looked at.
        if Instant::now() >= again {
            something();
            again = Instant::now() + Duration::from_secs(10);
        }
        let now = code_of(pid);
        most = most.max(now);
        now <= most / 4 * 3
    });
}

#[test]
fn x1_the_code_that_questions_need_is_given_back_when_nobody_asks() {
    let pilot = Pilot::start(&format!("{{ {SLEEPER} }}"));
    let pid = pilot.supervisor.pid();
    // The first time may be the start's doing, or the log's.
    for _ in 0..2 {
        gives_code_back(pid, || assert_eq!(pilot.get("/v3/status").status, 200));
    }
}

#[test]
fn r1_so_is_the_code_that_a_reload_needs() {
    let mut supervisor = Supervisor::start(As::Plain, &format!("{{ {SLEEPER} }}"));
    supervisor.line("main started");
    let pid = supervisor.pid();
    let mut seconds = 1000;
    for _ in 0..2 {
        gives_code_back(pid, || {
            seconds += 1;
            let config = format!("{{ jobs: [{{ name: 'main', exec: 'sleep {seconds}' }}] }}");
            fs::write(supervisor.file("config.json5"), config).unwrap();
            supervisor.signal("-HUP");
        });
    }
    supervisor.lines("main started", 3);
}

#[test]
fn x1_a_tight_or_wide_mask_changes_nothing() {
    for mask in ["000", "077", "777"] {
        let config = format!("{{ control: {{ socket: '@/cp', mode: '0620' }}, {SLEEPER} }}");
        let supervisor = Supervisor::behind(As::Plain, &format!("umask {mask}"), &config);
        let socket = supervisor.file("cp");
        until("the mode is another", || socket.exists() && mode(&socket) == 0o620);
    }
}

#[test]
fn x1_another_users_request_is_refused_unless_the_mode_lets_it_in() {
    if !is_root() || Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let as_nobody = |socket: &std::path::Path, groups: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", groups, "curl", "-s", "-o", "/dev/null", "-w"]);
        command.args(["%{http_code}", "--unix-socket"]).arg(socket).arg("http://x/v3/ping");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let open = |path: &std::path::Path| {
        let mut folder = path.to_owned();
        folder.pop();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let pilot = Pilot::start(&format!("{{ {SLEEPER} }}"));
    open(&pilot.socket);
    assert_eq!(as_nobody(&pilot.socket, "--clear-groups"), "000", "the file's mode keeps it out");
    fs::set_permissions(&pilot.socket, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(as_nobody(&pilot.socket, "--clear-groups"), "403", "who it is keeps it out");
    let config = format!("{{ control: {{ socket: '@/cp', mode: '0660', group: '12345' }}, {SLEEPER} }}");
    let pilot = Pilot::unawaited(&config);
    let socket = pilot.supervisor.file("cp");
    until("the socket is not there", || socket.exists() && mode(&socket) == 0o660);
    open(&socket);
    assert_eq!(fs::symlink_metadata(&socket).unwrap().gid(), 12345);
    assert_eq!(as_nobody(&socket, "--clear-groups"), "000");
    assert_eq!(as_nobody(&socket, "--groups=12345"), "200");
}

#[test]
fn x1_a_file_that_was_left_behind_is_replaced() {
    let first = Pilot::start(&format!("{{ {SLEEPER} }}"));
    let socket = first.supervisor.file("stale");
    drop(UnixListener::bind(&socket).unwrap());
    let config = format!("{{ control: {{ socket: '{}' }}, {SLEEPER} }}", socket.display());
    let second = Supervisor::start(As::Plain, &config);
    until("the file is not replaced", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    assert_eq!(ask(&socket, "GET", "/v3/status", "").json()["pid"], second.pid());
}

#[test]
fn x1_another_supervisors_socket_is_left_alone_and_the_second_says_so() {
    let first = Pilot::start(&format!("{{ {SLEEPER} }}"));
    let config = format!("{{ control: {{ socket: '{}' }}, {SLEEPER} }}", first.socket.display());
    let second = Supervisor::start(As::Plain, &config);
    let errors = second.file("stderr");
    until("it says nothing", || fs::read_to_string(&errors).is_ok_and(|text| text.ends_with('\n')));
    let said = second.stderr();
    let expected = format!("another process (pid {}) listens there", first.supervisor.pid());
    assert!(said.contains(&expected) && said.contains("CONTAINERPILOT_SOCKET"), "{said}");
    assert_eq!(second.end().0, 1);
    assert_eq!(first.get("/v3/ping").status, 200);
}

#[test]
fn x1_a_path_that_cannot_be_made_is_an_error_and_the_default_one_a_warning() {
    let config = format!("{{ control: {{ socket: '/proc/no/such' }}, {SLEEPER} }}");
    let supervisor = Supervisor::start(As::Plain, &config);
    let errors = supervisor.file("stderr");
    until("it says nothing", || fs::read_to_string(&errors).is_ok_and(|text| text.ends_with('\n')));
    let said = supervisor.stderr();
    assert!(said.contains("the control socket /proc/no/such needs a folder, which cannot be made"), "{said}");
    assert_eq!(supervisor.end().0, 1);
    if is_root() {
        // A folder that not even root can write stands where the default would be.
        let script = "unset CONTAINERPILOT_SOCKET; mkdir @/ro; mount --bind @/ro /var/run && mount -o remount,ro,bind /var/run || exit 9";
        let script = format!("unshare --mount sh -c '{}; exec \"$@\"' sh \"$@\"; exit", script);
        let mut supervisor =
            Supervisor::behind(As::Plain, &script, "{ jobs: [{ name: 'main', exec: 'echo it runs' }] }");
        let warning = supervisor.line("no control socket");
        assert!(
            warning.contains("/var/run/containerpilot.socket cannot be made: Read-only file system"),
            "{warning}"
        );
        supervisor.line("it runs");
        assert_eq!(supervisor.end().0, 0);
    }
}

#[test]
fn s6_a_socket_that_somebody_else_has_put_there_is_not_removed() {
    let pilot = Pilot::start(&format!("{{ {SLEEPER} }}"));
    fs::remove_file(&pilot.socket).unwrap();
    let other = UnixListener::bind(&pilot.socket).unwrap();
    let (socket, kept) = (pilot.socket.clone(), pilot.supervisor.file("kept"));
    fs::rename(&socket, &kept).unwrap();
    fs::rename(&kept, &socket).unwrap();
    let identity = fs::symlink_metadata(&socket).unwrap().ino();
    pilot.supervisor.signal("-TERM");
    // Its folder goes with it, so it is looked at before.
    let pid = pilot.supervisor.pid();
    until("it does not end", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    });
    assert_eq!(fs::symlink_metadata(&socket).unwrap().ino(), identity);
    drop(other);
}

#[test]
fn s7_a_program_alone_has_no_control_socket() {
    let supervisor = Supervisor::with(As::Plain, &["--", "sh", "-c", "echo here; exec sleep 1000"]);
    let mut supervisor = supervisor;
    supervisor.line("here");
    assert!(!supervisor.file("socket").exists());
}
