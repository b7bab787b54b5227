//! D5, D7, H6: the reconciler, watch queries and connectivity, in virtual time.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::connectivity::{Connectivity, ConnectivityChange, RequestResult};
use containerpilot_core::catalog::reconcile::{
    Action, CatalogRequest, IN_DOUBT, Outcome, Reconciler, Settings,
};
use containerpilot_core::catalog::watch_queries::{NextQuery, Query, QuerySlots, WatchQueries};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::plan::{Job, Status};

const PASSING: DesiredService = DesiredService::Present(Status::Passing);
const CRITICAL: DesiredService = DesiredService::Present(Status::Critical);
const SETTINGS: Settings = Settings {
    ttl: Duration::from_secs(15),
    heartbeat_interval: Duration::from_secs(5),
    drops_critical: false,
};

fn at(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * 1_000_000)
}

/// A reconciler and the time.
struct ServiceHarness {
    service: Reconciler,
    now: Time,
}

impl ServiceHarness {
    fn new() -> Self {
        Self::with(SETTINGS)
    }

    fn with(settings: Settings) -> Self {
        Self { service: Reconciler::new(settings, 7), now: Time::ZERO }
    }

    /// A service that is registered and passing.
    fn passing() -> Self {
        let mut harness = Self::new();
        harness.set_desired(PASSING);
        harness.sends(CatalogRequest::Register(Status::Passing), Outcome::Done);
        harness.sends(CatalogRequest::Update(Status::Passing), Outcome::Done);
        harness.is_idle();
        harness
    }

    fn set_desired(&mut self, desired: DesiredService) {
        self.service.set_desired(self.now, desired);
    }

    fn sends(&mut self, request: CatalogRequest, outcome: Outcome) {
        assert_eq!(self.service.next(self.now), Action::Send(request));
        assert_eq!(self.service.next(self.now), Action::Wait(None), "one request at a time");
        self.service.done(self.now, outcome);
    }

    /// Waits until the next request may be needed.
    fn waits(&mut self) -> Duration {
        let Action::Wait(Some(until)) = self.service.next(self.now) else {
            panic!("a request is due now, or none will ever be");
        };
        let waited = until.since(self.now);
        assert!(waited > Duration::ZERO);
        self.now = until;
        waited
    }

    fn is_idle(&mut self) {
        assert_eq!(self.service.next(self.now), Action::Wait(None));
        assert!(self.service.is_settled());
    }
}

#[test]
fn d5_a_service_is_registered_and_its_status_sent() {
    ServiceHarness::passing();
}

#[test]
fn d5_a_service_is_gone_when_it_is_deregistered_without_doubt() {
    let mut harness = ServiceHarness::new();
    assert!(harness.service.is_gone(), "it was never registered");
    harness.set_desired(PASSING);
    assert!(!harness.service.is_gone());
    harness.sends(CatalogRequest::Register(Status::Passing), Outcome::Unknown);
    harness.set_desired(DesiredService::Absent);
    assert!(!harness.service.is_gone());
    harness.sends(CatalogRequest::Deregister, Outcome::Failed);
    assert!(!harness.service.is_gone(), "deregistering is tried again");
    harness.waits();
    harness.sends(CatalogRequest::Deregister, Outcome::Done);
    assert!(!harness.service.is_gone(), "the registration may still arrive");
    assert!(harness.waits() <= IN_DOUBT);
    assert_eq!(harness.service.next(harness.now), Action::Send(CatalogRequest::Deregister));
    assert!(!harness.service.is_gone(), "a request is pending");
    harness.service.done(harness.now, Outcome::Done);
    assert!(harness.service.is_gone());
    harness.is_idle();
}

#[test]
fn h6_a_pass_is_a_heartbeat_and_a_failure_is_sent_at_once() {
    let mut harness = ServiceHarness::passing();
    harness.service.heartbeat_due();
    harness.sends(CatalogRequest::Update(Status::Passing), Outcome::Done);
    harness.is_idle();
    harness.set_desired(CRITICAL);
    harness.sends(CatalogRequest::Update(Status::Critical), Outcome::Done);
}

#[test]
fn h6_a_failure_does_not_wait_for_the_retry_delay_of_a_heartbeat() {
    let mut harness = ServiceHarness::passing();
    for _ in 0..8 {
        harness.service.heartbeat_due();
        harness.sends(CatalogRequest::Update(Status::Passing), Outcome::Failed);
        harness.waits();
    }
    harness.service.heartbeat_due();
    harness.sends(CatalogRequest::Update(Status::Passing), Outcome::Failed);
    assert!(matches!(harness.service.next(harness.now), Action::Wait(Some(_))));
    harness.set_desired(CRITICAL);
    harness.sends(CatalogRequest::Update(Status::Critical), Outcome::Done);
}

#[test]
fn h6_a_failure_during_a_request_is_sent_after_it() {
    let mut harness = ServiceHarness::passing();
    harness.service.heartbeat_due();
    assert_eq!(harness.service.next(harness.now), Action::Send(CatalogRequest::Update(Status::Passing)));
    harness.set_desired(CRITICAL);
    assert_eq!(harness.service.next(harness.now), Action::Wait(None));
    harness.service.done(harness.now, Outcome::Done);
    harness.sends(CatalogRequest::Update(Status::Critical), Outcome::Done);
}

#[test]
fn d5_a_forgotten_service_is_registered_again() {
    let mut harness = ServiceHarness::passing();
    harness.service.heartbeat_due();
    harness.sends(CatalogRequest::Update(Status::Passing), Outcome::Forgotten);
    harness.sends(CatalogRequest::Register(Status::Passing), Outcome::Done);
    harness.sends(CatalogRequest::Update(Status::Passing), Outcome::Done);
    harness.is_idle();
}

#[test]
fn d5_a_forgotten_critical_service_is_registered_again_unless_consul_drops_it() {
    let mut harness = ServiceHarness::passing();
    harness.set_desired(CRITICAL);
    harness.sends(CatalogRequest::Update(Status::Critical), Outcome::Done);
    assert!(harness.waits() <= SETTINGS.heartbeat_interval);
    harness.sends(CatalogRequest::Update(Status::Critical), Outcome::Forgotten);
    harness.sends(CatalogRequest::Register(Status::Critical), Outcome::Done);
    harness.sends(CatalogRequest::Update(Status::Critical), Outcome::Done);

    let mut short = ServiceHarness::with(Settings { ttl: Duration::from_secs(6), ..SETTINGS });
    short.set_desired(CRITICAL);
    short.sends(CatalogRequest::Register(Status::Critical), Outcome::Done);
    short.sends(CatalogRequest::Update(Status::Critical), Outcome::Done);
    assert!(short.waits() <= Duration::from_secs(2), "a third of the TTL");

    let mut dropped = ServiceHarness::with(Settings { drops_critical: true, ..SETTINGS });
    dropped.set_desired(CRITICAL);
    dropped.sends(CatalogRequest::Register(Status::Critical), Outcome::Done);
    dropped.sends(CatalogRequest::Update(Status::Critical), Outcome::Done);
    dropped.is_idle();
}

#[test]
fn d5_a_catalog_that_forgets_at_once_causes_no_loop_without_delay() {
    let mut harness = ServiceHarness::new();
    harness.set_desired(PASSING);
    let mut waited = Duration::ZERO;
    for _ in 0..10 {
        harness.sends(CatalogRequest::Register(Status::Passing), Outcome::Done);
        harness.sends(CatalogRequest::Update(Status::Passing), Outcome::Forgotten);
        waited += harness.waits();
    }
    assert!(waited > Duration::from_secs(1), "{waited:?}");
}

#[test]
fn d5_retries_back_off_with_jitter_up_to_the_heartbeat_interval() {
    let delays = |seed: u64| {
        let mut harness = ServiceHarness { service: Reconciler::new(SETTINGS, seed), now: Time::ZERO };
        harness.set_desired(PASSING);
        let delay = |_| {
            harness.sends(CatalogRequest::Register(Status::Passing), Outcome::Failed);
            harness.waits()
        };
        (0..12).map(delay).collect::<Vec<_>>()
    };
    let (one, other) = (delays(1), delays(2));
    assert_ne!(one, other);
    assert_eq!(one, delays(1));
    for (nth, delay) in one.iter().enumerate() {
        let longest = Duration::from_millis(100 << nth).min(SETTINGS.heartbeat_interval);
        assert!(*delay <= longest && *delay >= longest / 2, "{nth}: {delay:?}");
    }
}

#[test]
fn h6_the_fastest_check_is_the_heartbeat_unless_there_is_one() {
    let plan = crate::harness::plan(
        "{ telemetry: { port: 9090 }, jobs: [
            { name: 'checked', exec: 'x', port: 80, health: [
                { exec: 'a', interval: 7, ttl: 20 }, { exec: 'b', interval: 5, ttl: 30 }] },
            { name: 'paced', exec: 'x', port: 81, consul: { deregisterCriticalServiceAfter: '10m' },
              health: { exec: 'a', interval: 5, ttl: 30, heartbeat: 2 } },
            { name: 'plain', exec: 'x' },
        ] }",
    );
    let settings = |job: &Job| {
        let Settings { ttl, heartbeat_interval, drops_critical } = Settings::of(job)?;
        Some((ttl.as_secs(), heartbeat_interval.as_secs(), drops_critical))
    };
    let all: Vec<_> = plan.jobs.iter().map(|job| (job.name.as_str(), settings(job))).collect();
    let expected = [
        ("checked", Some((30, 5, false))),
        ("paced", Some((30, 2, true))),
        ("plain", None),
        ("containerpilot", Some((15, 5, false))),
    ];
    assert_eq!(all, expected);
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
    let mut harness = ServiceHarness::passing();
    assert!(!harness.service.take_deregistered());
    harness.set_desired(DesiredService::Absent);
    assert!(!harness.service.take_deregistered());
    harness.sends(CatalogRequest::Deregister, Outcome::Done);
    assert!(harness.service.take_deregistered());
    assert!(!harness.service.take_deregistered());
    harness.is_idle();
    harness.set_desired(DesiredService::Absent);
    assert!(harness.service.take_deregistered(), "and again when it is requested again");
}

#[test]
fn s2_a_failed_deregistration_is_reported_and_retried() {
    let mut harness = ServiceHarness::passing();
    harness.set_desired(DesiredService::Absent);
    harness.sends(CatalogRequest::Deregister, Outcome::Failed);
    assert!(harness.service.take_deregistered());
    harness.waits();
    harness.sends(CatalogRequest::Deregister, Outcome::Forgotten);
    assert!(!harness.service.take_deregistered());
    harness.is_idle();
}

#[test]
fn s2_a_service_desired_again_is_not_reported_as_deregistered() {
    let mut harness = ServiceHarness::passing();
    harness.set_desired(DesiredService::Absent);
    assert_eq!(harness.service.next(harness.now), Action::Send(CatalogRequest::Deregister));
    harness.set_desired(PASSING);
    harness.service.done(harness.now, Outcome::Done);
    assert!(!harness.service.take_deregistered());
    harness.sends(CatalogRequest::Register(Status::Passing), Outcome::Done);
}

#[test]
fn d5_a_service_that_was_refused_needs_no_deregistration() {
    let mut harness = ServiceHarness::new();
    harness.set_desired(PASSING);
    harness.sends(CatalogRequest::Register(Status::Passing), Outcome::Failed);
    harness.set_desired(DesiredService::Absent);
    assert!(harness.service.take_deregistered());
    harness.is_idle();
}

#[test]
fn d5_an_unanswered_registration_is_undone_and_checked_again_later() {
    let mut harness = ServiceHarness::new();
    harness.set_desired(PASSING);
    harness.sends(CatalogRequest::Register(Status::Passing), Outcome::Unknown);
    harness.set_desired(DesiredService::Absent);
    harness.sends(CatalogRequest::Deregister, Outcome::Done);
    assert!(harness.service.take_deregistered());
    // The registration may have been carried out after that.
    assert!(harness.waits() <= IN_DOUBT);
    harness.sends(CatalogRequest::Deregister, Outcome::Done);
    harness.is_idle();
}

#[test]
fn d5_a_changed_definition_is_registered() {
    let mut harness = ServiceHarness::passing();
    harness.service.redefine(SETTINGS);
    harness.sends(CatalogRequest::Register(Status::Passing), Outcome::Done);
    harness.sends(CatalogRequest::Update(Status::Passing), Outcome::Done);
    harness.service.heartbeat_due();
    for outcome in [Outcome::Done, Outcome::Failed] {
        harness.service.heartbeat_due();
        assert_eq!(harness.service.next(harness.now), Action::Send(CatalogRequest::Update(Status::Passing)));
        harness.service.redefine(SETTINGS);
        harness.service.done(harness.now, outcome);
        if outcome == Outcome::Failed {
            harness.waits();
        }
        harness.sends(CatalogRequest::Register(Status::Passing), Outcome::Done);
        harness.sends(CatalogRequest::Update(Status::Passing), Outcome::Done);
    }
}

#[test]
fn s6_the_supervisor_deregisters_with_a_bounded_number_of_attempts() {
    let mut harness = ServiceHarness::passing();
    harness.service.leave(harness.now);
    harness.sends(CatalogRequest::Deregister, Outcome::Done);
    assert_eq!(harness.service.next(harness.now), Action::Finished);

    let mut refused = ServiceHarness::passing();
    refused.service.leave(refused.now);
    refused.sends(CatalogRequest::Deregister, Outcome::Failed);
    refused.waits();
    refused.sends(CatalogRequest::Deregister, Outcome::Unknown);
    assert_eq!(refused.service.next(refused.now), Action::Finished);

    let mut never = ServiceHarness::new();
    never.service.leave(never.now);
    assert_eq!(never.service.next(never.now), Action::Finished);
}

#[test]
fn d5_connectivity_reports_changes_and_not_attempts() {
    let mut contact = Connectivity::default();
    assert_eq!(contact.record("web", RequestResult::Answered), [None, None]);
    assert_eq!(
        contact.record("web", RequestResult::Unavailable),
        [Some(ConnectivityChange::Unavailable), None]
    );
    assert_eq!(contact.record("web", RequestResult::Unavailable), [None, None]);
    assert_eq!(contact.record("db", RequestResult::Unavailable), [None, None]);
    // Unavailable as long as it is for one client.
    assert_eq!(contact.record("web", RequestResult::Answered), [None, None]);
    assert_eq!(contact.record("db", RequestResult::Answered), [Some(ConnectivityChange::Available), None]);
    assert_eq!(contact.record("web", RequestResult::Refused), [None, Some(ConnectivityChange::Refused)]);
    assert_eq!(contact.record("web", RequestResult::Refused), [None, None]);
    assert_eq!(
        contact.record("web", RequestResult::Unavailable),
        [Some(ConnectivityChange::Unavailable), None]
    );
    assert_eq!(contact.record("web", RequestResult::Refused), [Some(ConnectivityChange::Available), None]);
    assert_eq!(contact.record("web", RequestResult::Answered), [None, Some(ConnectivityChange::Accepted)]);
    assert_eq!(
        contact.record("web", RequestResult::Unavailable),
        [Some(ConnectivityChange::Unavailable), None]
    );
    // A client that is removed without an answer does not make it available.
    contact.forget(&"web");
    assert_eq!(contact.record("db", RequestResult::Unavailable), [None, None]);
    assert_eq!(contact.record("db", RequestResult::Answered), [Some(ConnectivityChange::Available), None]);
}

const ALONE: QuerySlots = QuerySlots { slots: 100, watches: 1 };
const INTERVAL: Duration = Duration::from_secs(10);

fn query(queries: &mut WatchQueries, now: Time, slots: QuerySlots) -> Query {
    match queries.next(now, slots) {
        NextQuery::Send(query) => query,
        NextQuery::Wait(until) => panic!("it waits until {until:?}"),
    }
}

#[test]
fn d7_the_first_query_does_not_block_and_later_ones_do() {
    let mut queries = WatchQueries::new(INTERVAL, 1);
    assert_eq!(query(&mut queries, at(0), ALONE).index, None);
    queries.answered(at(5), 42);
    let second = query(&mut queries, at(5), ALONE);
    assert_eq!(second.index, Some(42));
    // Consul may add a sixteenth: the next query is not later than the interval.
    assert!(second.wait + second.wait / 16 <= INTERVAL, "{:?}", second.wait);
    assert!(second.wait >= INTERVAL * 3 / 4, "{:?}", second.wait);
    queries.answered(at(9_000), 42);
    assert_ne!(query(&mut queries, at(9_000), ALONE).wait, second.wait, "jitter");
}

#[test]
fn d7_an_index_that_goes_backwards_is_reset_and_zero_counts_as_one() {
    let mut queries = WatchQueries::new(INTERVAL, 1);
    queries.answered(at(0), 42);
    queries.answered(at(1_000), 41);
    assert_eq!(query(&mut queries, at(1_000), ALONE).index, None);
    queries.answered(at(2_000), 7);
    assert_eq!(query(&mut queries, at(2_000), ALONE).index, Some(7));
    let mut queries = WatchQueries::new(INTERVAL, 1);
    queries.answered(at(0), 0);
    assert_eq!(query(&mut queries, at(0), ALONE).index, Some(1));
}

#[test]
fn d7_quick_answers_are_rate_limited_and_rare_ones_are_not() {
    let mut queries = WatchQueries::new(INTERVAL, 1);
    let (mut now, mut sent) = (at(0), 0_u64);
    while now < at(10_000) {
        match queries.next(now, ALONE) {
            NextQuery::Wait(until) => now = until,
            NextQuery::Send(_) => {
                sent += 1;
                // An immediate answer, as from a server that does not block.
                queries.answered(now, sent);
            }
        }
    }
    assert!((30..=60).contains(&sent), "{sent} in 10 s");
    let mut queries = WatchQueries::new(INTERVAL, 1);
    for second in 0..100 {
        assert!(matches!(queries.next(at(second * 1_000), ALONE), NextQuery::Send(_)), "at once");
        queries.answered(at(second * 1_000), second + 1);
    }
}

#[test]
fn d7_the_interval_bounds_the_retry_delay() {
    let mut queries = WatchQueries::new(INTERVAL, 1);
    queries.answered(at(0), 42);
    let mut now = at(0);
    let mut delays = Vec::new();
    for _ in 0..12 {
        queries.failed(now);
        let NextQuery::Wait(until) = queries.next(now, ALONE) else { panic!("at once") };
        delays.push(until.since(now));
        now = until;
    }
    assert!(delays[0] <= Duration::from_millis(100), "{delays:?}");
    assert!(delays.iter().all(|delay| *delay <= INTERVAL), "{delays:?}");
    assert!(delays[11] >= INTERVAL / 2, "{delays:?}");
    assert_eq!(query(&mut queries, now, ALONE).index, None, "a restarted catalog may not know the index");
    queries.answered(now, 3);
    assert_eq!(query(&mut queries, now, ALONE).index, Some(3));
}

#[test]
fn d7_with_more_watches_than_slots_each_query_waits_for_its_share() {
    let mut queries = WatchQueries::new(INTERVAL, 1);
    let wait = query(&mut queries, at(0), QuerySlots { slots: 100, watches: 1_000 }).wait;
    assert!(wait <= INTERVAL / 10 && wait >= INTERVAL / 15, "{wait:?}");
    assert!(query(&mut queries, at(0), QuerySlots { slots: 1, watches: u32::MAX }).wait > Duration::ZERO);
}

#[test]
fn d5_a_service_is_not_settled_before_its_status_is_known_in_the_catalog() {
    let mut harness = ServiceHarness::new();
    harness.set_desired(PASSING);
    assert!(!harness.service.is_settled(), "it is not registered");
    harness.sends(CatalogRequest::Register(Status::Passing), Outcome::Done);
    assert_eq!(harness.service.next(harness.now), Action::Send(CatalogRequest::Update(Status::Passing)));
    harness.service.done(harness.now, Outcome::Done);
    assert!(harness.service.is_settled());
    harness.service.heartbeat_due();
    assert!(!harness.service.is_settled(), "a heartbeat is due");
    harness.set_desired(CRITICAL);
    assert!(!harness.service.is_settled(), "the catalog has another status");
    harness.set_desired(DesiredService::Absent);
    harness.sends(CatalogRequest::Deregister, Outcome::Done);
    assert!(harness.service.is_settled());
    harness.set_desired(PASSING);
    assert_eq!(harness.service.next(harness.now), Action::Send(CatalogRequest::Register(Status::Passing)));
    harness.set_desired(DesiredService::Absent);
    assert!(!harness.service.is_settled(), "a request is pending");
}

#[test]
fn s2_a_failed_registration_is_not_a_deregistration() {
    let mut harness = ServiceHarness::new();
    harness.set_desired(PASSING);
    assert_eq!(harness.service.next(harness.now), Action::Send(CatalogRequest::Register(Status::Passing)));
    harness.set_desired(DesiredService::Absent);
    harness.service.done(harness.now, Outcome::Unknown);
    assert!(!harness.service.take_deregistered(), "the catalog may have it");
    harness.waits();
    harness.sends(CatalogRequest::Deregister, Outcome::Done);
    assert!(harness.service.take_deregistered());
}
