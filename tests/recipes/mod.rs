//! Each recipe in `examples` does what its README says: its own configuration, as it is, with real programs.

mod cron;
mod distroless;
mod headless_service;
mod json_log;
mod nginx_php_fpm;
mod openshift;
mod puid_pgid;
mod renewed_secret;
mod under_init;
mod worker_pool;

use std::process::{Command, Output};

use crate::support::deadline::InTime;
use crate::support::program::{containerpilot, out, repository};
use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, is_root, modes};

/// A supervisor in a container of its own: processes, mounts and network. The host's files are its image. The changes
/// of a test to `/etc` are its own, and `/run`, `/srv` and `/var/lib` are empty.
struct Container {
    supervisor: Supervisor,
}

/// What prepares a container. `$recipe` is the folder of the recipe, whose programs are in the search path.
const PREPARE: &str = r#"
set -e
mkdir "$CONTAINERPILOT_TEST/etc"
cp -a /etc/. "$CONTAINERPILOT_TEST/etc"
mount --bind "$CONTAINERPILOT_TEST/etc" /etc
for folder in /run /srv /var/lib; do mount -t tmpfs none $folder; done
PATH=$recipe:$PATH
cd /
"#;

/// Gives what is started last a network of its own.
const NETWORK: &str = r#"
set -- unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$@"
"#;

impl Container {
    /// Starts a recipe, after a shell script that may change the container and `"$@"`. `None` if it does not run here.
    #[track_caller]
    fn start(recipe: &str, script: &str) -> Option<Self> {
        Self::in_network_of_host(recipe, &format!("{script}{NETWORK}"))
    }

    /// Like [`Container::start`], in the network of the test.
    #[track_caller]
    fn in_network_of_host(recipe: &str, script: &str) -> Option<Self> {
        if !is_root()
            || !modes().contains(&Mode::Pid1)
            || Command::new("ip").arg("-V").output_in_time().is_err()
        {
            skip("this needs root, namespaces and the program `ip`");
            return None;
        }
        let folder = repository().join("examples").join(recipe);
        let script = format!("recipe={}\n{PREPARE}{script}\nset +e", folder.display());
        let config = folder.join("containerpilot.json5");
        let args = ["-config", config.to_str().unwrap()];
        Some(Self { supervisor: Supervisor::with_setup_and_args(Mode::Pid1, &script, &args) })
    }

    /// Runs a command of the supervisor in the container.
    fn pilot(&self, arguments: &[&str]) -> Output {
        self.command(&[&[containerpilot()], arguments].concat()).output_in_time().unwrap()
    }

    /// What a shell script in the container prints.
    fn shell(&self, script: &str) -> String {
        out(&self.command(&["sh", "-c", script]).output_in_time().unwrap())
    }

    fn command(&self, command: &[&str]) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--target={}", self.supervisor.pid())).args(["--mount", "--net", "--pid", "--"]);
        inside.args(command).env("CONTAINERPILOT_SOCKET", self.supervisor.file("socket"));
        inside
    }
}
