//! The output of a process in a file.

use containerpilot_core::plan::REPLICA_VARIABLE;

use super::process::Converter;
use crate::document::Fields;
use crate::error::ImportError;
use crate::variables::{self, Piece};
use crate::yaml::YamlEntry;

/// The number of a replica in the name of a file.
const NUMBER: &str = "{PC_REPLICA_NUM}";

impl Converter<'_> {
    pub(super) fn log_location(&mut self, entry: &YamlEntry) -> Result<(), ImportError> {
        let mut pieces = self.texts.pieces(&entry.value, self.document)?;
        let number = match self.texts.replicated {
            true => format!("${{{REPLICA_VARIABLE}}}"),
            false => "0".to_owned(),
        };
        let mut has_number = !self.texts.replicated;
        for piece in &mut pieces {
            if let Piece::Literal(text) = piece {
                *text = text.replace(NUMBER, &number);
                has_number |= text.contains(&number);
            }
        }
        if !has_number {
            pieces.push(Piece::Literal(format!(".{number}")));
        }
        let file = variables::value(pieces);
        if !self.log_files.insert(format!("{file:?}")) {
            let why = "another job has this file, and each needs one of its own: the output is in the log";
            self.inexact(entry, why);
            return Ok(());
        }
        self.logging.set("file", file, Some(&entry.place()));
        if self.texts.replicated {
            self.logging
                .note("file", "Each replica needs a file of its own. Its number counts from 1, not from 0.");
        }
        Ok(())
    }

    pub(super) fn log_configuration(&mut self, entry: &YamlEntry) {
        for key in entry.value.map().into_iter().flatten() {
            if key.key != "rotation" {
                self.inexact(key, "the format of the log is that of the container");
                continue;
            }
            for key in key.value.map().into_iter().flatten() {
                let place = key.place();
                match (key.key.as_str(), key.value.integer().and_then(|n| u64::try_from(n).ok())) {
                    ("max_size_mb", Some(size)) => {
                        self.logging.set("maxSize", format!("{size}MB"), Some(&place));
                    }
                    ("max_backups", Some(count)) => self.logging.set("keep", count, Some(&place)),
                    _ => self.inexact(key, "a file is rotated by its size only"),
                }
            }
        }
    }
}
