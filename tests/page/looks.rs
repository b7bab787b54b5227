//! Keyboard, sizes, colours and many jobs.

use super::browser::Browser;
use super::{JOBS, open, opened};
use crate::support::telemetry_client::Telemetry;

fn served() -> Telemetry {
    Telemetry::start(&format!("{JOBS}, telemetry: {{ port: 0, interfaces: 'lo' }}"))
}

const FOCUSED: &str = "(document.activeElement.id || document.activeElement.className.split(' ')[0])";
const PLACES: &str = "[...document.querySelectorAll('.node')].map((node) => { const { left, top } = node.getBoundingClientRect(); return left + ' ' + top; }).join()";
const FOCUSED_NODE: &str = "document.activeElement.querySelector('.what')?.textContent ?? ''";

#[test]
fn t5_page_works_with_the_keyboard() {
    if !Browser::is_installed() {
        return;
    }
    let served = served();
    let mut browser = opened(&served);
    browser.wait("document.querySelectorAll('.node').length === 4");
    // In the order of the page; the graph is one stop.
    let mut stops = Vec::new();
    for _ in 0..12 {
        browser.press("Tab");
        let stop = browser.eval(FOCUSED).as_str().unwrap_or_default().to_owned();
        let is_visible = browser.eval(
            "document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none'",
        );
        assert_eq!(is_visible, true, "the focus on {stop} is visible");
        stops.push(stop);
        if stops.last().is_some_and(|stop| stop == "node") {
            break;
        }
    }
    assert_eq!(stops.first().map(String::as_str), Some("skip"));
    assert_eq!(stops.last().map(String::as_str), Some("node"), "{stops:?}");
    assert!(
        stops.iter().any(|stop| stop == "search") && stops.iter().any(|stop| stop == "as-graph"),
        "{stops:?}"
    );
    assert_eq!(browser.eval(FOCUSED_NODE), "db");
    browser.press("ArrowRight");
    assert_eq!(browser.eval(FOCUSED_NODE), "web ×2");
    let wide = browser.eval(PLACES);
    browser.press("Enter");
    browser.wait("document.getElementById('detail-title').textContent === 'web ×2' && document.querySelectorAll('.picks button').length === 2");
    // The graph makes room for the panel, and takes it back: arrow keys go by the places that are drawn.
    browser.wait(&format!("{PLACES} !== {wide}"));
    browser.press("Escape");
    browser.wait(&format!(
        "document.getElementById('detail').hidden && document.activeElement.classList.contains('node') && {PLACES} === {wide}"
    ));
    browser.press("ArrowRight");
    browser.press("ArrowRight");
    assert_eq!(browser.eval(FOCUSED_NODE), "later");
    browser.press("Enter");
    browser.wait("!document.getElementById('detail').hidden && document.activeElement.id === 'detail'");
    browser.wait("document.getElementById('explanation')?.textContent.includes('waiting') ?? false");
    browser.press("Escape");
    browser.wait("document.getElementById('detail').hidden");
    assert_eq!(browser.eval(FOCUSED), "node", "the focus is where it was");
    browser.press("/");
    assert_eq!(browser.eval(FOCUSED), "search");
    browser.press("d");
    browser.press("b");
    browser.wait("document.querySelectorAll('.node').length === 1");
    browser.press("Escape");
    browser.wait("document.querySelectorAll('.node').length === 4");
    // Names and roles for screen readers.
    let unnamed = "[...document.querySelectorAll('button, input, section, aside')].filter((one) => !(one.textContent.trim() || one.getAttribute('aria-label') || one.getAttribute('aria-labelledby'))).length";
    assert_eq!(browser.eval(unnamed), 0);
    assert_eq!(browser.eval("document.querySelectorAll('[role=status]').length"), 2);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Elements that are cut off or lie on top of each other.
fn check_layout(browser: &mut Browser) {
    let wide = "document.documentElement.scrollWidth - innerWidth";
    assert!(browser.eval(wide).as_f64().unwrap() <= 0.0, "the page is wider than the window");
    let overlaps = "(() => { const boxes = [...document.querySelectorAll('.node')].map((node) => node.getBoundingClientRect());
        return boxes.some((a, m) => boxes.some((b, n) => m < n && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)); })()";
    assert_eq!(browser.eval(overlaps), false, "two nodes overlap");
}

#[test]
fn t5_page_fits_a_phone_and_a_desktop_in_light_and_dark() {
    if !Browser::is_installed() {
        return;
    }
    let served = served();
    let mut browser = opened(&served);
    let mut grounds = Vec::new();
    for dark in [false, true] {
        for width in [1300, 800, 360] {
            browser.window(width, 800, dark);
            open(&mut browser, &served);
            let shown = if width < 600 { "'#rows tr'" } else { "'.node'" };
            browser.wait(&format!("document.querySelectorAll({shown}).length >= 4"));
            check_layout(&mut browser);
            browser.eval("document.querySelector('#rows button, .node').click()");
            browser.wait("document.getElementById('explanation') !== null");
            check_layout(&mut browser);
            browser.press("Escape");
        }
        let contrast = "(() => { const light = (color) => { const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((part) => { const v = part / 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const ground = light(getComputedStyle(document.querySelector('section')).backgroundColor);
            return Math.min(...[...document.querySelectorAll('h2, .note, .state, td, .chip, .what')].map((one) => { const text = light(getComputedStyle(one).color); return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05); })); })()";
        let least = browser.eval(contrast).as_f64().unwrap();
        assert!(least >= 4.5, "the contrast is {least}");
        grounds.push(browser.eval("getComputedStyle(document.body).backgroundColor"));
    }
    assert_ne!(grounds[0], grounds[1]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn t5_a_thousand_jobs_do_not_block_the_page() {
    if !Browser::is_installed() {
        return;
    }
    let jobs: Vec<String> = (0..1000)
        .map(|nth| match nth % 10 {
            0 => format!("{{ name: 'job-{nth}', exec: 'true', when: 'manual' }}"),
            _ => format!(
                "{{ name: 'job-{nth}', exec: 'true', when: {{ source: 'job-{}', each: 'exitSuccess' }} }}",
                nth - nth % 10
            ),
        })
        .collect();
    let served =
        Telemetry::start(&format!("jobs: [{}], telemetry: {{ port: 0, interfaces: 'lo' }}", jobs.join(", ")));
    let mut browser = Browser::start();
    browser.window(1300, 900, false);
    let observe = "window.longest = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration); }).observe({ type: 'longtask', buffered: true });";
    browser.call("Page.addScriptToEvaluateOnNewDocument", &serde_json::json!({ "source": observe }));
    open(&mut browser, &served);
    browser.wait("document.querySelectorAll('.node').length === 1000");
    let loading = browser.eval("window.longest").as_f64().unwrap();
    browser.eval("window.longest = 0; window.frames_seen = []; let last = performance.now(); const frame = (now) => { frames_seen.push(now - last); last = now; requestAnimationFrame(frame); }; requestAnimationFrame(frame)");
    for job in ["job-0", "job-10", "job-20"] {
        assert_eq!(served.control("POST", &format!("/v3/jobs/{job}/start"), "").0, 200);
    }
    browser.wait("document.getElementById('records').childElementCount >= 60");
    let changes = browser.eval("window.longest").as_f64().unwrap();
    let frame = browser.eval("Math.max(...frames_seen)").as_f64().unwrap();
    println!(
        "1,000 jobs: longest task while loading {loading} ms, while jobs start {changes} ms, longest frame {frame:.0} ms"
    );
    // On a busy machine. Alone it is less than a twentieth of that.
    assert!(loading < 5000.0 && changes < 5000.0, "{loading} {changes}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
