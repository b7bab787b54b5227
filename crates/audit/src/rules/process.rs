//! How the deployment runs the container: its command, its users, its file system.

use containerpilot_core::plan::{Job, Output, Principal};

use super::Audit;
use crate::model::{Platform, User};
use crate::tree::At;
use crate::values::{base_name, commands, containerpilot_calls, script};

/// Where the supervisor writes the reason of its exit (S12).
const TERMINATION_LOG: &str = "/dev/termination-log";

impl Audit<'_> {
    pub(super) fn process(&mut self) {
        self.command();
        self.pid_1();
        self.users();
        self.read_only_root();
        if let Some(path) = self.container.message_path.as_ref().filter(|path| path.value != TERMINATION_LOG)
        {
            let (line, message) = (
                path.line,
                format!(
                    "the reason of an exit is written to {TERMINATION_LOG}, but Kubernetes reads {}: `kubectl describe pod` shows none",
                    path.value
                ),
            );
            self.warn(line, message, "remove `terminationMessagePath`", &[]);
        }
    }

    /// What is executed in place of the entry point of the image.
    fn command(&mut self) {
        let args = self.container.args.clone();
        let starts = |args: &At<Vec<String>>| {
            args.value.first().is_some_and(|word| base_name(word) == "containerpilot")
        };
        // Without a command, arguments may be one: for an image without an entry point.
        let (line, words, replaces) =
            match (self.container.command.clone().filter(|one| !one.value.is_empty()), args) {
                (Some(command), args) => {
                    let args = args.map(|args| args.value).unwrap_or_default();
                    (command.line, command.value.into_iter().chain(args).collect::<Vec<_>>(), true)
                }
                (None, Some(args)) if starts(&args) => (args.line, args.value, false),
                _ => return,
            };
        let key = match (self.container.platform, replaces) {
            (Platform::Kubernetes | Platform::Nomad, false) => "`args`",
            (Platform::Compose, false) | (Platform::Kubernetes, true) => "`command`",
            (Platform::Compose, true) => "`entrypoint`",
            (Platform::Nomad, true) => "`command` or `entrypoint`",
            (Platform::Image, false) => "`CMD`",
            (Platform::Image, true) => "`ENTRYPOINT`",
        };
        let program = words.first().map(|word| base_name(word).to_owned()).unwrap_or_default();
        let calls = containerpilot_calls(&words);
        let is_script =
            script(&words).is_none() && (program.contains("entrypoint") || program.ends_with("sh"));
        if calls.is_empty() {
            // An init process before it, or a script that starts it.
            if !words.iter().any(|word| word.contains("containerpilot")) && !is_script {
                let (replaces, help) = match self.container.platform {
                    Platform::Image => {
                        ("is that of another program", format!("start containerpilot in {key}"))
                    }
                    _ => (
                        "replaces the entry point of the image",
                        format!("remove {key}, or start containerpilot there"),
                    ),
                };
                let message = format!("{key} {replaces}: {program} is started, and containerpilot is not");
                self.fault(line, message, help, &[]);
            }
            return;
        }
        if let Some(Err(why)) = calls.first().map(|call| (self.configuration.command_line)(call)) {
            let message =
                format!("{key} is not a valid command line, so the container does not start: {why}");
            self.fault(line, message, "see `containerpilot help run`", &[]);
        }
        let has_exec = |script: &str| script.split_whitespace().any(|word| word == "exec");
        if let Some(script) = script(&words)
            && !has_exec(script)
            && commands(&words).len() > 1
        {
            let message =
                "a shell starts containerpilot and may stay PID 1: then the stop signal never reaches it"
                    .to_owned();
            self.warn(line, message, "write `exec containerpilot …` as the last command", &[]);
        }
    }

    fn pid_1(&mut self) {
        if let Some(init) = &self.container.other_init {
            let message = format!(
                "`{}` puts another init process in front of containerpilot, which then is not PID 1 and adopts orphans of its own \
                 jobs only",
                init.value
            );
            self.warn(
                init.line,
                message,
                "remove it: containerpilot reaps zombies and forwards signals itself",
                &[],
            );
        }
        let Some(other) = self.container.other_pid_1.clone() else { return };
        let signals = |words: &Vec<String>| {
            let program = words.first().map(|word| base_name(word));
            program == Some("kill") && words.last().is_some_and(|word| word == "1")
        };
        let hook = self.container.hooks.iter().find(|hook| commands(&hook.value).iter().any(signals));
        match hook {
            Some(hook) => {
                let message = format!(
                    "with `{}`, PID 1 is not containerpilot: `kill … 1` in this hook does not reach it",
                    other.value
                );
                let help = "use `containerpilot reload`, `containerpilot signal` or `containerpilot maintenance` in place of kill";
                self.fault(hook.line, message, help, &[]);
            }
            None => {
                let message = format!(
                    "with `{}`, containerpilot is not PID 1: processes outside the container see its jobs and their variables, and can \
                     signal them",
                    other.value
                );
                self.warn(
                    other.line,
                    message,
                    "remove it if nothing needs it; orphans of jobs are still adopted",
                    &[],
                );
            }
        }
    }

    /// Jobs with a `user` need a supervisor that can switch users.
    fn users(&mut self) {
        let plan = self.configuration.plan;
        let user = self.container.user.as_ref().filter(|user| user.value != User::Id(0));
        let is_root = |principal: &Principal| match principal {
            Principal::Id(id) => *id == 0,
            Principal::Name(name) => name == "root",
        };
        let mut with_user = plan.jobs.iter().filter_map(|job| Some((job, job.process.user.as_ref()?)));
        let Some(user) = user else {
            let other = with_user.find(|(_, principal)| !is_root(principal));
            if let (Some(line), Some((job, principal))) = (self.container.no_setuid, other) {
                let message = format!(
                    "the container has no CAP_SETUID and CAP_SETGID, so the job {} cannot run as the user {}",
                    job.name,
                    shown(principal)
                );
                let (name, help) = (job.name.clone(), "add SETUID and SETGID, or remove `user` of the job");
                self.fault(line, message, help, &["jobs", &name, "user"]);
            }
            return;
        };
        let (line, own) = (user.line, user.value);
        let differs = |principal: &Principal| match (own, principal) {
            (User::Id(own), Principal::Id(id)) => own != *id,
            _ => true,
        };
        let Some((job, principal)) = with_user.find(|(_, principal)| differs(principal)) else { return };
        let certain = is_root(principal) || matches!((own, principal), (User::Id(_), Principal::Id(_)));
        let words = match own {
            User::Id(id) => format!("user {id}"),
            User::NotRoot => "a user that is not root".to_owned(),
        };
        let message = format!(
            "the supervisor runs as {words}, and only root can switch users: the job {} cannot run as {}{}",
            job.name,
            shown(principal),
            if certain { "" } else { ", unless that is the same user" }
        );
        let (name, help) = (job.name.clone(), "remove `user` of the job, or run the container as root");
        match certain {
            true => self.fault(line, message, help, &["jobs", &name, "user"]),
            false => self.warn(line, message, help, &["jobs", &name, "user"]),
        }
    }

    fn read_only_root(&mut self) {
        let plan = self.configuration.plan;
        let socket = plan.control.socket.clone();
        let Some(line) = self.container.read_only else {
            let user = self.container.user.as_ref().filter(|user| user.value != User::Id(0));
            let in_run = ["/run/", "/var/run/"].iter().any(|folder| socket.starts_with(folder));
            if let Some(user) = user
                && in_run
                && !self.is_writable_mount(&socket)
                && self.probes_need_socket()
            {
                let message = format!(
                    "the supervisor does not run as root, and can probably not create its control socket {socket}: the probes that \
                     use it fail"
                );
                let help =
                    "mount an emptyDir there, or set `control.socket` to a path that this user can write";
                self.warn(user.line, message, help, &["control", "socket"]);
            }
            return;
        };
        if !self.is_writable_mount(&socket) {
            let (required, probed) = (plan.control.required, self.probes_need_socket());
            let effect = match (required, probed) {
                (true, _) => "the supervisor does not start",
                (false, true) => "there is no control socket, and the probes that use it always fail",
                (false, false) => "there is no control socket, and commands such as `status` do not work",
            };
            let message =
                format!("the root file system is read-only, and {socket} is on no writable mount: {effect}");
            let help =
                "mount an emptyDir or tmpfs at its directory, or set `control.socket` to a path on a mount";
            match required || probed {
                true => self.fault(line, message, help, &["control", "socket"]),
                false => self.warn(line, message, help, &["control", "socket"]),
            }
        }
        for file in
            plan.files.iter().filter(|file| !self.is_writable_mount(&file.to)).cloned().collect::<Vec<_>>()
        {
            let message = format!(
                "the root file system is read-only, and {} is on no writable mount: the file {} is never rendered",
                file.to, file.name
            );
            self.fault(
                line,
                message,
                "mount an emptyDir or tmpfs at its directory",
                &["files", &file.name, "to"],
            );
        }
        if let Output::File(path) = &plan.logging.output
            && !self.is_writable_mount(path)
        {
            let message =
                format!("the root file system is read-only, and the log file {path} is on no writable mount");
            self.fault(
                line,
                message,
                "log to stdout, or mount a volume at its directory",
                &["logging", "output"],
            );
        }
        if let Some(file) = &plan.record.file
            && !self.is_writable_mount(&file.path)
        {
            let path = &file.path;
            let message = format!(
                "the root file system is read-only, and the recording {path} is on no writable mount"
            );
            self.fault(line, message, "mount a volume at its directory", &["record", "file"]);
        }
        let log_file = |job: &Job| Some((job.name.clone(), job.output.file()?.path.clone()));
        let logs = plan.jobs.iter().filter_map(log_file);
        for (name, path) in logs.filter(|(_, path)| !self.is_writable_mount(path)).collect::<Vec<_>>() {
            let message = format!(
                "the root file system is read-only, and the log file {path} of {name} is on no writable mount"
            );
            self.fault(line, message, "mount a volume at its directory", &["jobs", &name, "logging"]);
        }
    }

    /// Returns true if a path is below a mount that can be written, or in `/dev`, which every container has.
    fn is_writable_mount(&self, path: &str) -> bool {
        // In most images /var/run is a link to /run.
        let plain = |path: &str| {
            path.strip_prefix("/var/run").map_or_else(|| path.to_owned(), |rest| format!("/run{rest}"))
        };
        let path = plain(path);
        let is_below = |folder: &str| {
            let folder = plain(folder.trim_end_matches('/'));
            path == folder || path.strip_prefix(&folder).is_some_and(|rest| rest.starts_with('/'))
        };
        let best = self
            .container
            .mounts
            .iter()
            .filter(|mount| is_below(&mount.path))
            .max_by_key(|mount| mount.path.len());
        best.map_or_else(|| is_below("/dev"), |mount| mount.writable)
    }
}

fn shown(principal: &Principal) -> String {
    match principal {
        Principal::Id(id) => id.to_string(),
        Principal::Name(name) => name.clone(),
    }
}
