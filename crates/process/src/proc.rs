//! What `/proc` tells about processes.
//!
//! Only [`environment_variable`] reads the memory of another process, which that process can delay without a limit. The
//! event loop must not call it.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::time::{ClockId, clock_gettime};

use crate::sys;

/// How much of an environment is read. The variables of the supervisor come first.
const ENVIRONMENT_LIMIT: u64 = 4 << 20;

/// Most files of the kernel are shorter.
const KERNEL_TEXT: usize = 4096;

/// `USER_HZ`, the unit of times in `/proc`. It is part of Linux' interface to programs, and the same on all machines.
pub const TICKS_PER_SECOND: u64 = 100;

/// The text of a file that the kernel makes when it is read. Its size is not known before, so the standard library
/// would read it in small pieces.
pub fn kernel_text(file: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(KERNEL_TEXT);
    File::open(file)?.read_to_end(&mut text)?;
    Ok(text)
}

/// The children that this process has adopted or its first thread has started, running or zombie. Complete only if no
/// other thread reaps children meanwhile. Fails with `NotFound` on kernels that do not offer the list.
pub fn children() -> io::Result<Vec<i32>> {
    let own = std::process::id();
    children_of_thread(&format!("/proc/self/task/{own}/children"))
}

/// The children that are in a process group, by name and pid, for people.
pub fn names_in_group(group: i32) -> String {
    const SHOWN: usize = 3;
    let mut members = children().unwrap_or_default();
    members.retain(|pid| sys::group_of(*pid) == Some(group));
    let name = |pid: &i32| {
        // The process chooses its name.
        let name = kernel_text(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("{} ({pid})", String::from_utf8_lossy(name.trim_ascii()).escape_debug())
    };
    let mut names: Vec<String> = members.iter().take(SHOWN).map(name).collect();
    match members.len().saturating_sub(SHOWN) {
        0 if names.is_empty() => return "not children of the supervisor".into(),
        0 => {}
        others => names.push(format!("{others} more")),
    }
    names.join(", ")
}

/// Returns true if there is a `/proc` of this PID namespace.
pub fn is_mounted() -> bool {
    fs::read_link("/proc/self").is_ok_and(|own| own.to_str() == Some(std::process::id().to_string().as_str()))
}

/// The children of all threads of this process, also on kernels that do not offer their list.
pub fn all_children() -> io::Result<Vec<i32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir("/proc/self/task")?.flatten() {
        match children_of_thread(&thread.path().join("children").to_string_lossy()) {
            Ok(more) => children.extend(more),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return children_by_parent(),
            Err(error) => return Err(error),
        }
    }
    Ok(children)
}

fn children_of_thread(file: &str) -> io::Result<Vec<i32>> {
    let text = fs::read_to_string(file)?;
    Ok(text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// The children of this process, found among all processes.
pub fn children_by_parent() -> io::Result<Vec<i32>> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    Ok(processes()?.filter(|(_, stat)| stat.parent == own).map(|(pid, _)| pid).collect())
}

/// Returns true if a process group has a member that was started before or in this tick.
pub fn has_member_since(group: i32, ticks: u64) -> bool {
    processes().is_ok_and(|mut all| all.any(|(_, stat)| stat.group == group && stat.started <= ticks))
}

/// All processes of this PID namespace. Fails if there is no `/proc` of it.
pub fn processes() -> io::Result<impl Iterator<Item = (i32, Stat)>> {
    // `/proc` may belong to another PID namespace, where pids mean other processes.
    if !is_mounted() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let pids = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(pids.filter_map(|pid| Some((pid, Stat::read(pid)?))))
}

/// Returns false if a process, running or zombie, has not executed a program since it was created; `None` if the kernel
/// does not tell, because `/proc` is not mounted.
pub fn has_executed(pid: i32) -> Option<bool> {
    /// `PF_FORKNOEXEC`: forked, and has not executed a program. `execve` clears it before it closes descriptors.
    const FORKED_ONLY: u32 = 0x40;
    Some(Stat::read(pid)?.flags & FORKED_ONLY == 0)
}

/// Whether a process runs, or would if a processor were free.
pub fn is_runnable(pid: i32) -> bool {
    Stat::read(pid).is_some_and(|stat| stat.state == b'R')
}

/// Fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// `R` for running or runnable, `S` and `D` for waiting, `T` for stopped, `Z` for a zombie.
    pub state: u8,
    pub parent: i32,
    /// The process group.
    pub group: i32,
    pub flags: u32,
    /// User and system time, with that of children that have exited and were waited for.
    pub cpu_ticks: u64,
    /// The part of `cpu_ticks` that the process has used itself.
    pub own_cpu_ticks: u64,
    /// The start time, in ticks since the boot.
    pub started: u64,
    /// Resident memory.
    pub resident_pages: u64,
}

impl Stat {
    /// Returns `None` if there is no such process.
    pub fn read(pid: i32) -> Option<Self> {
        Self::parse(&kernel_text(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name of a process, in parentheses, may contain anything, also parentheses.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
        // Numbered as in proc_pid_stat(5); the state, after the name, is field 3.
        let fields: Vec<&str> = fields.split_ascii_whitespace().take(24 - 2).collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let count = |number: usize| field(number)?.parse::<u64>().ok();
        let own = count(14)?.saturating_add(count(15)?);
        let children = count(16)?.saturating_add(count(17)?);
        Some(Self {
            state: *field(3)?.as_bytes().first()?,
            parent: field(4)?.parse().ok()?,
            group: field(5)?.parse().ok()?,
            flags: field(9)?.parse().ok()?,
            cpu_ticks: own.saturating_add(children),
            own_cpu_ticks: own,
            started: count(22)?,
            resident_pages: count(24)?,
        })
    }
}

/// The current time in the unit of start times.
pub fn ticks() -> Option<u64> {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
    let [seconds, nanos] = [now.tv_sec(), now.tv_nsec()].map(|part| u64::try_from(part).unwrap_or_default());
    Some(seconds * TICKS_PER_SECOND + nanos / (1_000_000_000 / TICKS_PER_SECOND))
}

/// The value of a variable in the environment with which a process was executed. `None` if it is not set, and an error
/// if the environment is empty or cannot be read, which may be temporary: it is empty during `execve`.
pub fn environment_variable(pid: i32, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let file = open_environment(pid)?;
    let mut is_empty = true;
    for entry in BufReader::new(file.take(ENVIRONMENT_LIMIT)).split(0) {
        let entry = entry?;
        is_empty = false;
        if let Some(value) = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
            return Ok(Some(value.to_vec()));
        }
    }
    if is_empty { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(None) }
}

/// Without `CAP_SYS_PTRACE`, which most containers lack, not even root may read the environment of another user's
/// process. That user may.
fn open_environment(pid: i32) -> io::Result<File> {
    let path = format!("/proc/{pid}/environ");
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let owner = fs::metadata(format!("/proc/{pid}"))?;
            sys::with_file_access_of(owner.uid(), owner.gid(), || File::open(&path))
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn p4_name_of_a_process_does_not_forge_its_fields() {
        let stat = b"7 (x) Z 1 1 1 0 -1) S 41 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 100 200\n";
        let expected = Stat {
            state: b'S',
            parent: 41,
            group: 42,
            flags: 4_194_560,
            cpu_ticks: 26,
            own_cpu_ticks: 11,
            started: 99,
            resident_pages: 200,
        };
        assert_eq!(Stat::parse(stat), Some(expected));
        for broken in [&b""[..], b"7 (x) Z", b"7 (x S 1", b"7 (x) S 1 x", b"7 (x) S 1 42 7 0 -1"] {
            assert_eq!(Stat::parse(broken), None);
        }
    }

    #[test]
    fn p4_members_of_a_group_are_told_apart_by_their_start_time() {
        let own = i32::try_from(std::process::id()).unwrap();
        let stat = Stat::read(own).unwrap();
        assert!(stat.started <= ticks().unwrap());
        assert!(has_member_since(stat.group, stat.started));
        assert!(!has_member_since(stat.group, 0));
        assert!(!has_member_since(-7, u64::MAX));
    }

    #[test]
    fn p14_a_process_that_waits_is_not_runnable() {
        for (script, expected) in [("while :; do :; done", true), ("sleep 1000 & wait", false)] {
            let mut child =
                std::process::Command::new("sh").args(["-c", script]).process_group(0).spawn().unwrap();
            let pid = i32::try_from(child.id()).unwrap();
            containerpilot_test_support::until(|| is_runnable(pid) == expected);
            sys::kill_group(pid, containerpilot_core::plan::Signal::KILL).unwrap();
            child.wait().unwrap();
        }
        assert!(!is_runnable(-7));
    }

    #[test]
    fn p4_variables_are_found_by_their_whole_name() {
        let own = i32::try_from(std::process::id()).unwrap();
        let expected = std::env::var("PATH").unwrap().into_bytes();
        assert_eq!(environment_variable(own, b"PATH").unwrap(), Some(expected));
        assert_eq!(environment_variable(own, b"PAT").unwrap(), None);
        assert!(environment_variable(-1, b"PATH").is_err());
    }
}
