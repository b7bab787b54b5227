//! A program on a terminal of its own, which this process connects with the terminal of its caller.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use containerpilot_core::plan::Signal;
use containerpilot_process::sys::{self, Forked, SignalSet, Terminal};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::termios::{self, SetArg, Termios};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout};

/// The exit code if something other than the program is the reason, as of `env` and `chroot`.
pub(super) const FAILED: u8 = 125;

const CHLD: u8 = 17;
const WINCH: u8 = 28;
/// SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2 and SIGTERM, which are passed on to the program.
const PASSED: [u8; 6] = [1, 2, 3, 10, 12, 15];

/// How long nothing is shown after the exit before that counts as the end.
const LAST_OUTPUT: Duration = Duration::from_millis(100);

fn received() -> SignalSet {
    [CHLD, WINCH].into_iter().chain(PASSED).fold(SignalSet::EMPTY, SignalSet::with)
}

/// Forks a child that has a terminal of its own. Of its standard streams, those that are no terminal are the caller's.
pub(super) fn fork() -> io::Result<Forked> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let keep = |fd: BorrowedFd<'_>| match fd.is_terminal() {
        true => Ok(None),
        false => fd.try_clone_to_owned().map(Some),
    };
    let kept = [keep(stdin.as_fd())?, keep(stdout.as_fd())?, keep(stderr.as_fd())?];
    // Blocked before the fork, so that none is lost. The child has an empty mask when it executes its program.
    sys::block_signals(received())?;
    let of_caller = File::open("/dev/tty")?;
    let forked = sys::fork_on_terminal(&of_caller, termios::tcgetattr(&of_caller).ok().as_ref())?;
    if let Forked::Child = forked {
        let [stdin, stdout, stderr] = kept;
        stdin.map(dup2_stdin).transpose()?;
        stdout.map(dup2_stdout).transpose()?;
        stderr.map(dup2_stderr).transpose()?;
    }
    Ok(forked)
}

/// The settings of the caller's terminal, which are restored when this is dropped.
struct Raw(Termios);

impl Raw {
    fn enter() -> Option<Self> {
        let before = termios::tcgetattr(io::stdin()).ok()?;
        let mut raw = before.clone();
        termios::cfmakeraw(&mut raw);
        termios::tcsetattr(io::stdin(), SetArg::TCSADRAIN, &raw).ok()?;
        Some(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // It fails if the terminal is gone.
        let _ = termios::tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.0);
    }
}

/// Passes on what is typed, what is shown, the size of the window and signals, until the child exits. Returns its exit
/// code.
pub(super) fn relay(terminal: Terminal, child: i32) -> u8 {
    let Terminal { master, child_end } = terminal;
    let mut terminal = File::from(master);
    let nonblocking = fcntl(&terminal, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
    let caller = File::options().write(true).open("/dev/tty");
    let (Ok(signals), Ok(mut caller), Ok(_)) = (sys::signal_fd(received()), caller, nonblocking) else {
        return FAILED;
    };
    // Without a terminal as its input, the child has that of the caller.
    let raw = io::stdin().is_terminal().then(Raw::enter).flatten();
    let (mut reads_input, mut is_open) = (raw.is_some(), true);
    let mut typed = Vec::new();
    loop {
        let writes = if typed.is_empty() { 0 } else { sys::POLLOUT };
        let input = if reads_input && typed.is_empty() { io::stdin().as_raw_fd() } else { -1 };
        let mut fds = [
            sys::poll_fd(signals.as_raw_fd(), sys::POLLIN),
            sys::poll_fd(if is_open { terminal.as_raw_fd() } else { -1 }, sys::POLLIN | writes),
            sys::poll_fd(input, sys::POLLIN),
        ];
        if sys::poll(&mut fds, None).is_err() {
            continue;
        }
        let [signal, output, input] = fds.map(|fd| fd.revents);
        if output & sys::POLLOUT != 0
            && let Ok(count) = terminal.write(&typed)
        {
            typed.drain(..count);
        }
        if output & !sys::POLLOUT != 0 {
            is_open = show(&mut terminal, &mut caller);
        }
        if input != 0 {
            let mut buffer = [0; 4096];
            // Not by the library, which would keep bytes that `poll` does not know of.
            match sys::read(io::stdin().as_fd(), &mut buffer) {
                Ok(count @ 1..) => typed.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The caller's terminal is gone: SIGHUP follows.
                Ok(0) | Err(_) => reads_input = false,
            }
        }
        if signal == 0 {
            continue;
        }
        match sys::read_signal(signals.as_fd()).ok().flatten().map(|received| received.signal) {
            Some(Signal(WINCH)) => sys::copy_window_size(&caller, &terminal),
            Some(Signal(CHLD)) => {
                if let Some(code) = exit_code(child) {
                    drop(child_end);
                    show_rest(&mut terminal, &mut caller);
                    drop(raw);
                    return code;
                }
            }
            Some(other) => drop(sys::kill_process(child, other)),
            None => {}
        }
    }
}

/// Shows what there is now on the terminal of the caller. Returns false if no process has the terminal open.
fn show(terminal: &mut File, caller: &mut File) -> bool {
    let mut buffer = [0; 4096];
    loop {
        match terminal.read(&mut buffer) {
            // It fails if the caller's terminal is gone: SIGHUP follows.
            Ok(count @ 1..) => drop(caller.write_all(buffer.get(..count).unwrap_or_default())),
            other => return other.is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
        }
    }
}

/// Shows what the child has left. The kernel may still be passing it on. Other processes on its terminal are not waited
/// for.
fn show_rest(terminal: &mut File, caller: &mut File) {
    let mut fds = [sys::poll_fd(terminal.as_raw_fd(), sys::POLLIN)];
    while sys::poll(&mut fds, Some(LAST_OUTPUT)).is_ok() && fds[0].revents != 0 && show(terminal, caller) {}
}

fn exit_code(child: i32) -> Option<u8> {
    match waitpid(Pid::from_raw(child), Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::Exited(_, code)) => Some(u8::try_from(code).unwrap_or(FAILED)),
        Ok(WaitStatus::Signaled(_, signal, _)) => Some(u8::try_from(128 + signal as i32).unwrap_or(FAILED)),
        Ok(_) => None,
        Err(_) => Some(FAILED),
    }
}
