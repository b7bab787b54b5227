//! The reconciler of one service: compares the desired state with what the catalog is believed to have, and chooses the
//! next request that makes the two equal (D5, H6).
//!
//! ```text
//! desired     believed                     next request                 then
//! ---------   --------------------------   --------------------------   ---------------------------------------------
//! absent      absent                       none                         deregistered
//! absent      present or unknown           Deregister                   absent
//! present     absent or unknown            Register with the status     present; the status is sent again, because a
//!                                                                       catalog keeps that of a service it has known
//! present     present, other status        Update                       present, with the status
//! present     present, heartbeat due       Update                       present, for another TTL
//! ```
//!
//! There is at most one request at a time. `Forgotten` as an answer means absent. So does `Held`, an id of another
//! supervisor (D10): registering is tried again later, and nothing is deregistered. A request without an answer may
//! still be carried out later (a suspended agent does when it resumes): its result is in doubt, and everything is sent
//! again when the doubt has passed. After an interruption of the contact with the catalog, the desired state is sent
//! again at once.

use core::time::Duration;

use crate::catalog::backoff::{FIRST_DELAY, retry_delay, sooner};
use crate::catalog::interruption::Interruption;
use crate::effect::DesiredService;
use crate::plan::{Health, Job, Service, Status};
use crate::rng::Rng;
use crate::time::Time;

/// The longest retry delay, unless heartbeats come faster.
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// How long a request that was not answered may still be carried out.
pub const IN_DOUBT: Duration = Duration::from_secs(15);
/// How often deregistering is attempted when the supervisor exits.
const LAST_ATTEMPTS: u32 = 2;

/// What the reconciler needs to know about a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The TTL of its check.
    pub ttl: Duration,
    /// The interval of heartbeats; also the longest retry delay.
    pub heartbeat_interval: Duration,
    /// True if the catalog deregisters a critical service by itself. It is then not registered again.
    pub drops_critical: bool,
}

impl Settings {
    /// The settings for the service of a job, if it has one. Without `heartbeat`, the checks are the heartbeats (H6).
    #[must_use]
    pub fn of(job: &Job) -> Option<Self> {
        let Service { ttl, deregister_critical_after, .. } = *job.service.as_ref()?;
        let checks = |health: &Health| health.checks.iter().map(|check| check.interval).min();
        let heartbeat = job.health.as_ref().and_then(|health| health.heartbeat.or_else(|| checks(health)));
        Some(Self {
            ttl,
            heartbeat_interval: heartbeat.unwrap_or(ttl / 3),
            drops_critical: deregister_critical_after.is_some(),
        })
    }
}

/// A request to the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogRequest {
    /// Register the service, with its check in this status.
    Register(Status),
    /// Update the status; for a passing service, this is the heartbeat.
    Update(Status),
    /// Deregister the service.
    Deregister,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It was carried out.
    Done,
    /// The catalog does not know the service or its check.
    Forgotten,
    /// It was not sent, because another supervisor holds the id (D10).
    Held,
    /// It was refused or never arrived: nothing has changed.
    Failed,
    /// No valid answer: it may have been carried out, or may still be.
    Unknown,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogAction {
    /// Send the request, and report its outcome.
    Send(CatalogRequest),
    /// Nothing before this time; nothing at all if there is none.
    Wait(Option<Time>),
    /// The supervisor exits, and the service is deregistered or cannot be.
    Finished,
}

/// A state of the service that the catalog has confirmed (D11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// The state.
    pub state: DesiredService,
    /// When the catalog first confirmed it, since it was last not known.
    pub since: Time,
    /// When the catalog last confirmed it.
    pub at: Time,
    /// When the catalog makes the service critical by itself, unless it confirms the state again before (H6).
    pub expires: Option<Time>,
}

/// What the catalog is believed to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Believed {
    Absent,
    Unknown,
    Present,
}

/// The reconciler of one service.
#[derive(Clone, Debug)]
pub struct Reconciler {
    settings: Settings,
    desired: DesiredService,
    believed: Believed,
    /// What was believed before the pending request.
    before: Believed,
    /// The status that the catalog has accepted.
    sent: Option<Status>,
    /// The last state that the catalog has confirmed.
    confirmed: Option<Confirmation>,
    /// When a request of this service last failed.
    failed_at: Option<Time>,
    /// The same, unless one was answered since.
    unanswered_at: Option<Time>,
    /// When the catalog was last unavailable, for any of its clients.
    interruption: Option<Interruption>,
    /// True if a heartbeat is due.
    due: bool,
    pending: Option<CatalogRequest>,
    /// True if the definition has changed while a request was pending.
    outdated: bool,
    /// True if the last successful request was a registration.
    just_registered: bool,
    failures: u32,
    not_before: Time,
    /// When a status without heartbeats is sent again.
    refresh_at: Option<Time>,
    /// When everything is sent again, because a result was in doubt.
    doubt_until: Option<Time>,
    /// True if the job waits for the deregistration.
    deregistration_awaited: bool,
    deregistered: bool,
    /// The attempts left, once the supervisor exits.
    last_attempts: Option<u32>,
    rng: Rng,
}

impl Reconciler {
    /// A service that is neither registered nor desired. The seed spreads the retries of many services over time.
    #[must_use]
    pub const fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            desired: DesiredService::Absent,
            believed: Believed::Absent,
            before: Believed::Absent,
            sent: None,
            confirmed: None,
            failed_at: None,
            unanswered_at: None,
            interruption: None,
            due: false,
            pending: None,
            outdated: false,
            just_registered: false,
            failures: 0,
            not_before: Time::ZERO,
            refresh_at: None,
            doubt_until: None,
            deregistration_awaited: false,
            deregistered: false,
            last_attempts: None,
            rng: Rng::new(seed),
        }
    }

    /// Sets the desired state. A change is sent at once, without the retry delay of earlier requests: a failed check
    /// must not wait for it.
    pub fn set_desired(&mut self, now: Time, desired: DesiredService) {
        if self.last_attempts.is_some() {
            return;
        }
        self.deregistration_awaited = desired == DesiredService::Absent;
        if self.deregistration_awaited {
            self.due = false;
        } else {
            self.deregistered = false;
        }
        if self.desired != desired {
            self.desired = desired;
            self.not_before = now;
            // The status is sent again, also if an earlier request has set it.
            (self.sent, self.refresh_at) = (None, None);
        }
        self.update_deregistered();
    }

    /// The service has another definition, which must be registered.
    pub fn redefine(&mut self, settings: Settings) {
        self.settings = settings;
        self.outdated = self.pending.is_some();
        if self.believed == Believed::Present {
            self.believed = Believed::Unknown;
        }
    }

    /// A heartbeat is due.
    pub fn heartbeat_due(&mut self) {
        self.due = matches!(self.desired, DesiredService::Present(_));
    }

    /// The catalog was unavailable, for any of its clients. When it answers again, the desired state is sent again: the
    /// catalog may have lost it.
    pub fn interrupted(&mut self, now: Time, interruption: Interruption) {
        if self.interruption == Some(interruption) {
            return;
        }
        let was_needed = self.needed(now).is_ok();
        self.interruption = Some(interruption);
        self.not_before = sooner(self.not_before, self.unanswered_at, interruption.answered_at);
        if !was_needed && self.needed(now).is_ok() {
            self.not_before = now + retry_delay(&mut self.rng, 0, FIRST_DELAY);
        }
    }

    /// The supervisor exits: the service is deregistered, with a bounded number of attempts.
    pub fn leave(&mut self, now: Time) {
        self.set_desired(now, DesiredService::Absent);
        self.last_attempts = Some(LAST_ATTEMPTS);
        self.not_before = now;
        self.doubt_until = None;
    }

    /// What to do next. After [`CatalogAction::Send`], nothing until [`Reconciler::done`].
    pub fn next(&mut self, now: Time) -> CatalogAction {
        if self.pending.is_some() {
            return CatalogAction::Wait(None);
        }
        if self.last_attempts == Some(0) || (self.last_attempts.is_some() && self.is_absent()) {
            return CatalogAction::Finished;
        }
        match self.needed(now) {
            Err(later) => CatalogAction::Wait(later),
            Ok(_) if now < self.not_before => CatalogAction::Wait(Some(self.not_before)),
            Ok(request) => {
                self.pending = Some(request);
                self.before = self.believed;
                if matches!(request, CatalogRequest::Register(_)) {
                    self.believed = Believed::Unknown;
                }
                CatalogAction::Send(request)
            }
        }
    }

    /// The request that is needed now; otherwise when one may be needed.
    fn needed(&self, now: Time) -> Result<CatalogRequest, Option<Time>> {
        let again = self.doubt_until.is_some_and(|until| until <= now)
            || self.refresh_at.is_some_and(|refresh| refresh <= now);
        let later = [self.doubt_until, self.refresh_at].into_iter().flatten().min();
        match (self.desired, self.believed) {
            (DesiredService::Absent, Believed::Absent) if again => Ok(CatalogRequest::Deregister),
            (DesiredService::Absent, Believed::Absent) => Err(later),
            (DesiredService::Absent, _) => Ok(CatalogRequest::Deregister),
            (DesiredService::Present(status), Believed::Present) => {
                if self.sent != Some(status) || self.due || again || self.is_in_question(status) {
                    Ok(CatalogRequest::Update(status))
                } else {
                    Err(later)
                }
            }
            (DesiredService::Present(status), _) => Ok(CatalogRequest::Register(status)),
        }
    }

    /// Records the outcome of the pending request.
    pub fn done(&mut self, now: Time, outcome: RequestOutcome) {
        let Some(request) = self.pending.take() else { return };
        self.unanswered_at =
            matches!(outcome, RequestOutcome::Failed | RequestOutcome::Unknown).then_some(now);
        self.failed_at = self.unanswered_at.or(self.failed_at);
        // A registration is confirmed with its status: a catalog keeps that of a service it has known.
        match (outcome, request) {
            (RequestOutcome::Done, CatalogRequest::Update(status)) => {
                self.confirm(now, DesiredService::Present(status))
            }
            (RequestOutcome::Done | RequestOutcome::Forgotten, CatalogRequest::Deregister)
            | (RequestOutcome::Forgotten, CatalogRequest::Update(_))
            | (RequestOutcome::Held, _) => self.confirm(now, DesiredService::Absent),
            _ => {}
        }
        match (outcome, request) {
            (RequestOutcome::Done, CatalogRequest::Register(_)) => {
                // The retry delay is reset only when the status is accepted, too.
                self.not_before = now;
                self.just_registered = true;
                self.sent = None;
                self.believed = if self.outdated { Believed::Unknown } else { Believed::Present };
            }
            (RequestOutcome::Done, CatalogRequest::Update(status)) => {
                self.succeeded(now);
                self.just_registered = false;
                self.sent = Some(status);
                self.due = false;
                self.refresh_at = self.needs_refresh(status).then(|| now + self.refresh_interval());
                if self.outdated {
                    self.believed = Believed::Unknown;
                }
            }
            // What another supervisor has registered is not deregistered.
            (
                RequestOutcome::Done | RequestOutcome::Forgotten | RequestOutcome::Held,
                CatalogRequest::Deregister,
            ) => {
                self.succeeded(now);
                self.set_absent();
            }
            (RequestOutcome::Held, _) => {
                self.set_absent();
                self.failed(now);
            }
            (RequestOutcome::Forgotten, CatalogRequest::Update(_)) => {
                self.set_absent();
                // A catalog that forgets a service at once must not cause a loop without delay.
                if self.just_registered {
                    self.failed(now)
                } else {
                    self.succeeded(now)
                }
                self.just_registered = false;
            }
            (RequestOutcome::Failed | RequestOutcome::Forgotten, _) => {
                let changed = self.outdated && self.before == Believed::Present;
                self.believed = if changed { Believed::Unknown } else { self.before };
                self.failed(now);
            }
            (RequestOutcome::Unknown, _) => {
                self.sent = None;
                self.doubt_until = Some(now + IN_DOUBT);
                self.failed(now);
            }
        }
        self.outdated = false;
        if request == CatalogRequest::Deregister
            && matches!(outcome, RequestOutcome::Failed | RequestOutcome::Unknown)
        {
            // It is retried, but the job does not wait for that.
            self.deregistered |= core::mem::take(&mut self.deregistration_awaited);
        }
        self.update_deregistered();
    }

    /// Returns true once after the service was deregistered, or deregistering has failed.
    pub fn take_deregistered(&mut self) -> bool {
        core::mem::take(&mut self.deregistered)
    }

    /// The last state that the catalog has confirmed. Requests may have failed since: see [`super::connectivity`].
    #[must_use]
    pub const fn confirmation(&self) -> Option<Confirmation> {
        self.confirmed
    }

    /// Returns true if the catalog is believed to have the desired state.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.pending.is_none()
            && match self.desired {
                DesiredService::Absent => self.believed == Believed::Absent,
                DesiredService::Present(status) => {
                    self.believed == Believed::Present && self.sent == Some(status) && !self.due
                }
            }
    }

    /// Returns true if the service is neither desired nor registered and nothing is in doubt: without another command,
    /// nothing will ever be sent.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.is_absent() && self.doubt_until.is_none()
    }

    /// How long a request may take, so that a heartbeat can be retried within the TTL.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        (self.settings.ttl / 3).clamp(Duration::from_millis(500), Duration::from_secs(5))
    }

    fn is_absent(&self) -> bool {
        self.desired == DesiredService::Absent && self.believed == Believed::Absent && self.pending.is_none()
    }

    fn update_deregistered(&mut self) {
        if self.is_absent() {
            self.deregistered |= core::mem::take(&mut self.deregistration_awaited);
        }
    }

    fn confirm(&mut self, now: Time, state: DesiredService) {
        let interrupted_at = self.interruption.map(|interruption| interruption.at);
        let is_known = |known: &Confirmation| {
            known.expires.is_none_or(|expires| now < expires)
                && Some(known.at) > self.failed_at.max(interrupted_at)
        };
        let same = self.confirmed.filter(|known| known.state == state && is_known(known));
        let since = same.map_or(now, |known| known.since);
        let expires = match state {
            DesiredService::Present(Status::Passing | Status::Warning) => Some(now + self.settings.ttl),
            DesiredService::Present(Status::Critical) | DesiredService::Absent => None,
        };
        self.confirmed = Some(Confirmation { state, since, at: now, expires });
    }

    /// Returns true if the catalog may have lost the service while it was unavailable. A service that the catalog drops
    /// by itself when it is critical is not registered again.
    fn is_in_question(&self, status: Status) -> bool {
        let is_kept = status == Status::Passing || self.needs_refresh(status);
        let at = self.confirmed.map(|known| known.at);
        is_kept
            && self
                .interruption
                .is_some_and(|interruption| interruption.is_over && at <= Some(interruption.at))
    }

    fn set_absent(&mut self) {
        self.believed = Believed::Absent;
        (self.sent, self.due, self.refresh_at) = (None, false, None);
    }

    fn succeeded(&mut self, now: Time) {
        self.failures = 0;
        self.not_before = now;
        if self.doubt_until.is_some_and(|until| until <= now) {
            self.doubt_until = None;
        }
    }

    fn failed(&mut self, now: Time) {
        let longest = self.settings.heartbeat_interval.clamp(FIRST_DELAY, LONGEST_DELAY);
        self.not_before = now + retry_delay(&mut self.rng, self.failures, longest);
        self.failures = self.failures.saturating_add(1);
        if let Some(attempts) = &mut self.last_attempts {
            *attempts = attempts.saturating_sub(1);
        }
    }

    /// Returns true if a status must be sent again from time to time. A passing service has heartbeats.
    const fn needs_refresh(&self, status: Status) -> bool {
        match status {
            Status::Passing => false,
            Status::Warning => true,
            Status::Critical => !self.settings.drops_critical,
        }
    }

    fn refresh_interval(&self) -> Duration {
        self.settings.heartbeat_interval.min(self.settings.ttl / 3).max(FIRST_DELAY)
    }
}
