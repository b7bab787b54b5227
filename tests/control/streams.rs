//! Streams of events and log lines, and slow readers (X2, L4).

use std::io::Write;
use std::time::Duration;

use crate::support::http_client::{Pilot, connect};
use crate::support::supervisor::wait_until;

#[test]
fn x2_events_are_replayed_and_then_streamed_each_with_its_cause() {
    let pilot = Pilot::start(
        "{ jobs: [
            { name: 'main', exec: 'sleep 1000' },
            { name: 'first', exec: ['sh', '-c', 'kill -9 $$'], when: { source: 'SIGHUP' } },
            { name: 'second', exec: 'true', when: { source: 'first', each: 'exitFailed' } },
        ] }",
    );
    let mut stream = pilot.open("/v3/events");
    let startup = stream.event();
    assert_eq!((startup["id"].as_u64(), startup["code"].as_str()), (Some(1), Some("startup")));
    assert_eq!(startup["source"], "global");
    assert!(startup["time"].as_str().unwrap().ends_with('Z'));
    // Its start is reported when its program was executed, which may be later than the others.
    stream.wait_for("event: start");
    assert_eq!(stream.data()["source"], "main");
    pilot.supervisor.signal("-HUP");
    let signal = stream.event();
    assert_eq!((&signal["source"], &signal["code"]), (&"SIGHUP".into(), &"signal".into()));
    stream.wait_for("event: start");
    let start = stream.data();
    assert_eq!((&start["source"], &start["startedBy"]), (&"first".into(), &signal["id"]));
    let failed = stream.event();
    assert_eq!((&failed["source"], &failed["code"]), (&"first".into(), &"exitFailed".into()));
    assert_eq!(failed["cause"], signal["id"]);
    assert_eq!(failed["exit"], serde_json::json!({ "code": 137, "signal": "SIGKILL" }));
    let success = stream.event();
    assert_eq!((&success["source"], &success["cause"]), (&"second".into(), &failed["id"]));
    // A later client gets the same events; with `since` it gets only the newer ones.
    let all = pilot.get("/v3/events?follow=false");
    assert_eq!(all.header("content-type"), Some("text/event-stream"));
    let count = |body: &str, field: &str| body.lines().filter(|line| line.starts_with(field)).count();
    assert_eq!((count(&all.body, "id: "), count(&all.body, "event: start")), (4, 3), "{all:?}");
    let rest = pilot.get(&format!("/v3/events?follow=false&since={}", failed["id"]));
    assert_eq!(count(&rest.body, "id: "), 1, "{rest:?}");
    for bad in ["since=x", "follow=maybe", "from=1"] {
        assert_eq!(pilot.get(&format!("/v3/events?{bad}")).status, 400, "{bad}");
    }
    pilot.supervisor.signal("-TERM");
    stream.wait_for("shutdown");
    stream.wait_for("event: end");
    assert!(stream.rest().len() <= 3);
    assert_eq!(pilot.supervisor.wait().0, 0);
}

#[test]
fn x2_no_event_is_lost_or_repeated_under_load() {
    let pilot = Pilot::start(
        "{ jobs: [
            { name: 'main', exec: 'sleep 1000' },
            { name: 'trigger', exec: 'true', when: { source: 'SIGHUP' } },
            { name: 'fast', exec: 'true', restarts: 300, restartBackoff: false,
              when: { source: 'trigger', once: 'exitSuccess' } },
        ] }",
    );
    let mut streams: Vec<_> = (0..3).map(|_| pilot.open("/v3/events")).collect();
    pilot.supervisor.signal("-HUP");
    streams.push(pilot.open("/v3/events"));
    for mut stream in streams {
        let mut last = 0;
        loop {
            let event = stream.event();
            let id = event["id"].as_u64().unwrap();
            assert_eq!(id, last + 1, "{event}");
            last = id;
            if event["source"] == "fast" && event["code"] == "stopped" {
                break;
            }
        }
        assert!(last > 300);
    }
}

#[test]
fn x2_logs_show_the_last_lines_and_then_follow() {
    let mut pilot = Pilot::start(
        "{ jobs: [{ name: 'main', exec: ['sh', '-c',
            'echo one; echo two; echo three; trap \"echo more; echo yet more\" HUP; while :; do sleep 0.05; done'] }] }",
    );
    pilot.supervisor.wait_for_line("three");
    wait_until("the lines are kept", || pilot.get("/v3/jobs/main/logs").body == "one\ntwo\nthree\n");
    assert_eq!(pilot.get("/v3/jobs/main/logs?lines=2").body, "two\nthree\n");
    assert_eq!(pilot.get("/v3/jobs/main/logs?lines=0").body, "");
    assert_eq!(pilot.get("/v3/jobs/main/logs?lines=-1").status, 400);
    let mut stream = pilot.open("/v3/jobs/main/logs?follow=true&lines=1");
    assert_eq!(stream.next().unwrap(), "three");
    assert_eq!(pilot.post("/v3/jobs/main/signal", r#"{"signal": "HUP"}"#).status, 200);
    assert_eq!(stream.wait_for("more"), "more");
    assert_eq!(stream.next().unwrap(), "yet more");
    pilot.supervisor.signal("-TERM");
    stream.rest();
    assert_eq!(pilot.supervisor.wait().0, 0);
}

#[test]
fn x2_slow_reader_is_disconnected_with_a_note_and_blocks_nothing() {
    let mut pilot = Pilot::start(
        "{ jobs: [
            { name: 'flood', exec: ['sh', '-c', 
                'echo begin; yes a line of some sixty bytes, of which there are very many | head -60000 | cat -n; echo the end'],
              when: { source: 'SIGHUP' } },
            { name: 'main', exec: 'sleep 1000' },
        ] }",
    );
    let mut slow_reader = pilot.open("/v3/jobs/flood/logs?follow");
    pilot.supervisor.signal("-HUP");
    // Everything is logged although the client does not read, and the supervisor still responds.
    pilot.supervisor.wait_for_line("the end");
    assert_eq!(pilot.get("/v3/ping").status, 200);
    let lines = slow_reader.rest();
    let last = lines.last().unwrap();
    assert!(last.contains("this reader was too slow"), "{last}");
    assert_eq!(lines[0], "begin");
    // The lines that the client did get have no gap.
    for (nth, line) in lines[1..lines.len() - 1].iter().enumerate() {
        assert!(line.trim_start().starts_with(&format!("{}\t", nth + 1)), "{nth}: {line}");
    }
}

#[test]
fn x2_streams_beyond_the_limit_are_refused_and_other_requests_are_not() {
    let pilot = Pilot::start("{ jobs: [{ name: 'main', exec: 'sleep 1000' }] }");
    let mut streams: Vec<_> = (0..64).map(|_| pilot.open("/v3/events")).collect();
    for stream in &mut streams {
        stream.event();
    }
    let refused = pilot.get("/v3/events");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(pilot.get("/v3/status").status, 200);
    // Closed connections are noticed at once, even if no event occurs.
    drop(streams);
    wait_until("a new stream is accepted", || {
        let mut stream = connect(&pilot.socket);
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(b"GET /v3/events?follow=true HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut head = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut head).unwrap();
        &head == b"HTTP/1.1 200"
    });
}
