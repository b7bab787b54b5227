//! Which files are the configuration, and what they hold (C1).

use std::io::Read;
use std::path::{Path, PathBuf};

use containerpilot_config::Input;
use containerpilot_config::limits::SOURCE_BYTES;

/// Where a configuration is looked for when none is named: a file, then a directory.
const USUAL_PLACES: [&str; 2] = ["/etc/containerpilot.json5", "/etc/containerpilot.d"];

/// Reads the configuration: the file, or the files of the directory in lexical order; `-` is standard input.
pub(crate) fn read(path: Option<&Path>) -> Result<Vec<Input>, String> {
    let path = match path {
        Some(path) if is_text(path) => {
            let text = path.as_os_str().as_encoded_bytes().to_vec();
            return Ok(vec![Input { name: "<configuration>".to_owned(), text }]);
        }
        Some(path) => without_scheme(path),
        None => usual_place()?,
    };
    if path == Path::new("-") {
        return Ok(vec![Input {
            name: "<stdin>".to_owned(),
            text: limited(std::io::stdin().lock(), &path)?,
        }]);
    }
    let about = std::fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
    if !about.is_dir() {
        return Ok(vec![read_file(&path)?]);
    }
    let files = files_of(&path)?;
    if files.is_empty() {
        return Err(format!("{} holds no file *.json5 or *.json", path.display()));
    }
    files.iter().map(|file| read_file(file)).collect()
}

/// Whether what was given for a path is the configuration itself, as ContainerPilot 2 took it: it begins with a brace, or
/// with an action of a template.
fn is_text(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().trim_ascii_start().starts_with(b"{")
}

/// ContainerPilot 2 wrote paths as `file:///etc/…`.
fn without_scheme(path: &Path) -> PathBuf {
    path.to_str().and_then(|text| text.strip_prefix("file://")).map_or_else(|| path.to_owned(), PathBuf::from)
}

/// Whether there is a configuration that nobody has to name.
pub(crate) fn usual_place_exists() -> bool {
    usual_place().is_ok()
}

fn usual_place() -> Result<PathBuf, String> {
    let place = USUAL_PLACES.iter().map(PathBuf::from).find(|place| place.exists());
    place.ok_or_else(|| {
        format!(
            "there is no configuration: none is named by -config or by the environment's CONTAINERPILOT, \
             and neither {} nor {} exists",
            USUAL_PLACES[0], USUAL_PLACES[1]
        )
    })
}

/// The files of a directory that are part of the configuration, in lexical order. Hidden ones are not.
fn files_of(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(directory).map_err(|error| unreadable(directory, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unreadable(directory, &error))?.path();
        let named = path.extension().is_some_and(|extension| extension == "json5" || extension == "json");
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        // A link that leads nowhere is not passed over: reading it says what is wrong.
        let readable = std::fs::metadata(&path).map_or(true, |about| about.is_file());
        if named && !hidden && readable {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read_file(path: &Path) -> Result<Input, String> {
    let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(Input { name: path.display().to_string(), text: limited(file, path)? })
}

/// Reads a little more than is allowed at most, so that the loader can say that it is too much.
fn limited(from: impl Read, path: &Path) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let most = u64::try_from(SOURCE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    from.take(most).read_to_end(&mut text).map_err(|error| unreadable(path, &error))?;
    Ok(text)
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    if path.as_os_str().is_empty() {
        return "the path of the configuration is empty".to_owned();
    }
    format!("{} cannot be read: {error}", path.display())
}
