//! The names of metrics and of their series.

use containerpilot_core::plan::{Metric, MetricKind};

/// The supervisor's own metrics (T3, T4), sorted by name.
pub const SELF_METRICS: [&str; 34] = [
    "containerpilot_build_info",
    "containerpilot_catalog_up",
    "containerpilot_check_duration_seconds",
    "containerpilot_check_up",
    "containerpilot_control_http_requests",
    "containerpilot_events",
    "containerpilot_file_last_success_timestamp_seconds",
    "containerpilot_file_renders_total",
    "containerpilot_file_up",
    "containerpilot_file_writes_total",
    "containerpilot_job_cpu_seconds_total",
    "containerpilot_job_events_dropped_total",
    "containerpilot_job_last_exit_code",
    "containerpilot_job_memory_bytes",
    "containerpilot_job_restarts_total",
    "containerpilot_job_runs_total",
    "containerpilot_job_start_time_seconds",
    "containerpilot_job_state",
    "containerpilot_job_up",
    "containerpilot_lock_held",
    "containerpilot_log_lines_total",
    "containerpilot_log_lost_lines_total",
    "containerpilot_otlp_items_total",
    "containerpilot_ready",
    "containerpilot_service_conflict",
    "containerpilot_service_registered",
    "containerpilot_watch_instances",
    "containerpilot_watch_up",
    "process_cpu_seconds_total",
    "process_max_fds",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_virtual_memory_bytes",
];

/// The names of the series of a metric.
pub(crate) fn series(metric: &Metric) -> impl Iterator<Item = String> + '_ {
    let suffixes: &[&str] = match metric.kind {
        MetricKind::Counter | MetricKind::Gauge => &[""],
        MetricKind::Histogram { .. } => &["", "_bucket", "_sum", "_count"],
        MetricKind::Summary => &["", "_sum", "_count"],
    };
    suffixes.iter().map(|suffix| format!("{}{suffix}", metric.name))
}
