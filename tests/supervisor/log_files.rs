//! The log files of jobs, the level of stderr, and lines that belong together (L8).

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::deadline::InTime;
use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, is_root, modes, wait_until};

const PILOT: &str = env!("CARGO_BIN_EXE_containerpilot");

fn ask(run: &Supervisor, words: &[&str]) -> String {
    let socket = run.file("socket");
    let output =
        Command::new(PILOT).args(words).env("CONTAINERPILOT_SOCKET", socket).output_in_time().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn l8_output_of_every_run_is_in_the_rotated_file_and_nothing_is_lost() {
    let config = "{ jobs: [{ name: 'a', restarts: 2, restartBackoff: false,
        logging: { file: '@/a.log', maxSize: '8KB', keep: 1000 },
        exec: ['sh', '-c', '@programs/lines.sh 3000; echo no >&2; exit 3'] }] }";
    for mode in modes() {
        let (code, log) = Supervisor::with_setup(mode, "echo before > @/a.log", config).run_to_end();
        assert_eq!(code, 3);
        assert!(!log.contains("a 1") && !log.contains(" line 5\n"));
        assert_eq!(log.matches("last output: line 2996 | line 2997 | line 2998 | line 2999 | no").count(), 3);
    }
}

impl Supervisor {
    /// Waits for the end and checks the files of the job.
    fn run_to_end(self) -> (i32, String) {
        let folder = self.folder().to_owned();
        wait_until("the last run has ended", || {
            self.log_so_far();
            fs::read_to_string(format!("{folder}/a.log")).is_ok_and(|text| text.ends_with("no\n"))
                && all_files(&folder).matches("no\n").count() == 3
        });
        let all = all_files(&folder);
        let run: String =
            (0..3000).map(|number| format!("line {number}\n")).chain(["no\n".to_owned()]).collect();
        assert_eq!(all.lines().count(), 1 + 3 * 3001);
        assert!(all == format!("before\n{}", run.repeat(3)), "every line is there, once and in order");
        let sizes = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
        let sizes = sizes.filter(|entry| entry.file_name().to_string_lossy().starts_with("a.log"));
        assert!(sizes.map(|entry| entry.metadata().unwrap().len()).all(|size| size <= 8 << 10));
        self.wait()
    }
}

fn all_files(folder: &str) -> String {
    let names = (1..200).rev().map(|number| format!("a.log.{number}")).chain(["a.log".to_owned()]);
    names.filter_map(|name| fs::read_to_string(format!("{folder}/{name}")).ok()).collect()
}

#[test]
fn l8_level_of_stderr_and_stack_traces() {
    let config = "{ logging: { format: 'json', level: 'LEVEL' }, jobs: [{ name: 'a',
        logging: { stderr: 'error', join: '^(\\\\s|Caused by)' },
        exec: ['sh', '-c', 'echo fine; printf \"oh no\\\\n\\\\tat x\\\\nCaused by: y\\\\n  at z\\\\nnext\\\\n\" >&2'] }] }";
    for mode in modes() {
        for level in ["info", "error"] {
            let (code, log) = Supervisor::start(mode, &config.replace("LEVEL", level)).wait();
            assert_eq!(code, 0);
            let entries: Vec<serde_json::Value> =
                log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let of = |stream: &str| -> Vec<(String, String)> {
                let own = entries.iter().filter(|entry| entry["stream"] == stream);
                let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
                own.map(|entry| (text(&entry["level"]), text(&entry["msg"]))).collect()
            };
            let error = |text: &str| ("error".to_owned(), text.to_owned());
            assert_eq!(of("stderr"), [error("oh no\n\tat x\nCaused by: y\n  at z"), error("next")]);
            let fine = [("info".to_owned(), "fine".to_owned())];
            assert_eq!(of("stdout"), if level == "info" { &fine[..] } else { &[] });
        }
    }
}

#[test]
fn l8_secrets_are_hidden_in_files_too() {
    let setup = "printf hunter2-hunter2 > @/one";
    let config = "{ secrets: { ONE: { file: '@/one' } }, jobs: [{ name: 'a', logging: { file: '@/a.log' },
        exec: ['sh', '-c', 'echo a $ONE b; printf hunter2; printf -- -hunter; echo 2 c'] }] }";
    let run = Supervisor::with_setup(modes()[0], setup, config);
    let file = run.file("a.log");
    wait_until("it is written", || fs::read_to_string(&file).is_ok_and(|text| text == "a *** b\n*** c\n"));
    assert_eq!(run.wait().0, 0);
}

#[test]
fn l8_logs_shows_the_lines_and_sigusr1_reopens_the_file() {
    let config = "{ jobs: [{ name: 'a', logging: { file: '@/a.log', maxSize: 0 }, exec: ['sh', '-c',
        'echo one; while [ ! -e @/go ]; do sleep 0.01; done; echo two; exec sleep 1000'] }] }"
        .replace("',\n        '", "', '");
    for mode in modes() {
        let run = Supervisor::start(mode, &config);
        wait_until("it is written", || run.read("a.log") == "one\n");
        wait_until("the line is kept", || ask(&run, &["logs", "a"]) == "one\n");
        fs::rename(run.file("a.log"), run.file("old")).unwrap();
        run.signal("-USR1");
        wait_until("the file is reopened", || run.file("a.log").exists());
        fs::write(run.file("go"), "").unwrap();
        wait_until("the new file is written", || run.read("a.log") == "two\n");
        assert_eq!(run.read("old"), "one\n");
        let explained = ask(&run, &["explain", "a"]);
        assert!(explained.contains("a.log"), "{explained}");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn s16_missing_folder_of_a_log_file_is_created() {
    for mode in modes() {
        let config = "{ jobs: [{ name: 'a', logging: { file: '@/new/deep/a.log' }, exec: 'echo hello' }] }";
        let run = Supervisor::start(mode, config);
        let file = run.file("new/deep/a.log");
        wait_until("it is written", || fs::read_to_string(&file).is_ok_and(|text| text == "hello\n"));
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn s16_log_file_that_cannot_be_written_does_not_delay_the_exit() {
    for mode in modes() {
        let config = "{ stopTimeout: 60, logging: { output: '@/log' }, jobs: [{ name: 'a',
            logging: { file: '@/file/a.log' }, exec: ['sh', '-c', 'echo lost; exec sleep 1000'] }] }"
            .replace("',\n            logging", "', logging");
        let run = Supervisor::with_setup(mode, ": > @/file", &config);
        let log = run.file("log");
        let log = || fs::read_to_string(&log).unwrap_or_default();
        wait_until("the file cannot be written", || log().contains("cannot write the log to "));
        let began = Instant::now();
        run.signal("-TERM");
        // In the log when the job has ended, or on standard error when the supervisor ends.
        let counts = |text: &str| text.contains("1 lines (5 bytes) of ");
        wait_until("the loss is counted", || counts(&run.stderr()) || counts(&log()));
        let code = run.wait().0;
        assert!(code == 0 && began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

#[test]
fn s16_log_file_that_cannot_be_written_is_a_warning_at_the_start() {
    let config = "{ jobs: [{ name: 'a', logging: { file: '@/file/a.log' }, exec: 'true' }] }";
    let run = Supervisor::with_setup(modes()[0], ": > @/file", config);
    let warning = format!("log file `{}/file/a.log` cannot be written: not a directory", run.folder());
    wait_until(&warning, || run.stderr().contains(&warning));
    assert_eq!(run.wait().0, 0);
}

#[test]
fn s16_lines_of_a_file_that_cannot_be_written_are_lost_when_the_job_ends() {
    for mode in modes() {
        let config = "{ jobs: [{ name: 'a', logging: { file: '@/file/a.log' }, exec: ['sh', '-c', 'echo one; echo two'],
            restarts: 'unlimited', restartBackoff: { initial: '1s', max: '1s' } },
            { name: 'main', exec: 'sleep 1000' }] }"
            .replace("'],\n            ", "'], ");
        let mut run = Supervisor::with_setup(mode, ": > @/file", &config);
        run.wait_for_line("2 lines (8 bytes) of ");
        run.wait_for_line("2 lines (8 bytes) of ");
        assert!(!run.log_so_far().contains("works again"), "{}", run.log_so_far());
        // When it can be written, the next lines are, from the beginning.
        let file = run.file("file");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        wait_until("it is written", || {
            fs::read_to_string(file.join("a.log")).is_ok_and(|text| text.starts_with("one\ntwo\n"))
        });
        run.wait_for_line("writing the log works again");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

/// A file is in the place of the folder, then the folder is created, then its disk is full, then it has space again.
#[test]
fn l8_job_waits_for_its_file_and_other_jobs_do_not() {
    if !is_root() {
        skip("only root can mount a small file system");
        return;
    }
    let setup = "mkdir @/disk; mount -t tmpfs -o size=64k,mode=777 tmpfs @/disk || exit 0; : > @/disk/in";
    let config = "{ jobs: [
        { name: 'a', logging: { file: '@/disk/in/a.log', maxSize: 0 }, exec: ['sh', '-c',
          '@programs/lines.sh 200000; echo the end'] },
        { name: 'tick', exec: ['sh', '-c', 'echo tock; echo x >> @/ticks'], when: { interval: '20ms' } } ] }"
        .replace("',\n          '", "', '");
    let mut run = Supervisor::with_setup(Mode::Pid1, setup, &config);
    run.wait_for_line("cannot write the log to ");
    let root = format!("/proc/{}/root{}/disk", run.pid(), run.folder());
    let ticks = |run: &Supervisor| run.size("ticks");
    let before = ticks(&run);
    wait_until("the other job runs and is logged", || ticks(&run) > before + 20);
    fs::remove_file(format!("{root}/in")).unwrap();
    run.wait_for_line("writing the log works again");
    run.wait_for_line("no space left on device; retrying every second");
    let before = ticks(&run);
    wait_until("the other job runs and is logged", || ticks(&run) > before + 20);
    assert_eq!(run.log_so_far().matches("no space left").count(), 1, "it is said once");
    let remounted = Command::new("nsenter")
        .args(["-t", &run.pid().to_string(), "-m", "mount", "-o", "remount,size=4m"])
        .arg(format!("{}/disk", run.folder()))
        .status_in_time();
    assert!(remounted.unwrap().success());
    run.wait_for_line("a exited with code 0");
    wait_until("the last line is written", || {
        fs::read_to_string(format!("{root}/in/a.log")).is_ok_and(|text| text.ends_with("the end\n"))
    });
    let text = fs::read_to_string(format!("{root}/in/a.log")).unwrap();
    let expected: String = (0..200_000).map(|number| format!("line {number}\n")).collect();
    assert!(text == format!("{expected}the end\n"), "nothing is lost");
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

/// A job that owns the folder of its log puts something else in the place of the file.
#[test]
fn l8_no_other_file_is_written_through_the_log_of_a_job() {
    let setup = "echo precious > @/target; ln -s target @/link; mkfifo @/fifo; mkdir @/folder";
    let job = |name: &str| {
        format!("{{ name: '{name}', exec: ['sh', '-c', 'echo hello'], logging: {{ file: '@/{name}' }} }}")
    };
    let jobs = ["link", "fifo", "folder"].map(job).join(", ");
    let config = format!("{{ stopTimeout: 1, jobs: [{jobs}, {{ name: 'z', exec: 'sleep 1000' }}] }}");
    let mut run = Supervisor::with_setup(modes()[0], setup, &config);
    run.wait_for_line("z started");
    for (name, why) in
        [("link", "it is a symbolic link"), ("fifo", "not a regular file"), ("folder", "is a directory")]
    {
        let said = format!("/{name}: {why}; retrying every second");
        run.wait_for_lines(&said, 1);
        run.wait_for_lines(&format!("{name} exited with code 0"), 1);
    }
    assert_eq!(run.read("target"), "precious\n");
    // S16: the jobs have ended.
    run.wait_for_lines("1 lines (6 bytes) of ", 3);
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn r5_l8_reload_changes_the_log_of_a_running_job() {
    let config = |logging: &str| {
        format!(
            "{{ jobs: [{{ name: 'a', logging: {logging}, exec: ['sh', '-c',
              'while sleep 0.01; do echo tick; echo error >&2; done'] }}] }}"
        )
        .replace("',\n              '", "', '")
    };
    let run = Supervisor::start(modes()[0], &config("{ file: '@/one' }"));
    wait_until("it is written", || run.size("one") > 50);
    let pid = ask(&run, &["status", "--format", "json"]);
    let pid_of = |status: &str| -> u64 {
        let status: serde_json::Value = serde_json::from_str(status).unwrap();
        status["jobs"][0]["pid"].as_u64().unwrap()
    };
    run.rewrite(&config("{ file: '@/two', maxSize: '4KB', keep: 2 }"));
    ask(&run, &["reload"]);
    wait_until("the new file is written and rotated", || run.file("two.2").exists());
    assert!(!run.file("two.3").exists() && run.size("two") <= 4096);
    assert_eq!(
        pid_of(&pid),
        pid_of(&ask(&run, &["status", "--format", "json"])),
        "the process keeps running"
    );
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

/// Anonymous memory and open descriptors of the supervisor.
fn resources(run: &Supervisor) -> (u64, usize) {
    let status = fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let kib = memory.trim().trim_end_matches(" kB").parse().unwrap();
    (kib, fs::read_dir(format!("/proc/{}/fd", run.pid())).unwrap().count())
}

#[test]
fn l8_memory_and_descriptors_of_many_log_files_are_returned() {
    let config = "{ control: { socket: '@/socket' }, jobs: [{ name: 'web', replicas: 1,
        exec: ['sh', '-c', 'yes some line | head -c 2000000; exec sleep 1000'],
        logging: { file: '@/log-$CONTAINERPILOT_REPLICA' } }] }";
    let run = Supervisor::start(Mode::Plain, config);
    let is_written =
        |nth: usize| fs::metadata(run.file(&format!("log-{nth}"))).is_ok_and(|file| file.len() == 2_000_000);
    wait_until("it has written its log", || is_written(1));
    let (before, descriptors) = resources(&run);
    ask(&run, &["scale", "web=100"]);
    wait_until("all have written their logs", || (1..=100).all(is_written));
    let (most, _) = resources(&run);
    ask(&run, &["scale", "web=1"]);
    // The stacks of some threads are kept for the next ones.
    let mut left = (0, 0);
    wait_until(&format!("{before} of {most} KiB and {descriptors} descriptors are left"), || {
        left = resources(&run);
        left.0 <= 2 * before + 4096 && left.1 <= descriptors + 10
    });
    assert!(most > 8 * before, "{before} {most} {left:?}");
}
