//! Between fork and exec: a start that never ends, and programs that change while they are started (P3, P9).

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use super::fixture::{Hostile, Rank, as_init_and_child, exe, permitted, waits_in};
use crate::support::config::Config;
use crate::support::skip::skip;
use crate::support::supervisor::{child_pids, state, wait_until};

/// Jobs that are started many times a second. `user` is the property with that name, or empty.
fn many_starts(user: &str) -> Config {
    let starts = |n| format!("exec: '/bin/true', {user} when: {{ interval: '{n}ms' }}");
    (10..18).fold(Config::new(), |config, n| config.job(format!("tick{n}"), starts(n)))
}

/// Besides these jobs, one that sends a signal to all processes that it may signal.
fn storm(user: &str, signal: &str) -> Config {
    let exec = format!("exec: ['@/hostile', 'storm', '@/own/storm', '{signal}']");
    many_starts(user).job("storm", format!("{exec}, {user} when: {{ source: 'SIGUSR2' }}"))
}

/// Whether a child of the supervisor is stopped before it has become its program.
fn is_stopped_before_exec(pid: u32) -> bool {
    let own = exe(pid);
    child_pids(pid).into_iter().any(|child| state(child) == Some('T') && exe(child) == own)
}

#[test]
fn p3_s4_child_stopped_before_exec_holds_up_neither_ping_nor_sigterm() {
    as_init_and_child(|rank| {
        let config = storm("user: 'nobody',", "19");
        let mut hostile = Hostile::start(rank, 2, &config);
        hostile.send(12);
        hostile.await_file("own/storm");
        // A start that cannot be stopped there at all would be as good: the wait ends without it.
        let limit = Instant::now() + Duration::from_secs(5);
        wait_until("a child is stopped before exec", || {
            is_stopped_before_exec(hostile.pid) || Instant::now() > limit
        });
        hostile.stops();
    });
}

/// A child of the supervisor's own user shares its memory until exec. A signal that ends it with a core dump must not end
/// the supervisor, and one that stops it must not stop the supervisor.
#[test]
fn p3_signals_before_exec_to_children_of_the_supervisors_user_do_not_reach_the_supervisor() {
    if !permitted() {
        return;
    }
    for (signal, effect) in [("3", "killed by SIGQUIT"), ("19", "storm")] {
        // Only PID 1 is spared by `kill(-1)`.
        let config = storm("", signal);
        let mut hostile = Hostile::start(Rank::Init, 1, &config);
        hostile.send(12);
        hostile.await_file("own/storm");
        let limit = Instant::now() + Duration::from_secs(2);
        wait_until("the signals have had an effect", || {
            hostile.log().contains(effect) && Instant::now() > limit
        });
        hostile.stops();
    }
}

#[test]
fn p3_s4_program_swapped_for_a_fifo_holds_up_neither_ping_nor_sigterm() {
    as_init_and_child(|rank| {
        let config = "jobs: [
            { name: 'swap', exec: ['@/hostile', 'swap', '@/own/script', '@/own/fifo'], user: 'nobody',
              when: { source: 'SIGUSR2' } },
            { name: 'victim', exec: '@/own/script', user: 'nobody', restarts: 'unlimited', restartBackoff: false }]";
        let script = "printf '#!/no/such/interpreter\\n' > @/own/script; mkfifo @/own/fifo; chmod 777 @/own/*; \
                      chown nobody @/own/*";
        let mut hostile = Hostile::with_setup(rank, script, 1, config);
        hostile.send(12);
        // The status is not answered by a loop that is frozen.
        let failures = || hostile.log().matches("/own/script").count();
        let limit = Instant::now() + Duration::from_secs(5);
        wait_until("the program was found missing 300 times", || failures() > 300 || Instant::now() > limit);
        hostile.stops();
    });
}

const LEASED: &str =
    "{ name: 'holder', exec: ['@/hostile', 'lease', '@/own/program', '@/own/broken'], user: 'nobody' }";

#[test]
fn p3_s4_lease_on_the_program_holds_up_neither_ping_nor_sigterm() {
    as_init_and_child(|rank| {
        let config = format!(
            "jobs: [{LEASED}, {{ name: 'victim', exec: ['@/own/program', 'busy', '/dev/null'], user: 'nobody',
                when: {{ source: 'SIGUSR2' }} }}]"
        );
        let mut hostile = Hostile::start(rank, 2, &config);
        hostile.await_ready(1);
        hostile.send(12);
        hostile.await_file("own/broken");
        hostile.stops();
    });
}

#[test]
fn h4_s4_lease_on_the_program_of_a_check_holds_up_neither_ping_nor_sigterm() {
    as_init_and_child(|rank| {
        let config = format!(
            "jobs: [{LEASED}, {{ name: 'victim', exec: 'sleep 1000', user: 'nobody',
                when: {{ source: 'SIGUSR2' }},
                health: {{ exec: ['@/own/program', 'busy', '/dev/null'], interval: 1, ttl: 5 }} }}]"
        );
        let mut hostile = Hostile::start(rank, 2, &config);
        hostile.await_ready(1);
        hostile.send(12);
        hostile.await_file("own/broken");
        hostile.stops();
    });
}

/// The start timeout is 10 s.
#[test]
#[ignore = "slow: waits for a timeout of 10 s"]
fn p3_child_that_does_not_reach_exec_within_10s_is_killed_and_counts_as_a_failed_start() {
    if !permitted() {
        return;
    }
    let config = format!(
        "jobs: [{LEASED}, {{ name: 'victim', exec: ['@/own/program', 'busy', '/dev/null'], user: 'nobody',
            when: {{ source: 'SIGUSR2' }} }},
            {{ name: 'next', exec: 'sleep 1000', when: {{ source: 'victim', once: 'exitFailed' }} }}]"
    );
    let mut hostile = Hostile::start(Rank::Init, 1, &config);
    hostile.await_ready(1);
    hostile.send(12);
    hostile.await_file("own/broken");
    let began = Instant::now();
    hostile.await_state("next", "running");
    let took = began.elapsed();
    assert!((8..=40).contains(&took.as_secs()), "{took:?}");
    hostile.await_log("did not reach exec");
    hostile.stops();
}

/// A script that prepares `@/stuck`, a directory that becomes a file system without answers when `@/mount` is created.
fn stuck_file_system() -> Option<&'static str> {
    if !std::path::Path::new("/dev/fuse").exists() {
        skip("there is no /dev/fuse");
        return None;
    }
    Some("mkdir @/stuck; cp @/hostile @/stuck/program; @/hostile fuse @/stuck @/mount @/mounted &")
}

/// A job that needs the file system is started when it does not answer any more.
fn start_on_stuck_file_system(job: &str) {
    let Some(script) = stuck_file_system() else { return };
    as_init_and_child(|rank| {
        let config = Config::new()
            .job("main", "exec: 'sleep 1000'")
            .job("victim", format!("when: {{ source: 'SIGUSR2' }}, {job}"));
        let mut hostile = Hostile::with_setup(rank, script, 1, &config);
        fs::write(hostile.run.file("mount"), "").unwrap();
        hostile.await_file("mounted");
        hostile.send(12);
        let own = exe(hostile.pid);
        let is_blocked = |child: u32| exe(child) == own && waits_in(child, child).contains("fuse");
        let limit = Instant::now() + Duration::from_secs(5);
        wait_until("a child waits for the file system", || {
            child_pids(hostile.pid).into_iter().any(is_blocked) || Instant::now() > limit
        });
        hostile.stops();
    });
}

#[test]
fn p9_s4_directory_that_does_not_answer_holds_up_neither_ping_nor_sigterm() {
    start_on_stuck_file_system("exec: 'sleep 1000', cwd: '@/stuck'");
}

#[test]
fn p3_s4_program_on_a_file_system_that_does_not_answer_holds_up_neither_ping_nor_sigterm() {
    start_on_stuck_file_system("exec: '@/stuck/program'");
}

#[test]
fn p8_s4_path_on_a_file_system_that_does_not_answer_holds_up_neither_ping_nor_sigterm() {
    start_on_stuck_file_system("exec: 'true', env: { PATH: '@/stuck:/bin' }");
}

#[test]
fn p11_s4_secret_on_a_file_system_that_does_not_answer_holds_up_neither_ping_nor_sigterm() {
    start_on_stuck_file_system("exec: 'sleep 1000', secrets: { NAME: { file: '@/stuck/program' } }");
}

#[test]
fn c7_s1_sigterm_is_obeyed_while_the_configuration_names_a_program_that_cannot_be_examined() {
    let Some(script) = stuck_file_system() else { return };
    as_init_and_child(|rank| {
        let script = format!("{script}\ntouch @/mount; while [ ! -e @/mounted ]; do :; done");
        let config =
            "jobs: [{ name: 'main', exec: 'sleep 1000' }, { name: 'victim', exec: '@/stuck/program' }]";
        let mut hostile = Hostile::unanswered(rank, &script, 1, config);
        let waits = |pid: u32| waits_in(pid, pid).contains("fuse");
        let limit = Instant::now() + Duration::from_secs(5);
        wait_until("it waits for the file system", || {
            waits(hostile.pid) || child_pids(hostile.pid).into_iter().any(waits) || Instant::now() > limit
        });
        hostile.stops();
    });
}

#[test]
fn p3_program_replaced_by_anything_is_a_failed_start_until_it_is_back() {
    if !permitted() {
        return;
    }
    let config =
        "jobs: [{ name: 'main', exec: 'sleep 1000' }, { name: 'victim', exec: '@/own/victim', user: 'nobody',
        restarts: 'unlimited', restartBackoff: { initial: '20ms', max: '20ms' } }]";
    let mut hostile = Hostile::start(Rank::Init, 1, config);
    let victim = hostile.run.file("own/victim");
    let restarts = || hostile.job("victim")["restarts"].as_u64().unwrap();
    for what in [
        "missing",
        "directory",
        "fifo",
        "socket",
        "empty",
        "busy",
        "loop",
        "dangling",
        "self-interpreted",
        "elf",
    ] {
        // A file that is open for writing (ETXTBSY), or a socket.
        let mut held: Option<OwnedFd> = None;
        match what {
            "directory" => fs::create_dir(&victim).unwrap(),
            "fifo" => nix::unistd::mkfifo(&victim, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            "socket" => held = Some(UnixListener::bind(&victim).unwrap().into()),
            "empty" => fs::write(&victim, "").unwrap(),
            "busy" => {
                fs::copy("/bin/true", &victim).unwrap();
                held = Some(fs::File::options().append(true).open(&victim).unwrap().into());
            }
            "loop" => symlink(&victim, &victim).unwrap(),
            "dangling" => symlink("/no/such/file", &victim).unwrap(),
            "self-interpreted" => fs::write(&victim, format!("#!{}\n", victim.display())).unwrap(),
            "elf" => fs::write(&victim, b"\x7fELF\x02\x01\x01 and nothing else").unwrap(),
            _ => {}
        }
        if !matches!(what, "missing" | "loop" | "dangling") {
            fs::set_permissions(&victim, fs::Permissions::from_mode(0o777)).unwrap();
        }
        let before = restarts();
        wait_until(&format!("a start fails ({what})"), || restarts() > before + 1);
        assert_ne!(hostile.job("victim")["state"], "running", "{what}");
        assert_eq!(hostile.job("main")["state"], "running", "{what}");
        match what {
            "missing" => {}
            "directory" => fs::remove_dir(&victim).unwrap(),
            _ => fs::remove_file(&victim).unwrap(),
        }
        drop(held);
    }
    fs::write(&victim, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o755)).unwrap();
    hostile.await_state("victim", "running");
    hostile.stops();
}

#[test]
fn p9_deleted_directories_are_failed_starts_and_reach_no_other_job() {
    as_init_and_child(|rank| {
        let config = "jobs: [{ name: 'main', exec: 'sleep 1000' },
            { name: 'remover', exec: ['rm', '-r', '@/own'], user: 'root' },
            { name: 'victim', exec: 'sleep 1000', cwd: '@/own', when: { source: 'remover', once: 'exitSuccess' } },
            { name: 'next', exec: 'sleep 1000', when: { source: 'victim', once: 'exitFailed' } }]";
        // The supervisor's own working directory is deleted, too.
        let mut hostile = Hostile::with_setup(rank, "mkdir @/cwd; cd @/cwd; rmdir @/cwd", 1, config);
        hostile.await_state("next", "running");
        assert_eq!(hostile.job("victim")["state"], "failed");
        hostile.stops();
    });
}

#[test]
fn p9_process_that_is_not_yet_its_program_cannot_be_traced_or_read() {
    if !permitted() {
        return;
    }
    let config = many_starts("user: 'nobody',")
        .job("spy", "exec: ['@/hostile', 'spy'], user: 'nobody'")
        .job("counter", "exec: 'true', user: 'nobody', restarts: 'unlimited', restartBackoff: false");
    let mut hostile = Hostile::start(Rank::Child, 1, &config);
    hostile.await_ready(1);
    hostile.await_job("counter", "was started 300 times", |job| job["restarts"].as_u64() > Some(300));
    assert!(!hostile.log().contains("memory is readable"));
    hostile.stops();
}
