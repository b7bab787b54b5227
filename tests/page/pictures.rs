//! The pictures of the manual, taken from the page of a shop. `make pictures` writes them into docs/pictures; without
//! PICTURES they are taken and thrown away, so that a change of the page cannot break them unseen.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::browser::Browser;
use super::{open, state_of};
use crate::support::telemetry_client::Telemetry;

const SHOP: &str = "jobs: [
        { name: 'db', exec: 'sleep 1000', port: 5432, restarts: 'unlimited', interfaces: 'static:127.0.0.1',
          health: { exec: 'test ! -e @/ill', interval: 1, ttl: 10 } },
        { name: 'cache', exec: 'sleep 1000', restarts: 'unlimited', health: { exec: 'true', interval: 1, ttl: 10 } },
        { name: 'migrate', exec: 'true', when: { source: 'db', once: 'healthy' } },
        { name: 'worker', exec: 'sleep 1000', restarts: 'unlimited', requires: ['cache'],
          when: { source: 'migrate', once: 'exitSuccess' } },
        { name: 'web', exec: ['sh', '-c', 'while :; do i=$((i + 1)); [ $((i % 2000)) = 0 ] && echo request $i && sleep 0.4; done'], replicas: 3,
          restarts: 'unlimited', port: '8080-8082', interfaces: 'static:127.0.0.1', requires: ['db', 'cache'],
          when: { source: 'migrate', once: 'exitSuccess' }, health: { exec: 'true', interval: 1, ttl: 10 } },
        { name: 'proxy', exec: 'sleep 1000', restarts: 'unlimited', requires: ['file.proxy.conf'] },
        { name: 'on-hup', exec: 'true', when: { source: 'SIGHUP' } },
        { name: 'nightly-backup', exec: 'true', when: { cron: '0 3 * * *' } },
        { name: 'metrics-push', exec: 'true', when: { interval: '15s' } },
        { name: 'console', exec: 'true', when: 'manual' },
    ],
    watches: [{ name: 'db', interval: 1 }],
    files: [{ name: 'proxy.conf', to: '@/proxy.conf',
              template: '{{`{{ range watch \"db\" }}server {{ .Address }}:{{ .Port }}; {{ end }}`}}' }]";

/// Takes a picture of the window.
fn picture(browser: &mut Browser, name: &str) {
    browser.eval("document.activeElement.blur(); scrollTo(0, 0)");
    let taken = browser.call("Page.captureScreenshot", &serde_json::json!({ "format": "png" }));
    let png = STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
    assert!(png.starts_with(b"\x89PNG"), "{taken}");
    if std::env::var_os("PICTURES").is_some() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pictures");
        std::fs::write(format!("{folder}/{name}.png"), png).unwrap();
    }
}

/// Opens the panel of the replicas of `web`, as soon as it has figures to show.
fn choose_web(browser: &mut Browser) {
    browser.wait(&format!("{} === '3 running'", state_of("web ×3")));
    browser.eval("[...document.querySelectorAll('.node')].find((node) => node.textContent.startsWith('web ×3')).click()");
    browser.wait("document.querySelectorAll('.picks button').length === 3");
    browser.eval("document.querySelector('.picks button').click()");
    browser.wait("document.getElementById('detail-title').textContent === 'web-1'");
    browser.wait("document.querySelector('#detail .spark polyline')?.points.numberOfItems >= 4");
}

#[test]
fn t5_pictures_of_the_manual() {
    if !Browser::is_installed() {
        return;
    }
    let telemetry = "telemetry: { port: 0, interfaces: 'lo', page: { arguments: true, logs: true } }";
    let shop = Telemetry::start(&format!("{SHOP}, {telemetry}"));
    let mut browser = Browser::start();
    for (name, dark) in [("page", false), ("page-dark", true)] {
        browser.window(1360, 740, dark);
        open(&mut browser, &shop);
        choose_web(&mut browser);
        picture(&mut browser, name);
        browser.press("Escape");
    }
    browser.window(390, 780, false);
    open(&mut browser, &shop);
    browser.wait("document.querySelectorAll('#rows tr').length >= 10");
    picture(&mut browser, "page-phone");

    // The database is ill, and a job of a second shop waits for it.
    let trouble = SHOP.replace("test ! -e @/ill", "false");
    let trouble = trouble.replace(
        "{ name: 'console', exec: 'true', when: 'manual' }",
        "{ name: 'import', exec: ['sh', '-c', 'echo no such table: orders >&2; exit 3'] }",
    );
    let shop = Telemetry::start(&format!("{trouble}, {telemetry}"));
    browser.window(1360, 740, false);
    open(&mut browser, &shop);
    browser.wait(&format!("{}.startsWith('failed')", state_of("import")));
    browser.wait(&format!("{}.includes('unhealthy')", state_of("db")));
    browser.eval("[...document.querySelectorAll('.node')].find((node) => node.textContent.startsWith('import')).click()");
    browser.wait("document.getElementById('explanation')?.textContent.includes('code 3') ?? false");
    picture(&mut browser, "page-trouble");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
