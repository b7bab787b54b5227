//! Finds and reads the configuration files (C1).

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use containerpilot_config::ConfigFile;
use containerpilot_config::limits::SOURCE_BYTES;
use containerpilot_process::error_text::describe;

use crate::looks::Looks;
use containerpilot_core::sort_by;

/// The default configuration: a file, then a directory.
const DEFAULT_PATHS: [&str; 2] = ["/etc/containerpilot.json5", "/etc/containerpilot.d"];

/// Why the configuration cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the path of the configuration is empty")]
    EmptyPath,
    #[error("cannot read {}: {}", path.display(), describe(error))]
    Io { path: PathBuf, error: io::Error },
    #[error("{} contains no *.json5 or *.json file", .0.display())]
    EmptyDirectory(PathBuf),
    #[error("reading {} was abandoned", .0.display())]
    Abandoned(PathBuf),
    #[error(
        "no configuration: neither -config nor the environment variable CONTAINERPILOT is set, and neither {} nor {} exists",
        DEFAULT_PATHS[0],
        DEFAULT_PATHS[1]
    )]
    NotFound,
}

impl ReadError {
    fn new(path: &Path, error: io::Error) -> Self {
        if path.as_os_str().is_empty() {
            return Self::EmptyPath;
        }
        Self::Io { path: path.to_owned(), error }
    }
}

/// Reads the configuration of a command, as [`read_with`] does. Standard error says which file is waited for.
pub fn read(path: Option<&Path>) -> Result<Vec<ConfigFile>, ReadError> {
    read_with(path, &Looks::reported_on_stderr())
}

/// Reads the configuration: the file, or the files of the directory in lexical order; `-` is standard input.
pub fn read_with(path: Option<&Path>, looks: &Looks) -> Result<Vec<ConfigFile>, ReadError> {
    let path = match path {
        Some(path) if is_inline(path) => {
            let text = path.as_os_str().as_encoded_bytes().to_vec();
            return Ok(vec![ConfigFile { name: "<configuration>".to_owned(), text }]);
        }
        Some(path) => without_scheme(path),
        None => default_path(|path| exists(path, looks)).ok_or(ReadError::NotFound)?,
    };
    if path == Path::new("-") {
        let text = needed(Path::new("standard input"), looks, |_| Ok(read_standard_input()))?;
        let text = text.map_err(|error| ReadError::new(&path, error))?;
        return Ok(vec![ConfigFile { name: "<stdin>".to_owned(), text }]);
    }
    match needed(&path, looks, read_file_or_list)? {
        Content::File(input) => Ok(vec![input]),
        Content::Directory(files) if files.is_empty() => Err(ReadError::EmptyDirectory(path)),
        Content::Directory(files) => files.iter().map(|file| needed(file, looks, read_file)).collect(),
    }
}

/// What is at the path of the configuration.
enum Content {
    File(ConfigFile),
    /// The configuration files in it.
    Directory(Vec<PathBuf>),
}

fn read_file_or_list(path: &Path) -> Result<Content, ReadError> {
    let metadata = std::fs::metadata(path).map_err(|error| ReadError::new(path, error))?;
    if metadata.is_dir() {
        list_files(path).map(Content::Directory)
    } else {
        read_file(path).map(Content::File)
    }
}

fn needed<T: Send + 'static>(
    path: &Path,
    looks: &Looks,
    look: fn(&Path) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let here = path.to_owned();
    looks.needed(path, move || look(&here)).unwrap_or_else(|| Err(ReadError::Abandoned(path.to_owned())))
}

/// Returns true if a path exists, as soon as its file system answers.
fn exists(path: &Path, looks: &Looks) -> bool {
    needed(path, looks, |path| Ok(path.exists())).unwrap_or(false)
}

/// The metadata of what may be a configuration, as soon as its file system answers.
pub fn metadata(path: &Path) -> Result<std::fs::Metadata, ReadError> {
    let look = |path: &Path| std::fs::metadata(path).map_err(|error| ReadError::new(path, error));
    needed(path, &Looks::reported_on_stderr(), look)
}

/// Returns true if the argument is the configuration itself, as ContainerPilot 2 allowed: it starts with `{` or with a
/// template action.
fn is_inline(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().trim_ascii_start().starts_with(b"{")
}

/// ContainerPilot 2 allowed `file:///etc/…`.
fn without_scheme(path: &Path) -> PathBuf {
    path.to_str().and_then(|text| text.strip_prefix("file://")).map_or_else(|| path.to_owned(), PathBuf::from)
}

/// Returns true if there is a configuration at a default path.
pub fn default_exists() -> bool {
    default_path(Path::exists).is_some()
}

fn default_path(exists: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    DEFAULT_PATHS.iter().map(PathBuf::from).find(|path| exists(path))
}

/// The configuration files of a directory in lexical order, without hidden ones.
fn list_files(directory: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let entries = std::fs::read_dir(directory).map_err(|error| ReadError::new(directory, error))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| ReadError::new(directory, error))?.path();
        let is_config = path.extension().is_some_and(|extension| extension == "json5" || extension == "json");
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        // A dangling link is not skipped: reading it reports the error.
        let is_file = std::fs::metadata(&path).map_or(true, |metadata| metadata.is_file());
        if is_config && !is_hidden && is_file {
            files.push(path);
        }
    }
    sort_by(&mut files, Ord::cmp);
    Ok(files)
}

fn read_file(path: &Path) -> Result<ConfigFile, ReadError> {
    let text = read_limited(path).map_err(|error| ReadError::new(path, error))?;
    Ok(ConfigFile { name: path.display().to_string(), text })
}

/// Reads a file, or one byte more than the limit, so that its size can be reported.
pub fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    // One call for a file. The size may change meanwhile.
    let size = file.metadata().map_or(0, |found| usize::try_from(found.len()).unwrap_or(0));
    limited(file, size.min(SOURCE_BYTES) + 1)
}

/// Reads standard input, as [`read_limited`] reads a file.
pub fn read_standard_input() -> io::Result<Vec<u8>> {
    limited(io::stdin().lock(), 0)
}

fn limited(from: impl Read, size: usize) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(size);
    let limit = u64::try_from(SOURCE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    from.take(limit).read_to_end(&mut text)?;
    Ok(text)
}
