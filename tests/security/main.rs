//! The claims of SECURITY.md, against the real binary and real sockets; and that the document names no test that is not there.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod children;
mod clients;
mod consul;
mod dependencies;
mod document;
mod entries;
mod signals;
#[expect(dead_code, reason = "shared with the supervisor's own tests, which need more of it")]
#[path = "../support/supervisor.rs"]
mod supervisor;

/// How much memory a process has now, in KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// How many descriptors a process has open.
fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}
