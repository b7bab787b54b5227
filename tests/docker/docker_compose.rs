//! The program that starts the containers of a Compose file.

use crate::support::deadline::InTime;
use std::process::{Command, Stdio};

/// `docker-compose`, or else the plug-in `docker compose`.
pub(crate) fn docker_compose() -> Command {
    let standalone = Command::new("docker-compose").arg("version").stdout(Stdio::null()).status_in_time();
    match standalone {
        Ok(status) if status.success() => Command::new("docker-compose"),
        _ => {
            let mut docker = Command::new("docker");
            docker.arg("compose");
            docker
        }
    }
}
