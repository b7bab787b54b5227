//! The playground of the manual as it is published: compiled to WebAssembly, served as static files.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::browser::Browser;
use crate::support::program::repository;
use crate::support::skip::skip;

/// Python's server of a folder.
struct FileServer(Child);

impl FileServer {
    fn start(folder: &std::path::Path) -> (Self, String) {
        let mut child = Command::new("python3")
            .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"])
            .arg(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split("port ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        (Self(child), format!("http://127.0.0.1:{port}"))
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const STATE: &str = "document.getElementById('state').textContent";

/// Types a text into a field.
fn enter(browser: &mut Browser, field: &str, text: &str) {
    let text = serde_json::Value::from(text);
    browser.eval(&format!(
        "{{ const field = document.getElementById('{field}'); field.value = {text}; field.dispatchEvent(new Event('input')); }}"
    ));
}

#[test]
#[ignore = "slow: compiles the playground to WebAssembly"]
fn x4_playground_checks_draws_and_simulates_in_a_browser() {
    if !Browser::is_installed() {
        return;
    }
    let site = repository().join("target/playground-test");
    let built = Command::new(repository().join("scripts/playground")).arg(&site).output().unwrap();
    let why = String::from_utf8_lossy(&built.stderr);
    if built.status.code() == Some(3) {
        return skip(&format!(
            "the playground cannot be compiled: {}",
            why.lines().last().unwrap_or_default()
        ));
    }
    assert!(built.status.success(), "{why}");
    let (_server, address) = FileServer::start(&site);
    let mut browser = Browser::start();
    browser.window(1300, 900, false);
    browser.open(&format!("{address}/docs/playground/index.html"));
    // Each example is fine, also its scenario.
    browser.wait("document.getElementById('example')?.options.length > 4");
    let examples = browser.eval("document.getElementById('example').options.length").as_u64().unwrap();
    for nth in 0..examples {
        browser.eval(&format!(
            "document.getElementById('state').textContent = '';
             document.getElementById('example').selectedIndex = {nth};
             document.getElementById('example').dispatchEvent(new Event('change'))"
        ));
        browser.wait(&format!("{STATE} === 'ok'"));
    }
    // The pictures are shown, in a window of each width, without a scroll bar at the side.
    for (width, dark) in [(1300, false), (820, true), (390, false)] {
        browser.window(width, 900, dark);
        for tab in ["graph", "simulation"] {
            browser.eval(&format!("document.getElementById('tab-{tab}').click()"));
            browser.wait(&format!("document.querySelector('#{tab} img').naturalWidth > 100"));
        }
        browser.wait("document.documentElement.scrollWidth <= innerWidth");
    }
    browser.wait("document.getElementById('timeline').textContent.includes('startup')");
    // A mistake is shown at its place, and templates see the environment.
    enter(&mut browser, "config", "{ jobs: [{ name: '{{ .NAME }}', exce: 'true' }] }");
    enter(&mut browser, "scenario", "");
    enter(&mut browser, "environment", "NAME=shop");
    browser.wait(&format!("{STATE} === 'the configuration has errors'"));
    browser.wait("document.getElementById('check').textContent.includes('containerpilot.json5:1:')");
    enter(&mut browser, "config", "{ jobs: [{ name: '{{ .NAME }}', exec: 'true' }] }");
    browser.wait(&format!("{STATE} === 'ok'"));
    browser.wait("document.getElementById('timeline').textContent.includes('shop')");
    enter(&mut browser, "scenario", "{ expect: [{ see: 'shop exitFailed' }] }");
    browser.wait(&format!("{STATE} === 'an expectation does not hold'"));
    enter(&mut browser, "scenario", "{ jobs: [{ name: 'ghost' }] }");
    browser.wait(&format!("{STATE} === 'the scenario has errors'"));
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
}
