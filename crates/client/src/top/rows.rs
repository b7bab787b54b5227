//! The rows of the table: the jobs of a status, with their CPU usage since the status before.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use containerpilot_api::job_names::job_ids;
use containerpilot_api::responses::{Job, Status};
use containerpilot_api::timestamps;
use containerpilot_api::timestamps::short_duration;
use containerpilot_text::screen::{Cell, Tone, sanitized};
use containerpilot_views::status;

/// What the table can be sorted by, in the order of the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Column {
    /// The order of the configuration.
    #[default]
    None,
    Job,
    State,
    Health,
    Restarts,
    Pid,
    Uptime,
    Cpu,
    Memory,
    Note,
}

impl Column {
    /// The columns that are shown.
    pub(super) const ALL: [Self; 9] = [
        Self::Job,
        Self::State,
        Self::Health,
        Self::Restarts,
        Self::Pid,
        Self::Uptime,
        Self::Cpu,
        Self::Memory,
        Self::Note,
    ];

    pub(super) const fn head(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Job => "JOB",
            Self::State => "STATE",
            Self::Health => "HEALTH",
            Self::Restarts => "RESTARTS",
            Self::Pid => "PID",
            Self::Uptime => "UPTIME",
            Self::Cpu => "CPU",
            Self::Memory => "MEMORY",
            Self::Note => "NOTE",
        }
    }

    pub(super) const fn is_number(self) -> bool {
        matches!(self, Self::Restarts | Self::Pid | Self::Uptime | Self::Cpu | Self::Memory)
    }

    /// The column with this name. Notes cannot be sorted by.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let mut sortable = Self::ALL.into_iter().filter(|column| *column != Self::Note);
        sortable.find(|column| column.head().eq_ignore_ascii_case(name))
    }

    /// The next column to sort by, to the left or to the right; around the ends is the order of the configuration.
    pub(super) fn next(self, left: bool) -> Self {
        let sortable = [&[Self::None], Self::ALL.get(..8).unwrap_or_default()].concat();
        let place = sortable.iter().position(|column| *column == self).unwrap_or(0);
        let next = if left { place + sortable.len() - 1 } else { place + 1 } % sortable.len();
        sortable.get(next).copied().unwrap_or_default()
    }
}

/// A job in the table. All texts are printable.
#[derive(Clone, Debug, Default)]
pub(super) struct JobRow {
    /// The name that identifies the job: `NAME:2` for the second one of a name.
    pub(super) name: String,
    pub(super) cells: Vec<Cell>,
    /// What numbers are sorted by, in the order of the columns.
    numbers: [f64; 9],
}

impl JobRow {
    pub(super) fn cell(&self, column: Column) -> &str {
        let place = Column::ALL.iter().position(|other| *other == column);
        place.and_then(|place| self.cells.get(place)).map_or("", |(_, text)| text)
    }

    /// Returns true if one of its texts contains the filter, in any case.
    pub(super) fn matches(&self, filter: &str) -> bool {
        let filter = filter.to_lowercase();
        self.cells.iter().any(|(_, text)| text.to_lowercase().contains(&filter))
    }

    pub(super) fn compare(&self, other: &Self, column: Column) -> Ordering {
        let place = Column::ALL.iter().position(|known| *known == column).unwrap_or(0);
        match column {
            Column::None => Ordering::Equal,
            // Large numbers first.
            column if column.is_number() => {
                let number = |row: &Self| row.numbers.get(place).copied().unwrap_or_default();
                number(other).total_cmp(&number(self))
            }
            column => self.cell(column).cmp(other.cell(column)),
        }
    }
}

/// The processor time of each run at a moment.
#[derive(Debug, Default)]
pub(super) struct CpuUsage {
    now: String,
    cpu: BTreeMap<(String, i32), f64>,
}

/// The rows of a status. `before` is the usage at the last one, and becomes that of this one.
pub(super) fn rows(status: &Status, before: &mut CpuUsage) -> Vec<JobRow> {
    let elapsed = timestamps::seconds_between(&before.now, &status.now).filter(|elapsed| *elapsed > 0.0);
    let mut usage = CpuUsage { now: status.now.clone(), ..CpuUsage::default() };
    let mut rows = Vec::with_capacity(status.jobs.len());
    for (job, name) in status.jobs.iter().zip(job_ids(&status.job_names())) {
        let mut percent = None;
        if let (Some(cpu), Some(pid)) = (job.cpu_seconds, job.pid) {
            let key = (name.clone(), pid);
            let used = before.cpu.get(&key).map(|before| (cpu - before).max(0.0));
            percent = used.zip(elapsed).map(|(used, elapsed)| 100.0 * used / elapsed);
            usage.cpu.insert(key, cpu);
        }
        rows.push(row(&status.now, name, job, percent));
    }
    *before = usage;
    rows
}

#[expect(clippy::cast_precision_loss, reason = "for sorting only")]
fn row(now: &str, name: String, job: &Job, cpu: Option<f64>) -> JobRow {
    let plain = |text: String| (Tone::Plain, text);
    let or_dash = |text: Option<String>| plain(text.unwrap_or_else(|| "-".to_owned()));
    let cells = [
        plain(name.clone()),
        status::state(job),
        status::health(job),
        plain(job.restarts.to_string()),
        or_dash(job.pid.map(|pid| pid.to_string())),
        or_dash(job.uptime_seconds.map(short_duration)),
        or_dash(cpu.map(|cpu| format!("{cpu:.1}%"))),
        or_dash(job.memory_bytes.map(bytes)),
        plain(note(now, job)),
    ];
    let known = |number: Option<f64>| number.unwrap_or(-1.0);
    let numbers = [
        0.0,
        0.0,
        0.0,
        job.restarts as f64,
        known(job.pid.map(f64::from)),
        known(job.uptime_seconds),
        known(cpu),
        known(job.memory_bytes.map(|bytes| bytes as f64)),
        0.0,
    ];
    // Everything that comes from the socket is made printable.
    let cells = cells.into_iter().map(|(tone, text)| (tone, sanitized(&text))).collect();
    JobRow { name, cells, numbers }
}

/// What the job waits for or what went wrong; otherwise how its last run ended.
fn note(now: &str, job: &Job) -> String {
    let note = status::note(now, job);
    if note.is_empty() && job.last_exit.is_some() { format!("last run {}", job.last_run(now)) } else { note }
}

/// A size with three digits, such as `12.3M`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn bytes(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["", "K", "M", "G", "T"] {
        if size < 1000.0 {
            let digits = usize::from(size < 99.95 && !unit.is_empty());
            return format!("{size:.digits$}{unit}");
        }
        size /= 1024.0;
    }
    format!("{size:.0}P")
}
