//! D5, D10, H6: the reconciler and connectivity, in virtual time.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::connectivity::{Connectivity, ConnectivityChange, Known, RequestResult};
use containerpilot_core::catalog::ownership::{Claim, Holder, Ownership, SupervisorHost};
use containerpilot_core::catalog::reconcile::{
    CatalogAction, CatalogRequest, IN_DOUBT, Reconciler, RequestOutcome, Settings,
};
use containerpilot_core::catalog::watch_queries::{NextQuery, QuerySlots, WatchQueries};
use containerpilot_core::effect::DesiredService;
use containerpilot_core::plan::{Job, Status};

use crate::harness::plan;

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

/// The host `box` with one address.
const HERE: SupervisorHost<'_> =
    SupervisorHost { name: "box", has_address: &|address| address.to_string() == "10.0.0.9" };

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
        harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Done);
        harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
        harness.is_idle();
        harness
    }

    fn set_desired(&mut self, desired: DesiredService) {
        self.service.set_desired(self.now, desired);
    }

    fn sends(&mut self, request: CatalogRequest, outcome: RequestOutcome) {
        assert_eq!(self.service.next(self.now), CatalogAction::Send(request));
        assert_eq!(self.service.next(self.now), CatalogAction::Wait(None), "one request at a time");
        self.service.done(self.now, outcome);
    }

    /// Waits until the next request may be needed.
    fn waits(&mut self) -> Duration {
        let CatalogAction::Wait(Some(until)) = self.service.next(self.now) else {
            panic!("a request is due now, or none will ever be");
        };
        let waited = until.since(self.now);
        assert!(waited > Duration::ZERO);
        self.now = until;
        waited
    }

    fn is_idle(&mut self) {
        assert_eq!(self.service.next(self.now), CatalogAction::Wait(None));
        assert!(self.service.is_settled());
    }
}

#[test]
fn d10_an_id_of_another_supervisor_is_neither_registered_nor_deregistered() {
    let mut harness = ServiceHarness::new();
    harness.set_desired(PASSING);
    for _ in 0..20 {
        harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Held);
        assert_eq!(harness.service.confirmation().map(|known| known.state), Some(DesiredService::Absent));
        assert!(harness.waits() <= Duration::from_secs(10), "it is tried again");
    }
    // The other one is gone.
    harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Done);
    harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    harness.is_idle();
    // Another one has taken it over: what it has registered is left alone.
    harness.service.heartbeat_due();
    harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Held);
    harness.set_desired(DesiredService::Absent);
    harness.is_idle();
    assert!(harness.service.take_deregistered(), "a job that stops does not wait for it");

    let mut harness = ServiceHarness::passing();
    harness.service.leave(harness.now);
    harness.sends(CatalogRequest::Deregister, RequestOutcome::Held);
    assert_eq!(harness.service.next(harness.now), CatalogAction::Finished);
}

#[test]
fn d10_a_crashed_predecessor_is_told_from_a_living_supervisor() {
    let plan = plan("{ jobs: [{ name: 'web', exec: 'x', port: 80, health: { interval: 1, ttl: 15 } }] }");
    let service = plan.jobs[0].service.clone().unwrap();
    let other = |address: &str, port, is_expired| {
        let (mark, address) = (Some("other".into()), address.into());
        Some(Holder { mark, address, port, is_expired, is_critical: false, node: "agent".into() })
    };
    const REGISTER: CatalogRequest = CatalogRequest::Register(Status::Passing);
    let held = |address: &str, port: u16| Claim::Held(format!("instance other, at {address} port {port}"));
    let own_place = || (service.address.to_string(), service.port);
    let claim = |found: Option<Holder>| {
        Ownership::new("own".into()).claim(at(0), &service, REGISTER, found.as_ref(), HERE)
    };
    let (address, port) = own_place();
    assert_eq!(claim(None), Claim::Free);
    let unmarked = Holder { mark: None, ..other("10.9.9.9", 1, false).unwrap() };
    assert_eq!(claim(Some(unmarked.clone())), Claim::Free, "as 3.8");
    let own = Holder { mark: Some("own".into()), ..unmarked };
    assert_eq!(claim(Some(own)), Claim::Free);
    assert_eq!(claim(other("10.9.9.9", port, true)), Claim::Free, "its TTL has expired");
    assert_eq!(claim(other(&address, port, false)), Claim::Free, "the predecessor: the port is free");
    assert_eq!(claim(other("10.9.9.9", port, false)), held("10.9.9.9", port));
    assert_eq!(claim(other(&address, port + 1, false)), held(&address, port + 1));

    // Only the first look-up can find the predecessor. Later, another one has taken the id over.
    let mut ownership = Ownership::new("own".into());
    assert_eq!(ownership.claim(at(0), &service, REGISTER, None, HERE), Claim::Free);
    let found = other(&address, port, false);
    assert_eq!(ownership.claim(at(1), &service, REGISTER, found.as_ref(), HERE), held(&address, port));
    let found = other(&address, port, true);
    assert_eq!(ownership.claim(at(2), &service, REGISTER, found.as_ref(), HERE), Claim::Free);

    let ttl = Duration::from_secs(15);
    let must = |now, request| ownership.must_look_up(now, request, ttl);
    assert!(must(at(3), CatalogRequest::Register(Status::Passing)));
    assert!(!must(at(15_001), CatalogRequest::Update(Status::Passing)));
    assert!(must(at(15_002), CatalogRequest::Update(Status::Passing)));
    assert!(!must(at(3), CatalogRequest::Deregister) && must(at(15_002), CatalogRequest::Deregister));
}

#[test]
fn d10_a_critical_or_stale_registration_of_another_is_taken_over() {
    let plan = plan("{ jobs: [{ name: 'web', exec: 'x', port: 80, health: { interval: 1, ttl: 15 } }] }");
    let service = plan.jobs[0].service.clone().unwrap();
    let (mark, address) = (Some("other".into()), "10.9.9.9".into());
    let node = "agent".into();
    let other = Holder { mark, address, port: 80, is_expired: false, is_critical: false, node };
    let critical = Holder { is_critical: true, ..other.clone() };
    let moved = Holder { node: "box".into(), ..other.clone() };
    let own_address = Holder { address: "10.0.0.9".into(), ..moved.clone() };
    let named = Holder { address: "db.example".into(), ..moved.clone() };
    let same_address = Holder { address: service.address.to_string(), port: 81, ..moved.clone() };
    let registers = |status| CatalogRequest::Register(status);
    let [passing, down] = [registers(Status::Passing), registers(Status::Critical)];
    let update = CatalogRequest::Update(Status::Passing);
    for (is_first, request, found, is_free) in [
        (true, down, &critical, true),
        (false, passing, &critical, true),
        // Two supervisors whose service does not work do not take the id from each other.
        (false, down, &critical, false),
        (true, passing, &moved, true),
        (false, down, &moved, true),
        // What another one has registered is neither changed nor removed.
        (true, update, &critical, false),
        (true, update, &moved, false),
        (true, CatalogRequest::Deregister, &critical, false),
        // The agent of another host, an address of this host, that of the service, and a name.
        (true, passing, &other, false),
        (true, passing, &own_address, false),
        (true, passing, &same_address, false),
        (true, passing, &named, false),
    ] {
        let mut ownership = Ownership::new("own".into());
        if !is_first {
            ownership.claim(at(0), &service, passing, None, HERE);
        }
        let claim = ownership.claim(at(1), &service, request, Some(found), HERE);
        assert_eq!(claim == Claim::Free, is_free, "first {is_first}: {request:?}, {found:?}");
    }
}

#[test]
fn d10_a_held_id_is_reported_once_and_does_not_make_the_catalog_unavailable() {
    let mut contact = Connectivity::default();
    let held = RequestResult::Held("held");
    assert_eq!(contact.record(at(0), "web", held), [None, Some(ConnectivityChange::Held)]);
    assert_eq!(contact.record(at(5000), "web", held), [None, None]);
    let later = contact.record(at(300_000), "web", held);
    assert_eq!(later, [None, Some(ConnectivityChange::StillHeld(at(0)))]);
    assert_eq!((contact.is_up(), contact.trouble()), (Some(true), None));
    let known = contact.known(at(300_000), &"web", None);
    assert!(known.is_held && known.error.as_deref() == Some("held") && known.since == Some(at(0)));
    let released = contact.record(at(300_001), "web", RequestResult::Answered);
    assert_eq!(released, [None, Some(ConnectivityChange::Released)]);
    assert!(!contact.known(at(300_001), &"web", None).is_held);
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
    harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Unknown);
    harness.set_desired(DesiredService::Absent);
    assert!(!harness.service.is_gone());
    harness.sends(CatalogRequest::Deregister, RequestOutcome::Failed);
    assert!(!harness.service.is_gone(), "deregistering is tried again");
    harness.waits();
    harness.sends(CatalogRequest::Deregister, RequestOutcome::Done);
    assert!(!harness.service.is_gone(), "the registration may still arrive");
    assert!(harness.waits() <= IN_DOUBT);
    assert_eq!(harness.service.next(harness.now), CatalogAction::Send(CatalogRequest::Deregister));
    assert!(!harness.service.is_gone(), "a request is pending");
    harness.service.done(harness.now, RequestOutcome::Done);
    assert!(harness.service.is_gone());
    harness.is_idle();
}

#[test]
fn h6_a_pass_is_a_heartbeat_and_a_failure_is_sent_at_once() {
    let mut harness = ServiceHarness::passing();
    harness.service.heartbeat_due();
    harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    harness.is_idle();
    harness.set_desired(CRITICAL);
    harness.sends(CatalogRequest::Update(Status::Critical), RequestOutcome::Done);
}

#[test]
fn h6_a_failure_does_not_wait_for_the_retry_delay_of_a_heartbeat() {
    let mut harness = ServiceHarness::passing();
    for _ in 0..8 {
        harness.service.heartbeat_due();
        harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Failed);
        harness.waits();
    }
    harness.service.heartbeat_due();
    harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Failed);
    assert!(matches!(harness.service.next(harness.now), CatalogAction::Wait(Some(_))));
    harness.set_desired(CRITICAL);
    harness.sends(CatalogRequest::Update(Status::Critical), RequestOutcome::Done);
}

#[test]
fn d5_failed_requests_are_sent_again_within_a_second_when_another_client_is_answered() {
    let mut harness = ServiceHarness::passing();
    let mut watch = WatchQueries::new(Duration::from_secs(60), 1);
    let mut contact: Connectivity<&str> = Connectivity::default();
    for _ in 0..12 {
        harness.service.heartbeat_due();
        harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Failed);
        watch.failed(harness.now);
        for client in ["web", "watch", "other"] {
            contact.record(harness.now, client, RequestResult::Unavailable("ECONNREFUSED"));
        }
        harness.waits();
    }
    harness.service.heartbeat_due();
    harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Failed);
    watch.failed(harness.now);
    let failed = harness.now;
    let slots = QuerySlots { slots: 1, watches: 1 };
    let delays = |harness: &mut ServiceHarness, watch: &mut WatchQueries| {
        let CatalogAction::Wait(Some(service)) = harness.service.next(harness.now) else {
            panic!("it waits")
        };
        let NextQuery::Wait(query) = watch.next(harness.now, slots) else { panic!("it waits") };
        [service.since(failed), query.since(failed)]
    };
    let before = delays(&mut harness, &mut watch);
    assert!(before[0] > Duration::from_secs(2) && before[1] > Duration::from_secs(20), "{before:?}");
    harness.now = failed + Duration::from_millis(300);
    contact.record(harness.now, "other", RequestResult::Answered);
    let interruption = contact.interruption().unwrap();
    assert!(!interruption.is_over);
    harness.service.interrupted(harness.now, interruption);
    watch.interrupted(interruption);
    assert_eq!(delays(&mut harness, &mut watch), [Duration::from_secs(1); 2]);
    // If it fails again, further answers do not count: the catalog works in part.
    harness.now = failed + Duration::from_secs(1);
    watch.failed(harness.now);
    contact.record(harness.now, "watch", RequestResult::Unavailable("status 500"));
    contact.record(harness.now + Duration::from_millis(1), "other", RequestResult::Answered);
    watch.interrupted(contact.interruption().unwrap());
    let NextQuery::Wait(query) = watch.next(harness.now, slots) else { panic!("it waits") };
    assert!(query.since(failed) > Duration::from_secs(20), "{query:?}");
}

#[test]
fn h6_a_failure_during_a_request_is_sent_after_it() {
    let mut harness = ServiceHarness::passing();
    harness.service.heartbeat_due();
    assert_eq!(
        harness.service.next(harness.now),
        CatalogAction::Send(CatalogRequest::Update(Status::Passing))
    );
    harness.set_desired(CRITICAL);
    assert_eq!(harness.service.next(harness.now), CatalogAction::Wait(None));
    harness.service.done(harness.now, RequestOutcome::Done);
    harness.sends(CatalogRequest::Update(Status::Critical), RequestOutcome::Done);
}

#[test]
fn d5_a_forgotten_service_is_registered_again() {
    let mut harness = ServiceHarness::passing();
    harness.service.heartbeat_due();
    harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Forgotten);
    harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Done);
    harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    harness.is_idle();
}

#[test]
fn d5_a_forgotten_critical_service_is_registered_again_unless_consul_drops_it() {
    let mut harness = ServiceHarness::passing();
    harness.set_desired(CRITICAL);
    harness.sends(CatalogRequest::Update(Status::Critical), RequestOutcome::Done);
    assert!(harness.waits() <= SETTINGS.heartbeat_interval);
    harness.sends(CatalogRequest::Update(Status::Critical), RequestOutcome::Forgotten);
    harness.sends(CatalogRequest::Register(Status::Critical), RequestOutcome::Done);
    harness.sends(CatalogRequest::Update(Status::Critical), RequestOutcome::Done);

    let mut short = ServiceHarness::with(Settings { ttl: Duration::from_secs(6), ..SETTINGS });
    short.set_desired(CRITICAL);
    short.sends(CatalogRequest::Register(Status::Critical), RequestOutcome::Done);
    short.sends(CatalogRequest::Update(Status::Critical), RequestOutcome::Done);
    assert!(short.waits() <= Duration::from_secs(2), "a third of the TTL");

    let mut dropped = ServiceHarness::with(Settings { drops_critical: true, ..SETTINGS });
    dropped.set_desired(CRITICAL);
    dropped.sends(CatalogRequest::Register(Status::Critical), RequestOutcome::Done);
    dropped.sends(CatalogRequest::Update(Status::Critical), RequestOutcome::Done);
    dropped.is_idle();
}

#[test]
fn d5_a_catalog_that_forgets_at_once_causes_no_loop_without_delay() {
    let mut harness = ServiceHarness::new();
    harness.set_desired(PASSING);
    let mut waited = Duration::ZERO;
    for _ in 0..10 {
        harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Done);
        harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Forgotten);
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
            harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Failed);
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
    harness.sends(CatalogRequest::Deregister, RequestOutcome::Done);
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
    harness.sends(CatalogRequest::Deregister, RequestOutcome::Failed);
    assert!(harness.service.take_deregistered());
    harness.waits();
    harness.sends(CatalogRequest::Deregister, RequestOutcome::Forgotten);
    assert!(!harness.service.take_deregistered());
    harness.is_idle();
}

#[test]
fn s2_a_service_desired_again_is_not_reported_as_deregistered() {
    let mut harness = ServiceHarness::passing();
    harness.set_desired(DesiredService::Absent);
    assert_eq!(harness.service.next(harness.now), CatalogAction::Send(CatalogRequest::Deregister));
    harness.set_desired(PASSING);
    harness.service.done(harness.now, RequestOutcome::Done);
    assert!(!harness.service.take_deregistered());
    harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Done);
}

#[test]
fn d5_a_service_that_was_refused_needs_no_deregistration() {
    let mut harness = ServiceHarness::new();
    harness.set_desired(PASSING);
    harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Failed);
    harness.set_desired(DesiredService::Absent);
    assert!(harness.service.take_deregistered());
    harness.is_idle();
}

#[test]
fn d5_an_unanswered_registration_is_undone_and_checked_again_later() {
    let mut harness = ServiceHarness::new();
    harness.set_desired(PASSING);
    harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Unknown);
    harness.set_desired(DesiredService::Absent);
    harness.sends(CatalogRequest::Deregister, RequestOutcome::Done);
    assert!(harness.service.take_deregistered());
    // The registration may have been carried out after that.
    assert!(harness.waits() <= IN_DOUBT);
    harness.sends(CatalogRequest::Deregister, RequestOutcome::Done);
    harness.is_idle();
}

#[test]
fn d5_a_changed_definition_is_registered() {
    let mut harness = ServiceHarness::passing();
    harness.service.redefine(SETTINGS);
    harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Done);
    harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    harness.service.heartbeat_due();
    for outcome in [RequestOutcome::Done, RequestOutcome::Failed] {
        harness.service.heartbeat_due();
        assert_eq!(
            harness.service.next(harness.now),
            CatalogAction::Send(CatalogRequest::Update(Status::Passing))
        );
        harness.service.redefine(SETTINGS);
        harness.service.done(harness.now, outcome);
        if outcome == RequestOutcome::Failed {
            harness.waits();
        }
        harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Done);
        harness.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    }
}

#[test]
fn s6_the_supervisor_deregisters_with_a_bounded_number_of_attempts() {
    let mut harness = ServiceHarness::passing();
    harness.service.leave(harness.now);
    harness.sends(CatalogRequest::Deregister, RequestOutcome::Done);
    assert_eq!(harness.service.next(harness.now), CatalogAction::Finished);

    let mut refused = ServiceHarness::passing();
    refused.service.leave(refused.now);
    refused.sends(CatalogRequest::Deregister, RequestOutcome::Failed);
    refused.waits();
    refused.sends(CatalogRequest::Deregister, RequestOutcome::Unknown);
    assert_eq!(refused.service.next(refused.now), CatalogAction::Finished);

    let mut never = ServiceHarness::new();
    never.service.leave(never.now);
    assert_eq!(never.service.next(never.now), CatalogAction::Finished);
}

/// The connectivity as seen by `web` and `db`, and the time.
#[derive(Default)]
struct Contact {
    connectivity: Connectivity<&'static str>,
    now: Time,
}

impl Contact {
    fn answered(&mut self, client: &'static str) -> [Option<ConnectivityChange>; 2] {
        self.connectivity.record(self.now, client, RequestResult::Answered)
    }

    fn unavailable(&mut self, client: &'static str) -> [Option<ConnectivityChange>; 2] {
        self.connectivity.record(self.now, client, RequestResult::Unavailable("ECONNREFUSED"))
    }

    fn refused(&mut self, client: &'static str) -> [Option<ConnectivityChange>; 2] {
        self.connectivity.record(self.now, client, RequestResult::Refused("status 403"))
    }

    fn known(&self, client: &'static str, service: &Reconciler) -> Known {
        self.connectivity.known(self.now, &client, service.confirmation())
    }
}

#[test]
fn d5_connectivity_reports_changes_and_not_attempts() {
    let mut contact = Contact::default();
    assert_eq!(contact.answered("web"), [None, None]);
    assert_eq!(contact.unavailable("web"), [Some(ConnectivityChange::Unavailable), None]);
    assert_eq!(contact.unavailable("web"), [None, None]);
    assert_eq!(contact.unavailable("db"), [None, None]);
    // Unavailable as long as it is for one client.
    assert_eq!(contact.answered("web"), [None, None]);
    assert_eq!(contact.answered("db"), [Some(ConnectivityChange::Available), None]);
    assert_eq!(contact.refused("web"), [None, Some(ConnectivityChange::Refused)]);
    assert_eq!(contact.refused("web"), [None, None]);
    assert_eq!(contact.unavailable("web"), [Some(ConnectivityChange::Unavailable), None]);
    assert_eq!(contact.refused("web"), [Some(ConnectivityChange::AnswersButRefuses), None]);
    assert_eq!(contact.connectivity.refused().collect::<Vec<_>>(), [&"web"]);
    assert_eq!(contact.answered("web"), [None, Some(ConnectivityChange::Accepted)]);
    assert_eq!(contact.unavailable("web"), [Some(ConnectivityChange::Unavailable), None]);
    // A client that is removed without an answer does not make it available.
    contact.connectivity.forget(&"web");
    assert_eq!(contact.unavailable("db"), [None, None]);
    assert_eq!(contact.answered("db"), [Some(ConnectivityChange::Available), None]);
}

#[test]
fn d5_a_trouble_that_lasts_is_reported_every_five_minutes() {
    let mut contact = Contact::default();
    let (began, minute) = (at(1000), Duration::from_mins(1));
    let mut reports = Vec::new();
    for second in 0..=660 {
        contact.now = began + Duration::from_secs(second);
        reports
            .extend([contact.unavailable("web"), contact.unavailable("db")].into_iter().flatten().flatten());
        // An answer to another client is not a reason to report the trouble of this one.
        assert_eq!(contact.answered("cache"), [None, None]);
    }
    let still = ConnectivityChange::StillUnavailable(began);
    assert_eq!(reports, [ConnectivityChange::Unavailable, still, still]);
    // Each client that is refused is reported by itself.
    let mut contact = Contact { now: began, ..Contact::default() };
    assert_eq!(contact.refused("web"), [None, Some(ConnectivityChange::Refused)]);
    contact.now = began + minute * 4;
    assert_eq!(contact.refused("db"), [None, Some(ConnectivityChange::Refused)]);
    contact.now = began + minute * 5;
    assert_eq!(contact.refused("web"), [None, Some(ConnectivityChange::StillRefused(began))]);
    assert_eq!(contact.refused("db"), [None, None]);
    contact.now = began + minute * 6;
    assert_eq!(contact.refused("web"), [None, None]);
}

#[test]
fn d11_what_is_known_is_what_the_catalog_has_confirmed() {
    let mut contact = Contact::default();
    let mut web = ServiceHarness::new();
    assert_eq!(contact.known("web", &web.service), Known::default());
    assert_eq!(contact.connectivity.is_up(), None, "nothing was requested");
    // Refused: it is never called passing.
    web.set_desired(PASSING);
    web.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Failed);
    contact.refused("web");
    let unknown = |since, error: &str| Known {
        confirmed: None,
        since: Some(since),
        error: Some(error.into()),
        ..Known::default()
    };
    assert_eq!(contact.known("web", &web.service), unknown(at(0), "status 403"));
    assert_eq!(contact.connectivity.is_up(), Some(false));
    // Accepted: the status is known when it is confirmed, and since the first confirmation.
    (web.now, contact.now) = (at(5000), at(5000));
    web.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Done);
    contact.answered("web");
    assert_eq!(contact.known("web", &web.service), Known::default());
    web.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    let known = |state, since| Known { confirmed: Some(state), since: Some(since), ..Known::default() };
    assert_eq!(contact.known("web", &web.service), known(PASSING, at(5000)));
    (web.now, contact.now) = (at(9000), at(9000));
    web.service.heartbeat_due();
    web.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    assert_eq!(contact.known("web", &web.service), known(PASSING, at(5000)));
    assert_eq!(contact.connectivity.is_up(), Some(true));
    // A wish is not a confirmation.
    web.set_desired(CRITICAL);
    assert_eq!(contact.known("web", &web.service), known(PASSING, at(5000)));
    web.sends(CatalogRequest::Update(Status::Critical), RequestOutcome::Done);
    assert_eq!(contact.known("web", &web.service), known(CRITICAL, at(9000)));
    // The catalog forgets it.
    web.set_desired(PASSING);
    web.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Forgotten);
    assert_eq!(contact.known("web", &web.service), known(DesiredService::Absent, at(9000)));
}

#[test]
fn d11_a_confirmation_does_not_outlive_a_trouble_of_the_catalog_or_its_ttl() {
    let mut web = ServiceHarness::passing();
    let mut contact = Contact { now: at(3000), ..Contact::default() };
    contact.answered("web");
    assert_eq!(contact.known("web", &web.service).confirmed, Some(PASSING));
    // A watch notices that the catalog is away before the service does.
    contact.unavailable("db");
    let known = contact.known("web", &web.service);
    assert_eq!(
        (known.confirmed, known.since, known.error.as_deref()),
        (None, Some(at(3000)), Some("ECONNREFUSED"))
    );
    assert_eq!(contact.connectivity.trouble().map(|trouble| trouble.since), Some(at(3000)));
    // The agent confirms the service again, but still does not answer the watch.
    (web.now, contact.now) = (at(4000), at(4000));
    web.service.heartbeat_due();
    web.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    contact.answered("web");
    assert_eq!(contact.known("web", &web.service).confirmed, Some(PASSING));
    contact.answered("db");
    // Without heartbeats the catalog makes it critical by itself.
    contact.now = at(4000) + SETTINGS.ttl;
    let known = contact.known("web", &web.service);
    assert_eq!((known.confirmed, known.since), (None, Some(contact.now)));
    assert!(known.error.is_some_and(|error| error.contains("TTL")));
}

/// `web` is registered and passing since the beginning, and a watch of `db` notices an outage from second 3 to 4.
fn after_an_outage(settings: Settings, desired: DesiredService) -> (Contact, ServiceHarness) {
    let mut web = ServiceHarness::with(settings);
    web.set_desired(desired);
    let DesiredService::Present(status) = desired else { panic!("it is absent") };
    web.sends(CatalogRequest::Register(status), RequestOutcome::Done);
    web.sends(CatalogRequest::Update(status), RequestOutcome::Done);
    let mut contact = Contact { now: at(3000), ..Contact::default() };
    contact.unavailable("db");
    web.now = contact.now;
    web.service.interrupted(web.now, contact.connectivity.interruption().unwrap());
    contact.now = at(4000);
    contact.unavailable("db");
    contact.answered("db");
    web.now = contact.now;
    (contact, web)
}

#[test]
fn d11_after_an_outage_a_service_is_unknown_until_it_is_sent_again_and_confirmed() {
    let (mut contact, mut web) = after_an_outage(SETTINGS, PASSING);
    web.is_idle();
    web.service.interrupted(web.now, contact.connectivity.interruption().unwrap());
    // It is unknown since the outage began.
    let unknown = Known { confirmed: None, since: Some(at(3000)), ..Known::default() };
    assert_eq!(contact.known("web", &web.service), unknown);
    // It is sent again at once, with jitter, and not at the next heartbeat.
    let waited = web.waits();
    assert!((Duration::from_millis(50)..=Duration::from_millis(100)).contains(&waited), "{waited:?}");
    web.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Forgotten);
    contact.now = web.now;
    let known = |state| Known { confirmed: Some(state), since: Some(web.now), ..Known::default() };
    assert_eq!(contact.known("web", &web.service), known(DesiredService::Absent));
    web.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Done);
    web.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    contact.answered("web");
    let known = |state| Known { confirmed: Some(state), since: Some(web.now), ..Known::default() };
    assert_eq!(contact.known("web", &web.service), known(PASSING));
    web.service.interrupted(web.now, contact.connectivity.interruption().unwrap());
    web.is_idle();
}

#[test]
fn d11_a_critical_service_that_consul_drops_is_not_sent_again_after_an_outage() {
    let (contact, mut web) = after_an_outage(Settings { drops_critical: true, ..SETTINGS }, CRITICAL);
    web.service.interrupted(web.now, contact.connectivity.interruption().unwrap());
    web.is_idle();
    assert_eq!(contact.known("web", &web.service).confirmed, None);
    let (contact, mut web) = after_an_outage(SETTINGS, CRITICAL);
    web.service.interrupted(web.now, contact.connectivity.interruption().unwrap());
    assert!(web.waits() <= Duration::from_millis(100));
    web.sends(CatalogRequest::Update(Status::Critical), RequestOutcome::Done);
}

#[test]
fn d11_since_does_not_move_during_an_outage_and_restarts_with_the_confirmation() {
    let mut web = ServiceHarness::passing();
    let mut contact = Contact { now: at(3000), ..Contact::default() };
    contact.unavailable("db");
    // Its own heartbeats fail, too, and then it is refused.
    for (now, refused) in [(5000, false), (10_000, true), (15_000, false), (20_000, false)] {
        (web.now, contact.now) = (at(now), at(now));
        web.service.interrupted(web.now, contact.connectivity.interruption().unwrap());
        web.service.heartbeat_due();
        web.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Failed);
        if refused {
            contact.refused("web")
        } else {
            contact.unavailable("web")
        };
        let known = contact.known("web", &web.service);
        assert_eq!((known.confirmed, known.since), (None, Some(at(3000))), "{now}");
    }
    contact.now = at(30_000);
    web.now = contact.now;
    web.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    contact.answered("web");
    let passing = Known { confirmed: Some(PASSING), since: Some(at(30_000)), ..Known::default() };
    assert_eq!(contact.known("web", &web.service), passing);
    // The heartbeats that follow do not move it, although the watch is not answered.
    (web.now, contact.now) = (at(35_000), at(35_000));
    contact.unavailable("db");
    web.service.interrupted(web.now, contact.connectivity.interruption().unwrap());
    web.service.heartbeat_due();
    web.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    assert_eq!(contact.known("web", &web.service), passing);
}

#[test]
fn d5_a_service_is_not_settled_before_its_status_is_known_in_the_catalog() {
    let mut harness = ServiceHarness::new();
    harness.set_desired(PASSING);
    assert!(!harness.service.is_settled(), "it is not registered");
    harness.sends(CatalogRequest::Register(Status::Passing), RequestOutcome::Done);
    assert_eq!(
        harness.service.next(harness.now),
        CatalogAction::Send(CatalogRequest::Update(Status::Passing))
    );
    harness.service.done(harness.now, RequestOutcome::Done);
    assert!(harness.service.is_settled());
    harness.service.heartbeat_due();
    assert!(!harness.service.is_settled(), "a heartbeat is due");
    harness.set_desired(CRITICAL);
    assert!(!harness.service.is_settled(), "the catalog has another status");
    harness.set_desired(DesiredService::Absent);
    harness.sends(CatalogRequest::Deregister, RequestOutcome::Done);
    assert!(harness.service.is_settled());
    harness.set_desired(PASSING);
    assert_eq!(
        harness.service.next(harness.now),
        CatalogAction::Send(CatalogRequest::Register(Status::Passing))
    );
    harness.set_desired(DesiredService::Absent);
    assert!(!harness.service.is_settled(), "a request is pending");
}

#[test]
fn s2_a_failed_registration_is_not_a_deregistration() {
    let mut harness = ServiceHarness::new();
    harness.set_desired(PASSING);
    assert_eq!(
        harness.service.next(harness.now),
        CatalogAction::Send(CatalogRequest::Register(Status::Passing))
    );
    harness.set_desired(DesiredService::Absent);
    harness.service.done(harness.now, RequestOutcome::Unknown);
    assert!(!harness.service.take_deregistered(), "the catalog may have it");
    harness.waits();
    harness.sends(CatalogRequest::Deregister, RequestOutcome::Done);
    assert!(harness.service.take_deregistered());
}

#[test]
fn d11_a_confirmation_and_a_failure_at_the_same_instant_leave_the_state_unknown() {
    let mut web = ServiceHarness::passing();
    web.now = at(9000);
    for outcome in [RequestOutcome::Done, RequestOutcome::Failed] {
        web.service.heartbeat_due();
        web.sends(CatalogRequest::Update(Status::Passing), outcome);
    }
    web.waits();
    web.sends(CatalogRequest::Update(Status::Passing), RequestOutcome::Done);
    assert_eq!(web.service.confirmation().map(|known| known.since), Some(web.now));
}
