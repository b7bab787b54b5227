//! `mcp`: a server of the Model Context Protocol on standard input and output (X19).
//!
//! A tool runs a command of `containerpilot` or `containerpilot-tools` in a process of its own, with a deadline: what a
//! supervisor, a file system or a simulation does not finish is killed, and the next message is read.

mod confine;
mod error;
mod protocol;
mod run;
mod tools;

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::table::Program;
use containerpilot_process::error_text::describe;

use protocol::Session;
use run::Programs;

/// The longest message.
const LONGEST_MESSAGE: u64 = 1 << 20;

pub(crate) fn mcp(args: &Arguments) -> Result<(), Failure> {
    let session = Session { programs: programs(args)?, control: args.is_on("control") };
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    loop {
        let mut line = Vec::new();
        input.by_ref().take(LONGEST_MESSAGE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let is_complete = line.last() == Some(&b'\n') || (line.len() as u64) < LONGEST_MESSAGE;
        let answer = match is_complete {
            true => session.answer(&line),
            false => {
                skip_line(&mut input)?;
                Some(protocol::too_long(LONGEST_MESSAGE))
            }
        };
        let Some(mut answer) = answer.map(|answer| answer.to_string()) else { continue };
        answer.push('\n');
        match output.write_all(answer.as_bytes()).and_then(|()| output.flush()) {
            Ok(()) => {}
            // The client has gone.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads the rest of a line.
fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let read = end.map_or(buffer.len(), |at| at + 1);
        input.consume(read);
        if end.is_some() || read == 0 {
            return Ok(());
        }
    }
}

fn programs(args: &Arguments) -> Result<Programs, Failure> {
    let unknown = |what: &str, error: &std::io::Error| {
        Failure::Failed(format!("cannot find {what}: {}", describe(error)))
    };
    let tools = std::env::current_exe().map_err(|error| unknown("this program", &error))?;
    let folder = std::env::current_dir().and_then(|folder| folder.canonicalize());
    let folder = folder.map_err(|error| unknown("the working directory", &error))?;
    let name = Program::Containerpilot.name();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        tools.parent().map(PathBuf::from).into_iter().chain(std::env::split_paths(&path)).collect();
    let containerpilot = folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    let Some(containerpilot) = containerpilot else {
        let message =
            format!("{name} is neither beside this program nor in PATH: install the same release of both");
        return Err(Failure::WithCode(2, message));
    };
    Ok(Programs { containerpilot, tools, folder, socket: args.value("socket").map(str::to_owned) })
}
