//! Schedules: the programs of several supervisors, the network, and what happens to them.

use std::time::Duration;

use containerpilot_core::plan::Lock;
use containerpilot_core::rng::Rng;

/// How the process of a job behaves.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// When it exits by itself, counted from its start.
    pub exits_after: Option<Duration>,
    /// How long it takes to exit on its stop signal; `None` if it ignores it.
    pub on_term: Option<Duration>,
    /// How long it takes to die of SIGKILL.
    pub dies_after: Duration,
    /// How long the job drains.
    pub drain: Duration,
}

/// Something that happens beside the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// A supervisor cannot reach Consul for some milliseconds.
    Partition(usize, u64),
    /// A supervisor is frozen for some milliseconds; its job is not.
    Freeze(usize, u64),
    /// Consul has no leader for some milliseconds.
    NoLeader(u64),
    /// A key is deleted by hand.
    Delete(usize),
    /// The session of a holder is destroyed by hand.
    Destroy(usize),
    /// The value of the key is replaced by hand.
    Overwrite,
    /// A supervisor is shut down.
    Shutdown(usize),
    /// A supervisor is killed with its job.
    Crash(usize),
    /// A supervisor that is gone is started again.
    Restart(usize),
}

/// How bad the network is, in percent.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Requests that are lost.
    pub lost: u64,
    /// Answers that are lost after the request was carried out.
    pub answer_lost: u64,
    /// Requests that take seconds.
    pub slow: u64,
    /// Requests that are carried out long after they were given up.
    pub late: u64,
}

/// A schedule.
#[derive(Clone, Debug)]
pub struct LockSchedule {
    /// The lock.
    pub lock: Lock,
    /// The programs of the supervisors.
    pub programs: Vec<Program>,
    /// How bad the network is.
    pub network: Network,
    /// What happens, by milliseconds; in order.
    pub incidents: Vec<(u64, Incident)>,
    /// True if the job of a supervisor that was frozen may overlap with others.
    pub excuses_frozen: bool,
    /// For delays.
    pub seed: u64,
}

/// The schedule of a seed.
#[must_use]
pub fn schedule(seed: u64) -> LockSchedule {
    let mut rng = Rng::from_seed(seed);
    let supervisors = 2 + rng.index(3);
    let slots = rng.pick(&[1, 1, 1, 2, 2, 3]);
    let ttl = Duration::from_secs(rng.pick(&[10, 10, 15, 30, 90]));
    let program = |rng: &mut Rng| Program {
        exits_after: rng.percent(20).then(|| Duration::from_millis(500 + rng.below(40_000))),
        on_term: (!rng.percent(20)).then(|| Duration::from_millis(rng.below(6_000))),
        dies_after: Duration::from_millis(rng.below(300)),
        drain: Duration::from_millis(rng.pick(&[0, 0, 1_000, 20_000])),
    };
    let programs = (0..supervisors).map(|_| program(&mut rng)).collect();
    let network = match rng.below(4) {
        0 => Network { lost: 0, answer_lost: 0, slow: 0, late: 0 },
        1 => Network { lost: 5, answer_lost: 5, slow: 5, late: 2 },
        _ => Network { lost: 10, answer_lost: 15, slow: 10, late: 10 },
    };
    let mut incidents = Vec::new();
    let mut now = 0;
    for _ in 0..rng.below(16) {
        now += rng.pick(&[0, 10, 200, 1_000, 3_000, 10_000, 30_000]) + rng.below(1_000);
        let whom = rng.index(supervisors);
        let long = rng.pick(&[100, 1_000, 5_000, 12_000, 25_000, 60_000]) + rng.below(500);
        let incident = match rng.below(20) {
            0..5 => Incident::Partition(whom, long),
            5..7 => Incident::Freeze(whom, long),
            7 | 8 => Incident::NoLeader(rng.pick(&[100, 2_000, 15_000])),
            9..12 => Incident::Delete(rng.index(8)),
            12..15 => Incident::Destroy(rng.index(8)),
            15 => Incident::Overwrite,
            16 => Incident::Shutdown(whom),
            17 => Incident::Crash(whom),
            _ => Incident::Restart(whom),
        };
        incidents.push((now, incident));
    }
    LockSchedule {
        lock: Lock { name: "primary".into(), key: "k".into(), ttl, slots },
        programs,
        network,
        incidents,
        excuses_frozen: true,
        seed,
    }
}
