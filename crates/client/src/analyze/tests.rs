use containerpilot_api::responses::{Event, Start, Status};
use containerpilot_text::screen::Screen;
use serde_json::{Value, json};

use super::human;
use super::path::{Analysis, StartJournal, TooLate, analyze};

/// A journal: each line is `MILLISECONDS SOURCE CODE`, or `MILLISECONDS SOURCE starts EVENT`.
fn analysis(jobs: Value, lines: &[&str]) -> Result<Analysis, TooLate> {
    let time = |millis: &str| {
        let millis: u64 = millis.parse().unwrap();
        format!("2026-11-16T08:00:{:02}.{:03}000000Z", millis / 1000, millis % 1000)
    };
    let status: Status =
        serde_json::from_value(json!({ "startedAt": time("0"), "now": time("59000"), "jobs": jobs }))
            .unwrap();
    let (mut events, mut starts): (Vec<Event>, Vec<Start>) = (Vec::new(), Vec::new());
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        if words[2] == "starts" {
            let restarts = starts.iter().filter(|start| start.source == words[1]).count();
            let trigger = words.get(3).map(|id| id.parse::<u64>().unwrap());
            let start = json!({ "run": starts.len(), "time": time(words[0]), "source": words[1], "startedBy": trigger, "restarts": restarts });
            starts.push(serde_json::from_value(start).unwrap());
        } else {
            let cause = words.get(3).map(|id| id.parse::<u64>().unwrap());
            let event = json!({ "id": events.len() + 1, "time": time(words[0]), "source": words[1], "code": words[2], "cause": cause });
            events.push(serde_json::from_value(event).unwrap());
        }
    }
    analyze(&StartJournal { status: &status, events: &events, starts: &starts })
}

fn job(name: &str, state: &str, health: &str) -> Value {
    json!({ "name": name, "role": "job", "state": state, "health": health })
}

fn path(analysis: &Analysis) -> Vec<String> {
    analysis.path.iter().map(|step| format!("{:.0} {}", step.took * 1000.0, step.what)).collect()
}

#[test]
fn x12_the_critical_path_goes_back_to_startup_and_its_parts_add_up() {
    let jobs = json!([
        job("setup", "complete", "none"),
        job("db", "running", "healthy"),
        job("web", "running", "healthy"),
        job("quick", "running", "none")
    ]);
    let found = analysis(
        jobs,
        &[
            "5 global startup",
            "10 setup starts 1",
            "12 quick starts 1",
            "300 setup exitSuccess 1",
            "310 db starts 2",
            "900 db healthy",
            "900 db becameHealthy",
            "920 web starts 3",
            "1500 web healthy",
            "2500 db healthy",
        ],
    )
    .unwrap();
    let steps = [
        "5 startup",
        "5 setup starts",
        "290 setup exits successfully",
        "10 db starts",
        "590 db is healthy",
        "20 web starts",
        "580 web is healthy",
    ];
    assert_eq!(path(&found), steps);
    assert_eq!((found.ready, found.last.as_deref()), (Some(1.5), Some("web")));
    let total: f64 = found.path.iter().map(|step| step.took).sum();
    assert!((total - 1.5).abs() < 1e-6);
    let critical: Vec<&str> =
        found.jobs.iter().filter(|job| job.critical).map(|job| job.job.as_str()).collect();
    assert_eq!(critical, ["setup", "db", "web"]);
    let text = human(Screen::default(), &found);
    assert!(
        text.starts_with("ready 1.500s after the start of the supervisor; web was the last job\n"),
        "{text}"
    );
    assert!(text.contains("\nLook at first:\n  590ms (39%) until db is healthy: "), "{text}");
    assert!(text.contains("\nquick  12ms     12ms    0ms    startup\n"), "{text}");
}

#[test]
fn x12_a_requirement_that_came_after_the_trigger_is_what_a_job_waited_for() {
    let mut app = job("app", "running", "none");
    app["requires"] = json!([{ "source": "db", "state": "healthy", "holds": true }, { "source": "watch.cache", "state": "1 healthy", "holds": true }]);
    let mut cache = job("cache", "running", "healthy");
    cache["catalog"] = json!({ "wanted": "passing" });
    let jobs = json!([app, job("db", "running", "healthy"), cache]);
    let lines = [
        "0 global startup",
        "5 db starts 1",
        "5 cache starts 1",
        "200 db healthy",
        "400 cache healthy",
        "450 watch.cache changed",
        "450 watch.cache healthy",
        "460 app starts 1",
        "800 watch.cache healthy",
    ];
    let found = analysis(jobs, &lines).unwrap();
    // The watch sees a service of this container, so its wait is that for the job.
    let steps =
        ["0 startup", "5 cache starts", "395 cache is healthy", "50 watch.cache is healthy", "10 app starts"];
    assert_eq!(path(&found), steps);
    assert_eq!(found.jobs.last().unwrap().waited_for, "watch.cache is healthy");
}

#[test]
fn x12_failures_retries_and_repeated_jobs_do_not_confuse_the_path() {
    let mut tidy = job("tidy", "waiting", "none");
    tidy["repeats"] = json!(true);
    let jobs = json!([
        job("flaky", "running", "healthy"),
        job("repair", "complete", "none"),
        tidy,
        job("by-hand", "running", "none")
    ]);
    let found = analysis(
        jobs,
        &[
            "0 global startup",
            "2 tidy starts 1",
            "5 flaky starts 1",
            "100 flaky exitFailed 1",
            "105 repair starts 2",
            "120 repair exitSuccess 2",
            "300 flaky starts 1",
            "700 flaky healthy",
            "9000 by-hand starts",
        ],
    )
    .unwrap();
    assert_eq!(path(&found), ["0 startup", "5 flaky starts", "695 flaky is healthy"]);
    let names: Vec<&str> = found.jobs.iter().map(|job| job.job.as_str()).collect();
    assert_eq!(names, ["tidy", "flaky"], "neither the repair nor what a user started belongs to the start");
    assert_eq!(found.jobs[1].restarts, 1);
}

#[test]
fn x12_what_is_not_ready_is_named_and_a_short_journal_is_an_error() {
    let mut app = job("app", "waiting", "none");
    app["waitsFor"] = json!([{ "source": "db", "code": "healthy", "state": "running" }]);
    let mut hook = job("hook", "waiting", "none");
    hook["waitsFor"] = json!([{ "source": "db", "code": "exitFailed", "state": "running" }]);
    let jobs = json!([job("db", "running", "unknown"), app, job("web", "running", "none"), hook]);
    let found = analysis(jobs.clone(), &["0 global startup", "5 db starts 1", "6 web starts 1"]).unwrap();
    assert_eq!((found.ready, found.last.as_deref()), (None, Some("web")));
    let text = human(Screen::default(), &found);
    assert!(text.starts_with("not ready yet; web was the last job to be ready, after 6ms\n"), "{text}");
    assert!(
        text.contains("  db: running, health unknown\n  app: waiting until db is healthy (running)\n"),
        "{text}"
    );
    let late = analysis(jobs, &["5000 db healthy"]).unwrap_err().to_string();
    assert!(late.contains("no longer reaches back to the start") && late.contains("number 1;"), "{late}");
    let nothing = analysis(json!([]), &["0 global startup"]).unwrap();
    assert_eq!(human(Screen::default(), &nothing), "no job was started with the container\n");
}

#[test]
fn x12_jobs_that_run_once_count_if_there_is_nothing_else() {
    let jobs = json!([job("one", "complete", "none"), job("two", "complete", "none")]);
    let lines = [
        "0 global startup",
        "5 one starts 1",
        "100 one exitSuccess 1",
        "110 two starts 2",
        "500 two exitSuccess 2",
    ];
    let found = analysis(jobs, &lines).unwrap();
    assert_eq!((found.ready, found.last.as_deref()), (Some(0.5), Some("two")));
    // A ring of triggers ends.
    let jobs = json!([job("a", "running", "none"), job("b", "running", "none")]);
    let ring =
        analysis(jobs, &["0 global startup", "5 a starts 2", "6 b ready 3", "7 a ready 2", "8 b starts 3"])
            .unwrap();
    assert_eq!((ring.path.len(), ring.pending.len()), (0, 2));
}
