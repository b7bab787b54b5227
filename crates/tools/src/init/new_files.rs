//! Writes files that do not exist yet.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use containerpilot_command_line::failure::Failure;
use containerpilot_process::error_text::describe;

/// Files in a folder. None of them existed when this was made.
pub(super) struct NewFiles<const N: usize> {
    folder: String,
    paths: [String; N],
}

impl<const N: usize> NewFiles<N> {
    pub(super) fn new(folder: &str, names: [&str; N]) -> Result<Self, Failure> {
        let paths = names.map(|name| match folder {
            "." => name.to_owned(),
            // A path that begins with a brace would be read as a configuration.
            folder if folder.starts_with('{') => format!("./{folder}/{name}"),
            folder => format!("{}/{name}", folder.trim_end_matches('/')),
        });
        for path in &paths {
            // A symbolic link that leads nowhere exists, too.
            match Path::new(path).symlink_metadata() {
                Ok(_) => return Err(exists(path, &[])),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Failure::Failed(format!("cannot write {path}: {}", describe(&error))));
                }
            }
        }
        Ok(Self { folder: folder.to_owned(), paths })
    }

    /// Writes all files, and creates the folder. Returns their paths.
    pub(super) fn write(self, texts: &[&str; N]) -> Result<[String; N], Failure> {
        if let Err(error) = std::fs::create_dir_all(&self.folder) {
            return Err(Failure::Failed(format!("cannot create {}: {}", self.folder, describe(&error))));
        }
        for (nth, (path, text)) in self.paths.iter().zip(texts).enumerate() {
            let earlier = self.paths.get(..nth).unwrap_or_default();
            let mut file = match File::create_new(path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(exists(path, earlier)),
                Err(error) => {
                    let why = describe(&error);
                    return Err(Failure::Failed(format!("cannot write {path}: {why}{}", written(earlier))));
                }
            };
            if let Err(error) = file.write_all(text.as_bytes()) {
                // It is the file of this command, and incomplete. If it cannot be removed, the error names it.
                let _ = std::fs::remove_file(path);
                let why = describe(&error);
                return Err(Failure::Failed(format!("cannot write {path}: {why}{}", written(earlier))));
            }
        }
        Ok(self.paths)
    }
}

fn exists(path: &str, earlier: &[String]) -> Failure {
    Failure::InvalidInput(format!(
        "{path} exists, and `init` overwrites nothing: move it away, or name another folder{}",
        written(earlier)
    ))
}

fn written(earlier: &[String]) -> String {
    match earlier {
        [] => "; nothing was written".to_owned(),
        earlier => format!("; these files were written before: {}", earlier.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x20_a_file_that_appears_meanwhile_is_kept_and_the_written_ones_are_named() {
        let folder = std::env::temp_dir().join(format!("containerpilot-new-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let files = NewFiles::new(folder.to_str().unwrap(), ["a", "b", "c"]).unwrap();
        std::fs::write(path("b"), "mine").unwrap();
        let failure = files.write(&["1", "2", "3"]).unwrap_err();
        let expected = format!(
            "{} exists, and `init` overwrites nothing: move it away, or name another folder; these files were written \
             before: {}",
            path("b"),
            path("a")
        );
        assert_eq!(failure.to_string(), expected);
        assert!(matches!(failure, Failure::InvalidInput(_)));
        assert_eq!(std::fs::read_to_string(path("b")).unwrap(), "mine");
        assert!(!Path::new(&path("c")).exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
