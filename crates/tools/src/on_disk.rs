//! The files of other programs, for `migrate` and `audit`.

use std::path::Path;

use containerpilot_config::limits::SOURCE_BYTES;
use containerpilot_import::files::Files;
use containerpilot_load::find_files;
use containerpilot_process::error_text::describe;

/// The files of this machine; `-` is standard input.
pub(crate) struct OnDisk;

impl Files for OnDisk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let text = match path {
            "-" => find_files::read_standard_input(),
            path => find_files::read_limited(Path::new(path)),
        };
        let text = text.map_err(|error| describe(&error))?;
        match text.len() > SOURCE_BYTES {
            true => Err(format!("it is larger than {} MiB", SOURCE_BYTES >> 20)),
            false => Ok(text),
        }
    }

    fn list(&self, directory: &str) -> Option<Vec<String>> {
        let entries = std::fs::read_dir(directory).ok()?;
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        Some(names)
    }
}
