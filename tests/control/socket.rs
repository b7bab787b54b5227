//! The socket file: owner, permissions, creation and removal (X1, S6).

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::process::Command;

use crate::support::deadline::InTime;
use crate::support::http_client::{Pilot, request};
use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, is_root, state, wait_until};

const SLEEPER: &str = "jobs: [{ name: 'main', exec: 'sleep 1000' }]";

fn mode(path: &std::path::Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn x1_socket_has_mode_0600_unless_configured() {
    let pilot = Pilot::start(&format!("{{ {SLEEPER} }}"));
    assert_eq!(mode(&pilot.socket), 0o600);
    let pilot = Pilot::start_without_waiting(&format!(
        "{{ control: {{ socket: '@/new/folder/cp', mode: '0666' }}, {SLEEPER} }}"
    ));
    let socket = pilot.supervisor.file("new/folder/cp");
    wait_until("the socket exists", || socket.exists() && mode(&socket) == 0o666);
    assert_eq!(request(&socket, "GET", "/v3/ping", "").status, 200);
}

#[test]
fn x1_socket_mode_does_not_depend_on_the_umask() {
    for mask in ["000", "077", "777"] {
        let config = format!("{{ control: {{ socket: '@/cp', mode: '0620' }}, {SLEEPER} }}");
        let supervisor = Supervisor::with_setup(Mode::Plain, &format!("umask {mask}"), &config);
        let socket = supervisor.file("cp");
        wait_until("the socket has its mode", || socket.exists() && mode(&socket) == 0o620);
    }
}

#[test]
fn x1_requests_of_other_users_are_refused_unless_the_configured_mode_allows_them() {
    if !is_root() || Command::new("curl").arg("--version").output_in_time().is_err() {
        skip("only root can become another user");
        return;
    }
    let as_nobody = |socket: &std::path::Path, groups: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", groups, "curl", "-s", "-o", "/dev/null", "-w"]);
        command.args(["%{http_code}", "--unix-socket"]).arg(socket).arg("http://x/v3/ping");
        String::from_utf8(command.output_in_time().unwrap().stdout).unwrap()
    };
    let open = |path: &std::path::Path| {
        let mut folder = path.to_owned();
        folder.pop();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let pilot = Pilot::start(&format!("{{ {SLEEPER} }}"));
    open(&pilot.socket);
    assert_eq!(
        as_nobody(&pilot.socket, "--clear-groups"),
        "000",
        "the mode of the file must refuse the connection"
    );
    fs::set_permissions(&pilot.socket, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(as_nobody(&pilot.socket, "--clear-groups"), "403", "the peer's user id must be refused");
    let config = format!("{{ control: {{ socket: '@/cp', mode: '0660', group: '12345' }}, {SLEEPER} }}");
    let pilot = Pilot::start_without_waiting(&config);
    let socket = pilot.supervisor.file("cp");
    wait_until("the socket exists", || socket.exists() && mode(&socket) == 0o660);
    open(&socket);
    assert_eq!(fs::symlink_metadata(&socket).unwrap().gid(), 12345);
    assert_eq!(as_nobody(&socket, "--clear-groups"), "000");
    assert_eq!(as_nobody(&socket, "--groups=12345"), "200");
}

#[test]
fn x1_stale_socket_file_is_replaced() {
    let first = Pilot::start(&format!("{{ {SLEEPER} }}"));
    let socket = first.supervisor.file("stale");
    drop(UnixListener::bind(&socket).unwrap());
    let config = format!("{{ control: {{ socket: '{}' }}, {SLEEPER} }}", socket.display());
    let second = Supervisor::start(Mode::Plain, &config);
    wait_until("the file is replaced", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    assert_eq!(request(&socket, "GET", "/v3/status", "").json()["pid"], second.pid());
}

#[test]
fn x1_socket_of_a_running_supervisor_is_kept_and_the_second_one_fails() {
    let first = Pilot::start(&format!("{{ {SLEEPER} }}"));
    let config = format!("{{ control: {{ socket: '{}' }}, {SLEEPER} }}", first.socket.display());
    let second = Supervisor::start(Mode::Plain, &config);
    let errors = second.file("stderr");
    wait_until("the error is written", || fs::read_to_string(&errors).is_ok_and(|text| text.ends_with('\n')));
    let stderr = second.stderr();
    let expected = format!("another process (pid {}) listens there", first.supervisor.pid());
    assert!(stderr.contains(&expected) && stderr.contains("CONTAINERPILOT_SOCKET"), "{stderr}");
    assert_eq!(second.wait().0, 1);
    assert_eq!(first.get("/v3/ping").status, 200);
}

#[test]
fn x1_configured_socket_that_cannot_be_created_is_an_error_and_the_default_one_a_warning() {
    let config = format!("{{ control: {{ socket: '/proc/no/such' }}, {SLEEPER} }}");
    let supervisor = Supervisor::start(Mode::Plain, &config);
    let errors = supervisor.file("stderr");
    wait_until("the error is written", || fs::read_to_string(&errors).is_ok_and(|text| text.ends_with('\n')));
    let stderr = supervisor.stderr();
    assert!(stderr.contains("cannot create the directory of the control socket /proc/no/such"), "{stderr}");
    assert_eq!(supervisor.wait().0, 1);
    if is_root() {
        // The directory of the default socket is a read-only mount, which root cannot write to either.
        let script = "unset CONTAINERPILOT_SOCKET; mkdir @/ro; mount --bind @/ro /var/run && mount -o remount,ro,bind /var/run || exit 9";
        let script = format!("unshare --mount sh -c '{}; exec \"$@\"' sh \"$@\"; exit", script);
        let mut supervisor = Supervisor::with_setup(
            Mode::Plain,
            &script,
            "{ jobs: [{ name: 'main', exec: 'echo it runs' }] }",
        );
        let warning = supervisor.wait_for_line("no control socket");
        assert!(
            warning.contains(
                "cannot create the control socket /var/run/containerpilot.socket: read-only file system"
            ),
            "{warning}"
        );
        supervisor.wait_for_line("it runs");
        assert_eq!(supervisor.wait().0, 0);
    } else {
        skip("only root can mount a read-only directory");
    }
}

#[test]
fn s6_socket_file_of_another_process_is_not_removed() {
    let pilot = Pilot::start(&format!("{{ {SLEEPER} }}"));
    fs::remove_file(&pilot.socket).unwrap();
    let other = UnixListener::bind(&pilot.socket).unwrap();
    let (socket, kept) = (pilot.socket.clone(), pilot.supervisor.file("kept"));
    fs::rename(&socket, &kept).unwrap();
    fs::rename(&kept, &socket).unwrap();
    let identity = fs::symlink_metadata(&socket).unwrap().ino();
    pilot.supervisor.signal("-TERM");
    // Dropping the supervisor removes the directory, so the file is checked while the supervisor is a zombie.
    let pid = pilot.supervisor.pid();
    wait_until("the supervisor exits", || state(pid).is_none_or(|state| state == 'Z'));
    assert_eq!(fs::symlink_metadata(&socket).unwrap().ino(), identity);
    drop(other);
}

#[test]
fn s7_without_a_file_there_is_no_control_socket() {
    let supervisor = Supervisor::with_args(Mode::Plain, &["--", "sh", "-c", "echo here; exec sleep 1000"]);
    let mut supervisor = supervisor;
    supervisor.wait_for_line("here");
    assert!(!supervisor.file("socket").exists());
}
