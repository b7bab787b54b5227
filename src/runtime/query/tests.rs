use super::*;
use containerpilot_config::host::Described;
use containerpilot_config::{Input as Text, Options, load};

fn core(text: &str) -> Core {
    let input = Text { name: "test".to_owned(), text: text.as_bytes().to_vec() };
    let options = Options { version: "0" };
    Core::new(load(vec![input], &Described::default(), options).plan.unwrap())
}

fn step(core: &mut Core, queries: &mut QueryHandler, input: Input) -> Vec<containerpilot_core::Effect> {
    let mut effects = Vec::new();
    core.step(Time::from_nanos(5), input, &mut effects);
    queries.happened(core);
    effects
}

const JOBS: &str = "{ jobs: [
    { name: 'web', exec: 'x' }, { name: 'web', exec: 'y' }, { name: 'db', exec: 'z' }, { name: 'web:2', exec: 'z' },
] }";

#[test]
fn x2_a_name_means_one_job_or_says_what_is_unclear() {
    let core = core(JOBS);
    let meant = |name: &str| job_meant(core.plan(), name);
    assert_eq!(meant("db"), Ok(JobIx(2)));
    assert_eq!(meant("db:1"), Ok(JobIx(2)));
    assert_eq!(meant("web"), Err(Unclear::Several(2)));
    assert_eq!(meant("web:1"), Ok(JobIx(0)));
    assert_eq!(meant("web:2"), Ok(JobIx(3)), "a job that is called so comes first");
    assert_eq!(meant("web:3"), Err(Unclear::Nobody(Some("web:2".to_owned()))));
    assert_eq!(meant("web:0"), Err(Unclear::Nobody(Some("web:2".to_owned()))));
    assert_eq!(meant("dbb"), Err(Unclear::Nobody(Some("db".to_owned()))));
    assert_eq!(meant("postgres"), Err(Unclear::Nobody(None)));
    assert_eq!(meant(""), Err(Unclear::Nobody(None)));
}

#[test]
fn d8_a_wish_is_answered_with_the_cores_own_words() {
    let mut core = core(JOBS);
    let mut queries = QueryHandler::new(SystemTime::now());
    let _ = step(&mut core, &mut queries, Input::Ready);
    let (sender, mut answer) = oneshot::channel();
    let request = ControlRequest::Whole(Request::Maintenance(true));
    let input = queries.hear(&core, Time::ZERO, Query::ControlRequest(request, sender)).unwrap();
    for effect in step(&mut core, &mut queries, input) {
        if let containerpilot_core::Effect::Reply { id, reply: answer } = effect {
            queries.reply(id, answer);
        }
    }
    assert_eq!(answer.try_recv(), Ok(Ok(Reply::Updated(true))));
    let (sender, mut answer) = oneshot::channel();
    let request = ControlRequest::Job("webb".to_owned(), JobAction::Start);
    assert!(queries.hear(&core, Time::ZERO, Query::ControlRequest(request, sender)).is_none());
    assert_eq!(answer.try_recv(), Ok(Err(Unclear::Nobody(Some("web".to_owned())))));
}

#[test]
fn x2_listeners_hear_every_event_once_whenever_they_begin() {
    let mut core = core(JOBS);
    let mut queries = QueryHandler::new(SystemTime::UNIX_EPOCH);
    let listen = |core: &Core, queries: &mut QueryHandler| {
        let (sender, mut answer) = oneshot::channel();
        queries.hear(core, Time::ZERO, Query::Events(sender));
        answer.try_recv().unwrap()
    };
    let mut early = listen(&core, &mut queries);
    assert!(early.remembered.is_empty());
    let _ = step(&mut core, &mut queries, Input::Ready);
    let mut late = listen(&core, &mut queries);
    assert_eq!(late.remembered.len(), 1);
    let _ = step(&mut core, &mut queries, Input::Signal(Signal::TERM));
    let all = |listening: &mut Listening| {
        let mut events = std::mem::take(&mut listening.remembered);
        events.extend(std::iter::from_fn(|| listening.coming.try_recv().ok()));
        events.iter().map(|event| event.id.0).collect::<Vec<_>>()
    };
    let (early, late) = (all(&mut early), all(&mut late));
    assert!(early.len() > 2);
    assert_eq!(early, late);
    assert!(early.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{early:?}");
}

#[test]
fn x2_the_last_snapshot_serves_all_who_ask_at_once() {
    let core = core(JOBS);
    let mut queries = QueryHandler::new(SystemTime::now());
    let first = queries.overview(&core);
    assert!(Arc::ptr_eq(&first, &queries.overview(&core)));
    queries.happened(&core);
    assert!(!Arc::ptr_eq(&first, &queries.overview(&core)));
}

#[test]
fn x2_an_event_has_the_same_time_whenever_it_is_told_unless_the_clock_was_set() {
    let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    let mut wall = Wall(begin);
    let (event, now) = (Time::from_nanos(7), Time::from_nanos(3_000_000_000));
    wall.follow(now, begin + Duration::from_millis(3_200));
    assert_eq!(wall.at(event), begin + Duration::from_nanos(7));
    wall.follow(now, begin + Duration::from_secs(3_600));
    assert_eq!(wall.at(now), begin + Duration::from_secs(3_600));
}
