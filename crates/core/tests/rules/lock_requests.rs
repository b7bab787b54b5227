//! D14: the requests of a lock to Consul, in virtual time.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::lock_requests::{
    LockAction, LockOutcome, LockRequest, LockRequests, LockValue, Seen, SeenKey,
};
use containerpilot_core::lock_report::{LockReport, LockWait};
use containerpilot_core::plan::Lock;

const TTL: Duration = Duration::from_secs(20);
/// With this stop time, a holder gives up after 14 s: its session is renewed after 7 s.
const STOP_TIME: Duration = Duration::from_millis(4_980);
const AT_ONCE: LockRequest = LockRequest::Look { index: None, wait: Duration::ZERO };
const DONE: LockOutcome = LockOutcome::Done(true);
const REFUSED: LockOutcome = LockOutcome::Done(false);

fn lock(ttl: Duration, slots: u32) -> Lock {
    Lock { name: "primary".into(), key: "locks/primary".into(), ttl, slots }
}

/// The requests of a lock and the time.
struct Client {
    requests: LockRequests,
    now: Time,
}

impl Client {
    fn new(slots: u32) -> Self {
        Self { requests: LockRequests::new(&lock(TTL, slots), STOP_TIME, 1), now: Time::ZERO }
    }

    /// A client whose session is `me`, and which has not looked yet.
    fn with_session(slots: u32) -> Self {
        let mut client = Self::new(slots);
        client.step(&LockRequest::CreateSession, LockOutcome::Created("me".into()));
        client
    }

    /// A client whose first look has found this.
    fn that_saw(slots: u32, seen: Seen) -> Self {
        let mut client = Self::with_session(slots);
        client.looks(seen);
        client
    }

    /// The holder of a lock with one slot since the start, with the fencing number 7.
    fn holder() -> Self {
        let client = Self::that_saw(1, held_by("me", 7));
        assert_eq!(client.requests.report(), held(7, TTL));
        client
    }

    /// One of the two holders of a semaphore since the start, with the fencing number 8.
    fn semaphore_holder() -> Self {
        let mut client = Self::that_saw(2, listed(7, &["other"], &["other", "me"]));
        let request = set_holders(7, &["other", "me"], false);
        client.step(&request, DONE);
        client.looks(listed(9, &["other", "me"], &["other", "me"]));
        assert_eq!(client.requests.report(), held(8, TTL));
        client
    }

    fn next(&mut self) -> LockAction {
        self.requests.next(self.now)
    }

    /// Sends this request.
    fn sends(&mut self, request: &LockRequest) {
        assert_eq!(self.next(), LockAction::Send(request.clone()));
        assert_eq!(self.next(), LockAction::Wait(None), "one request at a time");
    }

    fn done(&mut self, outcome: LockOutcome) {
        self.requests.done(self.now, outcome);
    }

    /// Sends this request, with this outcome.
    fn step(&mut self, request: &LockRequest, outcome: LockOutcome) {
        self.sends(request);
        self.done(outcome);
    }

    /// Looks without waiting, and finds this.
    fn looks(&mut self, seen: Seen) {
        self.step(&AT_ONCE, LockOutcome::Seen(seen));
    }

    /// Waits for a change since this index, for so long.
    fn waits_for_change(&mut self, since: u64, wait: Duration) {
        self.sends(&LockRequest::Look { index: Some(since), wait });
    }

    fn millis(&mut self, milliseconds: u64) {
        self.now = self.now + Duration::from_millis(milliseconds);
    }

    fn seconds(&mut self, seconds: u64) {
        self.millis(seconds * 1_000);
    }

    fn not_held(&self) -> LockWait {
        match self.requests.report() {
            LockReport::NotHeld(wait) => wait,
            held @ LockReport::Held { .. } => panic!("{held:?}"),
        }
    }

    /// Renews the session `after` so many seconds, and finds this.
    fn renews(&mut self, after: u64, seen: Seen) {
        self.seconds(after);
        self.step(&LockRequest::Renew, DONE);
        self.looks(seen);
    }
}

fn held(fencing: u64, until: Duration) -> LockReport {
    LockReport::Held { fencing, until: Time::ZERO + until }
}

/// Consul adds up to a sixteenth to the wait of a blocking query.
fn blocking(until_next: Duration) -> Duration {
    until_next / 16 * 15
}

fn seen(index: u64, session: Option<&str>, value: LockValue) -> Seen {
    let session = session.map(str::to_owned);
    Seen { index, key: Some(SeenKey { created: 1, modified: index, session, value }), ..Seen::default() }
}

fn held_by(session: &str, index: u64) -> Seen {
    seen(index, Some(session), LockValue { holder: Some("web-1".into()), ..LockValue::default() })
}

fn released(index: u64) -> Seen {
    seen(index, None, LockValue { released: true, ..LockValue::default() })
}

fn unlocked(index: u64) -> Seen {
    seen(index, None, LockValue::default())
}

fn missing(index: u64) -> Seen {
    Seen { index, ..Seen::default() }
}

/// The list of holders of a semaphore, and the sessions that lock their contender keys.
fn listed(index: u64, holders: &[&str], contenders: &[&str]) -> Seen {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let value = LockValue { holders: names(holders), ..LockValue::default() };
    Seen { contenders: names(contenders), ..seen(index, None, value) }
}

fn incomplete(seen: Seen) -> Seen {
    let key = seen.key.map(|key| SeenKey { value: LockValue { incomplete: true, ..key.value }, ..key });
    Seen { key, ..seen }
}

fn set_holders(index: u64, holders: &[&str], incomplete: bool) -> LockRequest {
    let holders = holders.iter().map(|name| (*name).to_owned()).collect();
    LockRequest::SetHolders { index, holders, incomplete }
}

#[test]
fn d14_a_released_lock_is_acquired_at_once() {
    let mut client = Client::new(1);
    assert_eq!(client.requests.session(), None);
    assert_eq!(client.not_held(), LockWait::Unknown);
    client.step(&LockRequest::CreateSession, LockOutcome::Created("me".into()));
    assert_eq!(client.requests.session(), Some("me"));
    client.looks(released(7));
    assert_eq!(client.not_held(), LockWait::Unknown);
    client.step(&LockRequest::Acquire { index: 7 }, DONE);
    assert_eq!(client.not_held(), LockWait::Unknown, "only a look shows the index of the change");
    client.seconds(1);
    client.looks(held_by("me", 9));
    assert_eq!(client.requests.report(), held(9, TTL), "the session was created a second before the look");
}

#[test]
fn d14_a_missing_key_is_created_without_a_holder() {
    let mut client = Client::that_saw(1, missing(3));
    assert_eq!(client.not_held(), LockWait::NotReleased(TTL));
    client.step(&LockRequest::Create, DONE);
    client.looks(unlocked(4));
    assert_eq!(client.not_held(), LockWait::NotReleased(TTL));
    // Another client may create it first, which is no failure.
    let mut client = Client::that_saw(1, missing(3));
    client.step(&LockRequest::Create, REFUSED);
    client.looks(held_by("other", 4));
    assert_eq!(client.not_held(), LockWait::Taken(Some("web-1".into())));
}

#[test]
fn d14_a_lock_that_was_not_released_is_left_alone_for_a_ttl() {
    let mut client = Client::that_saw(1, unlocked(7));
    client.waits_for_change(7, blocking(TTL / 2));
    client.seconds(9);
    client.done(LockOutcome::Seen(unlocked(7)));
    client.renews(1, unlocked(7));
    client.millis(9_999);
    assert_eq!(client.next(), LockAction::Wait(Some(Time::ZERO + TTL)));
    client.millis(1);
    client.renews(0, unlocked(7));
    client.step(&LockRequest::Acquire { index: 7 }, DONE);
    client.looks(held_by("me", 8));
    assert_eq!(client.requests.report(), held(8, TTL * 2));
}

#[test]
fn d14_each_change_of_a_lock_that_was_not_released_begins_a_new_ttl() {
    let mut client = Client::that_saw(1, unlocked(7));
    client.renews(10, unlocked(9));
    client.renews(10, unlocked(9));
    client.waits_for_change(9, blocking(TTL / 2));
    client.done(LockOutcome::Seen(released(10)));
    client.sends(&LockRequest::Acquire { index: 10 });
}

#[test]
fn d14_the_last_holder_may_have_a_longer_ttl() {
    let longer = Duration::from_secs(25);
    let of_ttl = |ttl| seen(7, None, LockValue { ttl: Some(ttl), ..LockValue::default() });
    let mut client = Client::that_saw(1, of_ttl(longer));
    assert_eq!(client.not_held(), LockWait::NotReleased(longer));
    client.renews(10, of_ttl(longer));
    client.renews(10, of_ttl(longer));
    client.waits_for_change(7, blocking(Duration::from_secs(5)));
    client.seconds(5);
    client.done(LockOutcome::Seen(of_ttl(longer)));
    client.sends(&LockRequest::Acquire { index: 7 });
    // A shorter one does not count.
    assert_eq!(Client::that_saw(1, of_ttl(TTL / 2)).not_held(), LockWait::NotReleased(TTL));
}

#[test]
fn d14_a_taken_lock_is_looked_at_until_it_changes() {
    let mut client = Client::that_saw(1, held_by("other", 7));
    assert_eq!(client.not_held(), LockWait::Taken(Some("web-1".into())));
    client.seconds(4);
    client.waits_for_change(7, blocking(Duration::from_secs(6)));
    client.seconds(1);
    client.done(LockOutcome::Seen(released(8)));
    client.sends(&LockRequest::Acquire { index: 8 });
}

#[test]
fn d14_a_query_for_less_than_50_ms_is_not_sent() {
    let mut client = Client::that_saw(1, held_by("other", 7));
    client.millis(9_940);
    client.waits_for_change(7, blocking(Duration::from_millis(60)));
    client.millis(10);
    client.done(LockOutcome::Seen(held_by("other", 8)));
    assert_eq!(client.next(), LockAction::Wait(Some(Time::ZERO + TTL / 2)));
}

#[test]
fn d14_a_query_that_returns_early_without_a_change_is_followed_by_a_pause() {
    let mut client = Client::that_saw(1, held_by("other", 7));
    let wait = |client: &mut Client, until: u64| {
        client.waits_for_change(7, blocking(Duration::from_millis(10_000 - until)));
    };
    wait(&mut client, 0);
    client.millis(249);
    client.done(LockOutcome::Seen(held_by("other", 7)));
    client.millis(249);
    assert_eq!(client.next(), LockAction::Wait(Some(client.now + Duration::from_millis(1))));
    client.millis(1);
    wait(&mut client, 499);
    client.millis(250);
    client.done(LockOutcome::Seen(held_by("other", 7)));
    wait(&mut client, 749);
    client.done(LockOutcome::Seen(held_by("third", 8)));
    client.waits_for_change(8, blocking(Duration::from_millis(9_251)));
}

#[test]
fn d14_a_holder_renews_its_session_and_then_looks() {
    let mut client = Client::holder();
    client.waits_for_change(7, blocking(Duration::from_secs(7)));
    client.seconds(6);
    client.done(LockOutcome::Seen(held_by("me", 7)));
    assert_eq!(client.requests.report(), held(7, TTL), "it was sent after 0 s");
    client.seconds(1);
    client.sends(&LockRequest::Renew);
    client.seconds(1);
    client.done(DONE);
    assert_eq!(client.requests.report(), held(7, TTL), "the last look was sent after 0 s");
    client.sends(&AT_ONCE);
    client.seconds(1);
    client.done(LockOutcome::Seen(held_by("me", 7)));
    assert_eq!(
        client.requests.report(),
        held(7, TTL + Duration::from_secs(7)),
        "the renewal was sent after 7 s"
    );
    // With jobs that take long to stop, it is renewed more often.
    client.requests.set_stop_time(&lock(TTL, 1), Duration::from_millis(8_980));
    client.waits_for_change(7, blocking(Duration::from_secs(3)));
}

#[test]
fn d14_a_holder_takes_back_what_was_deleted_or_unlocked() {
    let mut client = Client::holder();
    client.renews(7, missing(8));
    assert!(matches!(client.requests.report(), LockReport::Held { fencing: 7, .. }));
    client.step(&LockRequest::Create, DONE);
    client.looks(unlocked(9));
    client.step(&LockRequest::Acquire { index: 9 }, DONE);
    client.looks(held_by("me", 10));
    assert_eq!(
        client.requests.report(),
        held(7, TTL + Duration::from_secs(7)),
        "it was the holder all the time"
    );
}

#[test]
fn d14_a_holder_that_was_too_late_is_none_before_a_ttl_has_passed() {
    let mut client = Client::holder();
    client.sends(&LockRequest::Look { index: Some(7), wait: blocking(Duration::from_secs(7)) });
    client.seconds(20);
    client.done(LockOutcome::Seen(unlocked(8)));
    assert_eq!(client.not_held(), LockWait::NotReleased(TTL));
    client.renews(0, unlocked(8));
    client.waits_for_change(8, blocking(TTL / 2));
    client.done(LockOutcome::Seen(held_by("me", 9)));
    assert_eq!(client.requests.report(), held(9, TTL * 2), "a new number");
}

#[test]
fn d14_a_holder_gives_up_a_lock_that_another_has() {
    let mut client = Client::holder();
    client.renews(7, held_by("other", 9));
    assert_eq!(client.not_held(), LockWait::Taken(Some("web-1".into())));
}

#[test]
fn d14_an_invalidated_session_is_replaced() {
    let mut client = Client::holder();
    client.seconds(7);
    client.step(&LockRequest::Renew, LockOutcome::NoSession);
    assert_eq!(client.not_held(), LockWait::SessionInvalidated);
    client.step(&LockRequest::CreateSession, LockOutcome::Created("new".into()));
    client.looks(held_by("new", 9));
    assert_eq!(client.requests.report(), held(9, Duration::from_secs(27)));
}

/// Fails the pending request and returns when the next one is sent.
fn fail(client: &mut Client) -> Duration {
    client.done(LockOutcome::Failed);
    let LockAction::Wait(Some(until)) = client.next() else { panic!("at once") };
    let delay = until.since(client.now);
    client.now = until;
    delay
}

#[test]
fn d14_failed_requests_are_repeated_with_a_growing_delay() {
    let mut client = Client::new(1);
    for full in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
        client.sends(&LockRequest::CreateSession);
        let delay = fail(&mut client).as_millis();
        assert!((full / 2..=full).contains(&delay), "{delay} of {full} ms");
    }
    client.step(&LockRequest::CreateSession, LockOutcome::Created("me".into()));
    client.sends(&AT_ONCE);
    assert!(fail(&mut client) <= Duration::from_millis(100), "the first failure since");
    // Not longer than a holder has for the next attempt.
    let short = lock(Duration::from_secs(10), 1);
    client.requests = LockRequests::new(&short, Duration::from_millis(6_490), 1);
    for _ in 0..10 {
        client.sends(&LockRequest::CreateSession);
        assert!(fail(&mut client) <= Duration::from_millis(1_250));
    }
}

#[test]
fn d14_a_failed_request_may_have_been_carried_out() {
    let mut client = Client::that_saw(1, released(7));
    client.sends(&LockRequest::Acquire { index: 7 });
    fail(&mut client);
    assert_eq!(client.not_held(), LockWait::Unknown);
    client.looks(held_by("me", 8));
    assert!(matches!(client.requests.report(), LockReport::Held { fencing: 8, .. }));
}

#[test]
fn d14_a_refused_lock_is_tried_again_after_a_delay() {
    let mut client = Client::that_saw(1, released(7));
    client.step(&LockRequest::Acquire { index: 7 }, REFUSED);
    assert_eq!(client.not_held(), LockWait::Refused);
    assert!(matches!(client.next(), LockAction::Wait(Some(_))));
    client.millis(100);
    client.looks(released(7));
    // A holder that takes it back remains the holder for now.
    let mut client = Client::holder();
    client.renews(7, unlocked(8));
    client.step(&LockRequest::Acquire { index: 8 }, REFUSED);
    assert!(matches!(client.requests.report(), LockReport::Held { fencing: 7, .. }));
}

#[test]
fn d14_a_request_has_a_tenth_of_the_ttl_but_one_to_five_seconds() {
    for (ttl, deadline) in [(10, 1), (20, 2), (86_400, 5)] {
        let requests = LockRequests::new(&lock(Duration::from_secs(ttl), 1), STOP_TIME, 1);
        assert_eq!(requests.deadline(), Duration::from_secs(deadline));
    }
}

#[test]
fn d14_a_release_unlocks_the_key_and_destroys_the_session() {
    let mut client = Client::holder();
    client.requests.release(client.now);
    client.step(&LockRequest::Release, DONE);
    client.looks(released(8));
    client.step(&LockRequest::DestroySession, DONE);
    assert_eq!(client.requests.session(), None);
    assert_eq!(client.next(), LockAction::Finished);
    // A lock of another holder is left alone.
    let mut client = Client::that_saw(1, held_by("other", 7));
    client.requests.release(client.now);
    client.sends(&LockRequest::DestroySession);
    // Without a session, nothing is to be released.
    let mut client = Client::new(1);
    client.requests.release(client.now);
    assert_eq!(client.next(), LockAction::Finished);
}

#[test]
fn d14_a_release_does_not_wait_for_the_delay_after_a_failure_and_makes_three_attempts() {
    let mut client = Client::holder();
    client.seconds(7);
    for _ in 0..6 {
        client.sends(&LockRequest::Renew);
        fail(&mut client);
    }
    client.sends(&LockRequest::Renew);
    client.done(LockOutcome::Failed);
    client.requests.release(client.now);
    client.looks(held_by("me", 7));
    for _ in 0..2 {
        client.sends(&LockRequest::Release);
        assert!(fail(&mut client) <= Duration::from_millis(200));
        // Each answer allows three more.
        client.looks(held_by("me", 7));
    }
    client.sends(&LockRequest::Release);
    fail(&mut client);
    client.requests.release(client.now);
    client.sends(&AT_ONCE);
    fail(&mut client);
    client.sends(&AT_ONCE);
    client.done(LockOutcome::Failed);
    assert_eq!(client.next(), LockAction::Finished);
}

#[test]
fn d14_a_contender_for_a_semaphore_adds_itself_to_the_holders() {
    let mut client = Client::that_saw(2, listed(7, &["other"], &["other"]));
    client.step(&LockRequest::Contend, DONE);
    client.looks(listed(7, &["other"], &["other", "me"]));
    assert_eq!(client.not_held(), LockWait::Unknown, "it is neither full nor without a known holder");
    client.seconds(1);
    client.step(&set_holders(7, &["other", "me"], false), DONE);
    client.looks(listed(9, &["other", "me"], &["other", "me"]));
    assert_eq!(
        client.requests.report(),
        held(8, TTL),
        "a number between the index of the change and the one before"
    );
    client.waits_for_change(9, blocking(Duration::from_secs(6)));
}

#[test]
fn d14_a_holder_of_a_semaphore_renews_and_remains_one_with_its_number() {
    let mut client = Client::semaphore_holder();
    for until in [27, 34, 41] {
        client.renews(7, listed(20, &["other", "me"], &["other", "me"]));
        assert_eq!(client.requests.report(), held(8, Duration::from_secs(until)));
        client.waits_for_change(20, blocking(Duration::from_secs(7)));
        client.done(LockOutcome::Seen(listed(20, &["other", "me"], &["other", "me"])));
    }
}

#[test]
fn d14_a_full_semaphore_is_taken_until_a_slot_is_free() {
    let mut client = Client::that_saw(2, listed(7, &["a", "b"], &["a", "b", "me"]));
    assert_eq!(client.not_held(), LockWait::Taken(None));
    client.waits_for_change(7, blocking(TTL / 2));
    client.done(LockOutcome::Seen(listed(8, &["b"], &["a", "b", "me"])));
    client.sends(&set_holders(8, &["b", "me"], false));
}

#[test]
fn d14_an_attempt_that_is_not_known_to_have_succeeded_is_repeated() {
    for outcome in [LockOutcome::Failed, REFUSED] {
        let mut client = Client::that_saw(2, listed(7, &["other"], &["other", "me"]));
        client.step(&set_holders(7, &["other", "me"], false), outcome);
        client.millis(100);
        client.looks(listed(9, &["other", "me"], &["other", "me"]));
        assert_eq!(client.not_held(), LockWait::Unknown);
        client.step(&set_holders(9, &["other", "me"], false), DONE);
        client.looks(listed(12, &["other", "me"], &["other", "me"]));
        assert!(matches!(client.requests.report(), LockReport::Held { fencing: 10, .. }));
    }
}

#[test]
fn d14_an_attempt_makes_no_holder_if_the_list_is_incomplete_since() {
    let mut client = Client::that_saw(2, listed(7, &[], &["me"]));
    client.step(&set_holders(7, &["me"], false), DONE);
    client.looks(incomplete(listed(9, &["me"], &["me"])));
    assert_eq!(client.not_held(), LockWait::NotReleased(TTL));
}

#[test]
fn d14_an_attempt_counts_for_a_ttl() {
    for (age, is_holder) in [(19_999, true), (20_000, false)] {
        let mut client = Client::that_saw(2, listed(7, &[], &["me"]));
        client.step(&set_holders(7, &["me"], false), DONE);
        client.millis(age);
        client.step(&LockRequest::Renew, DONE);
        client.looks(listed(8, &["me"], &["me"]));
        assert_eq!(matches!(client.requests.report(), LockReport::Held { .. }), is_holder, "after {age} ms");
    }
}

#[test]
fn d14_a_holder_without_its_contender_key_is_replaced_after_a_ttl_and_another_look() {
    let absent = || listed(7, &["a", "b"], &["b", "me"]);
    let mut client = Client::that_saw(2, absent());
    assert_eq!(client.not_held(), LockWait::Taken(None));
    client.renews(10, absent());
    client.millis(9_999);
    assert_eq!(client.next(), LockAction::Wait(Some(Time::ZERO + TTL)));
    client.millis(1);
    client.step(&LockRequest::Renew, DONE);
    client.looks(absent());
    client.sends(&set_holders(7, &["b", "me"], false));
    // A change of the list begins a new time.
    let mut client = Client::that_saw(2, absent());
    client.renews(10, listed(9, &["a", "b"], &["b", "me"]));
    client.renews(10, listed(9, &["a", "b"], &["b", "me"]));
    client.waits_for_change(9, blocking(TTL / 2));
}

#[test]
fn d14_a_look_that_was_sent_too_early_replaces_no_holder() {
    let absent = || listed(7, &["a", "b"], &["b", "me"]);
    let mut client = Client::that_saw(2, absent());
    client.renews(10, absent());
    client.seconds(9);
    client.waits_for_change(7, blocking(Duration::from_secs(1)));
    client.seconds(1);
    client.done(LockOutcome::Seen(absent()));
    client.renews(0, absent());
    client.sends(&set_holders(7, &["b", "me"], false));
    // The same without a renewal in between.
    let mut client = Client::with_session(2);
    client.seconds(5);
    client.looks(absent());
    client.renews(5, absent());
    client.renews(10, absent());
    client.seconds(4);
    client.waits_for_change(7, blocking(Duration::from_secs(1)));
    client.seconds(2);
    client.done(LockOutcome::Seen(absent()));
    client.looks(absent());
    client.sends(&set_holders(7, &["b", "me"], false));
}

#[test]
fn d14_an_incomplete_list_of_holders_is_left_alone_for_a_ttl() {
    let list = || incomplete(listed(7, &[], &["me"]));
    let mut client = Client::that_saw(2, list());
    assert_eq!(client.not_held(), LockWait::NotReleased(TTL));
    client.waits_for_change(7, blocking(TTL / 2));
    client.seconds(9);
    client.done(LockOutcome::Seen(list()));
    client.renews(1, list());
    client.renews(10, list());
    client.step(&set_holders(7, &["me"], false), DONE);
    client.looks(listed(9, &["me"], &["me"]));
    assert_eq!(client.requests.report(), held(8, TTL * 2));
}

#[test]
fn d14_a_holder_of_a_semaphore_takes_its_slot_back_in_an_incomplete_list() {
    let mut client = Client::semaphore_holder();
    client.renews(7, Seen { contenders: vec!["me".into()], ..missing(20) });
    client.step(&LockRequest::Create, DONE);
    client.looks(incomplete(listed(21, &[], &["me"])));
    assert!(matches!(client.requests.report(), LockReport::Held { fencing: 8, .. }));
    client.step(&set_holders(21, &["me"], true), DONE);
    client.looks(incomplete(listed(23, &["me"], &["me"])));
    assert_eq!(client.requests.report(), held(8, TTL + Duration::from_secs(7)));
    client.waits_for_change(23, blocking(Duration::from_secs(7)));
}

#[test]
fn d14_a_holder_of_a_semaphore_that_is_not_listed_any_more_gives_up() {
    let mut client = Client::semaphore_holder();
    client.renews(7, listed(20, &["a", "b"], &["a", "b", "me"]));
    assert_eq!(client.not_held(), LockWait::Taken(None));
    // A contender key alone, or a place in the list alone, makes no holder.
    let mut client = Client::semaphore_holder();
    client.renews(7, listed(20, &["other"], &["other", "me"]));
    assert_eq!(client.not_held(), LockWait::Taken(None), "its slot may have been taken");
    let mut client = Client::semaphore_holder();
    client.renews(7, listed(20, &["other", "me"], &["other"]));
    assert_eq!(client.requests.report(), held(8, TTL), "it was seen as a holder after 0 s");
    client.sends(&LockRequest::Contend);
}

#[test]
fn d14_a_release_removes_a_holder_of_a_semaphore_from_the_list() {
    let mut client = Client::semaphore_holder();
    client.requests.release(client.now);
    client.step(&set_holders(9, &["other"], false), DONE);
    client.looks(listed(10, &["other"], &["other", "me"]));
    client.step(&LockRequest::DestroySession, DONE);
    assert_eq!(client.next(), LockAction::Finished);
}
