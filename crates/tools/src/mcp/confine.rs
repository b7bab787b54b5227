//! Files below the working directory.

use std::path::{Path, PathBuf};
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
            let real = file(&folder, &path)?;
            if is_scenario {
                reloads(&folder, &real)?;
            }
            Ok(real)
        };
        // After the deadline nobody receives it.
        let _ = sender.send(paths.into_iter().map(real).collect());
    });
    receiver
        .recv_timeout(DEADLINE)
        .unwrap_or_else(|_| Err(format!("the file system did not answer within {DEADLINE:?}")))
}

/// The real path of a file below `folder`, which is a real path. An error says what is wrong.
fn file(folder: &Path, path: &str) -> Result<PathBuf, String> {
    let real =
        folder.join(path).canonicalize().map_err(|error| format!("cannot read {path}: {}", describe(&error)));
    let outside = || format!("{path} is not below the working directory {}", folder.display());
    let real = match real {
        Ok(real) => real,
        // Outside, it is not said what exists.
        Err(_) if Path::new(path).is_absolute() || path.split('/').any(|part| part == "..") => {
            return Err(outside());
        }
        Err(why) => return Err(why),
    };
    if !real.starts_with(folder) {
        return Err(outside());
    }
    match real.metadata() {
        Ok(found) if found.is_file() => Ok(real),
        Ok(_) => Err(format!("{path} is not a file")),
        Err(error) => Err(format!("cannot read {path}: {}", describe(&error))),
    }
}

/// Checks that the configurations that a scenario loads are below `folder`, too.
fn reloads(folder: &Path, path: &Path) -> Result<(), String> {
    let text = find_files::read_limited(path);
    let text = text.map_err(|error| format!("cannot read {}: {}", path.display(), describe(&error)))?;
    let beside = path.parent().unwrap_or(folder);
    for name in Draft::read(ConfigFile { name: path.display().to_string(), text }).reloads() {
        let reload = beside.join(&name);
        let reload = reload.to_str().ok_or_else(|| "a path is not UTF-8".to_owned())?;
        file(folder, reload).map_err(|why| format!("`reload: {name}` in the scenario: {why}"))?;
    }
    Ok(())
}
