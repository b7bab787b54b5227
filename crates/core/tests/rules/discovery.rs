//! D5, D7, H6: the reconciler, watch queries and connectivity, in virtual time.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::contact::{Contact, ContactChange, RequestResult};
use containerpilot_core::catalog::follow::{self, Follow, Query, QuerySlots};
use containerpilot_core::catalog::reconcile::{
    Action, CatalogRequest, IN_DOUBT, Outcome, Reconciler, Settings,
};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::plan::Status;

const PASSING: DesiredService = DesiredService::Present(Status::Passing);
const CRITICAL: DesiredService = DesiredService::Present(Status::Critical);
const SETTINGS: Settings =
    Settings { ttl: Duration::from_secs(15), pace: Duration::from_secs(5), drops_critical: false };

fn at(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * 1_000_000)
}

/// A reconciler and the time.
struct Machine {
    service: Reconciler,
    now: Time,
}

impl Machine {
    fn new() -> Self {
        Self::with(SETTINGS)
    }

    fn with(settings: Settings) -> Self {
        Self { service: Reconciler::new(settings, 7), now: Time::ZERO }
    }

    /// A service that is registered and passing.
    fn passing() -> Self {
        let mut machine = Self::new();
        machine.want(PASSING);
        machine.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
        machine.asks(CatalogRequest::Update(Status::Passing), Outcome::Done);
        machine.rests();
        machine
    }

    fn want(&mut self, desired: DesiredService) {
        self.service.want(self.now, desired);
    }

    fn asks(&mut self, request: CatalogRequest, outcome: Outcome) {
        assert_eq!(self.service.next(self.now), Action::Send(request));
        assert_eq!(self.service.next(self.now), Action::Wait(None), "one request at a time");
        self.service.done(self.now, outcome);
    }

    /// Waits until the next request may be needed.
    fn waits(&mut self) -> Duration {
        let Action::Wait(Some(until)) = self.service.next(self.now) else {
            panic!("there is something to do, or there will never be");
        };
        let waited = until.since(self.now);
        assert!(waited > Duration::ZERO);
        self.now = until;
        waited
    }

    fn rests(&mut self) {
        assert_eq!(self.service.next(self.now), Action::Wait(None));
        assert!(self.service.is_settled());
    }
}

#[test]
fn d5_a_service_is_registered_and_its_status_sent() {
    Machine::passing();
}

#[test]
fn h6_a_pass_is_a_heartbeat_and_a_failure_is_sent_at_once() {
    let mut machine = Machine::passing();
    machine.service.beat();
    machine.asks(CatalogRequest::Update(Status::Passing), Outcome::Done);
    machine.rests();
    machine.want(CRITICAL);
    machine.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);
}

#[test]
fn h6_a_failure_does_not_wait_for_the_retry_delay_of_a_heartbeat() {
    let mut machine = Machine::passing();
    for _ in 0..8 {
        machine.service.beat();
        machine.asks(CatalogRequest::Update(Status::Passing), Outcome::Failed);
        machine.waits();
    }
    machine.service.beat();
    machine.asks(CatalogRequest::Update(Status::Passing), Outcome::Failed);
    assert!(matches!(machine.service.next(machine.now), Action::Wait(Some(_))));
    machine.want(CRITICAL);
    machine.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);
}

#[test]
fn h6_a_failure_during_a_request_is_sent_after_it() {
    let mut machine = Machine::passing();
    machine.service.beat();
    assert_eq!(machine.service.next(machine.now), Action::Send(CatalogRequest::Update(Status::Passing)));
    machine.want(CRITICAL);
    assert_eq!(machine.service.next(machine.now), Action::Wait(None));
    machine.service.done(machine.now, Outcome::Done);
    machine.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);
}

#[test]
fn d5_a_forgotten_service_is_registered_again() {
    let mut machine = Machine::passing();
    machine.service.beat();
    machine.asks(CatalogRequest::Update(Status::Passing), Outcome::Forgotten);
    machine.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
    machine.asks(CatalogRequest::Update(Status::Passing), Outcome::Done);
    machine.rests();
}

#[test]
fn d5_a_forgotten_critical_service_is_registered_again_unless_consul_drops_it() {
    let mut machine = Machine::passing();
    machine.want(CRITICAL);
    machine.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);
    assert!(machine.waits() <= SETTINGS.pace);
    machine.asks(CatalogRequest::Update(Status::Critical), Outcome::Forgotten);
    machine.asks(CatalogRequest::Register(Status::Critical), Outcome::Done);
    machine.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);

    let mut dropped = Machine::with(Settings { drops_critical: true, ..SETTINGS });
    dropped.want(CRITICAL);
    dropped.asks(CatalogRequest::Register(Status::Critical), Outcome::Done);
    dropped.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);
    dropped.rests();
}

#[test]
fn d5_a_catalog_that_forgets_at_once_is_not_asked_without_delay() {
    let mut machine = Machine::new();
    machine.want(PASSING);
    let mut waited = Duration::ZERO;
    for _ in 0..10 {
        machine.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
        machine.asks(CatalogRequest::Update(Status::Passing), Outcome::Forgotten);
        waited += machine.waits();
    }
    assert!(waited > Duration::from_secs(1), "{waited:?}");
}

#[test]
fn d5_retries_back_off_with_jitter_up_to_the_heartbeat_interval() {
    let delays = |seed: u64| {
        let mut machine = Machine { service: Reconciler::new(SETTINGS, seed), now: Time::ZERO };
        machine.want(PASSING);
        let delay = |_| {
            machine.asks(CatalogRequest::Register(Status::Passing), Outcome::Failed);
            machine.waits()
        };
        (0..12).map(delay).collect::<Vec<_>>()
    };
    let (one, other) = (delays(1), delays(2));
    assert_ne!(one, other);
    assert_eq!(one, delays(1));
    for (nth, delay) in one.iter().enumerate() {
        let longest = Duration::from_millis(100 << nth).min(SETTINGS.pace);
        assert!(*delay <= longest && *delay >= longest / 2, "{nth}: {delay:?}");
    }
}

#[test]
fn d5_a_request_times_out_early_enough_to_retry_within_the_ttl() {
    for (ttl, most) in [(1, 500), (3, 1_000), (15, 5_000), (3_600, 5_000)] {
        let settings = Settings { ttl: Duration::from_secs(ttl), ..SETTINGS };
        assert_eq!(Reconciler::new(settings, 0).deadline(), Duration::from_millis(most));
    }
}

#[test]
fn s2_a_deregistration_is_reported_once() {
    let mut machine = Machine::passing();
    assert!(!machine.service.take_deregistered());
    machine.want(DesiredService::Absent);
    assert!(!machine.service.take_deregistered());
    machine.asks(CatalogRequest::Deregister, Outcome::Done);
    assert!(machine.service.take_deregistered());
    assert!(!machine.service.take_deregistered());
    machine.rests();
    machine.want(DesiredService::Absent);
    assert!(machine.service.take_deregistered(), "and again when it is requested again");
}

#[test]
fn s2_a_failed_deregistration_is_reported_and_retried() {
    let mut machine = Machine::passing();
    machine.want(DesiredService::Absent);
    machine.asks(CatalogRequest::Deregister, Outcome::Failed);
    assert!(machine.service.take_deregistered());
    machine.waits();
    machine.asks(CatalogRequest::Deregister, Outcome::Forgotten);
    assert!(!machine.service.take_deregistered());
    machine.rests();
}

#[test]
fn s2_a_service_desired_again_is_not_reported_as_deregistered() {
    let mut machine = Machine::passing();
    machine.want(DesiredService::Absent);
    assert_eq!(machine.service.next(machine.now), Action::Send(CatalogRequest::Deregister));
    machine.want(PASSING);
    machine.service.done(machine.now, Outcome::Done);
    assert!(!machine.service.take_deregistered());
    machine.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
}

#[test]
fn d5_a_service_that_was_refused_needs_no_deregistration() {
    let mut machine = Machine::new();
    machine.want(PASSING);
    machine.asks(CatalogRequest::Register(Status::Passing), Outcome::Failed);
    machine.want(DesiredService::Absent);
    assert!(machine.service.take_deregistered());
    machine.rests();
}

#[test]
fn d5_an_unanswered_registration_is_undone_and_checked_again_later() {
    let mut machine = Machine::new();
    machine.want(PASSING);
    machine.asks(CatalogRequest::Register(Status::Passing), Outcome::Unknown);
    machine.want(DesiredService::Absent);
    machine.asks(CatalogRequest::Deregister, Outcome::Done);
    assert!(machine.service.take_deregistered());
    // The registration may have been carried out after that.
    assert!(machine.waits() <= IN_DOUBT);
    machine.asks(CatalogRequest::Deregister, Outcome::Done);
    machine.rests();
}

#[test]
fn d5_a_changed_definition_is_registered() {
    let mut machine = Machine::passing();
    machine.service.redefine(SETTINGS);
    machine.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
    machine.asks(CatalogRequest::Update(Status::Passing), Outcome::Done);
    machine.service.beat();
    for outcome in [Outcome::Done, Outcome::Failed] {
        machine.service.beat();
        assert_eq!(machine.service.next(machine.now), Action::Send(CatalogRequest::Update(Status::Passing)));
        machine.service.redefine(SETTINGS);
        machine.service.done(machine.now, outcome);
        if outcome == Outcome::Failed {
            machine.waits();
        }
        machine.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
        machine.asks(CatalogRequest::Update(Status::Passing), Outcome::Done);
    }
}

#[test]
fn s6_the_supervisor_deregisters_with_a_bounded_number_of_attempts() {
    let mut machine = Machine::passing();
    machine.service.leave(machine.now);
    machine.asks(CatalogRequest::Deregister, Outcome::Done);
    assert_eq!(machine.service.next(machine.now), Action::Finished);

    let mut refused = Machine::passing();
    refused.service.leave(refused.now);
    refused.asks(CatalogRequest::Deregister, Outcome::Failed);
    refused.waits();
    refused.asks(CatalogRequest::Deregister, Outcome::Unknown);
    assert_eq!(refused.service.next(refused.now), Action::Finished);

    let mut never = Machine::new();
    never.service.leave(never.now);
    assert_eq!(never.service.next(never.now), Action::Finished);
}

#[test]
fn d5_connectivity_reports_changes_and_not_attempts() {
    let mut contact = Contact::default();
    assert_eq!(contact.heard("web", RequestResult::Answered), [None, None]);
    assert_eq!(contact.heard("web", RequestResult::Unavailable), [Some(ContactChange::Unavailable), None]);
    assert_eq!(contact.heard("web", RequestResult::Unavailable), [None, None]);
    assert_eq!(contact.heard("db", RequestResult::Unavailable), [None, None]);
    // Unavailable as long as it is for one client.
    assert_eq!(contact.heard("web", RequestResult::Answered), [None, None]);
    assert_eq!(contact.heard("db", RequestResult::Answered), [Some(ContactChange::Available), None]);
    assert_eq!(contact.heard("web", RequestResult::Refused), [None, Some(ContactChange::Refused)]);
    assert_eq!(contact.heard("web", RequestResult::Refused), [None, None]);
    assert_eq!(contact.heard("web", RequestResult::Unavailable), [Some(ContactChange::Unavailable), None]);
    assert_eq!(contact.heard("web", RequestResult::Refused), [Some(ContactChange::Available), None]);
    assert_eq!(contact.heard("web", RequestResult::Answered), [None, Some(ContactChange::Accepted)]);
    assert_eq!(contact.heard("web", RequestResult::Unavailable), [Some(ContactChange::Unavailable), None]);
    // A client that is removed without an answer does not make it available.
    contact.forget(&"web");
    assert_eq!(contact.heard("db", RequestResult::Unavailable), [None, None]);
    assert_eq!(contact.heard("db", RequestResult::Answered), [Some(ContactChange::Available), None]);
}

const ALONE: QuerySlots = QuerySlots { slots: 100, watches: 1 };
const INTERVAL: Duration = Duration::from_secs(10);

fn query(follow: &mut Follow, now: Time, slots: QuerySlots) -> Query {
    match follow.next(now, slots) {
        follow::NextQuery::Send(query) => query,
        follow::NextQuery::Wait(until) => panic!("it waits until {until:?}"),
    }
}

#[test]
fn d7_the_first_query_does_not_block_and_later_ones_do() {
    let mut follow = Follow::new(INTERVAL, 1);
    assert_eq!(query(&mut follow, at(0), ALONE).index, None);
    follow.answered(at(5), 42);
    let second = query(&mut follow, at(5), ALONE);
    assert_eq!(second.index, Some(42));
    // Consul may add a sixteenth: the next query is not later than the interval.
    assert!(second.wait + second.wait / 16 <= INTERVAL, "{:?}", second.wait);
    assert!(second.wait >= INTERVAL * 3 / 4, "{:?}", second.wait);
    follow.answered(at(9_000), 42);
    assert_ne!(query(&mut follow, at(9_000), ALONE).wait, second.wait, "jitter");
}

#[test]
fn d7_an_index_that_goes_backwards_is_reset_and_zero_counts_as_one() {
    let mut follow = Follow::new(INTERVAL, 1);
    follow.answered(at(0), 42);
    follow.answered(at(1_000), 41);
    assert_eq!(query(&mut follow, at(1_000), ALONE).index, None);
    follow.answered(at(2_000), 7);
    assert_eq!(query(&mut follow, at(2_000), ALONE).index, Some(7));
    let mut follow = Follow::new(INTERVAL, 1);
    follow.answered(at(0), 0);
    assert_eq!(query(&mut follow, at(0), ALONE).index, Some(1));
}

#[test]
fn d7_quick_answers_are_rate_limited_and_rare_ones_are_not() {
    let mut follow = Follow::new(INTERVAL, 1);
    let (mut now, mut asked) = (at(0), 0_u64);
    while now < at(10_000) {
        match follow.next(now, ALONE) {
            follow::NextQuery::Wait(until) => now = until,
            follow::NextQuery::Send(_) => {
                asked += 1;
                // An immediate answer, as from a server that does not block.
                follow.answered(now, asked);
            }
        }
    }
    assert!((30..=60).contains(&asked), "{asked} in 10 s");
    let mut follow = Follow::new(INTERVAL, 1);
    for second in 0..100 {
        assert!(matches!(follow.next(at(second * 1_000), ALONE), follow::NextQuery::Send(_)), "at once");
        follow.answered(at(second * 1_000), second + 1);
    }
}

#[test]
fn d7_the_interval_bounds_the_retry_delay() {
    let mut follow = Follow::new(INTERVAL, 1);
    follow.answered(at(0), 42);
    let mut now = at(0);
    let mut delays = Vec::new();
    for _ in 0..12 {
        follow.failed(now);
        let follow::NextQuery::Wait(until) = follow.next(now, ALONE) else { panic!("at once") };
        delays.push(until.since(now));
        now = until;
    }
    assert!(delays[0] <= Duration::from_millis(100), "{delays:?}");
    assert!(delays.iter().all(|delay| *delay <= INTERVAL), "{delays:?}");
    assert!(delays[11] >= INTERVAL / 2, "{delays:?}");
    assert_eq!(query(&mut follow, now, ALONE).index, None, "a restarted catalog may not know the index");
    follow.answered(now, 3);
    assert_eq!(query(&mut follow, now, ALONE).index, Some(3));
}

#[test]
fn d7_with_more_watches_than_slots_each_query_waits_for_its_share() {
    let mut follow = Follow::new(INTERVAL, 1);
    let wait = query(&mut follow, at(0), QuerySlots { slots: 100, watches: 1_000 }).wait;
    assert!(wait <= INTERVAL / 10 && wait >= INTERVAL / 15, "{wait:?}");
    assert!(query(&mut follow, at(0), QuerySlots { slots: 1, watches: u32::MAX }).wait > Duration::ZERO);
}
