//! The standard `process_*` metrics of the supervisor itself (T3).

use containerpilot_process::sys;

use super::exposition::{ExpositionKind, MetricsPage, count_to_f64};

/// Resource usage of this process. A value that `/proc` does not provide is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ProcessUsage {
    cpu_seconds: Option<f64>,
    resident_bytes: Option<u64>,
    virtual_bytes: Option<u64>,
    open_fds: Option<u64>,
    max_fds: Option<u64>,
}

impl ProcessUsage {
    pub(super) fn read() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        // Reading the directory needs a descriptor, which it lists as well.
        let open = std::fs::read_dir("/proc/self/fd").map(|all| (all.count() as u64).saturating_sub(1));
        Self {
            cpu_seconds: sys::processor_time().map(|time| time.as_secs_f64()),
            resident_bytes: bytes(&status, "VmRSS:"),
            virtual_bytes: bytes(&status, "VmSize:"),
            open_fds: open.ok(),
            max_fds: sys::descriptor_limit(),
        }
    }

    pub(super) fn add_to(&self, page: &mut MetricsPage, started: f64) {
        let cpu = "Total user and system CPU time spent in seconds.";
        page.single("process_cpu_seconds_total", cpu, ExpositionKind::Counter, self.cpu_seconds);
        let mut gauge =
            |name, help, value: Option<f64>| page.single(name, help, ExpositionKind::Gauge, value);
        let resident = "Resident memory size in bytes.";
        gauge("process_resident_memory_bytes", resident, self.resident_bytes.map(count_to_f64));
        let mapped = "Virtual memory size in bytes.";
        gauge("process_virtual_memory_bytes", mapped, self.virtual_bytes.map(count_to_f64));
        let open = "Number of open file descriptors.";
        gauge("process_open_fds", open, self.open_fds.map(count_to_f64));
        let most = "Maximum number of open file descriptors.";
        gauge("process_max_fds", most, self.max_fds.map(count_to_f64));
        let start = "Start time of the process since unix epoch in seconds.";
        gauge("process_start_time_seconds", start, Some(started));
    }
}

/// A value of `/proc/self/status`, which is in kibibytes.
fn bytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t3_process_metrics_are_read_from_proc() {
        let ProcessUsage { cpu_seconds, resident_bytes, virtual_bytes, open_fds, max_fds } =
            ProcessUsage::read();
        assert!(cpu_seconds.is_some_and(|seconds| seconds > 0.0));
        assert!(resident_bytes.is_some_and(|bytes| bytes > 100_000) && resident_bytes < virtual_bytes);
        assert!(open_fds.is_some_and(|count| count >= 3) && open_fds < max_fds);
    }

    #[test]
    fn t3_unknown_process_metrics_are_left_out() {
        let mut page = MetricsPage::default();
        ProcessUsage { max_fds: Some(3), ..ProcessUsage::default() }.add_to(&mut page, 1e9);
        let names: Vec<&str> = page.names().collect();
        assert_eq!(names, ["process_max_fds", "process_start_time_seconds"]);
        assert_eq!(bytes("VmRSS:\t    12 kB\nVmSize: many kB\n", "VmRSS:"), Some(12_288));
        assert_eq!(bytes("VmRSS:\t    12 kB\nVmSize: many kB\n", "VmSize:"), None);
    }
}
