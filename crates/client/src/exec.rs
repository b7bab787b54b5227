//! `exec`: runs a command with the environment of a job (X12).

use std::fs::File;

use containerpilot_api::percent_encoded;
use containerpilot_api::responses::JobExecution;
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_core::input::ExitStatus;
use containerpilot_process::sys::{self, Forked};

use super::client::Client;

mod terminal;

use terminal::FAILED;

/// Executes the program in place of this process: returns only if that fails. On a terminal, for another user, it gets
/// a terminal of its own: with the one of the caller it could type commands there.
pub(super) fn exec(args: &Arguments) -> Result<(), Failure> {
    let usage =
        || Failure::Usage("write the program after `--`: containerpilot exec JOB -- PROGRAM".to_owned());
    let (job, command) = match (args.rest.split_first(), args.before_dashes) {
        (Some((job, command)), Some(1)) => (job.to_string_lossy(), command),
        _ => return Err(usage()),
    };
    let Some((program, arguments)) = command.split_first() else { return Err(usage()) };
    let failed = |why: String| Failure::WithCode(FAILED, why);
    let response = Client::of(args).get(&format!("/v3/jobs/{}/execution", percent_encoded(&job)));
    let response = response.map_err(|error| failed(error.to_string()))?;
    if !response.is_success() {
        return Err(failed(response.reason()));
    }
    let found: JobExecution = serde_json::from_slice(&response.body)
        .map_err(|error| failed(format!("unexpected response from the supervisor: {error}")))?;
    let execution = found.read().map_err(|why| failed(format!("cannot run a command as {job}: {why}")))?;
    let (own, user) = (sys::effective_ids().0, execution.user);
    if execution.switches_user() && !sys::may_switch_users() {
        return Err(failed(format!(
            "user {own} cannot become user {user}, who runs {job}, with the same groups: run this as root"
        )));
    }
    if execution.switches_user() && File::open("/dev/tty").is_ok() {
        let forked = terminal::fork().map_err(|error| failed(format!("cannot open a terminal: {error}")))?;
        match forked {
            Forked::Child => {
                // As by `su`. If it fails, only opening the terminal by its name does.
                let _ = nix::unistd::fchown(std::io::stdin(), Some(user.into()), None);
            }
            Forked::Parent(terminal, child) => std::process::exit(terminal::relay(terminal, child).into()),
        }
    }
    let error = execution.execute(program, arguments);
    let code = match error.kind.status() {
        ExitStatus::Code(code) => code,
        ExitStatus::Signal(_) => FAILED,
    };
    Err(Failure::WithCode(code, error.message))
}
