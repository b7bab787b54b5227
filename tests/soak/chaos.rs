//! Random actions that disturb the supervisor, its jobs and Consul.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::fixture::{Fixture, SERVICES, WRITERS};
use crate::rng::Rng;
use crate::support::deadline::holds_within;
use crate::support::supervisor::wait_until;

/// How to undo an action.
enum Undo {
    ResumeConsul,
    StartConsul,
    StopFlood,
    PassChecks(&'static str),
    EndMaintenance,
    StartJob(&'static str),
}

pub(crate) struct Chaos {
    rng: Rng,
    undo: Vec<(Instant, Undo)>,
    /// How often each action was done.
    pub(crate) done: BTreeMap<&'static str, u64>,
    /// Whether Consul is stopped or killed now.
    consul_is_down: bool,
    pub(crate) wrong: Vec<String>,
}

impl Chaos {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            undo: Vec::new(),
            done: BTreeMap::new(),
            consul_is_down: false,
            wrong: Vec::new(),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    fn undo_later(&mut self, least: u64, most: u64, undo: Undo) {
        let wait = Duration::from_millis(least + self.rng.below(most - least));
        self.undo.push((Instant::now() + wait, undo));
    }

    /// Does one random action and pauses briefly.
    pub(crate) fn step(&mut self, fixture: &mut Fixture) {
        self.undo_due(fixture, false);
        match self.rng.below(100) {
            0..25 => self.kill_process(fixture),
            25..35 => self.suspend_process(fixture),
            35..37 if !self.consul_is_down => self.suspend_consul(fixture),
            37 if !self.consul_is_down => self.kill_consul(fixture),
            38..41 => self.flood(fixture),
            41..50 => self.reload(fixture),
            50..53 => self.break_configuration(fixture),
            53..70 => self.query(fixture),
            70..75 => self.command(fixture),
            75..78 => self.enter_maintenance(fixture),
            78..82 => self.send_signals(fixture),
            82..88 => self.fail_checks(fixture),
            88..91 => self.pause_log_reader(fixture),
            91..95 => self.connect_badly(fixture),
            _ => self.scrape(fixture),
        }
        std::thread::sleep(Duration::from_millis(self.rng.below(120)));
    }

    fn undo_due(&mut self, fixture: &mut Fixture, all: bool) {
        let now = Instant::now();
        let (due, later) =
            std::mem::take(&mut self.undo).into_iter().partition(|(when, _)| all || *when <= now);
        self.undo = later;
        let due: Vec<(Instant, Undo)> = due;
        for (_, undo) in due {
            match undo {
                Undo::ResumeConsul => {
                    fixture.agent.signal("-CONT");
                    self.consul_is_down = false;
                }
                Undo::StartConsul => {
                    fixture.agent.start();
                    self.consul_is_down = false;
                }
                Undo::StopFlood => drop(fs::remove_file(fixture.folder.join("flood"))),
                Undo::PassChecks(job) => drop(fs::remove_file(fixture.folder.join(format!("ill-{job}")))),
                Undo::EndMaintenance => drop(fixture.request("POST", "/v3/maintenance/disable", "")),
                Undo::StartJob(job) => drop(fixture.request("POST", &format!("/v3/jobs/{job}/start"), "")),
            }
        }
    }

    fn kill_process(&mut self, fixture: &Fixture) {
        let signals = [
            Signal::SIGKILL,
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGSEGV,
            Signal::SIGHUP,
            Signal::SIGQUIT,
        ];
        if let (Some(pid), Some(signal)) = (self.rng.choose(&fixture.children()), self.rng.choose(&signals)) {
            let _ = kill(Pid::from_raw(*pid), *signal);
            self.count("processes killed");
        }
    }

    fn suspend_process(&mut self, fixture: &Fixture) {
        if let Some(pid) = self.rng.choose(&fixture.children()) {
            let pid = Pid::from_raw(*pid);
            let _ = kill(pid, Signal::SIGSTOP);
            let pause = Duration::from_millis(50 + self.rng.below(3_000));
            // In another thread: a process that is stopped before `execve` blocks the supervisor, and this thread may wait
            // for a response of it.
            std::thread::spawn(move || {
                std::thread::sleep(pause);
                let _ = kill(pid, Signal::SIGCONT);
            });
            self.count("processes stopped by SIGSTOP");
        }
    }

    fn suspend_consul(&mut self, fixture: &Fixture) {
        fixture.agent.signal("-STOP");
        self.consul_is_down = true;
        self.undo_later(300, 4_000, Undo::ResumeConsul);
        self.count("times Consul was stopped by SIGSTOP");
    }

    fn kill_consul(&mut self, fixture: &mut Fixture) {
        fixture.agent.kill();
        self.consul_is_down = true;
        self.undo_later(100, 3_000, Undo::StartConsul);
        self.count("restarts of Consul with loss of its data");
    }

    fn flood(&mut self, fixture: &Fixture) {
        let _ = fs::write(fixture.folder.join("flood"), "");
        self.undo_later(100, 1_000, Undo::StopFlood);
        self.count("floods of job output");
    }

    fn reload(&mut self, fixture: &mut Fixture) {
        for _ in 0..=self.rng.below(2) {
            let job = self.rng.below(6);
            match self.rng.below(3) {
                0 => drop(fixture.extras.remove(&job)),
                _ => *fixture.extras.entry(job).or_default() += 1,
            }
        }
        fixture.configure();
        if self.rng.one_in(3) {
            // Several reloads at once, without waiting.
            for _ in 0..=self.rng.below(20) {
                fixture.signal(Signal::SIGHUP);
            }
            self.count("reloads by signal");
            return;
        }
        let (status, body) = fixture.request("POST", "/v3/reload", "");
        if status != 200 {
            self.wrong.push(format!("status {status} for a reload: {body}"));
        }
        self.count("reloads");
    }

    fn break_configuration(&mut self, fixture: &Fixture) {
        let texts = ["{ jobs: [", "{ jobs: [{ nmae: 'x', exec: 'true' }] }", "", "{{ .X ", "{ jobs: 7 } }"];
        fixture.configure_with(self.rng.choose(&texts).copied().unwrap_or_default());
        let (status, body) = fixture.request("POST", "/v3/reload", "");
        if status != 422 {
            self.wrong.push(format!("status {status} for a reload of a broken file: {body}"));
        }
        fixture.configure();
        self.count("reloads of broken files");
    }

    fn query(&mut self, fixture: &Fixture) {
        let paths = [
            "/v3/status",
            "/v3/health",
            "/v3/ping",
            "/v3/jobs/w0/explain",
            "/v3/jobs/w3/logs",
            "/v3/jobs/hook/explain",
            "/v3/events?follow=false",
        ];
        let path = self.rng.choose(&paths).copied().unwrap_or_default();
        let (status, body) = fixture.request("GET", path, "");
        if status != 200 && (path, status) != ("/v3/health", 503) {
            self.wrong.push(format!("status {status} for {path}: {body}"));
        }
        self.count("queries");
    }

    fn command(&mut self, fixture: &Fixture) {
        let job = self.rng.choose(&WRITERS).copied().unwrap_or_default();
        let (path, body) = match self.rng.below(5) {
            0 => {
                self.undo_later(100, 2_000, Undo::StartJob(job));
                (format!("/v3/jobs/{job}/stop"), "")
            }
            1 => (format!("/v3/jobs/{job}/restart"), ""),
            2 => (format!("/v3/jobs/{job}/signal"), "{\"signal\": \"SIGTERM\"}"),
            3 => ("/v3/environ".to_owned(), "{\"COLOUR\": \"blue\", \"OLD\": null}"),
            _ => ("/v3/metric".to_owned(), "{\"soak_steps\": 1}"),
        };
        let (status, answer) = fixture.request("POST", &path, body);
        // A command that is impossible now is refused with a reason.
        if !(status == 200 || status == 409 && !answer.is_empty()) {
            self.wrong.push(format!("status {status} for {path}: {answer}"));
        }
        self.count("commands");
    }

    fn enter_maintenance(&mut self, fixture: &Fixture) {
        let (status, _) = fixture.request("POST", "/v3/maintenance/enable", "");
        if status != 200 {
            self.wrong.push(format!("status {status} for maintenance"));
        }
        self.undo_later(100, 2_000, Undo::EndMaintenance);
        self.count("times in maintenance");
    }

    fn send_signals(&mut self, fixture: &Fixture) {
        let signals = [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGCHLD, Signal::SIGCONT, Signal::SIGWINCH];
        for _ in 0..200 {
            if let Some(signal) = self.rng.choose(&signals) {
                fixture.signal(*signal);
            }
        }
        self.count("bursts of 200 signals");
    }

    fn fail_checks(&mut self, fixture: &Fixture) {
        let job = self.rng.choose(&SERVICES).copied().unwrap_or_default();
        let _ = fs::write(fixture.folder.join(format!("ill-{job}")), "");
        self.undo_later(200, 3_000, Undo::PassChecks(job));
        self.count("periods of failing checks");
    }

    fn pause_log_reader(&mut self, fixture: &Fixture) {
        fixture.log_pause.store(50 + self.rng.below(400), Ordering::SeqCst);
        self.count("pauses of the log reader");
    }

    /// Connects to the control socket, sends garbage, half a request or nothing, and disconnects.
    fn connect_badly(&mut self, fixture: &Fixture) {
        if let Ok(mut stream) = UnixStream::connect(fixture.folder.join("socket")) {
            let _ = match self.rng.below(3) {
                0 => stream.write_all(b"\x00\x01\x02 garbage\r\n\r\n"),
                1 => {
                    stream.write_all(b"POST /v3/environ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
                }
                _ => Ok(()),
            };
        }
        self.count("bad clients");
    }

    fn scrape(&mut self, fixture: &Fixture) {
        let (status, page) = fixture.page("/metrics");
        if status != 200 || !page.contains("containerpilot_job_up") {
            self.wrong.push(format!("status {status} for /metrics"));
        }
        self.count("scrapes");
    }

    /// Undoes all actions, and waits until all jobs run and all services are registered.
    pub(crate) fn recover(&mut self, fixture: &mut Fixture) {
        self.undo_due(fixture, true);
        fixture.extras.clear();
        fixture.configure();
        wait_until("a reload of the original configuration succeeds", || {
            fixture.request("POST", "/v3/reload", "").0 == 200
        });
        let (mut states, mut differs) = (BTreeMap::new(), None);
        let has_recovered = holds_within(Duration::from_secs(120), || {
            states = fixture.states();
            for job in WRITERS {
                if matches!(states.get(job).map(String::as_str), Some("stopped" | "complete" | "skipped")) {
                    fixture.request("POST", &format!("/v3/jobs/{job}/start"), "");
                }
            }
            let running = |job: &&str| states.get(*job).is_some_and(|state| state == "running");
            let wanted = ["w0", "w1", "w2", "containerpilot"];
            differs = fixture.catalog_differs(&wanted);
            WRITERS.iter().all(running) && differs.is_none()
        });
        if !has_recovered {
            self.wrong.push(format!("it does not recover: {differs:?}; {states:?}"));
        }
    }
}
