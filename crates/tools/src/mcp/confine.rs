//! Files below the working directory.

use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use containerpilot_config::ConfigFile;
use containerpilot_load::find_files;
use containerpilot_process::error_text::describe;
use containerpilot_simulation::read::Draft;

/// How long a file system may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// The real paths of files below `folder`, which is a real path, and of what the scenario among them loads. An error
/// says what is wrong. A file system that does not answer holds up a thread, and not the server.
pub(super) fn files(folder: &Path, paths: Vec<(bool, String)>) -> Result<Vec<PathBuf>, String> {
    let (sender, receiver) = sync_channel(1);
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        let real = |(is_scenario, path): (bool, String)| {
            let real = file(&folder, &folder, &path)?;
            if is_scenario {
                reloads(&folder, &real)?;
            }
            Ok(real)
        };
        // After the deadline the receiver is gone: the answer was sent without it.
        let _ = sender.send(paths.into_iter().map(real).collect());
    });
    receiver
        .recv_timeout(DEADLINE)
        .unwrap_or_else(|_| Err(format!("the file system did not answer within {DEADLINE:?}")))
}

/// The real path of a file below `folder`, which is a real path. `path` is relative to `base`. An error says what is
/// wrong.
fn file(folder: &Path, base: &Path, path: &str) -> Result<PathBuf, String> {
    let unread = |error: &std::io::Error| format!("cannot read {path}: {}", describe(error));
    let outside = || format!("{path} is not below the working directory {}", folder.display());
    let joined = base.join(path);
    let real = match joined.canonicalize() {
        Ok(real) => real,
        Err(error) if would_be_below(folder, &joined) => return Err(unread(&error)),
        Err(_) => return Err(outside()),
    };
    if !real.starts_with(folder) {
        return Err(outside());
    }
    match real.metadata() {
        Ok(found) if found.is_file() => Ok(real),
        Ok(_) => Err(format!("{path} is not a file")),
        Err(error) => Err(unread(&error)),
    }
}

/// Returns true if a path that does not exist would be below `folder`. An error about any other path must not reveal
/// what exists.
fn would_be_below(folder: &Path, path: &Path) -> bool {
    let nearest = path.ancestors().find(|part| part.symlink_metadata().is_ok());
    let real = nearest.and_then(|part| part.canonicalize().ok());
    real.is_some_and(|real| real.starts_with(folder))
        && !path.components().any(|part| part == Component::ParentDir)
}

/// Checks that the configurations that a scenario loads are below `folder`, too.
fn reloads(folder: &Path, path: &Path) -> Result<(), String> {
    let text = find_files::read_limited(path);
    let text = text.map_err(|error| format!("cannot read {}: {}", path.display(), describe(&error)))?;
    let beside = path.parent().unwrap_or(folder);
    for name in Draft::read(ConfigFile { name: path.display().to_string(), text }).reloads() {
        file(folder, beside, &name).map_err(|why| format!("`reload: {name}` in the scenario: {why}"))?;
    }
    Ok(())
}
