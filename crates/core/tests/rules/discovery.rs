//! The conversation with the catalog (D5, D7, H6), in virtual time.

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

/// A service and the time.
struct Talk {
    service: Reconciler,
    now: Time,
}

impl Talk {
    fn new() -> Self {
        Self::with(SETTINGS)
    }

    fn with(settings: Settings) -> Self {
        Self { service: Reconciler::new(settings, 7), now: Time::ZERO }
    }

    /// One that is registered and passing.
    fn passing() -> Self {
        let mut talk = Self::new();
        talk.want(PASSING);
        talk.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
        talk.asks(CatalogRequest::Update(Status::Passing), Outcome::Done);
        talk.rests();
        talk
    }

    fn want(&mut self, desired: DesiredService) {
        self.service.want(self.now, desired);
    }

    fn asks(&mut self, request: CatalogRequest, outcome: Outcome) {
        assert_eq!(self.service.next(self.now), Action::Send(request));
        assert_eq!(self.service.next(self.now), Action::Wait(None), "never two at a time");
        self.service.done(self.now, outcome);
    }

    /// Waits for the next moment at which there may be something to do.
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
fn d5_a_service_is_registered_and_its_status_told() {
    Talk::passing();
}

#[test]
fn h6_a_pass_is_a_heartbeat_and_a_fail_is_told_at_once() {
    let mut talk = Talk::passing();
    talk.service.beat();
    talk.asks(CatalogRequest::Update(Status::Passing), Outcome::Done);
    talk.rests();
    talk.want(CRITICAL);
    talk.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);
}

#[test]
fn h6_a_fail_does_not_wait_for_the_delay_of_a_failed_heartbeat() {
    let mut talk = Talk::passing();
    for _ in 0..8 {
        talk.service.beat();
        talk.asks(CatalogRequest::Update(Status::Passing), Outcome::Failed);
        talk.waits();
    }
    talk.service.beat();
    talk.asks(CatalogRequest::Update(Status::Passing), Outcome::Failed);
    assert!(matches!(talk.service.next(talk.now), Action::Wait(Some(_))));
    talk.want(CRITICAL);
    talk.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);
}

#[test]
fn h6_a_fail_that_comes_during_a_request_is_told_after_it() {
    let mut talk = Talk::passing();
    talk.service.beat();
    assert_eq!(talk.service.next(talk.now), Action::Send(CatalogRequest::Update(Status::Passing)));
    talk.want(CRITICAL);
    assert_eq!(talk.service.next(talk.now), Action::Wait(None));
    talk.service.done(talk.now, Outcome::Done);
    talk.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);
}

#[test]
fn d5_a_service_that_consul_forgot_is_registered_again() {
    let mut talk = Talk::passing();
    talk.service.beat();
    talk.asks(CatalogRequest::Update(Status::Passing), Outcome::Forgotten);
    talk.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
    talk.asks(CatalogRequest::Update(Status::Passing), Outcome::Done);
    talk.rests();
}

#[test]
fn d5_a_critical_service_that_was_forgotten_is_missed_too_unless_consul_drops_it_on_demand() {
    let mut talk = Talk::passing();
    talk.want(CRITICAL);
    talk.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);
    assert!(talk.waits() <= SETTINGS.pace);
    talk.asks(CatalogRequest::Update(Status::Critical), Outcome::Forgotten);
    talk.asks(CatalogRequest::Register(Status::Critical), Outcome::Done);
    talk.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);

    let mut dropped = Talk::with(Settings { drops_critical: true, ..SETTINGS });
    dropped.want(CRITICAL);
    dropped.asks(CatalogRequest::Register(Status::Critical), Outcome::Done);
    dropped.asks(CatalogRequest::Update(Status::Critical), Outcome::Done);
    dropped.rests();
}

#[test]
fn d5_one_that_takes_a_service_and_forgets_it_at_once_is_not_asked_in_a_loop() {
    let mut talk = Talk::new();
    talk.want(PASSING);
    let mut waited = Duration::ZERO;
    for _ in 0..10 {
        talk.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
        talk.asks(CatalogRequest::Update(Status::Passing), Outcome::Forgotten);
        waited += talk.waits();
    }
    assert!(waited > Duration::from_secs(1), "{waited:?}");
}

#[test]
fn d5_retries_back_off_with_jitter_but_never_beyond_the_pace_of_heartbeats() {
    let delays = |seed: u64| {
        let mut talk = Talk { service: Reconciler::new(SETTINGS, seed), now: Time::ZERO };
        talk.want(PASSING);
        let delay = |_| {
            talk.asks(CatalogRequest::Register(Status::Passing), Outcome::Failed);
            talk.waits()
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
fn d5_a_request_leaves_time_for_another_within_the_ttl() {
    for (ttl, most) in [(1, 500), (3, 1_000), (15, 5_000), (3_600, 5_000)] {
        let settings = Settings { ttl: Duration::from_secs(ttl), ..SETTINGS };
        assert_eq!(Reconciler::new(settings, 0).deadline(), Duration::from_millis(most));
    }
}

#[test]
fn s2_that_a_service_is_out_is_said_once() {
    let mut talk = Talk::passing();
    assert!(!talk.service.take_deregistered());
    talk.want(DesiredService::Absent);
    assert!(!talk.service.take_deregistered());
    talk.asks(CatalogRequest::Deregister, Outcome::Done);
    assert!(talk.service.take_deregistered());
    assert!(!talk.service.take_deregistered());
    talk.rests();
    talk.want(DesiredService::Absent);
    assert!(talk.service.take_deregistered(), "and again at once to whoever asks again");
}

#[test]
fn s2_nobody_waits_for_a_catalog_that_does_not_let_go_but_it_is_tried_again() {
    let mut talk = Talk::passing();
    talk.want(DesiredService::Absent);
    talk.asks(CatalogRequest::Deregister, Outcome::Failed);
    assert!(talk.service.take_deregistered());
    talk.waits();
    talk.asks(CatalogRequest::Deregister, Outcome::Forgotten);
    assert!(!talk.service.take_deregistered());
    talk.rests();
}

#[test]
fn s2_whoever_is_wanted_again_is_not_told_to_be_out() {
    let mut talk = Talk::passing();
    talk.want(DesiredService::Absent);
    assert_eq!(talk.service.next(talk.now), Action::Send(CatalogRequest::Deregister));
    talk.want(PASSING);
    talk.service.done(talk.now, Outcome::Done);
    assert!(!talk.service.take_deregistered());
    talk.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
}

#[test]
fn d5_a_service_that_was_never_taken_need_not_be_taken_out() {
    let mut talk = Talk::new();
    talk.want(PASSING);
    talk.asks(CatalogRequest::Register(Status::Passing), Outcome::Failed);
    talk.want(DesiredService::Absent);
    assert!(talk.service.take_deregistered());
    talk.rests();
}

#[test]
fn d5_a_registration_without_an_answer_is_undone_and_looked_after_once_more() {
    let mut talk = Talk::new();
    talk.want(PASSING);
    talk.asks(CatalogRequest::Register(Status::Passing), Outcome::Unknown);
    talk.want(DesiredService::Absent);
    talk.asks(CatalogRequest::Deregister, Outcome::Done);
    assert!(talk.service.take_deregistered());
    // The registration may have been carried out after that.
    assert!(talk.waits() <= IN_DOUBT);
    talk.asks(CatalogRequest::Deregister, Outcome::Done);
    talk.rests();
}

#[test]
fn d5_a_changed_definition_is_registered() {
    let mut talk = Talk::passing();
    talk.service.redefine(SETTINGS);
    talk.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
    talk.asks(CatalogRequest::Update(Status::Passing), Outcome::Done);
    talk.service.beat();
    for outcome in [Outcome::Done, Outcome::Failed] {
        talk.service.beat();
        assert_eq!(talk.service.next(talk.now), Action::Send(CatalogRequest::Update(Status::Passing)));
        talk.service.redefine(SETTINGS);
        talk.service.done(talk.now, outcome);
        if outcome == Outcome::Failed {
            talk.waits();
        }
        talk.asks(CatalogRequest::Register(Status::Passing), Outcome::Done);
        talk.asks(CatalogRequest::Update(Status::Passing), Outcome::Done);
    }
}

#[test]
fn s6_whoever_leaves_takes_the_service_out_but_does_not_try_for_ever() {
    let mut talk = Talk::passing();
    talk.service.leave(talk.now);
    talk.asks(CatalogRequest::Deregister, Outcome::Done);
    assert_eq!(talk.service.next(talk.now), Action::Finished);

    let mut refused = Talk::passing();
    refused.service.leave(refused.now);
    refused.asks(CatalogRequest::Deregister, Outcome::Failed);
    refused.waits();
    refused.asks(CatalogRequest::Deregister, Outcome::Unknown);
    assert_eq!(refused.service.next(refused.now), Action::Finished);

    let mut never = Talk::new();
    never.service.leave(never.now);
    assert_eq!(never.service.next(never.now), Action::Finished);
}

#[test]
fn d5_the_log_hears_of_changes_and_not_of_tries() {
    let mut contact = Contact::default();
    assert_eq!(contact.heard("web", RequestResult::Answered), [None, None]);
    assert_eq!(contact.heard("web", RequestResult::Unavailable), [Some(ContactChange::Unavailable), None]);
    assert_eq!(contact.heard("web", RequestResult::Unavailable), [None, None]);
    assert_eq!(contact.heard("db", RequestResult::Unavailable), [None, None]);
    // Not as long as it is away for one of them.
    assert_eq!(contact.heard("web", RequestResult::Answered), [None, None]);
    assert_eq!(contact.heard("db", RequestResult::Answered), [Some(ContactChange::Available), None]);
    assert_eq!(contact.heard("web", RequestResult::Refused), [None, Some(ContactChange::Refused)]);
    assert_eq!(contact.heard("web", RequestResult::Refused), [None, None]);
    assert_eq!(contact.heard("web", RequestResult::Unavailable), [Some(ContactChange::Unavailable), None]);
    assert_eq!(contact.heard("web", RequestResult::Refused), [Some(ContactChange::Available), None]);
    assert_eq!(contact.heard("web", RequestResult::Answered), [None, Some(ContactChange::Accepted)]);
    assert_eq!(contact.heard("web", RequestResult::Unavailable), [Some(ContactChange::Unavailable), None]);
    // Whoever leaves without having been answered has not found it back.
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
fn d7_the_first_question_is_answered_at_once_and_the_others_wait_for_a_change() {
    let mut follow = Follow::new(INTERVAL, 1);
    assert_eq!(query(&mut follow, at(0), ALONE).index, None);
    follow.answered(at(5), 42);
    let second = query(&mut follow, at(5), ALONE);
    assert_eq!(second.index, Some(42));
    // Consul may add a sixteenth: the next look is not later than the interval.
    assert!(second.wait + second.wait / 16 <= INTERVAL, "{:?}", second.wait);
    assert!(second.wait >= INTERVAL * 3 / 4, "{:?}", second.wait);
    follow.answered(at(9_000), 42);
    assert_ne!(query(&mut follow, at(9_000), ALONE).wait, second.wait, "jitter");
}

#[test]
fn d7_an_index_that_goes_backwards_is_forgotten_and_one_of_zero_counts_as_one() {
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
                // An answer in no time, as from something that does not block at all.
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
fn d7_the_interval_is_the_pace_of_retries() {
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
    assert_eq!(query(&mut follow, now, ALONE).index, None, "whoever comes back may have begun anew");
    follow.answered(now, 3);
    assert_eq!(query(&mut follow, now, ALONE).index, Some(3));
}

#[test]
fn d7_where_there_is_not_room_for_all_each_holds_its_place_for_its_share() {
    let mut follow = Follow::new(INTERVAL, 1);
    let wait = query(&mut follow, at(0), QuerySlots { slots: 100, watches: 1_000 }).wait;
    assert!(wait <= INTERVAL / 10 && wait >= INTERVAL / 15, "{wait:?}");
    assert!(query(&mut follow, at(0), QuerySlots { slots: 1, watches: u32::MAX }).wait > Duration::ZERO);
}
