//! What is done to the supervisor, by rng.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::rng::Rng;
use crate::supervisor::until;
use crate::world::{SERVICES, WRITERS, World};

/// Something that has to be undone, and when.
enum Undo {
    WakeConsul,
    StartConsul,
    Dry,
    Heal(&'static str),
    EndMaintenance,
    StartJob(&'static str),
}

pub(crate) struct Chaos {
    rng: Rng,
    undo: Vec<(Instant, Undo)>,
    /// What was done how often.
    pub(crate) done: BTreeMap<&'static str, u64>,
    /// Whether Consul cannot be asked just now.
    consul_is_away: bool,
    pub(crate) wrong: Vec<String>,
}

impl Chaos {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            undo: Vec::new(),
            done: BTreeMap::new(),
            consul_is_away: false,
            wrong: Vec::new(),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    fn later(&mut self, least: u64, most: u64, undo: Undo) {
        let wait = Duration::from_millis(least + self.rng.below(most - least));
        self.undo.push((Instant::now() + wait, undo));
    }

    /// One thing, and a short pause.
    pub(crate) fn step(&mut self, world: &mut World) {
        self.undo_due(world, false);
        match self.rng.below(100) {
            0..25 => self.kill(world),
            25..35 => self.freeze(world),
            35..37 if !self.consul_is_away => self.freeze_consul(world),
            37 if !self.consul_is_away => self.kill_consul(world),
            38..41 => self.flood(world),
            41..50 => self.reload(world),
            50..53 => self.break_configuration(world),
            53..70 => self.ask(world),
            70..75 => self.order(world),
            75..78 => self.maintain(world),
            78..82 => self.storm(world),
            82..88 => self.make_ill(world),
            88..91 => self.stop_reading(world),
            91..95 => self.misbehave(world),
            _ => self.scrape(world),
        }
        std::thread::sleep(Duration::from_millis(self.rng.below(120)));
    }

    fn undo_due(&mut self, world: &mut World, all: bool) {
        let now = Instant::now();
        let (due, later) =
            std::mem::take(&mut self.undo).into_iter().partition(|(when, _)| all || *when <= now);
        self.undo = later;
        let due: Vec<(Instant, Undo)> = due;
        for (_, undo) in due {
            match undo {
                Undo::WakeConsul => {
                    world.agent.signal("-CONT");
                    self.consul_is_away = false;
                }
                Undo::StartConsul => {
                    world.agent.start();
                    self.consul_is_away = false;
                }
                Undo::Dry => drop(fs::remove_file(world.folder.join("flood"))),
                Undo::Heal(job) => drop(fs::remove_file(world.folder.join(format!("ill-{job}")))),
                Undo::EndMaintenance => drop(world.ask("POST", "/v3/maintenance/disable", "")),
                Undo::StartJob(job) => drop(world.ask("POST", &format!("/v3/jobs/{job}/start"), "")),
            }
        }
    }

    fn kill(&mut self, world: &World) {
        let signals = [
            Signal::SIGKILL,
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGSEGV,
            Signal::SIGHUP,
            Signal::SIGQUIT,
        ];
        if let (Some(pid), Some(signal)) = (self.rng.of(&world.children()), self.rng.of(&signals)) {
            let _ = kill(Pid::from_raw(*pid), *signal);
            self.count("kills of processes");
        }
    }

    fn freeze(&mut self, world: &World) {
        if let Some(pid) = self.rng.of(&world.children()) {
            let pid = Pid::from_raw(*pid);
            let _ = kill(pid, Signal::SIGSTOP);
            let nap = Duration::from_millis(50 + self.rng.below(3_000));
            // By somebody else: a process that is frozen before it has become its program holds the supervisor up, and so
            // whoever waits for an answer.
            std::thread::spawn(move || {
                std::thread::sleep(nap);
                let _ = kill(pid, Signal::SIGCONT);
            });
            self.count("freezes of processes");
        }
    }

    fn freeze_consul(&mut self, world: &World) {
        world.agent.signal("-STOP");
        self.consul_is_away = true;
        self.later(300, 4_000, Undo::WakeConsul);
        self.count("freezes of Consul");
    }

    fn kill_consul(&mut self, world: &mut World) {
        world.agent.kill();
        self.consul_is_away = true;
        self.later(100, 3_000, Undo::StartConsul);
        self.count("restarts of Consul, all forgotten");
    }

    fn flood(&mut self, world: &World) {
        let _ = fs::write(world.folder.join("flood"), "");
        self.later(100, 1_000, Undo::Dry);
        self.count("floods of output");
    }

    fn reload(&mut self, world: &mut World) {
        for _ in 0..=self.rng.below(2) {
            let job = self.rng.below(6);
            match self.rng.below(3) {
                0 => drop(world.extras.remove(&job)),
                _ => *world.extras.entry(job).or_default() += 1,
            }
        }
        world.configure();
        if self.rng.one_in(3) {
            // Several at once; nobody waits for their answers.
            for _ in 0..=self.rng.below(20) {
                world.signal(Signal::SIGHUP);
            }
            self.count("reloads by signal");
            return;
        }
        let (status, body) = world.ask("POST", "/v3/reload", "");
        if status != 200 {
            self.wrong.push(format!("a reload was answered with {status}: {body}"));
        }
        self.count("reloads");
    }

    fn break_configuration(&mut self, world: &World) {
        let texts = ["{ jobs: [", "{ jobs: [{ nmae: 'x', exec: 'true' }] }", "", "{{ .X ", "{ jobs: 7 } }"];
        world.configure_with(self.rng.of(&texts).copied().unwrap_or_default());
        let (status, body) = world.ask("POST", "/v3/reload", "");
        if status != 422 {
            self.wrong.push(format!("a broken file was answered with {status}: {body}"));
        }
        world.configure();
        self.count("reloads of broken files");
    }

    fn ask(&mut self, world: &World) {
        let paths = [
            "/v3/status",
            "/v3/health",
            "/v3/ping",
            "/v3/jobs/w0/explain",
            "/v3/jobs/w3/logs",
            "/v3/jobs/hook/explain",
            "/v3/events?follow=false",
        ];
        let path = self.rng.of(&paths).copied().unwrap_or_default();
        let (status, body) = world.ask("GET", path, "");
        if status != 200 && (path, status) != ("/v3/health", 503) {
            self.wrong.push(format!("{path} was answered with {status}: {body}"));
        }
        self.count("questions");
    }

    fn order(&mut self, world: &World) {
        let job = self.rng.of(&WRITERS).copied().unwrap_or_default();
        let (path, body) = match self.rng.below(5) {
            0 => {
                self.later(100, 2_000, Undo::StartJob(job));
                (format!("/v3/jobs/{job}/stop"), "")
            }
            1 => (format!("/v3/jobs/{job}/restart"), ""),
            2 => (format!("/v3/jobs/{job}/signal"), "{\"signal\": \"SIGTERM\"}"),
            3 => ("/v3/environ".to_owned(), "{\"COLOUR\": \"blue\", \"OLD\": null}"),
            _ => ("/v3/metric".to_owned(), "{\"soak_steps\": 1}"),
        };
        let (status, answer) = world.ask("POST", &path, body);
        // What cannot be done just now is refused in words.
        if !(status == 200 || status == 409 && !answer.is_empty()) {
            self.wrong.push(format!("{path} was answered with {status}: {answer}"));
        }
        self.count("orders");
    }

    fn maintain(&mut self, world: &World) {
        let (status, _) = world.ask("POST", "/v3/maintenance/enable", "");
        if status != 200 {
            self.wrong.push(format!("maintenance was answered with {status}"));
        }
        self.later(100, 2_000, Undo::EndMaintenance);
        self.count("maintenances");
    }

    fn storm(&mut self, world: &World) {
        let signals = [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGCHLD, Signal::SIGCONT, Signal::SIGWINCH];
        for _ in 0..200 {
            if let Some(signal) = self.rng.of(&signals) {
                world.signal(*signal);
            }
        }
        self.count("storms of 200 signals");
    }

    fn make_ill(&mut self, world: &World) {
        let job = self.rng.of(&SERVICES).copied().unwrap_or_default();
        let _ = fs::write(world.folder.join(format!("ill-{job}")), "");
        self.later(200, 3_000, Undo::Heal(job));
        self.count("illnesses");
    }

    fn stop_reading(&mut self, world: &World) {
        world.frozen.store(50 + self.rng.below(400), Ordering::SeqCst);
        self.count("pauses of the log's reader");
    }

    /// A client that sends garbage, or nothing, and goes away.
    fn misbehave(&mut self, world: &World) {
        if let Ok(mut stream) = UnixStream::connect(world.folder.join("socket")) {
            let _ = match self.rng.below(3) {
                0 => stream.write_all(b"\x00\x01\x02 garbage\r\n\r\n"),
                1 => stream.write_all(b"POST /v3/environ HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{"),
                _ => Ok(()),
            };
        }
        self.count("rude clients");
    }

    fn scrape(&mut self, world: &World) {
        let (status, page) = world.page("/metrics");
        if status != 200 || !page.contains("containerpilot_job_up") {
            self.wrong.push(format!("/metrics was answered with {status}"));
        }
        self.count("scrapes");
    }

    /// Undoes everything, and waits until all is as it was meant to be.
    pub(crate) fn calm(&mut self, world: &mut World) {
        self.undo_due(world, true);
        world.extras.clear();
        world.configure();
        until("a reload to the first configuration is refused", || {
            world.ask("POST", "/v3/reload", "").0 == 200
        });
        let mut states = BTreeMap::new();
        let began = Instant::now();
        loop {
            states.clone_from(&world.states());
            for job in WRITERS {
                if matches!(states.get(job).map(String::as_str), Some("stopped" | "complete")) {
                    world.ask("POST", &format!("/v3/jobs/{job}/start"), "");
                }
            }
            let running = |job: &&str| states.get(*job).is_some_and(|state| state == "running");
            let wanted = ["w0", "w1", "w2", "containerpilot"];
            let differs = world.catalog_differs(&wanted);
            if WRITERS.iter().all(running) && differs.is_none() {
                return;
            }
            if began.elapsed() > Duration::from_secs(120) {
                self.wrong.push(format!("it does not calm down: {differs:?}; {states:?}"));
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
