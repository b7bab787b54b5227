use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use containerpilot_core::input::{ExitStatus, StartErrorKind};
use containerpilot_core::plan::{Limit, LimitedResource, Principal};
use containerpilot_test_support::{isolated, read_all, until};

use super::*;
use crate::proc;
use crate::reaper::{Owner, Reaper};
use crate::sys::{SignalSet, WaitState};
use crate::test_support::collect;

fn command(words: &[&str]) -> Command {
    Command { program: words[0].into(), arguments: words[1..].iter().map(|word| (*word).into()).collect() }
}

fn spawner() -> Spawner {
    let variables = std::env::vars_os().map(|(name, value)| (name.into_vec(), value.into_vec()));
    let mut environment: Environment = variables.collect();
    environment.insert(b"CONTAINERPILOT_PID".to_vec(), std::process::id().to_string().into_bytes());
    Spawner::new(environment).unwrap()
}

/// Starts a process, and waits until it has executed its program or has failed.
fn spawn(spawner: &mut Spawner, words: &[&str], process: &Process) -> Result<ProcessStart, StartError> {
    let command = command(words);
    let (own_stdin, raw_output) = (false, false);
    executed(spawner.spawn(&SpawnRequest {
        command: &command,
        environment: &containerpilot_core::variables::ProcessEnvironment::default(),
        process,
        own_stdin,
        raw_output,
        cgroup: None,
        reports: Reports::default(),
    })?)
}

fn executed(mut start: ProcessStart) -> Result<ProcessStart, StartError> {
    let mut outcome = Progress::Pending;
    until(|| {
        outcome = start.progress();
        !matches!(outcome, Progress::Pending)
    });
    match outcome {
        Progress::Failed(why) => {
            sys::reap(start.pid).unwrap();
            Err(why)
        }
        _ => Ok(start),
    }
}

/// The standard output and exit status of a shell script.
fn shell(spawner: &mut Spawner, script: &str, process: &Process) -> (String, ExitStatus) {
    let spawned = spawn(spawner, &["/bin/sh", "-c", script], process).unwrap();
    let mut reaper = Reaper::default();
    reaper.started(spawned.pid, Owner::Run(containerpilot_core::ids::RunId(1)));
    let (out, err) = spawned.output.unwrap();
    let (out, err) = (read_all(out), read_all(err));
    assert_eq!(err, "");
    (out, collect(&mut reaper, 1)[0].status)
}

fn spawn_error(words: &[&str], process: &Process) -> (StartErrorKind, String) {
    let error = spawn(&mut spawner(), words, process).unwrap_err();
    assert_eq!(sys::wait_nowait(), Ok(WaitState::NoChild), "a failed start leaves no zombie");
    (error.kind, error.message)
}

/// Starts a process, and does not wait for it.
fn start(spawner: &mut Spawner, command: &Command) -> ProcessStart {
    let request = SpawnRequest {
        command,
        environment: &containerpilot_core::variables::ProcessEnvironment::default(),
        process: &Process::default(),
        own_stdin: false,
        raw_output: true,
        cgroup: None,
        reports: Reports::default(),
    };
    spawner.spawn(&request).unwrap()
}

/// A start whose child is stopped before it executes its program.
fn stopped_before_exec(spawner: &mut Spawner, command: &Command) -> ProcessStart {
    loop {
        let start = start(spawner, command);
        // SIGSTOP cannot be blocked, but may come too late.
        sys::kill_process(start.pid, containerpilot_core::plan::Signal(19)).unwrap();
        until(|| proc::Stat::read(start.pid).unwrap().state == b'T');
        if proc::has_executed(start.pid) == Some(false) {
            return start;
        }
        sys::kill_process(start.pid, containerpilot_core::plan::Signal::KILL).unwrap();
        sys::reap(start.pid).unwrap();
    }
}

fn file(name: &str, text: &str, mode: u32) -> String {
    let path = std::env::temp_dir().join(format!("containerpilot-spawn-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn is_root() -> bool {
    sys::effective_ids().0 == 0
}

isolated! {
    fn p2_child_leads_its_process_group_and_has_three_descriptors() {
        let mut spawner = spawner();
        // One that would be inherited, and many that are not copied.
        let leaked = sys::duplicate_low(spawner.null.as_fd()).unwrap();
        let _open: Vec<_> = (0..200).map(|_| spawner.null.try_clone().unwrap()).collect();
        let script = "cat; echo $$; cut -d' ' -f5 /proc/$$/stat; ls -m /proc/$$/fd; readlink /proc/$$/fd/0";
        let (out, status) = shell(&mut spawner, script, &Process::default());
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], lines[1], "pid and group");
        assert_eq!(lines[2..], ["0, 1, 2", "/dev/null"]);
        assert!(status.is_success());
        drop(leaked);
    }

    fn p2_child_has_three_descriptors_without_close_range() {
        let mut spawner = spawner();
        spawner.slots.close_from = None;
        let (out, _) = shell(&mut spawner, "ls -m /proc/$$/fd", &Process::default());
        assert_eq!(out, "0, 1, 2\n");
    }

    fn p2_child_has_default_dispositions_and_an_empty_signal_mask() {
        sys::block_signals(SignalSet::CATCHABLE).unwrap();
        let (out, _) = shell(&mut spawner(), "cat /proc/self/status | grep -E 'Sig(Blk|Ign|Cgt)'", &Process::default());
        let zeros = "0".repeat(16);
        assert_eq!(out, format!("SigBlk:\t{zeros}\nSigIgn:\t{zeros}\nSigCgt:\t{zeros}\n"));
    }

    fn p3_exit_status_is_reported_exactly() {
        let mut spawner = spawner();
        let mut end = |script: &str| shell(&mut spawner, script, &Process::default()).1;
        assert_eq!(end("exit 0"), ExitStatus::Code(0));
        assert_eq!(end("exit 255"), ExitStatus::Code(255));
        assert_eq!(end("kill -9 $$"), ExitStatus::Signal(containerpilot_core::plan::Signal(9)));
        assert_eq!(end("kill -PIPE $$"), ExitStatus::Signal(containerpilot_core::plan::Signal(13)));
    }

    fn p3_error_names_the_missing_program() {
        use StartErrorKind::{NotExecutable, NotFound, Other};
        let plain = Process::default();
        let error = |words: &[&str]| spawn_error(words, &plain);
        assert_eq!(error(&["/no/such"]), (NotFound, "/no/such: No such file or directory".to_owned()));
        assert_eq!(error(&["nonesuch"]), (NotFound, "nonesuch: not found in PATH".to_owned()));
        assert_eq!(error(&[""]).0, NotFound);
        assert_eq!(error(&["/etc/passwd/x"]), (NotFound, "/etc/passwd/x: Not a directory".to_owned()));
        assert_eq!(error(&["/etc"]), (NotExecutable, "/etc: Is a directory".to_owned()));
        let message = "/etc/passwd: Permission denied: it is not executable; chmod +x /etc/passwd".to_owned();
        assert_eq!(error(&["/etc/passwd"]), (NotExecutable, message));
        assert_eq!(error(&["/bin/true", "a\0b"]).0, Other);
        assert_eq!(error(&["/bin/true", &"x".repeat(200_000)]), (Other, "/bin/true: Argument list too long".to_owned()));

        let script = file("script", "#! /no/such/shell -x\n", 0o755);
        let message = format!("{script}: its interpreter /no/such/shell: No such file or directory");
        assert_eq!(error(&[&script]), (NotFound, message));
        let junk = file("junk", "\u{1}\u{2}", 0o755);
        assert_eq!(error(&[&junk]), (NotExecutable, format!("{junk}: Exec format error")));
        let dos = file("dos", "#!/bin/sh\r\necho hello\r\n", 0o755);
        let message = format!("{dos}: its interpreter is `/bin/sh\\r`: the script has Windows line endings; convert it to LF");
        assert_eq!(error(&[&dos]), (NotFound, message));
        let plain_text = file("text", "echo hello\n", 0o755);
        let (kind, message) = error(&[&plain_text]);
        assert_eq!(kind, NotExecutable);
        assert!(message.ends_with(&format!("it has no #! line; write exec: [\"sh\", \"{plain_text}\"], or add one")), "{message}");
        let empty = file("empty", "", 0o755);
        assert_eq!(error(&[&empty]), (NotExecutable, format!("{empty}: Exec format error: it is empty")));
        let marked = file("marked", "\u{feff}#!/bin/sh\n", 0o755);
        let message = format!("{marked}: Exec format error: it begins with a byte order mark; save it as UTF-8 without one");
        assert_eq!(error(&[&marked]), (NotExecutable, message));
        for file in [script, junk, dos, plain_text, empty, marked] {
            std::fs::remove_file(file).unwrap();
        }

        let no_directory = Process { cwd: Some("/no/where".to_owned()), ..Process::default() };
        let message = "/bin/true: cannot change to its directory /no/where: No such file or directory".to_owned();
        assert_eq!(spawn_error(&["/bin/true"], &no_directory), (Other, message));
        let no_user = Process { user: Some(Principal::Name("nonesuch".to_owned())), ..Process::default() };
        assert_eq!(spawn_error(&["/bin/true"], &no_user), (Other, "/bin/true: there is no user `nonesuch`".to_owned()));
        let execution = spawner().execution(&no_user, &containerpilot_core::variables::ProcessEnvironment::default());
        assert!(matches!(execution, Err(SetupError::Identity(IdentityError::NoUser(_)))), "{execution:?}");
        let core = Limit { resource: LimitedResource::Core, soft: Some(0), hard: Some(0) };
        // A soft limit must not be above the hard one.
        let refused = Limit { resource: LimitedResource::Nofile, soft: Some(9), hard: Some(5) };
        let limited = Process { limits: vec![core, refused], ..Process::default() };
        let message = "/bin/true: cannot set the limit `nofile` to 9:5: Invalid argument".to_owned();
        assert_eq!(spawn_error(&["/bin/true"], &limited), (Other, message));
    }

    fn p3_p9_directory_that_the_user_may_not_search_is_named() {
        if !is_root() {
            containerpilot_test_support::skip("needs root");
            return;
        }
        let folder = containerpilot_test_support::folder();
        let secret = folder.join("secret");
        std::fs::create_dir_all(secret.join("bin")).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o700)).unwrap();
        let program = secret.join("bin/app");
        std::fs::copy("/bin/true", &program).unwrap();
        let process = Process { user: Some(Principal::Id(4242)), ..Process::default() };
        let (program, shown) = (program.to_str().unwrap(), secret.display());
        let message = format!("{program}: Permission denied: user `4242` has no permission to search {shown}");
        assert_eq!(spawn_error(&[program], &process), (StartErrorKind::NotExecutable, message));
        // A program may be in another directory of PATH.
        let path = BTreeMap::from([("PATH".to_owned(), format!("{shown}:/bin"))]);
        let searching = Process { user: Some(Principal::Id(4242)), env: path, ..Process::default() };
        let message = format!("app: not found in PATH, where user `4242` has no permission to search {shown}");
        assert_eq!(spawn_error(&["app"], &searching), (StartErrorKind::NotFound, message));
        // Not readable, and therefore not known to be empty.
        let hidden = file("hidden", "no program", 0o711);
        let message = format!("{hidden}: Exec format error");
        assert_eq!(spawn_error(&[&hidden], &process), (StartErrorKind::NotExecutable, message));
        std::fs::remove_file(hidden).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn p3_p9_refused_limit_is_reported_with_its_reason() {
        let max: u64 = std::fs::read_to_string("/proc/sys/fs/nr_open").unwrap().trim().parse().unwrap();
        let refusal = |resource, soft: u64, hard: u64| {
            let limit = Limit { resource, soft: Some(soft), hard: Some(hard) };
            spawn_error(&["/bin/true"], &Process { limits: vec![limit], ..Process::default() }).1
        };
        let (much, more) = (max + 1, max + 2);
        let reason = format!("EPERM (the kernel allows at most {max}: fs.nr_open; lower the limit)");
        let expected = format!("/bin/true: cannot set the limit `nofile` to {more}: {reason}");
        assert_eq!(refusal(LimitedResource::Nofile, more, more), expected);
        let expected = format!("/bin/true: cannot set the limit `nofile` to {much}:{more}: {reason}");
        assert_eq!(refusal(LimitedResource::Nofile, much, more), expected);
    }

    fn p3_start_is_not_waited_for_and_a_kill_before_exec_is_recognised() {
        let mut spawner = spawner();
        let mut reaper = Reaper::default();
        // A child that is stopped cannot execute its program.
        let command = command(&["/bin/sleep", "1000"]);
        for signal in [15, 9] {
            let mut start = stopped_before_exec(&mut spawner, &command);
            assert!(matches!(start.progress(), Progress::Pending));
            assert_eq!(proc::has_executed(start.pid), Some(false));
            let owner = Owner::Run(containerpilot_core::ids::RunId(signal.into()));
            reaper.started(start.pid, owner);
            for signal in [signal, 18] {
                reaper.kill(owner, containerpilot_core::plan::Signal(signal), containerpilot_core::plan::StopScope::Group, true).unwrap();
            }
            let exited = &collect(&mut reaper, 1)[0];
            assert!(!exited.executed);
            let error = start.outcome(exited).unwrap_err();
            let signal = containerpilot_core::plan::Signal(signal);
            assert_eq!(error.kind, StartErrorKind::Killed(signal));
            assert_eq!(error.message, format!("/bin/sleep: killed by {signal} before it executed its program"));
        }
    }

    fn p3_abandoned_start_is_reaped_like_an_orphan() {
        let (mut spawner, mut reaper) = (spawner(), Reaper::default());
        let mut start = stopped_before_exec(&mut spawner, &command(&["/bin/sleep", "1000"]));
        let owner = Owner::Run(containerpilot_core::ids::RunId(1));
        reaper.started(start.pid, owner);
        reaper.abandon(owner);
        let mut exited = Vec::new();
        until(|| {
            reaper.collect(&mut exited);
            sys::wait_nowait() == Ok(WaitState::NoChild)
        });
        assert!(exited.is_empty());
        assert!(start.is_over());
    }

    fn p3_memory_of_a_start_is_kept_until_the_child_has_left_it() {
        let mut spawner = spawner();
        let mut stopped = stopped_before_exec(&mut spawner, &command(&["/bin/sleep", "1000"]));
        assert_eq!(stopped.is_over(), !sys::may_share_memory());
        sys::kill_process(stopped.pid, containerpilot_core::plan::Signal(9)).unwrap();
        until(|| stopped.is_over());
        sys::reap(stopped.pid).unwrap();

        let mut failed = spawn(&mut spawner, &["/bin/true"], &Process::default()).unwrap();
        assert!(failed.is_over(), "it has executed its program");
        sys::reap(failed.pid).unwrap();
        let no_program = command(&["/no/such/program"]);
        failed = start(&mut spawner, &no_program);
        until(|| matches!(failed.progress(), Progress::Failed(_)));
        until(|| failed.is_over());
        sys::reap(failed.pid).unwrap();
    }

    fn p3_reached_process_limit_is_a_failed_start() {
        if !is_root() {
            containerpilot_test_support::skip("needs root");
            return;
        }
        let limited = Process {
            user: Some(Principal::Id(54_321)),
            limits: vec![Limit { resource: LimitedResource::Nproc, soft: Some(0), hard: Some(0) }],
            ..Process::default()
        };
        // The first process of a user is allowed, the second exceeds the limit.
        let mut spawner = spawner();
        let first = spawn(&mut spawner, &["/bin/sleep", "1000"], &limited).unwrap();
        let error = spawn(&mut spawner, &["/bin/true"], &limited).unwrap_err();
        assert_eq!(error.kind, StartErrorKind::NoResources, "{}", error.message);
        assert_eq!(error.message, "/bin/true: Try again");
        sys::kill_group(first.pid, containerpilot_core::plan::Signal::KILL).unwrap();
        sys::reap(first.pid).unwrap();
    }

    fn p3_reached_descriptor_limit_is_a_failed_start_and_recovers() {
        let mut spawner = spawner();
        let me = std::process::id().to_string();
        let done = std::process::Command::new("prlimit").args(["--pid", &me, "--nofile=40:40"]).status();
        assert!(done.unwrap().success());
        // The original limit was recorded before it was lowered.
        spawner.descriptor_limit = None;
        let mut reaper = Reaper::default();
        let mut held = Vec::new();
        let error = loop {
            match spawn(&mut spawner, &["/bin/true"], &Process::default()) {
                Ok(spawned) => {
                    let run = containerpilot_core::ids::RunId(held.len() as u64);
                    reaper.started(spawned.pid, Owner::Run(run));
                    held.push(spawned);
                }
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind, StartErrorKind::NoDescriptors);
        assert_eq!(error.message, "/bin/true: cannot create a pipe: Too many open files");
        collect(&mut reaper, held.len());
        held.clear();
        shell(&mut spawner, "true", &Process::default());
    }

    fn p7_p9_last_variable_of_a_name_wins_and_the_supervisors_are_inherited() {
        let mut spawner = spawner();
        spawner.environment.insert(b"OURS".to_vec(), b"1=\xff".to_vec());
        spawner.environment.insert(b"BOTH".to_vec(), b"ours".to_vec());
        let process =
            Process { env: BTreeMap::from([("OWN".to_owned(), "own".to_owned())]), ..Process::default() };
        let command = command(&["/bin/sh", "-c", "env | grep -aE '^(BOTH|OWN|X|CONTAINERPILOT_PID)=' | sort; exit 0"]);
        let pair = |name: &'static str, value: &str| (name.into(), value.to_owned());
        let cause = vec![pair("BOTH", "trigger"), pair("X", "1"), pair("X", "2"), pair("OWN", "trigger")];
        let environment = containerpilot_core::variables::ProcessEnvironment { cause: cause.into(), ..Default::default() };
        let (own_stdin, raw_output) = (false, false);
        let request = SpawnRequest { command: &command, environment: &environment, process: &process, own_stdin, raw_output, cgroup: None, reports: Reports::default() };
        let spawned = executed(spawner.spawn(&request).unwrap()).unwrap();
        let pid = std::process::id();
        let expected = format!("BOTH=trigger\nCONTAINERPILOT_PID={pid}\nOWN=own\nX=2\n");
        assert_eq!(read_all(spawned.output.unwrap().0), expected);
    }

    fn p8_program_is_searched_in_the_childs_path_past_files_that_are_not_executable() {
        let folder = std::env::temp_dir().join(format!("containerpilot-path-{}", std::process::id()));
        let (first, second) = (folder.join("1"), folder.join("2"));
        for (place, mode) in [(&first, 0o644), (&second, 0o755)] {
            std::fs::create_dir_all(place).unwrap();
            std::fs::write(place.join("tool"), "#!/bin/sh\necho found\n").unwrap();
            std::fs::set_permissions(place.join("tool"), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = |path: String| Process {
            env: BTreeMap::from([("PATH".to_owned(), path)]),
            ..Process::default()
        };
        let both = path(format!("{}:/no:{}", first.display(), second.display()));
        let spawned = spawn(&mut spawner(), &["tool"], &both).unwrap();
        assert_eq!(read_all(spawned.output.unwrap().0), "found\n");
        sys::reap(spawned.pid).unwrap();
        let (kind, message) = spawn_error(&["tool"], &path(first.display().to_string()));
        let tool = first.join("tool");
        let expected = format!("{0}: Permission denied: it is not executable; chmod +x {0}", tool.display());
        assert_eq!((kind, message), (StartErrorKind::NotExecutable, expected));
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn p9_user_groups_directory_umask_limits_and_privileges_are_set() {
        let process = Process {
            cwd: Some("/usr".to_owned()),
            umask: Some(0o027),
            limits: vec![
                Limit { resource: LimitedResource::Nofile, soft: Some(17), hard: Some(19) },
                Limit { resource: LimitedResource::Core, soft: Some(0), hard: Some(0) },
            ],
            no_new_privileges: true,
            ..Process::default()
        };
        let script = "pwd; umask; ulimit -Sn; ulimit -Hn; ulimit -c; grep NoNewPrivs /proc/self/status";
        let (out, _) = shell(&mut spawner(), script, &process);
        assert_eq!(out, "/usr\n0027\n17\n19\n0\nNoNewPrivs:\t1\n");
        if is_root() {
            let process = Process { user: Some(Principal::Name("daemon".to_owned())), ..Process::default() };
            let (out, _) = shell(&mut spawner(), "id -u; id -g; id -G", &process);
            assert_eq!(out, "1\n1\n1\n");
            let process = Process {
                user: Some(Principal::Id(54_321)),
                group: Some(Principal::Name("daemon".to_owned())),
                ..Process::default()
            };
            let (out, _) = shell(&mut spawner(), "id -u; id -g; id -G", &process);
            assert_eq!(out, "54321\n1\n1\n");
            assert_eq!(sys::effective_ids(), (0, 0), "the supervisor keeps its own user");
        }
    }

    fn p9_child_gets_the_original_descriptor_limit() {
        let me = std::process::id().to_string();
        let done = std::process::Command::new("prlimit").args(["--pid", &me, "--nofile=100:200"]).status();
        assert!(done.unwrap().success());
        let (out, _) = shell(&mut spawner(), "ulimit -Sn; ulimit -Hn", &Process::default());
        assert_eq!(out, "100\n200\n");
        assert_eq!(std::fs::read_to_string("/proc/self/limits").unwrap().lines()
            .find(|line| line.starts_with("Max open files")).unwrap().split_whitespace().nth(3), Some("200"));
    }
}
