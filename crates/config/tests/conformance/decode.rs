//! `decode.json`: whole configurations and their meaning in 3.8.

use containerpilot_config::diagnostics::{Report, Severity, Style};
use containerpilot_config::host::StaticHost;
use containerpilot_config::json5::{self, Node, Value as Json};
use containerpilot_config::{ConfigFile, LoadedConfig, Options, duration, load};
use serde_json::Value;

use super::facts::facts;
use super::harness::{Outcome, accepted, environment, run, say, text};

#[test]
fn c3_vectors_decode() {
    run("decode.json", check);
}

/// Loads a case on an empty host, as 3.8 did.
fn loaded(case: &Value) -> LoadedConfig {
    let host =
        StaticHost { environment: environment(case), hostname: "{hostname}".into(), ..StaticHost::default() };
    let input = ConfigFile { name: text(case, "id").to_owned(), text: text(case, "text").into() };
    load(vec![input], &host, Options { version: "{version}" })
}

fn check(case: &Value) -> Outcome {
    let LoadedConfig { plan, report } = loaded(case);
    let style = Style { faults_are_errors: false, colour: false };
    match (plan, accepted(case)) {
        _ if case["stage"] == "crash" => Outcome::Passed,
        (Some(plan), true) => compare(case, &facts(&plan)),
        (None, false) => same_reason(case, &report),
        (Some(_), false) => match accepted_deviation(case) {
            Some(name) => Outcome::Deviates(name),
            None => Outcome::Failed(format!("accepted, but 3.8 says: {}", text(case, "error"))),
        },
        (None, true) => {
            let messages: Vec<_> = report
                .problems()
                .iter()
                .filter(|one| one.problem.severity == Severity::Error)
                .map(|one| one.problem.message.as_str())
                .collect();
            match rejected_deviation(case, &messages) {
                Some(name) => Outcome::Deviates(name),
                None => Outcome::Failed(format!("refused: {}", report.display(style))),
            }
        }
    }
}

/// Checks that a case is rejected for the same reason as in 3.8. Of several errors, one must be that of 3.8.
fn same_reason(case: &Value, report: &Report) -> Outcome {
    let words: &[&str] = match text(case, "kind") {
        "unknown-key" => &["unknown key", "ContainerPilot 2"],
        "type" => &["must be", "must contain", "is not a duration", "needs quotes", "is an empty list"],
        "name" => &["name"],
        "exec" => &["`exec`"],
        "restarts" => &["`restarts"],
        "duration" => &["duration", "is too long", "at least 1ms", "greater than 0"],
        "when" => &["`when`", "`once`", "`each`", "event"],
        "health" => &["`health`", "`ttl`", "`interval`"],
        "interfaces" => &["interface", "address", "network"],
        "watch" => &["`interval`", "watch"],
        "metric" => &["metric", "`type`"],
        "logging" => &["`level`", "`format`"],
        "consul" => &["consul", "Consul", "cannot read"],
        "initial-status" => &["`initial_status`"],
        // Only the place matters for the others.
        _ => &[""],
    };
    let errors = || report.problems().iter().filter(|one| one.problem.severity == Severity::Error);
    let same = errors().any(|one| words.iter().any(|word| one.problem.message.contains(word)));
    let placed = errors().all(|one| one.location.is_some());
    if same && placed {
        return Outcome::Passed;
    }
    let style = Style { faults_are_errors: false, colour: false };
    let words = format!("3.8 says {:?}, we say: {}", text(case, "error"), report.display(style));
    // For other sets of cases, a person decides whether the reason is the same.
    if std::env::var_os("VECTORS_DIR").is_some() {
        say(&format!("another reason? {}: {words}", text(case, "id")));
        return Outcome::Passed;
    }
    Outcome::Failed(words)
}

/// The parsed text of a case that is not a template.
fn root(case: &Value) -> Option<Node> {
    json5::parse(text(case, "text").as_bytes()).root
}

fn get<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    let Json::Object(members) = &node.value else { return None };
    members.iter().rfind(|member| member.key.eq_ignore_ascii_case(key)).map(|member| &member.value)
}

fn list<'a>(node: &'a Node, key: &str) -> &'a [Node] {
    match get(node, key).map(|node| &node.value) {
        Some(Json::List(items)) => items,
        _ => &[],
    }
}

/// Why a case is accepted that 3.8 rejects.
fn accepted_deviation(case: &Value) -> Option<&'static str> {
    let (error, kind) = (text(case, "error"), text(case, "kind"));
    let root = root(case)?;
    let jobs = list(&root, "jobs");
    let missing = |node: Option<&Node>| node.is_none_or(|node| node.value == Json::Null);
    if error.contains("no discovery backend defined") && missing(get(&root, "consul")) {
        return Some("no-consul");
    }
    if error.contains("'name' must not be blank")
        && jobs.iter().any(|job| missing(get(job, "name")) && !missing(get(job, "exec")))
    {
        return Some("job-without-name");
    }
    if error.contains("health.ttl must be > 0")
        && jobs.iter().filter_map(|job| get(job, "health")).any(|health| missing(get(health, "ttl")))
    {
        return Some("ttl-by-interval");
    }
    let parsed = || error.split("parsing \"").nth(1)?.split('"').next();
    if error.contains("as int: strconv.ParseInt")
        && parsed().is_some_and(|text| duration::parse_go(text).is_ok())
    {
        return Some("durations-for-seconds");
    }
    if error.contains("as int: strconv.ParseInt") && parsed().is_some_and(|text| text.starts_with('0')) {
        return Some("leading-zeros");
    }
    if error.contains("deregisterCriticalServiceAfter: time: invalid duration \"\"")
        && jobs
            .iter()
            .filter_map(|job| get(job, "consul"))
            .any(|consul| missing(get(consul, "deregisterCriticalServiceAfter")))
    {
        return Some("job-consul-without-deregister");
    }
    if error.contains("'interfaces': source data must be an array")
        && matches!(
            get(&root, "telemetry").and_then(|t| get(t, "interfaces")).map(|n| &n.value),
            Some(Json::String(_))
        )
    {
        return Some("one-interface-for-telemetry");
    }
    let sensors = get(&root, "telemetry").and_then(|telemetry| get(telemetry, "sensors"));
    let legacy = sensors.is_some() || get(&root, "onStart").is_some();
    if kind == "unknown-key" && legacy && get(&root, "jobs").is_none() {
        return Some("version-2-files");
    }
    const NEW: [&str; 27] = [
        "event",
        "all",
        "any",
        "heartbeat",
        "failures",
        "successes",
        "startPeriod",
        "onUnhealthy",
        "http",
        "tcp",
        "restartBackoff",
        "stopSignal",
        "drain",
        "onFailure",
        "onSuccess",
        "meta",
        "user",
        "group",
        "cwd",
        "env",
        "umask",
        "limits",
        "noNewPrivileges",
        "buckets",
        "mode",
        "coprocesses",
        "tokenfile",
    ];
    let keys =
        || error.rsplit("keys: ").next().unwrap_or_default().trim_matches(['[', ']']).split([',', ' ']);
    if kind == "unknown-key"
        && keys().filter(|key| !key.is_empty()).all(|key| NEW.contains(&key) || is_ignored(key))
    {
        return Some("new-fields");
    }
    if kind == "unknown-key" && text(case, "text").contains('\'') {
        return Some("json5");
    }
    if kind == "syntax" { Some("json5") } else { None }
}

fn is_ignored(key: &str) -> bool {
    key.starts_with("x-") || key == "$schema"
}

/// Why a case is rejected that 3.8 accepts.
fn rejected_deviation(case: &Value, messages: &[&str]) -> Option<&'static str> {
    let quirk = case["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == "quirk"));
    let all = |parts: &[&str]| {
        !messages.is_empty() && messages.iter().all(|message| parts.iter().any(|part| message.contains(part)))
    };
    let root = root(case)?;
    let not_a_list =
        |key| get(&root, key).is_some_and(|node| !matches!(node.value, Json::List(_) | Json::Null));
    if (not_a_list("jobs") || not_a_list("watches")) && all(&["must be a list"]) {
        return Some("not-a-list");
    }
    if quirk && all(&["unknown key"]) {
        return Some("internal-names");
    }
    if all(&["has no program"]) {
        return Some("blank-commands");
    }
    if all(&["an argument in"]) {
        return Some("odd-arguments");
    }
    if all(&["from 0 to 65535"]) {
        return Some("impossible-ports");
    }
    if all(&["`scheme` must be"]) {
        return Some("impossible-schemes");
    }
    if all(&["is too long"]) {
        return Some("wrapped-durations");
    }
    None
}

/// Compares the facts, except for deviations in single values.
fn compare(case: &Value, ours: &Value) -> Outcome {
    let (mut ours, mut theirs) = (ours.clone(), case["facts"].clone());
    let mut deviation = None;
    let root = root(case);
    let verify = root
        .as_ref()
        .and_then(|root| get(root, "consul"))
        .and_then(|c| get(c, "tls"))
        .and_then(|t| get(t, "verify"));
    let disabled = matches!(verify.map(|node| &node.value), Some(Json::Bool(false)))
        || matches!(verify.map(|node| &node.value), Some(Json::String(text)) if text == "false" || text == "0")
        || matches!(verify.map(|node| &node.value), Some(Json::Number(number)) if number.value == 0.0)
        || case["env"]["CONSUL_HTTP_SSL_VERIFY"].as_str().is_some_and(|text| text == "false" || text == "0");
    if theirs["consul"]["tls"]["verify"] == false && !disabled {
        theirs["consul"]["tls"]["verify"] = true.into();
        // Nearly every case has this deviation; it is counted only with encryption.
        if theirs["consul"]["scheme"] == "https" || verify.is_some() {
            deviation = Some("verified-certificates");
        }
    }
    for key in ["level", "format", "output"] {
        for facts in [&mut ours, &mut theirs] {
            let value = facts["logging"][key].as_str().unwrap_or_default();
            if !value.starts_with('/') {
                let lower = value.to_lowercase();
                facts["logging"][key] = if lower == "warning" { "warn".into() } else { lower.into() };
            }
        }
    }
    if theirs["stop_timeout"].as_f64().is_some_and(|seconds| seconds < 0.0) {
        theirs["stop_timeout"] = 0.into();
    }
    let leading_zero = text(case, "text")
        .split('"')
        .any(|part| part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()));
    let empty = Vec::new();
    let pairs = ours["jobs"].as_array().unwrap_or(&empty).len();
    for nth in 0..pairs {
        let (mine, his) = (ours["jobs"][nth].clone(), &mut theirs["jobs"][nth]);
        if his.is_null() {
            break;
        }
        // S2: a job waits for all its hooks; in 3.8 only for one.
        let waits = mine["stopping_wait"].as_array().cloned().unwrap_or_default();
        let wait = his["stopping_wait"]["source"].clone();
        if wait.is_null() == waits.is_empty() && (waits.is_empty() || waits.contains(&wait)) {
            his["stopping_wait"] = mine["stopping_wait"].clone();
            if waits.len() > 1 {
                deviation = Some("stopping-waits-for-all");
            }
        }
        if his["stop_timeout_ns"].as_i64().is_some_and(|time| time < 0) {
            his["stop_timeout_ns"] = 0.into();
        }
        // A missing source is the supervisor; a `when` that can never be met is kept.
        if his["when"]["source"] == "" && mine["when"]["source"] == "global" {
            his["when"]["source"] = "global".into();
        }
        let event = his["when"]["event"].as_str().unwrap_or_default();
        let from_signal = his["when"]["source"].as_str().is_some_and(|source| source.starts_with("SIG"));
        if mine["when"]["starts_limit"] == 0
            && (matches!(event, "None" | "Quit" | "Error") || event == "Signal" && !from_signal)
        {
            let timeout = his["when"]["timeout_ns"].clone();
            his["when"] = mine["when"].clone();
            his["when"]["timeout_ns"] = timeout;
        }
        if let (Some(mine), Some(his)) = (mine["exec"].as_array(), his["exec"].as_array_mut())
            && mine != his
        {
            his.retain(|word| word != "");
            for (word, ours) in his.iter_mut().zip(mine) {
                let (theirs, mine) = (word.as_str().unwrap_or_default(), ours.as_str().unwrap_or_default());
                if theirs.contains('e')
                    && theirs.parse::<f64>().is_ok()
                    && theirs.parse::<f64>() == mine.parse()
                {
                    *word = ours.clone();
                }
            }
            deviation = Some("command-slips");
        }
        if let Some(after) = his["service"]["deregister_after"].as_str() {
            let after = (!after.is_empty()).then(|| duration::parse_go(after).ok()).flatten();
            his["service"]["deregister_after"] = after.into();
        }
    }
    if leading_zero {
        // `010` is 8 in 3.8 and 10 here; only such differences are ignored.
        deviation = deviation.or(octal(&ours, &mut theirs).then_some("leading-zeros"));
    }
    match difference("", &ours, &theirs) {
        None => deviation.map_or(Outcome::Passed, Outcome::Deviates),
        Some(difference) => Outcome::Failed(difference),
    }
}

/// Replaces numbers of 3.8 that are our digits read as octal.
fn octal(ours: &Value, theirs: &mut Value) -> bool {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => theirs
            .iter_mut()
            .fold(false, |any, (key, theirs)| ours.get(key).is_some_and(|ours| octal(ours, theirs)) | any),
        (Value::Array(ours), Value::Array(theirs)) => {
            theirs.iter_mut().zip(ours).fold(false, |any, (theirs, ours)| octal(ours, theirs) | any)
        }
        (Value::Number(ours), theirs @ Value::Number(_)) => {
            let (mine, his) = (ours.as_f64().unwrap_or_default(), theirs.as_f64().unwrap_or_default());
            let digits = format!("{mine}");
            let differs =
                mine != his && i64::from_str_radix(&digits, 8).is_ok_and(|octal| octal as f64 == his);
            if differs {
                *theirs = Value::Number(ours.clone());
            }
            differs
        }
        _ => false,
    }
}

/// The first difference between two values; numbers are compared by value.
fn difference(path: &str, ours: &Value, theirs: &Value) -> Option<String> {
    let differ = || Some(format!("{path}: ours {ours}, 3.8's {theirs}"));
    match (ours, theirs) {
        (Value::Object(mine), Value::Object(his)) => {
            let mut keys: Vec<_> = mine.keys().chain(his.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter().find_map(|key| difference(&format!("{path}.{key}"), &ours[key], &theirs[key]))
        }
        (Value::Array(mine), Value::Array(his)) if mine.len() == his.len() => mine
            .iter()
            .zip(his)
            .enumerate()
            .find_map(|(nth, (mine, his))| difference(&format!("{path}[{nth}]"), mine, his)),
        (Value::Number(mine), Value::Number(his)) => {
            if mine.as_f64() == his.as_f64() {
                None
            } else {
                differ()
            }
        }
        _ => {
            if ours == theirs {
                None
            } else {
                differ()
            }
        }
    }
}
