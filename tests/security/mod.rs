//! The claims of SECURITY.md, proven on the real binary. Also checks that every test SECURITY.md names exists.

mod child_processes;
mod claims;
mod dependencies;
mod hostile_clients;
mod hostile_consul;
mod log_injection;
mod pid_1;
mod signals;

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn open_descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}
