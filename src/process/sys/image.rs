//! What a new process is to become, in the kernel's form.
#![forbid(unsafe_code)]

use std::ffi::c_char;
use std::os::fd::BorrowedFd;

use containerpilot_core::plan::Limit;
use nix::errno::Errno;

use super::{RawLimit, SignalSet};

/// A list of strings for the kernel, each with a zero at its end and none within.
#[derive(Debug, Default)]
pub(crate) struct CStrings {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl CStrings {
    /// Adds a string that is made of parts; refuses one with a zero in it.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> Result<(), Errno> {
        if parts.iter().any(|part| part.contains(&0)) {
            return Err(Errno::EINVAL);
        }
        self.starts.push(self.bytes.len());
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.push(0);
        Ok(())
    }

    /// Takes all strings out.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
    }

    /// All strings, one after the other, each with its zero.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each string begins. Good as long as the list is not touched.
    fn each(&self) -> impl Iterator<Item = *const c_char> {
        let base = self.bytes.as_ptr();
        self.starts.iter().map(move |start| base.wrapping_add(*start).cast::<c_char>())
    }

    /// Lists where each string begins, and a null at the end. Good as long as the strings are not touched.
    pub(super) fn list(&self, list: &mut Vec<*const c_char>) {
        list.clear();
        list.extend(self.each());
        list.push(std::ptr::null());
    }
}

/// The variables of a new process: several lists, each without the strings at some places, in ascending order.
#[derive(Debug)]
pub(crate) struct Variables<'a>(pub(crate) [(&'a CStrings, &'a [usize]); 3]);

impl Variables<'_> {
    /// As [`CStrings::list`].
    pub(super) fn list(&self, list: &mut Vec<*const c_char>) {
        list.clear();
        for (strings, hidden) in self.0 {
            if hidden.is_empty() {
                list.extend(strings.each());
            } else {
                let shown = strings.each().enumerate().filter(|(nth, _)| hidden.binary_search(nth).is_err());
                list.extend(shown.map(|(_, string)| string));
            }
        }
        list.push(std::ptr::null());
    }
}

/// What a new process is to become.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    /// The files that may hold the program, in the order in which they are tried.
    pub(crate) files: &'a CStrings,
    /// Its arguments, the program's name first.
    pub(crate) arguments: &'a CStrings,
    /// Its environment.
    pub(crate) environment: Variables<'a>,
    /// The working directory: one string, or none to stay.
    pub(crate) cwd: &'a CStrings,
    /// What its standard input is to be; `None` is our own, and the terminal with it.
    pub(crate) stdin: Option<BorrowedFd<'a>>,
    /// What its standard output and error are to be; `None` is our own.
    pub(crate) output: Option<(BorrowedFd<'a>, BorrowedFd<'a>)>,
    /// The descriptors below this number are copied, the others never reach the child. `None` where the
    /// kernel cannot do that; all are copied then, and closed when the program is executed.
    pub(crate) copy_below: Option<u32>,
    /// The signals whose default disposition has to be restored.
    pub(crate) ignored: SignalSet,
    /// The mask for new files.
    pub(crate) umask: Option<u16>,
    /// The limit of descriptors, if ours is not the one we were given.
    pub(crate) descriptors: Option<RawLimit>,
    /// Resource limits.
    pub(crate) limits: &'a [Limit],
    /// Supplementary groups, if they are to change.
    pub(crate) groups: Option<&'a [u32]>,
    /// The group, if it is to change.
    pub(crate) group: Option<u32>,
    /// The user, if it is to change.
    pub(crate) user: Option<u32>,
    /// Whether it can never gain privileges.
    pub(crate) no_new_privileges: bool,
}

/// What a new process was about when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing yet: there was no room for another process.
    Begin,
    /// To lead a process group.
    Group,
    /// To set its descriptors.
    Descriptors,
    /// To set a resource limit.
    Limits,
    /// To become another user or group.
    User,
    /// To change the directory.
    Directory,
    /// To give up privileges.
    Privileges,
    /// To execute the program.
    Execute,
}

/// How starting a process failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// At what.
    pub(crate) step: Step,
    /// Why.
    pub(crate) errno: Errno,
    /// Which of the files was the last one tried.
    pub(crate) file: usize,
    /// The process that failed and waits to be reaped, if there was one.
    pub(crate) pid: Option<i32>,
}
