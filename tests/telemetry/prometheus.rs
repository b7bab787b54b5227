//! A real Prometheus scrapes the metrics, and promtool accepts them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::server::free_port;
use crate::support::deadline::InTime;
use crate::support::skip::skip;
use crate::support::supervisor::wait_until;
use crate::support::telemetry_client::{Telemetry, request};

const METRICS: &str = "jobs: [
        { name: 'web \\\\ \"x\"', exec: 'sleep 1000', health: { exec: 'true', interval: 1, ttl: 10 } },
        { name: 'twin', exec: 'sleep 1000' },
        { name: 'twin', exec: 'sleep 1000' },
        { name: 'gone', exec: 'false' },
    ],
    watches: [{ name: 'db', interval: 1 }],
    telemetry: { port: 0, interfaces: 'lo', metrics: [
        { namespace: 'app', name: 'hits_total', help: 'Hits of \"all\" sorts \\\\ \\n and more.', type: 'counter' },
        { name: 'free_bytes', help: 'Free memory.', type: 'gauge' },
        { name: 'size_bytes', help: 'Sizes.', type: 'histogram', buckets: [1, 1000, 1000000] },
        { name: 'wait_seconds', help: 'Waits.', type: 'histogram' },
        { name: 'delay_seconds', help: 'Delays.', type: 'summary' },
        { name: 'unused_seconds', help: 'Nothing.', type: 'summary' },
    ] }";

fn served() -> Telemetry {
    let served = Telemetry::start(METRICS);
    let values = "{\"app_hits_total\": 42, \"free_bytes\": \"NaN\", \"size_bytes\": 20000, \"wait_seconds\": 0.3, \
                  \"delay_seconds\": 0.25}";
    let (code, _, words) = served.put(values);
    assert_eq!(code, 200, "{words}");
    served.wait_for_line(
        "containerpilot_check_up{name=\"web \\\\ \\\"x\\\"\",check=\"check.web \\\\ \\\"x\\\"\"} 1",
    );
    served.wait_for_line("containerpilot_job_last_exit_code{name=\"gone\"} 1");
    served
}

/// The directory of `prometheus` and `promtool`; `scripts/prometheus` downloads them if they are missing.
fn programs() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/prometheus");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../prometheus");
    let found = Command::new(script).arg(folder).stderr(Stdio::inherit()).output_in_time().unwrap();
    assert!(found.status.success(), "scripts/prometheus failed");
    PathBuf::from(String::from_utf8(found.stdout).unwrap().trim_end())
}

#[test]
fn t1_promtool_accepts_the_metrics() {
    let served = served();
    let page = served.supervisor.file("page");
    let text = served.metrics();
    fs::write(&page, &text).unwrap();
    let mut tool = Command::new(programs().join("promtool"));
    let output =
        tool.args(["check", "metrics"]).stdin(fs::File::open(&page).unwrap()).output_in_time().unwrap();
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words);
    assert!(output.status.success() && words.is_empty(), "{words}\n{text}");
}

/// The alert rules of `examples/monitoring` do what their tests say, and the manual shows them.
#[test]
fn t4_alerts_fire_for_what_is_wrong_and_not_for_healthy_containers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = fs::read_to_string(root.join("examples/monitoring/alerts.yml")).unwrap();
    let manual = fs::read_to_string(root.join("docs/telemetry.md")).unwrap();
    assert!(
        manual.contains(&format!("```yaml\n{rules}```")),
        "docs/telemetry.md must show examples/monitoring/alerts.yml"
    );
    let script = Command::new(root.join("scripts/prometheus"))
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("../prometheus"))
        .stderr(Stdio::inherit())
        .output_in_time()
        .unwrap();
    if !script.status.success() {
        skip("there is no promtool, and scripts/prometheus cannot download it");
        return;
    }
    let mut tool = Command::new(programs().join("promtool"));
    let output = tool
        .args(["test", "rules"])
        .arg(root.join("examples/monitoring/alerts.test.yml"))
        .output_in_time()
        .unwrap();
    let words = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&words));
}

/// The expressions of the dashboard, with values for the variables of Grafana.
fn dashboard_queries() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/monitoring/dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let query = |target: &serde_json::Value| target["expr"].as_str().unwrap().to_owned();
    targets
        .map(query)
        .map(|query| query.replace("$__rate_interval", "5m").replace("$__range", "1h"))
        .collect()
}

/// The names of metrics in a text.
fn metric_names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    words.filter(|word| word.starts_with("containerpilot_") || word.starts_with("process_")).collect()
}

#[test]
fn t4_dashboard_and_alerts_use_metrics_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = fs::read_to_string(root.join("examples/monitoring/alerts.yml")).unwrap();
    let queries = dashboard_queries();
    assert!(queries.len() > 20);
    // A unit test requires that these are the metrics of the page.
    let known: BTreeSet<&str> = containerpilot_config::metrics::SELF_METRICS.into_iter().collect();
    for text in queries.iter().chain([&rules]) {
        let unknown: Vec<_> = metric_names(text).difference(&known).copied().collect();
        assert!(unknown.is_empty(), "{unknown:?} in {text}");
    }
    let shown: BTreeSet<&str> = queries.iter().flat_map(|query| metric_names(query)).collect();
    for subject in [
        "job_state",
        "job_restarts_total",
        "check_up",
        "job_cpu_seconds_total",
        "job_memory_bytes",
        "log_lines_total",
        "catalog_up",
        "lock_held",
        "file_up",
    ] {
        assert!(shown.contains(&*format!("containerpilot_{subject}")), "{subject}");
    }
    // Every expression is valid: as a recording rule.
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("dashboard-{}.json", std::process::id()));
    let rules: Vec<serde_json::Value> = queries
        .iter()
        .enumerate()
        .map(|(nth, query)| serde_json::json!({ "record": format!("query_{nth}"), "expr": query }))
        .collect();
    let groups = serde_json::json!({ "groups": [{ "name": "dashboard", "rules": rules }] });
    fs::write(&file, groups.to_string()).unwrap();
    let checked = Command::new(programs().join("promtool"))
        .args(["check", "rules"])
        .arg(&file)
        .output_in_time()
        .unwrap();
    fs::remove_file(&file).unwrap();
    let words = [checked.stdout, checked.stderr].concat();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&words));
}

/// The samples of a page.
fn samples(page: &str) -> Vec<(String, f64)> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// The names of the alerts that fire if the metrics of two pages continue as from the first to the second one, each minute.
fn assert_alerts(first: &str, second: &str, expected: &[(&str, &str)]) {
    let before: std::collections::BTreeMap<String, f64> = samples(first).into_iter().collect();
    let series = samples(second).into_iter().map(|(name, value)| {
        let labelled = match name.split_once('{') {
            Some((name, labels)) => format!("{name}{{job=\"containerpilot\",instance=\"a\",{labels}"),
            None => format!("{name}{{job=\"containerpilot\",instance=\"a\"}}"),
        };
        let step = before.get(&name).map_or(0.0, |before| value - before);
        let values =
            if name.contains("_total") { format!("{value}+{step}x30") } else { format!("{value}x30") };
        serde_json::json!({ "series": labelled, "values": values })
    });
    let samples: Vec<_> = expected
        .iter()
        .map(|(alert, name)| {
            let name = if name.is_empty() { String::new() } else { format!(",name=\"{name}\"") };
            serde_json::json!({ "labels": format!("{{alertname=\"{alert}\"{name}}}"), "value": 1 })
        })
        .collect();
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/monitoring/alerts.yml");
    let test = serde_json::json!({
        "rule_files": [rules], "evaluation_interval": "1m",
        "tests": [{ "interval": "1m", "input_series": series.collect::<Vec<_>>(), "promql_expr_test": [{
            "expr": "count by (alertname, name) (ALERTS{alertstate=\"firing\"})",
            "eval_time": "20m", "exp_samples": samples,
        }] }],
    });
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recorded-{}.json", std::process::id()));
    fs::write(&file, test.to_string()).unwrap();
    let output = Command::new(programs().join("promtool"))
        .args(["test", "rules"])
        .arg(&file)
        .output_in_time()
        .unwrap();
    let words = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}\n{second}", String::from_utf8_lossy(&words));
    fs::remove_file(&file).unwrap();
}

#[test]
fn t4_alerts_with_the_metrics_of_real_containers() {
    let healthy = Telemetry::start(
        "jobs: [
            { name: 'setup', exec: 'true' },
            { name: 'web', exec: 'sleep 1000', health: { exec: 'true', interval: '100ms', timeout: '10s', ttl: 10 } },
            { name: 'tick', exec: 'true', when: { interval: '100ms' } },
            { name: 'worker', exec: 'true', restarts: 'unlimited', restartBackoff: { initial: '100ms', max: '200ms' } },
        ],
        files: [{ name: 'conf', template: 'text', to: '@/conf' }],
        telemetry: { port: 0, interfaces: 'lo' }",
    );
    healthy.wait_for_line("containerpilot_ready 1");
    healthy.wait_for_line("containerpilot_file_up{name=\"conf\"} 1");
    healthy.wait_for_line("containerpilot_job_state{name=\"setup\",state=\"complete\"} 1");
    let first = healthy.metrics();
    wait_until("it has restarted", || {
        healthy.value("containerpilot_job_restarts_total{name=\"worker\"}") > Some(3.0)
    });
    assert_alerts(&first, &healthy.metrics(), &[]);

    let ill = Telemetry::start(
        "jobs: [
            { name: 'migrate', exec: 'false' },
            { name: 'web', exec: 'sleep 1000', health: { exec: 'false', interval: '100ms', ttl: 10 } },
            { name: 'loops', exec: 'false', restarts: 'unlimited', restartBackoff: { initial: '50ms', max: '50ms' } },
            { name: 'backup', exec: 'false', when: { interval: '1000s' } },
        ],
        files: [{ name: 'conf', template: 'text', to: '@/conf', test: 'false' }],
        telemetry: { port: 0, interfaces: 'lo' }",
    );
    ill.wait_for_line("containerpilot_job_state{name=\"migrate\",state=\"failed\"} 1");
    ill.wait_for_line("containerpilot_file_renders_total{name=\"conf\",result=\"failed\"} 1");
    ill.wait_for_line("containerpilot_job_last_exit_code{name=\"backup\"} 1");
    ill.wait_for_line("containerpilot_check_up{name=\"web\",check=\"check.web\"} 0");
    let first = ill.metrics();
    wait_until("it has failed again", || {
        ill.value("containerpilot_job_restarts_total{name=\"loops\"}") > Some(10.0)
    });
    let expected = [
        ("ContainerpilotJobFailed", "migrate"),
        ("ContainerpilotCheckFails", "web"),
        ("ContainerpilotNotReady", ""),
        ("ContainerpilotJobKeepsFailing", "loops"),
        ("ContainerpilotLastRunFailed", "backup"),
        ("ContainerpilotFileNotRendered", "conf"),
    ];
    assert_alerts(&first, &ill.metrics(), &expected);
}

/// A process that is killed when it is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn t1_real_prometheus_scrapes_the_metrics() {
    let served = served();
    let config = served.supervisor.file("prometheus.yml");
    let target = served.address;
    let text = format!(
        "global: {{ scrape_interval: 1s }}\n\
         scrape_configs: [{{ job_name: containerpilot, static_configs: [{{ targets: ['{target}'] }}] }}]\n"
    );
    fs::write(&config, text).unwrap();
    let port = free_port();
    let mut command = Command::new(programs().join("prometheus"));
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", served.supervisor.file("data").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    command.stdout(Stdio::null()).stderr(fs::File::create(served.supervisor.file("prometheus.log")).unwrap());
    let prometheus = Server(command.spawn().unwrap());
    let api = ([127, 0, 0, 1], port).into();
    wait_until("Prometheus listens", || std::net::TcpStream::connect(api).is_ok());
    let value = |query: &str| {
        let (_, _, body) = request(api, "GET", &format!("/api/v1/query?query={query}"));
        // A chunked body has chunk sizes around the JSON.
        let body = body.get(body.find('{')?..=body.rfind('}')?)?;
        let answer: serde_json::Value = serde_json::from_str(body).ok()?;
        Some(answer["data"]["result"][0]["value"][1].as_str()?.to_owned())
    };
    let expected = [
        ("up", "1"),
        ("app_hits_total", "42"),
        ("free_bytes", "NaN"),
        ("size_bytes_bucket{le=\"1e%2B06\"}", "1"),
        ("histogram_quantile(1,wait_seconds_bucket)", "0.5"),
        ("delay_seconds{quantile=\"0.99\"}", "0.25"),
        ("unused_seconds{quantile=\"0.5\"}", "NaN"),
        ("containerpilot_job_up{name=\"twin\"}", "1"),
        ("containerpilot_job_up{name=\"web%20%5C%5C%20%5C\"x%5C\"\"}", "1"),
        ("containerpilot_events{code=\"Startup\",job=\"containerpilot\"}", "1"),
        ("containerpilot_watch_instances{service=\"db\"}", "0"),
        ("process_open_fds%3Ebool%200", "1"),
    ];
    for (query, expected) in expected {
        let query = query.replace('"', "%22").replace('{', "%7B").replace('}', "%7D");
        let mut found = None;
        wait_until(&format!("{query} is {expected}"), || {
            found = value(&query);
            found.as_deref() == Some(expected)
        });
    }
    drop(prometheus);
}

fn manual() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/telemetry.md")).unwrap()
}

#[test]
fn t1_prometheus_configuration_in_the_manual_is_valid() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let manual = manual();
    let blocks = manual.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    // Debian builds Prometheus without Consul.
    let blocks = blocks.filter(|block| block.starts_with("scrape_configs:") && !block.contains("consul_sd"));
    let blocks: Vec<&str> = blocks.collect();
    assert_eq!(blocks.len(), 1);
    for (nth, block) in blocks.into_iter().enumerate() {
        let file = folder.join(format!("prometheus-{nth}.yml"));
        fs::write(&file, block).unwrap();
        let output = Command::new(programs().join("promtool"))
            .args(["check", "config"])
            .arg(&file)
            .output_in_time()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn t3_manual_names_every_own_metric() {
    let manual = manual();
    for name in containerpilot_config::metrics::SELF_METRICS {
        assert!(manual.contains(&format!("`{name}")), "docs/telemetry.md does not name {name}");
    }
}
