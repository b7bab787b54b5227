//! The live page of the telemetry server in a real Chromium (T5).

mod browser;
mod looks;
mod pictures;
mod playground;
mod recording;

use crate::support::deadline::InTime;
use crate::support::telemetry_client::Telemetry;
use browser::Browser;

/// Opens the page of a supervisor and waits for its state.
fn opened(served: &Telemetry) -> Browser {
    let mut browser = Browser::start();
    browser.window(1300, 900, false);
    open(&mut browser, served);
    browser
}

fn open(browser: &mut Browser, served: &Telemetry) {
    browser.open(&format!("http://{}/", served.address));
    browser.wait("document.getElementById('live')?.textContent === 'live'");
}

/// An expression: the second line of the node of a job.
fn state_of(label: &str) -> String {
    format!(
        "([...document.querySelectorAll('.node')].find((node) => node.querySelector('.what').textContent === '{label}')?.querySelector('.how').textContent ?? '')"
    )
}

fn pid_of(served: &Telemetry, job: &str) -> u64 {
    let (_, _, status) = served.control("GET", "/v3/status", "");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let jobs = status["jobs"].as_array().unwrap();
    jobs.iter().find(|one| one["name"] == job).unwrap()["pid"].as_u64().unwrap()
}

const JOBS: &str = "jobs: [
        { name: 'db', exec: 'sleep 1000', restarts: 'unlimited', restartBackoff: false,
          health: { exec: 'test ! -e @/ill', interval: '100ms', timeout: '10s', ttl: 10 } },
        { name: 'web', exec: 'sleep 1000', replicas: 2, when: { source: 'db', once: 'healthy' } },
        { name: 'fails', exec: ['sh', '-c', 'echo the last words; exit 7'], when: 'manual' },
        { name: 'later', exec: 'sleep 1000', when: { source: 'fails', once: 'exitSuccess' } },
    ]";

#[test]
fn t5_states_change_on_the_page_while_jobs_are_killed_restarted_scaled_and_stopped() {
    if !Browser::is_installed() {
        return;
    }
    let served = Telemetry::start(&format!(
        "{JOBS}, telemetry: {{ port: 0, interfaces: 'lo', page: {{ logs: true }} }}"
    ));
    let mut browser = opened(&served);
    browser.wait(&format!("{}.startsWith('healthy')", state_of("db")));
    browser.wait(&format!("{} === '2 running'", state_of("web ×2")));
    browser.wait(&format!("{} === 'until fails exits successfully (waiting)'", state_of("later")));
    assert_eq!(browser.eval("document.querySelectorAll('.arrows path').length"), 2);
    // One click opens the panel.
    browser.eval(
        "[...document.querySelectorAll('.node')].find((node) => node.textContent.startsWith('db')).click()",
    );
    browser.wait("document.getElementById('detail-title').textContent === 'db'");
    browser.wait("document.getElementById('explanation')?.textContent.includes('running for') ?? false");
    browser.wait("document.querySelectorAll('#detail .spark').length === 2");
    // It is killed: the timeline has the exit and the restart, the panel the number of restarts.
    let pid = pid_of(&served, "db");
    let namespace = served.supervisor.pid();
    let killed = std::process::Command::new("nsenter")
        .args([&format!("--target={namespace}"), "--pid", "--mount", "kill", "-KILL", &pid.to_string()])
        .status_in_time()
        .unwrap();
    assert!(killed.success());
    browser.wait("document.getElementById('records').innerText.includes('exited on SIGKILL')");
    browser.wait("document.getElementById('records').innerText.includes('restarted by its policy')");
    browser.wait(
        "document.getElementById('detail-body').innerText.replace(/\\s+/g, ' ').includes('Restarts 1')",
    );
    // Its checks fail, and pass again.
    std::fs::write(served.supervisor.file("ill"), "").unwrap();
    browser.wait(&format!("{}.startsWith('unhealthy')", state_of("db")));
    browser.wait("document.getElementById('overall').textContent.startsWith('not ready')");
    browser.wait("document.title.startsWith('1 in trouble')");
    std::fs::remove_file(served.supervisor.file("ill")).unwrap();
    browser.wait("document.getElementById('overall').textContent.startsWith('ready')");
    // Scaled, started and stopped.
    assert_eq!(served.control("POST", "/v3/jobs/web/scale", "{\"replicas\":3}").0, 200);
    browser.wait(&format!("{} === '3 running'", state_of("web ×3")));
    assert_eq!(served.control("POST", "/v3/jobs/fails/start", "").0, 200);
    browser.wait(&format!("{}.startsWith('last run failed')", state_of("fails")));
    assert_eq!(served.control("POST", "/v3/jobs/db/stop", "").0, 200);
    browser.wait(&format!("{}.startsWith('stopped')", state_of("db")));
    browser.wait("document.querySelector('#detail .state').textContent === 'stopped'");
    // The output of the job that has failed.
    browser.eval("[...document.querySelectorAll('.node')].find((node) => node.textContent.startsWith('fails')).click()");
    browser.wait("document.querySelector('#detail pre.output')?.textContent === 'the last words'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn t5_page_connects_again_and_shows_the_present_state() {
    if !Browser::is_installed() {
        return;
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let served = Telemetry::start(&format!(
        "jobs: [{{ name: 'first', exec: 'sleep 1000' }}], telemetry: {{ port: {port}, interfaces: 'lo' }}"
    ));
    let mut browser = opened(&served);
    browser.wait(&format!("{}.startsWith('running')", state_of("first")));
    drop(served);
    browser.wait("document.getElementById('live').textContent !== 'live'");
    let served = Telemetry::start(&format!(
        "jobs: [{{ name: 'second', exec: 'sleep 1000' }}], telemetry: {{ port: {port}, interfaces: 'lo' }}"
    ));
    browser.wait("document.getElementById('live').textContent === 'live'");
    browser.wait(&format!("{}.startsWith('running')", state_of("second")));
    assert_eq!(browser.eval(&state_of("first")), "");
    drop(served);
}

#[test]
fn t5_names_of_jobs_never_become_markup() {
    if !Browser::is_installed() {
        return;
    }
    let served = Telemetry::start(
        "jobs: [
            { name: '<img src=x onerror=alert(1)>', exec: 'sleep 1000' },
            { name: '</script><script>alert(2)</script>', exec: 'sleep 1000' },
            { name: 'turned\u{202e}around', exec: 'sleep 1000' },
        ],
        telemetry: { port: 0, interfaces: 'lo' }",
    );
    let mut browser = opened(&served);
    browser.wait("document.querySelectorAll('.node').length === 3");
    let names = browser
        .eval("[...document.querySelectorAll('.node .what')].map((name) => name.textContent).join('|')");
    assert_eq!(names, "<img src=x onerror=alert(1)>|</script><script>alert(2)</script>|turned·around");
    for key in ["as-list", "as-graph"] {
        browser.eval(&format!("document.getElementById('{key}').click()"));
    }
    for nth in 0..3 {
        browser.eval(&format!("document.querySelectorAll('.node')[{nth}].click()"));
        browser.wait("document.getElementById('explanation')?.textContent.includes('running for') ?? false");
    }
    assert_eq!(
        browser.eval("document.querySelectorAll('img').length + document.querySelectorAll('script').length"),
        1
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // What the policy forbids is refused, and reported.
    browser.eval("try { document.getElementById('empty').innerHTML = '<b>x</b>' } catch { 0 }");
    assert_eq!(browser.eval("document.querySelectorAll('b').length"), 0);
    assert!(!browser.complaints().is_empty(), "the browser reports violations");
}
