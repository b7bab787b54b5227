//! The recording: B1 and B2.

use std::num::NonZeroU64;

use containerpilot_core::plan::{LogFile, Record};

use super::Lower;
use super::output::written;
use crate::decode::Spanned;
use crate::fields::ConfigFields;
use crate::values::value_of;

/// The least memory, and the smallest file: with less, the state of a few jobs would leave no room for what happens.
const SMALLEST: u64 = 128 << 10;
/// The most memory.
const LARGEST: u64 = 32 << 20;

impl Lower<'_> {
    /// What is recorded. `None` if that is wrong.
    pub(super) fn record(&mut self, fields: &ConfigFields) -> Option<Record> {
        let fields = &fields.record.as_ref()?.value;
        let memory = fields.memory.as_ref()?;
        if memory.value > LARGEST {
            self.error(
                memory.place,
                "`memory` must be at most 32MB",
                "for example: \"1MB\"; a `file` can be larger",
            );
            return None;
        }
        let max_size = fields.max_size.as_ref()?;
        for (key, given) in [("memory", memory), ("maxSize", max_size)] {
            if (1..SMALLEST).contains(&given.value) {
                let off = if key == "memory" { "0 records nothing" } else { "0 means one file" };
                let help = format!("for example: \"1MB\"; {off}");
                self.error(given.place, format!("`{key}` must be at least 128KB"), &help);
                return None;
            }
        }
        let Some(file) = &fields.file else {
            let sizes = [("maxSize", written(&fields.max_size)), ("keep", written(&fields.keep))];
            if let Some((key, place)) = sizes.into_iter().find_map(|(key, place)| Some((key, place?))) {
                let help = "for example: file: \"/var/lib/containerpilot/recording\"";
                self.error(place, format!("`{key}` needs `file`"), help);
                return None;
            }
            return Some(Record { memory: memory.value, file: None });
        };
        if memory.value == 0 {
            let message = "`file` needs `memory`: what is recorded is there first";
            self.error(file.place, message, "remove `memory: 0`, or `file`");
            return None;
        }
        self.absolute(file)?;
        let keep = value_of(&fields.keep).and_then(|keep| u32::try_from(keep).ok())?;
        let file = LogFile { path: file.value.clone(), max_size: NonZeroU64::new(max_size.value), keep };
        Some(Record { memory: memory.value, file: Some(file) })
    }

    /// The files of old starts are found again by their path, whatever the working directory is.
    fn absolute(&mut self, path: &Spanned<String>) -> Option<()> {
        if path.value.starts_with('/') && !path.value.ends_with('/') {
            return Some(());
        }
        let message = format!("`file` must be the absolute path of a file, not `{}`", path.value);
        self.error(path.place, message, "for example: \"/var/lib/containerpilot/recording\"");
        None
    }
}
