//! Processes that cannot be started on this host because of their directory or user (C7).

use std::path::Path;

use containerpilot_core::plan::{Capabilities, Job, LogFile, Output, Principal};

use crate::decode::Spanned;
use crate::diagnostics::{Place, Severity};
use crate::fields::{ConfigFields, JobFields};
use crate::validate::{Checker, examined};

/// The working directory of a job.
pub(super) fn directory(fields: &JobFields) -> Option<&Spanned<String>> {
    fields.cwd.as_ref().filter(|given| !given.value.is_empty())
}

/// The directory of the file that gets the log, and where that file is named.
pub(super) fn log_directory(fields: &ConfigFields) -> Option<(String, Place)> {
    let output = fields.logging.as_ref()?.value.output.as_ref()?;
    let Output::File(path) = &output.value else { return None };
    let directory = Path::new(path).parent().filter(|directory| !directory.as_os_str().is_empty())?;
    Some((directory.to_string_lossy().into_owned(), output.place))
}

/// The log file of a job. The one of replicas has their number in its path.
pub(super) fn log_file(job: &Job) -> Option<&LogFile> {
    job.output.file().filter(|file| !file.path.contains('$'))
}

impl Checker<'_> {
    /// Warns about a log that cannot be opened.
    pub(super) fn log(&mut self, fields: &ConfigFields) {
        if let Some((directory, place)) = log_directory(fields)
            && self.examined.directories.get(&directory) == Some(&false)
        {
            let message = format!("directory `{directory}` of the log not found");
            let help = "containerpilot will not start unless the directory exists then";
            self.report(Severity::Warning, place, message, help);
        }
    }

    /// Warns about directories that do not exist, and about users that the supervisor cannot switch to.
    pub(super) fn processes(&mut self) {
        for (fields, job) in self.pairs.clone() {
            let Some(job) = job else { continue };
            if let Some(given) = directory(fields) {
                match self.examined.directories.get(&given.value) {
                    Some(true) => {}
                    Some(false) => {
                        let message = format!("directory `{}` not found", given.value);
                        let help = "the job will fail unless the directory exists when it runs";
                        self.report(Severity::Warning, given.place, message, help);
                    }
                    None => {
                        let message = examined::no_answer(&format!("directory `{}`", given.value));
                        let help =
                            "check its file system; the job will fail unless that answers when it runs";
                        self.report(Severity::Warning, given.place, message, help);
                    }
                }
            }
            self.log_file(fields, job);
            self.switched_user(fields, job);
            self.privileges(fields);
        }
    }

    /// S16: a log file that cannot be written.
    fn log_file(&mut self, fields: &JobFields, job: &Job) {
        let given = fields.logging.as_ref().and_then(|given| given.value.file.as_ref());
        let (Some(given), Some(file)) = (given, log_file(job)) else { return };
        let path = &file.path;
        let (message, help) = match self.examined.log_files.get(path) {
            Some(Ok(())) => return,
            Some(Err(why)) => (
                format!("log file `{path}` cannot be written: {why}"),
                "the job waits for it when its pipe is full, and its lines are lost when it ends",
            ),
            None => (
                examined::no_answer(&format!("log file `{path}`")),
                "check its file system; the job waits for it when its pipe is full",
            ),
        };
        self.report(Severity::Warning, given.place, message, help);
    }

    /// P13: what needs a capability that the supervisor does not have.
    fn privileges(&mut self, fields: &JobFields) {
        const SETPCAP: usize = 8;
        const SYS_NICE: usize = 23;
        const SYS_RESOURCE: usize = 24;
        let host = self.host;
        let lacks = |number: usize| !host.capabilities().contains(number);
        let name = |number: usize| Capabilities::NAMES.get(number).copied().unwrap_or_default();
        let negative = |given: &Option<Spanned<i64>>| {
            given.as_ref().filter(|given| given.value < 0).map(|given| given.place)
        };
        let mut needed = Vec::new();
        needed.extend(negative(&fields.nice).map(|place| (place, "set a negative `nice`", SYS_NICE)));
        let oom = negative(&fields.oom_score_adj);
        needed.extend(oom.map(|place| (place, "set a negative `oomScoreAdj`", SYS_RESOURCE)));
        if let Some(given) = &fields.capabilities {
            needed.push((given.place, "drop capabilities", SETPCAP));
            let kept = (0..Capabilities::NAMES.len()).filter(|number| given.value.contains(*number));
            needed
                .extend(kept.map(|number| (given.place, "keep a capability that it does not have", number)));
        }
        for (place, what, number) in needed.into_iter().filter(|(_, _, number)| lacks(*number)) {
            let message = format!("the supervisor cannot {what}: {} is missing", name(number));
            let help = format!("run the supervisor with CAP_{}", name(number));
            self.report(Severity::Warning, place, message, help);
        }
    }

    /// P9: only a privileged supervisor can switch users and groups.
    fn switched_user(&mut self, fields: &JobFields, job: &Job) {
        let (key, given) = match (&fields.user, &fields.group) {
            (Some(user), _) => ("user", user),
            (None, Some(group)) => ("group", group),
            (None, None) => return,
        };
        if !self.host.can_switch_to(&job.process) {
            let name = match &given.value {
                Principal::Name(name) => name.clone(),
                Principal::Id(id) => id.to_string(),
            };
            let message = format!("no permission to switch to {key} `{name}`");
            let help =
                format!("run the supervisor as root (with CAP_SETUID and CAP_SETGID), or remove `{key}`");
            self.report(Severity::Warning, given.place, message, help);
        }
    }
}
