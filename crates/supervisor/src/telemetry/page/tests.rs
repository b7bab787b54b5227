//! Routes, and what viewers of different speed are told.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use containerpilot_views::page::{LIVE, LIVE_POLICY, record};
use flate2::read::GzDecoder;
use hyper::HeaderMap;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, VARY};
use ring::digest::{SHA256, digest};

use super::super::testing::TestCore;
use super::feed::tests::Viewed;
use super::*;

const JOBS: &str = "{ jobs: [{ name: 'a', exec: 'x --token=hunter2', restarts: 3, restartBackoff: false },
                             { name: 'b', exec: 'y', when: { source: 'a', once: 'exitSuccess' } }] }";

#[test]
fn t5_paths_of_the_page() {
    let subject = |kind, name: &str| Some(Route::Subject(Subject { kind, name: name.to_owned() }));
    assert_eq!(Route::of("/"), Some(Route::Document));
    assert_eq!(Route::of("/page/events"), Some(Route::Events));
    assert_eq!(Route::of("/page/jobs/a%2Fb%20c"), subject(SubjectKind::Job, "a/b c"));
    assert_eq!(Route::of("/page/watches/x"), subject(SubjectKind::Watch, "x"));
    assert_eq!(Route::of("/page/files/%ff"), Some(Route::InvalidName));
    for path in
        ["/page", "/page/", "/page/jobs", "/page/jobs/", "/page/jobs/a/b", "/page/x/a", "//", "/page.js"]
    {
        assert_eq!(Route::of(path), None, "{path}");
    }
}

#[test]
fn t5_the_document_is_complete_and_its_policy_names_it() {
    let mut document = String::new();
    GzDecoder::new(LIVE).read_to_string(&mut document).unwrap();
    assert!(!document.contains("{{"), "a placeholder is left");
    assert_eq!(document.matches("<script").count(), 1);
    for outside in
        ["src=", "href=\"http", "@import", "url(", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval("]
    {
        assert!(!document.contains(outside), "{outside}");
    }
    for (element, directive) in [("style", "style-src"), ("script", "script-src")] {
        let (_, rest) = document.split_once(&format!("<{element}>")).unwrap();
        let (text, _) = rest.split_once(&format!("</{element}>")).unwrap();
        let hash = STANDARD.encode(digest(&SHA256, text.as_bytes()));
        let named = format!("; {directive} 'sha256-{hash}'; ");
        assert!(LIVE_POLICY.contains(&named), "{named} is not in {}", LIVE_POLICY);
    }
    assert_eq!(LIVE_POLICY.matches("'sha256-").count(), 2);
    assert!(document.len() < 80_000, "{} bytes", document.len());
    assert!(LIVE.len() < 20_000, "{} bytes", LIVE.len());
    // No time of the build.
    assert_eq!(LIVE[4..8], [0; 4]);
}

#[test]
fn t5_the_document_is_for_clients_that_accept_gzip() {
    let response = |accepted: &[&'static str]| {
        let lines = accepted.iter().map(|line| (ACCEPT_ENCODING, HeaderValue::from_static(line)));
        headers::document(&HeaderMap::from_iter(lines))
    };
    let accepted: [&[&str]; 8] = [
        &["gzip, deflate, br, zstd"],
        &["deflate;q=0.5 , GZip"],
        &["br", "gzip"],
        &["*"],
        &["gzip;q=1.0, *;q=0"],
        &["gzip; q=0.001"],
        &["deflate, *;q=0.5, identity;q=0"],
        &["*;q=0, gzip"],
    ];
    for lines in accepted {
        let response = response(lines);
        assert_eq!(response.status(), StatusCode::OK, "{lines:?}");
        assert_eq!(response.headers()[CONTENT_ENCODING], "gzip");
        assert_eq!(response.headers()[VARY], "Accept-Encoding");
        assert_eq!(response.headers()[CONTENT_SECURITY_POLICY], LIVE_POLICY);
    }
    let refused: [&[&str]; 9] = [
        &[],
        &[""],
        &["identity"],
        &["br, deflate"],
        &["gzip;q=0"],
        &["gzip;q=0.000, *"],
        &["GZIP ; Q = 0.0"],
        &["*;q=0"],
        &["gzipped"],
    ];
    for lines in refused {
        let response = response(lines);
        assert_eq!(response.status(), StatusCode::NOT_ACCEPTABLE, "{lines:?}");
        assert!(!response.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(response.headers()[VARY], "Accept-Encoding");
        assert_eq!(response.headers()[CONTENT_SECURITY_POLICY], headers::NOTHING);
    }
}

#[test]
fn t5_a_viewer_gets_a_complete_state_and_then_only_what_changes() {
    let mut core = TestCore::new(JOBS);
    core.start();
    let mut viewed = Viewed::default();
    viewed.update(&core);
    let (seen, first) = viewed.message(None).unwrap();
    assert!(first.starts_with("event: complete\ndata: {\"now\":"), "{first}");
    assert!(first.contains("\"name\":\"a\"") && first.contains("\"name\":\"b\""), "{first}");
    let arrow = "\"arrows\":[{\"from\":0,\"to\":1,\"label\":\"exitSuccess\",\"line\":\"once\",\"points\":[176,25,218,25]}]";
    assert!(first.contains(arrow), "{first}");
    assert!(!first.contains("hunter2"), "{first}");
    viewed.update(&core);
    assert!(viewed.message(Some(seen)).is_none(), "nothing has changed");
    core.exit("a", 1);
    viewed.update(&core);
    let (seen, change) = viewed.message(Some(seen)).unwrap();
    assert!(change.starts_with("event: change\n"), "{change}");
    assert!(change.contains("\"name\":\"a\"") && !change.contains("\"name\":\"b\""), "{change}");
    assert!(viewed.message(Some(seen)).is_none());
}

#[test]
fn t5_changes_that_a_slow_viewer_has_missed_are_joined() {
    let mut core = TestCore::new(JOBS);
    core.start();
    let mut viewed = Viewed::default();
    viewed.update(&core);
    let (seen, _) = viewed.message(None).unwrap();
    for _ in 0..3 {
        core.exit("a", 1);
        viewed.update(&core);
    }
    let (_, change) = viewed.message(Some(seen)).unwrap();
    assert_eq!(change.matches("\"name\":\"a\"").count(), 1, "only the last state: {change}");
    assert!(change.contains("\"restarts\":3"), "{change}");
}

#[test]
fn t5_another_set_of_jobs_is_a_complete_state() {
    let mut viewed = Viewed::default();
    viewed.update(&TestCore::new(JOBS));
    let (seen, _) = viewed.message(None).unwrap();
    viewed.update(&TestCore::new("{ jobs: [{ name: 'c', exec: 'x' }] }"));
    let (_, text) = viewed.message(Some(seen)).unwrap();
    assert!(text.starts_with("event: complete\n") && !text.contains("\"name\":\"a\""), "{text}");
}

#[test]
fn t5_names_that_contain_a_command_line_are_replaced_in_events() {
    use containerpilot_views::journal::{JournalRecord, StartRecord};
    let start = JournalRecord::Start(StartRecord {
        run: containerpilot_core::ids::RunId(1),
        after: containerpilot_core::ids::EventId(1),
        time: std::time::SystemTime::UNIX_EPOCH,
        source: "proxy --token hunter2".to_owned(),
        pid: 7,
        trigger: None,
        tick: false,
        cron: false,
        restarts: 0,
    });
    let renamed = BTreeMap::from([("proxy --token hunter2".to_owned(), "proxy".to_owned())]);
    let text = record(&start, &renamed);
    assert!(text.contains("\"source\":\"proxy\"") && !text.contains("hunter2"), "{text}");
}
