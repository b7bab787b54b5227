//! The commands of `containerpilot-tools` (X15): this program finds the tools and becomes them.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::table::{CALLED_BY, Program};
use containerpilot_command_line::version::VERSION;
use containerpilot_process::error_text::describe;

/// Executes the tools in place of this process, with the same arguments: returns only if that fails. `wanted` is what
/// the user asked for.
pub(crate) fn become_tools(wanted: &str, args: &[OsString]) -> Failure {
    let name = Program::Tools.name();
    let Some(path) = find() else {
        return Failure::WithCode(
            2,
            format!(
                "`{wanted}` is a part of {name}, which is neither beside this program nor in PATH: install the package \
                 or copy the program {name} of the same release"
            ),
        );
    };
    let error = Command::new(&path).arg(format!("{CALLED_BY}{VERSION}")).args(args).exec();
    Failure::WithCode(2, format!("cannot execute {}: {}", path.display(), describe(&error)))
}

/// The tools beside this program, or else the first ones in PATH.
fn find() -> Option<PathBuf> {
    let name = Program::Tools.name();
    let own = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = own.into_iter().chain(std::env::split_paths(&path)).collect();
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}
