//! What the supervisor itself costs, as every Prometheus client tells it (T3).

use crate::process::sys;

use super::exposition::{Kind, Page, counted};

/// What is known of our own process; what the system does not tell is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Process {
    cpu_seconds: Option<f64>,
    resident_bytes: Option<u64>,
    virtual_bytes: Option<u64>,
    open_fds: Option<u64>,
    max_fds: Option<u64>,
}

impl Process {
    /// As it is now.
    pub(super) fn look() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        // The folder that is being read is among what it lists.
        let open = std::fs::read_dir("/proc/self/fd").map(|all| (all.count() as u64).saturating_sub(1));
        Self {
            cpu_seconds: sys::processor_time().map(|time| time.as_secs_f64()),
            resident_bytes: bytes(&status, "VmRSS:"),
            virtual_bytes: bytes(&status, "VmSize:"),
            open_fds: open.ok(),
            max_fds: sys::descriptor_limit(),
        }
    }

    /// Puts it on a page.
    pub(super) fn show(&self, page: &mut Page, started: f64) {
        let cpu = "processor time that containerpilot itself has used, in seconds";
        page.single("process_cpu_seconds_total", cpu, Kind::Counter, self.cpu_seconds);
        let mut gauge = |name, help, value: Option<f64>| page.single(name, help, Kind::Gauge, value);
        let resident = "memory that containerpilot itself holds, in bytes";
        gauge("process_resident_memory_bytes", resident, self.resident_bytes.map(counted));
        let mapped = "memory that containerpilot itself has mapped, in bytes";
        gauge("process_virtual_memory_bytes", mapped, self.virtual_bytes.map(counted));
        let open = "how many descriptors containerpilot itself has open";
        gauge("process_open_fds", open, self.open_fds.map(counted));
        let most = "how many descriptors containerpilot itself may have open";
        gauge("process_max_fds", most, self.max_fds.map(counted));
        let start = "when containerpilot began, in seconds since 1970";
        gauge("process_start_time_seconds", start, Some(started));
    }
}

/// A line of `/proc/self/status`, which counts in kibibytes.
fn bytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t3_the_system_tells_what_this_process_costs() {
        let Process { cpu_seconds, resident_bytes, virtual_bytes, open_fds, max_fds } = Process::look();
        assert!(cpu_seconds.is_some_and(|seconds| seconds > 0.0));
        assert!(resident_bytes.is_some_and(|bytes| bytes > 100_000) && resident_bytes < virtual_bytes);
        assert!(open_fds.is_some_and(|count| count >= 3) && open_fds < max_fds);
    }

    #[test]
    fn t3_what_the_system_does_not_tell_is_left_out() {
        let mut page = Page::default();
        Process { max_fds: Some(3), ..Process::default() }.show(&mut page, 1e9);
        let names: Vec<&str> = page.names().collect();
        assert_eq!(names, ["process_max_fds", "process_start_time_seconds"]);
        assert_eq!(bytes("VmRSS:\t    12 kB\nVmSize: many kB\n", "VmRSS:"), Some(12_288));
        assert_eq!(bytes("VmRSS:\t    12 kB\nVmSize: many kB\n", "VmSize:"), None);
    }
}
