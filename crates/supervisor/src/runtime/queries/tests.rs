use containerpilot_config::host::StaticHost;
use containerpilot_config::{ConfigFile, Options, load};
use containerpilot_core::plan::Signal;

use super::*;

fn core(text: &str) -> Core {
    let input = ConfigFile { name: "test".to_owned(), text: text.as_bytes().to_vec() };
    let options = Options { version: "0" };
    Core::new(load(vec![input], &StaticHost::default(), options).plan.unwrap())
}

/// The embedded catalog.
fn catalog(core: &Core) -> Discovery {
    let sender = crate::messages::LoopReceiver::new().unwrap().sender();
    Discovery::new(core.plan(), None, &sender, containerpilot_process::boot_clock::BootClock::default())
}

fn step(core: &mut Core, queries: &mut QueryHandler, input: Input) -> Vec<containerpilot_core::Effect> {
    let mut effects = Vec::new();
    core.step(Time::from_nanos(5), input, &mut effects);
    queries.state_changed(core);
    effects
}

fn subscribe(core: &Core, queries: &mut QueryHandler) -> EventStream {
    let (sender, mut reply) = oneshot::channel();
    queries.handle(core, &catalog(core), Time::ZERO, LoopQuery::Events(sender));
    reply.try_recv().unwrap()
}

const JOBS: &str = "{ jobs: [
    { name: 'web', exec: 'x' }, { name: 'web', exec: 'y' }, { name: 'db', exec: 'z' }, { name: 'web:2', exec: 'z' },
] }";

#[test]
fn d8_control_request_gets_the_reply_of_the_core() {
    let mut core = core(JOBS);
    let mut queries = QueryHandler::new(SystemTime::now());
    let _ = step(&mut core, &mut queries, Input::Ready);
    let (sender, mut reply) = oneshot::channel();
    let request = ControlRequest::Supervisor(Request::Maintenance(true));
    let input = queries
        .handle(&core, &catalog(&core), Time::ZERO, LoopQuery::ControlRequest(request, sender))
        .unwrap();
    for effect in step(&mut core, &mut queries, input) {
        if let containerpilot_core::Effect::Reply { id, reply } = effect {
            queries.reply(id, reply);
        }
    }
    assert_eq!(reply.try_recv(), Ok(Ok(Reply::Updated(true))));
    let (sender, mut reply) = oneshot::channel();
    let request = ControlRequest::Job("webb".to_owned(), JobAction::Start);
    assert!(
        queries
            .handle(&core, &catalog(&core), Time::ZERO, LoopQuery::ControlRequest(request, sender))
            .is_none()
    );
    let hint = "did you mean `web`?".to_owned();
    assert_eq!(reply.try_recv(), Ok(Err(LookupError::NotFound(hint))));
}

#[test]
fn x2_event_streams_have_every_event_once_for_any_start() {
    let mut core = core(JOBS);
    let mut queries = QueryHandler::new(SystemTime::UNIX_EPOCH);
    let mut early = subscribe(&core, &mut queries);
    assert!(early.past.is_empty());
    let _ = step(&mut core, &mut queries, Input::Ready);
    let mut late = subscribe(&core, &mut queries);
    assert_eq!(late.past.len(), 1);
    let _ = step(&mut core, &mut queries, Input::Signal(Signal::TERM));
    let all = |stream: &mut EventStream| {
        let mut events = std::mem::take(&mut stream.past);
        events.extend(std::iter::from_fn(|| stream.live.try_recv().ok()));
        let id = |record: &Arc<JournalRecord>| match &**record {
            JournalRecord::Event(event) => Some(event.id.0),
            JournalRecord::Start(_) => None,
        };
        events.iter().filter_map(id).collect::<Vec<_>>()
    };
    let (early, late) = (all(&mut early), all(&mut late));
    assert!(early.len() > 2);
    assert_eq!(early, late);
    assert!(early.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{early:?}");
}

#[test]
fn x10_starts_are_in_the_event_stream_once_and_in_order() {
    let mut core = core("{ jobs: [{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }] }");
    let mut queries = QueryHandler::new(SystemTime::UNIX_EPOCH);
    let mut early = subscribe(&core, &mut queries);
    let effects = step(&mut core, &mut queries, Input::Ready);
    let runs = effects.iter().filter_map(|effect| match effect {
        containerpilot_core::Effect::Spawn { run, .. } => Some(*run),
        _ => None,
    });
    let runs: Vec<_> = runs.collect();
    let _ = step(&mut core, &mut queries, Input::Started { run: runs[0], pid: 7 });
    let mut late = subscribe(&core, &mut queries);
    let _ = step(&mut core, &mut queries, Input::Started { run: runs[1], pid: 8 });
    let _ = step(&mut core, &mut queries, Input::Signal(Signal::TERM));
    let all = |stream: &mut EventStream| {
        let mut records = std::mem::take(&mut stream.past);
        records.extend(std::iter::from_fn(|| stream.live.try_recv().ok()));
        let name = |record: &Arc<JournalRecord>| match &**record {
            JournalRecord::Event(event) => format!("{} {}", event.source, event.code),
            JournalRecord::Start(start) => {
                format!("{} {} by {:?}", start.source, start.pid, start.trigger.map(|id| id.0))
            }
        };
        records.iter().map(name).collect::<Vec<_>>()
    };
    let (early, late) = (all(&mut early), all(&mut late));
    assert_eq!(early, late);
    assert_eq!(early[..4], ["global startup", "a 7 by Some(1)", "b 8 by Some(1)", "global shutdown"]);
}

#[test]
fn x2_snapshot_is_shared_until_the_state_changes() {
    let core = core(JOBS);
    let mut queries = QueryHandler::new(SystemTime::now());
    let first = queries.overview(&core, &catalog(&core));
    assert!(Arc::ptr_eq(&first, &queries.overview(&core, &catalog(&core))));
    queries.state_changed(&core);
    assert!(!Arc::ptr_eq(&first, &queries.overview(&core, &catalog(&core))));
}
