//! The page of a recording (B4): one file, without a server.

use std::process::Command;

use serde_json::json;

use super::browser::Browser;
use super::state_of;
use crate::support::deadline::InTime;
use crate::support::program::{code, containerpilot, err};
use crate::support::supervisor::{Mode, Supervisor};

const EVIL: &str = "</script><script>document.title=7</script>";

const CONFIG: &str = "{ control: { socket: '@/socket' }, jobs: [
    { name: 'db', exec: 'sleep 1000', health: { exec: 'true', interval: '1h', ttl: '2h' } },
    { name: 'web', exec: 'sleep 1000', when: { source: 'db', once: 'healthy' } },
    { name: '</script><script>document.title=7</script>', exec: 'sleep 1000' },
    { name: '<img src=x onerror=alert(1)>', exec: ['sh', '-c', 'exit 3'], when: { source: 'web', once: 'healthy' } },
    { name: 'fails', exec: ['sh', '-c', 'exit 3'], restarts: 2, restartBackoff: false },
  ] }";

/// A page of a supervisor whose job `web` was stopped at the end.
fn written() -> (Supervisor, String) {
    let mut run = Supervisor::start(Mode::Plain, CONFIG);
    // In any order.
    run.wait_for_lines("web started", 1);
    run.wait_for_lines("fails failed", 1);
    let ask = |words: &[&str]| {
        let mut command = Command::new(containerpilot());
        let output = command.args(words).env("CONTAINERPILOT_SOCKET", run.file("socket")).output_in_time();
        let output = output.unwrap();
        assert_eq!(code(&output), 0, "{}", err(&output));
    };
    ask(&["stop", "web"]);
    ask(&["wait", "web", "stopped", "--timeout", "30s"]);
    let (recording, page) = (run.file("incident.cprec"), run.file("incident.html"));
    ask(&["record", "--out", recording.to_str().unwrap()]);
    let mut command = Command::new(containerpilot());
    let output = command.arg("replay").arg(&recording).arg("--page").arg(&page).output_in_time().unwrap();
    assert_eq!((code(&output), err(&output).as_str()), (0, ""));
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(!text.contains("{{") && !text.contains(EVIL), "no text of the recording is markup");
    let bytes = std::fs::metadata(&recording).unwrap().len() as usize;
    assert!(text.len() < 100_000 + 20 * bytes, "{} bytes of {bytes}", text.len());
    (run, format!("file://{}", page.display()))
}

/// The page of a recording in a browser, if there is one.
fn opened() -> Option<(Supervisor, Browser)> {
    if !Browser::is_installed() {
        return None;
    }
    let (run, url) = written();
    let mut browser = Browser::start();
    browser.window(1300, 900, false);
    browser.open(&url);
    Some((run, browser))
}

#[test]
fn b4_page_of_a_recording_shows_every_state_without_a_network() {
    let Some((_run, mut browser)) = opened() else { return };
    browser.wait("document.getElementById('live')?.textContent === 'a recording'");
    browser.wait("document.activeElement.id === 'at' && document.querySelectorAll('.node').length === 5");
    // The last state.
    browser.wait(&format!("{}.startsWith('stopped')", state_of("web")));
    assert_eq!(
        browser.eval("document.getElementById('at').value === document.getElementById('at').max"),
        true
    );
    let last = browser.eval("document.getElementById('at-time').textContent");
    // Arrow keys go from state to state, and the page follows.
    browser.press("ArrowLeft");
    browser.wait(&format!("document.getElementById('at-time').textContent !== {last}"));
    let mut states = Vec::new();
    for _ in 0..100 {
        states.push(browser.eval(&state_of("web")).as_str().unwrap_or_default().to_owned());
        if browser.eval("document.getElementById('at').value") == "0" {
            break;
        }
        browser.press("ArrowLeft");
    }
    assert!(states.iter().any(|state| state.starts_with("running")), "{states:?}");
    assert!(states.last().unwrap().starts_with("until db is healthy"), "{states:?}");
    assert_eq!(browser.eval("document.getElementById('records').innerText.includes('started (pid')"), false);
    // The panel explains the state at that time, and follows the slider, too.
    browser.eval(
        "[...document.querySelectorAll('.node')].find((node) => node.textContent.startsWith('web')).click()",
    );
    let explained = |text: &str| {
        format!("document.getElementById('explanation')?.textContent.includes('{text}') ?? false")
    };
    browser.wait(&explained("waiting"));
    browser.eval("document.getElementById('at').focus()");
    browser.press("End");
    browser.wait(&explained("stopped"));
    browser.wait("document.getElementById('records').innerText.includes('started (pid')");
    browser.eval("document.getElementById('earlier').click()");
    browser.eval("document.getElementById('later').click()");
    assert_eq!(browser.eval("document.getElementById('at-time').textContent"), last);
    assert_eq!(browser.eval("performance.getEntriesByType('resource').length"), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn b4_names_in_a_recording_never_become_markup() {
    let Some((_run, mut browser)) = opened() else { return };
    browser.wait("document.querySelectorAll('.node').length === 5");
    let names = browser.eval("[...document.querySelectorAll('.node .what')].map((name) => name.textContent)");
    assert!(names.as_array().unwrap().contains(&json!(EVIL)), "{names}");
    for nth in 0..5 {
        browser.eval(&format!("document.querySelectorAll('.node')[{nth}].click()"));
        browser.wait("document.getElementById('explanation') !== null");
    }
    browser.eval("document.getElementById('as-list').click()");
    browser.eval("document.getElementById('at').valueAsNumber = 0; document.getElementById('at').dispatchEvent(new Event('input'))");
    assert_eq!(browser.eval("document.querySelectorAll('img').length"), 0);
    // The states, and the script.
    assert_eq!(browser.eval("document.querySelectorAll('script').length"), 2);
    assert_eq!(browser.eval("document.title.endsWith('containerpilot')"), true);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // The policy in the document forbids markup, and connections.
    browser.eval("try { document.getElementById('empty').innerHTML = '<b>x</b>' } catch { 0 }");
    assert_eq!(browser.eval("document.querySelectorAll('b').length"), 0);
    let asked = browser.eval("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')");
    assert_eq!(asked, "refused");
    let complaints = browser.complaints().join("\n");
    assert!(complaints.contains("Content Security Policy"), "{complaints}");
}
