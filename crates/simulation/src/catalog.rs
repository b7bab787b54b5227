//! The made-up catalog: the embedded one, which answers at once, or a Consul that may be away or forget.
//!
//! What is asked of Consul, and when, is decided by the core's own [`Reconciler`], as in the real supervisor. Only the
//! answers are made up: a request to a catalog that is away is refused after a moment.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::reconcile::{Action, CatalogRequest, Outcome, Reconciler, Settings};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::JobIx;
use containerpilot_core::input::Instance;
use containerpilot_core::plan::{Catalog as Configured, Job, Plan, Service, Status, Watch};
use std::collections::BTreeMap;

use crate::habits::REQUEST;

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A service's task wants to be called again at a time.
    Wake(String, Time),
    /// Its request will be answered at a time.
    Answer(String, Time),
    /// A service has another status, or none.
    Changed(String, Option<Status>),
    /// Its heartbeat counts until a time.
    Trusted(String, Time),
    /// The job that waits for it is let go.
    Withdrawn(JobIx),
}

#[derive(Clone, Debug)]
struct Keeper {
    job: JobIx,
    service: Service,
    machine: Reconciler,
    asked: Option<CatalogRequest>,
    /// Whether the request could be made.
    reached: bool,
}

#[derive(Clone, Debug)]
struct Kept {
    service: Service,
    status: Status,
    until: Time,
}

/// A catalog, and what is desired of it.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Consul's services are kept by tasks; the embedded catalog needs none.
    keepers: BTreeMap<String, Keeper>,
    present: BTreeMap<String, Kept>,
}

impl Catalog {
    /// What is desired of a job's service from now on.
    pub fn advertise(
        &mut self,
        plan: &Plan,
        job: JobIx,
        desired: DesiredService,
        now: Time,
        away: bool,
    ) -> Vec<News> {
        let Some((planned, service)) = planned(plan, job) else { return Vec::new() };
        let id = service.id.clone();
        if plan.catalog == Configured::Embedded {
            let mut news = Vec::new();
            match desired {
                DesiredService::Absent => {
                    let was = self.present.remove(&id).is_some();
                    news.extend(was.then_some(News::Changed(id, None)));
                    news.push(News::Withdrawn(job));
                }
                DesiredService::Present(status) => {
                    let until = Time::from_nanos(u64::MAX);
                    self.present.insert(id.clone(), Kept { service: service.clone(), status, until });
                    news.push(News::Changed(id, Some(status)));
                }
            }
            return news;
        }
        let keeper = self.keepers.entry(id.clone()).or_insert_with(|| Keeper {
            job,
            service: service.clone(),
            machine: Reconciler::new(settings(planned, service), 0),
            asked: None,
            reached: false,
        });
        keeper.job = job;
        if keeper.service != *service {
            keeper.service = service.clone();
            keeper.machine.redefine(settings(planned, service));
        }
        keeper.machine.want(now, desired);
        self.work(&id, now, away)
    }

    /// A job is healthy still.
    pub fn heartbeat(&mut self, plan: &Plan, job: JobIx, now: Time, away: bool) -> Vec<News> {
        let Some((_, service)) = planned(plan, job) else { return Vec::new() };
        let id = service.id.clone();
        match self.keepers.get_mut(&id) {
            Some(keeper) => keeper.machine.beat(),
            None => return Vec::new(),
        }
        self.work(&id, now, away)
    }

    /// Lets the task of a service do what is to be done now.
    pub fn work(&mut self, id: &str, now: Time, away: bool) -> Vec<News> {
        let mut news = Vec::new();
        let Some(keeper) = self.keepers.get_mut(id) else { return news };
        match keeper.machine.next(now) {
            Action::Send(request) => {
                keeper.asked = Some(request);
                keeper.reached = !away;
                news.push(News::Answer(id.to_owned(), now + REQUEST));
            }
            Action::Wait(Some(until)) => news.push(News::Wake(id.to_owned(), until)),
            Action::Wait(None) | Action::Finished => {}
        }
        if keeper.machine.take_deregistered() {
            news.push(News::Withdrawn(keeper.job));
        }
        news
    }

    /// The answer to a service's request is there.
    pub fn answered(&mut self, id: &str, now: Time, away: bool) -> Vec<News> {
        let Some(keeper) = self.keepers.get_mut(id) else { return Vec::new() };
        let Some(request) = keeper.asked.take() else { return Vec::new() };
        let mut news = Vec::new();
        let outcome = if keeper.reached {
            carry_out(&mut self.present, keeper, request, now, &mut news)
        } else {
            Outcome::Failed
        };
        keeper.machine.done(now, outcome);
        news.extend(self.work(id, now, away));
        news
    }

    /// A service has not been heard of for its TTL.
    pub fn overdue(&mut self, id: &str, now: Time) -> Vec<News> {
        match self.present.get_mut(id) {
            Some(kept) if kept.until <= now && kept.status != Status::Critical => {
                kept.status = Status::Critical;
                vec![News::Changed(id.to_owned(), Some(Status::Critical))]
            }
            _ => Vec::new(),
        }
    }

    /// A service is forgotten; says whether it was there.
    pub fn forget(&mut self, plan: &Plan, name: &str) -> Option<String> {
        let job = plan.jobs.iter().find(|job| job.name == name)?;
        let id = &job.service.as_ref()?.id;
        self.present.remove(id).map(|_| id.clone())
    }

    /// The job whose service it is, by its name.
    #[must_use]
    pub fn name_of<'p>(&self, plan: &'p Plan, id: &str) -> Option<&'p str> {
        let has = |job: &&Job| job.service.as_ref().is_some_and(|service| service.id == id);
        plan.jobs.iter().find(has).map(|job| job.name.as_str())
    }

    /// The healthy instances of a watched service.
    #[must_use]
    pub fn healthy(&self, watch: &Watch) -> Vec<Instance> {
        let passing = self.present.values().filter(|kept| kept.status == Status::Passing);
        passing
            .map(|kept| &kept.service)
            .filter(|service| watch.sees(service))
            .map(Service::instance)
            .collect()
    }
}

fn planned(plan: &Plan, job: JobIx) -> Option<(&Job, &Service)> {
    let job = plan.jobs.get(job.index())?;
    Some((job, job.service.as_ref()?))
}

fn settings(job: &Job, service: &Service) -> Settings {
    let health = job.health.as_ref();
    let checks = health.and_then(|health| health.checks.iter().map(|check| check.interval).min());
    let pace: Option<Duration> = health.and_then(|health| health.heartbeat).or(checks);
    Settings {
        ttl: service.ttl,
        pace: pace.unwrap_or(service.ttl / 3),
        drops_critical: service.deregister_critical_after.is_some(),
    }
}

fn carry_out(
    present: &mut BTreeMap<String, Kept>,
    keeper: &Keeper,
    request: CatalogRequest,
    now: Time,
    news: &mut Vec<News>,
) -> Outcome {
    let (service, until) = (&keeper.service, now + keeper.service.ttl);
    let id = &service.id;
    match request {
        // A catalog keeps the status of a service it knows.
        CatalogRequest::Register(status) => {
            let known = present.get(id).map(|kept| kept.status);
            let status = known.unwrap_or(status);
            present.insert(id.clone(), Kept { service: service.clone(), status, until });
            if known.is_none() {
                news.push(News::Changed(id.clone(), Some(status)));
            }
            news.push(News::Trusted(id.clone(), until));
            Outcome::Done
        }
        CatalogRequest::Update(status) => match present.get_mut(id) {
            None => Outcome::Forgotten,
            Some(kept) => {
                let changed = kept.status != status;
                (kept.status, kept.until) = (status, until);
                if changed {
                    news.push(News::Changed(id.clone(), Some(status)));
                }
                news.push(News::Trusted(id.clone(), until));
                Outcome::Done
            }
        },
        CatalogRequest::Deregister => match present.remove(id) {
            None => Outcome::Forgotten,
            Some(_) => {
                news.push(News::Changed(id.clone(), None));
                Outcome::Done
            }
        },
    }
}
