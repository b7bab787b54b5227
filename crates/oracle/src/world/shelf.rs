//! The catalog: the embedded one, one of which nobody knows what it holds, or an agent and the real reconciler.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::reconcile::Settings;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::{JobIx, WatchIx};
use containerpilot_core::input::{Input, Instance};
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{Catalog, Health, Job, Status};

use super::{Coming, World};
use crate::catalog::Incident;
use crate::catalog::agency::Agency;
use crate::invariants::{Violation, Witness};
use crate::scenario::{Keeping, Script};

/// What keeps the service of one job in the catalog.
pub(super) struct Shelf {
    agency: Option<Agency>,
    /// What is still to befall the agent.
    incidents: Vec<(Time, Incident)>,
    /// Whether the embedded catalog holds the service as passing.
    passing: bool,
}

impl Shelf {
    pub(super) fn new(embedded: bool, job: &Job, script: &Script) -> Self {
        let nothing = Self { agency: None, incidents: Vec::new(), passing: false };
        match &script.catalog {
            Keeping::Kept { dropped_after, fates, incidents, seed } if !embedded && job.service.is_some() => {
                let settings = settings(job);
                let dropped_after = dropped_after.filter(|_| settings.drops_critical);
                let agency = Agency::new(settings, dropped_after, fates.clone(), *seed);
                let at = |milliseconds: u64| Time::from_nanos(milliseconds * 1_000_000);
                let incidents = incidents.iter().map(|(ms, incident)| (at(*ms), *incident)).collect();
                Self { agency: Some(agency), incidents, ..nothing }
            }
            _ => nothing,
        }
    }

    /// When something happens next that the others may hear of.
    fn next(&self) -> Option<Time> {
        let agency = self.agency.as_ref()?;
        let incident = self.incidents.first().map(|(at, _)| *at);
        agency.next().into_iter().chain(incident).min()
    }

    fn advance(&mut self, until: Time) -> Result<(), String> {
        let Some(agency) = &mut self.agency else { return Ok(()) };
        while let Some((at, incident)) = self.incidents.first().copied().filter(|(at, _)| *at <= until) {
            agency.advance(at)?;
            agency.befalls(at, incident);
            self.incidents.remove(0);
        }
        agency.advance(until)
    }
}

/// What the reconciler must know of a service, as the runtime tells it.
fn settings(job: &Job) -> Settings {
    let ttl = job.service.as_ref().map_or(Duration::from_secs(15), |service| service.ttl);
    let drops = job.service.as_ref().is_some_and(|service| service.deregister_critical_after.is_some());
    let checks = |health: &Health| health.checks.iter().map(|check| check.interval).min();
    let pace = job.health.as_ref().and_then(|health| health.heartbeat.or_else(|| checks(health)));
    Settings { ttl, pace: pace.unwrap_or(ttl / 3), drops_critical: drops }
}

impl World<'_> {
    pub(super) fn advertise(&mut self, job: JobIx, desired: DesiredService) {
        if let Some(agency) = &mut self.shelves[job.index()].agency {
            agency.want(self.now, desired);
            if desired != DesiredService::Absent {
                self.forget_withdrawal(job);
            }
            return;
        }
        match desired {
            DesiredService::Absent => {
                self.tell_watches(job.index(), false);
                let Keeping::Told(after) = self.version().scripts[job.index()].catalog else { return };
                if let Some(after) = after {
                    let place = self.add(after, Coming::Input(Input::Deregistered { job }));
                    self.withdrawals.insert(job, place);
                }
            }
            DesiredService::Present(status) => {
                self.tell_watches(job.index(), status == Status::Passing);
                self.forget_withdrawal(job);
            }
        }
    }

    /// What is not desired any more is not told.
    fn forget_withdrawal(&mut self, job: JobIx) {
        if let Some(place) = self.withdrawals.remove(&job) {
            self.coming.remove(&place);
        }
    }

    pub(super) fn heartbeat(&mut self, job: JobIx) {
        if let Some(agency) = &mut self.shelves[job.index()].agency {
            agency.beat(self.now);
        }
    }

    /// Lets the agents work up to a moment, but no further than to the first news. Says whether there was any.
    pub(super) fn let_agents_work(&mut self, until: Time, witness: &Witness) -> Result<bool, Violation> {
        for _ in 0..10_000 {
            let shelves = self.shelves.iter().chain(&self.retired).enumerate();
            let soonest = shelves.filter_map(|(nth, shelf)| Some((shelf.next()?, nth))).min();
            let Some((at, nth)) = soonest.filter(|(at, _)| *at <= until) else { return Ok(false) };
            let count = self.shelves.len();
            let shelf = match nth.checked_sub(count) {
                None => &mut self.shelves[nth],
                Some(nth) => &mut self.retired[nth],
            };
            shelf.advance(at).map_err(|what| witness.says("D5", format!("job {nth}: {what}")))?;
            if shelf.agency.as_mut().is_some_and(Agency::take_deregistered) && nth < count {
                let job = JobIx::at(nth);
                self.now = self.now.max(at);
                let place = self.add(Duration::ZERO, Coming::Input(Input::Deregistered { job }));
                self.withdrawals.insert(job, place);
                return Ok(true);
            }
        }
        Err(witness.says("D5", "the catalog is asked without an end"))
    }

    /// Nothing has happened for a while, and so no heartbeat has come.
    pub(super) fn agents_stand_still(&mut self) {
        let shelves = self.shelves.iter_mut().chain(&mut self.retired);
        for agency in shelves.filter_map(|shelf| shelf.agency.as_mut()) {
            agency.stands_still(self.now);
        }
    }

    /// S6: the supervisor leaves, and with it every service.
    pub(super) fn agents_leave(&mut self, witness: &Witness) -> Result<(), Violation> {
        let shelves = self.shelves.iter_mut().chain(&mut self.retired);
        for agency in shelves.filter_map(|shelf| shelf.agency.as_mut()) {
            agency.leaves(self.now).map_err(|what| witness.says("S6", what))?;
        }
        Ok(())
    }

    /// Services move with their jobs. Those that nobody has any more have left the catalog, or are about to.
    pub(super) fn move_shelves(&mut self, moves: &Moves) {
        let version = self.version();
        let embedded = version.plan.catalog == Catalog::Embedded;
        let new = version.plan.jobs.iter().zip(&version.scripts);
        let mut shelves: Vec<Shelf> = new.map(|(job, script)| Shelf::new(embedded, job, script)).collect();
        for (shelf, to) in std::mem::take(&mut self.shelves).into_iter().zip(&moves.jobs) {
            let place = to.map(JobIx::index).filter(|to| version.plan.jobs[*to].service.is_some());
            match (place, shelf.agency) {
                (Some(to), Some(mut agency)) => {
                    let settings = settings(&version.plan.jobs[to]);
                    if settings != agency.settings() {
                        agency.redefine(self.now, settings);
                    }
                    shelves[to] = Shelf { agency: Some(agency), ..shelf };
                }
                (Some(to), None) => shelves[to] = Shelf { agency: None, ..shelf },
                (None, agency) => self.retired.push(Shelf { agency, ..shelf }),
            }
        }
        self.shelves = shelves;
        if embedded {
            for watch in 0..version.plan.watches.len() {
                self.answer_watch(watch);
            }
        }
    }

    /// The embedded catalog answers every watch that sees the service (D2).
    fn tell_watches(&mut self, job: usize, passing: bool) {
        let plan = &self.version().plan;
        if plan.catalog != Catalog::Embedded {
            return;
        }
        self.shelves[job].passing = passing;
        let Some(name) = plan.jobs[job].service.as_ref().map(|service| &service.name) else { return };
        let watches = plan.watches.iter().enumerate().filter(|(_, watch)| watch.name == *name);
        for (nth, _) in watches {
            self.answer_watch(nth);
        }
    }

    fn answer_watch(&mut self, nth: usize) {
        let plan = &self.version().plan;
        let services = plan.jobs.iter().zip(&self.shelves).filter(|(_, shelf)| shelf.passing);
        let services = services.filter_map(|(job, _)| job.service.as_ref());
        let instances: Vec<Instance> = services
            .filter(|service| service.name == plan.watches[nth].name)
            .map(|service| Instance {
                id: service.id.clone(),
                address: service.address.to_string(),
                port: service.port,
            })
            .collect();
        let input = Input::Instances { watch: WatchIx::at(nth), instances };
        self.serial += 1;
        // In the order in which they were caused.
        self.coming.insert((self.now, 0, self.serial), Coming::Input(input));
    }
}
