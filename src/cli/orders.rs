//! What a running supervisor is told to do: `start`, `stop`, `restart`, `signal`, `reload`, `maintenance`, `putenv`,
//! `putmetric`, `ping`; and ContainerPilot 3's flags for the same.

use std::io::Write;

use serde_json::{Map, Value};
use std::collections::BTreeMap;

use super::answer::Look;
use super::client::{Answer, Client, percent_encoded};
use super::flags::Arguments;
use super::{Failure, as_json, print};

/// The arguments as text.
fn words(args: &Arguments) -> Result<Vec<&str>, Failure> {
    let utf8 = |word: &std::ffi::OsString| word.to_str().map(str::to_owned);
    if args.rest.iter().any(|word| utf8(word).is_none()) {
        return Err(Failure::Usage("an argument is not UTF-8".to_owned()));
    }
    Ok(args.rest.iter().filter_map(|word| word.to_str()).collect())
}

/// `start`, `stop` and `restart`: each job that is named, whatever became of those before it.
pub(super) fn jobs(order: &str, args: &Arguments) -> Result<(), Failure> {
    let client = Client::of(args)?;
    let mut failed = 0;
    for job in words(args)? {
        let done = client.post(&format!("/v3/jobs/{}/{order}", percent_encoded(job)), None)?.json();
        failed += report(job, done)?;
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Failed(String::new())) }
}

/// Says what became of an order about a job; how many have failed.
fn report(job: &str, done: Result<Value, Failure>) -> Result<u32, Failure> {
    match done {
        Ok(done) => print(&format!("{job}: {}\n", done.text("message"))).map(|()| 0),
        Err(failure) => {
            let why = failure.to_string();
            let why = why.strip_prefix(&format!("{job}: ")).unwrap_or(&why);
            // Standard error may be gone; the exit code tells.
            let _ = writeln!(std::io::stderr(), "containerpilot: {job}: {why}");
            Ok(1)
        }
    }
}

pub(super) fn signal(args: &Arguments) -> Result<(), Failure> {
    let words = words(args)?;
    let [job, signal] = words.as_slice() else {
        return Err(Failure::Usage("`signal` needs a job and a signal".to_owned()));
    };
    let mut body = Map::new();
    body.insert("signal".to_owned(), Value::from(*signal));
    let path = format!("/v3/jobs/{}/signal", percent_encoded(job));
    let done = Client::of(args)?.post(&path, Some(&Value::Object(body).to_string()))?.json();
    match report(job, done)? {
        0 => Ok(()),
        _ => Err(Failure::Failed(String::new())),
    }
}

/// `reload`: what it did, for people or as JSON.
pub(super) fn reload(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let answer = Client::of(args)?.post("/v3/reload", None)?;
    tell_reload(&answer.success()?, json, false)
}

/// `check --diff`: what a reload would do, asked of the supervisor, who alone knows what is in force.
pub(super) fn diff(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let answer = Client::of(args)?.post("/v3/reload?dry-run=true", None)?;
    tell_reload(&answer.success()?, json, true)
}

fn tell_reload(answer: &Answer, json: bool, dry: bool) -> Result<(), Failure> {
    let text = answer.text();
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    if !value.text("warnings").is_empty() {
        // Standard error may be gone; what was done counts.
        let _ = writeln!(std::io::stderr(), "{}", value.text("warnings").trim_end());
    }
    if json {
        return print(&text);
    }
    // One that takes long goes on without us; one of 3.8 says nothing.
    if !value.text("message").is_empty() {
        return print(&format!("{}\n", value.text("message")));
    }
    if value.get("kept").is_none() {
        return print("reloaded\n");
    }
    let names = |key: &str| value.list(key).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
    let rows = [
        (if dry { "restart" } else { "restarted" }, names("restarted")),
        (if dry { "start" } else { "started" }, names("started")),
        (if dry { "stop" } else { "stopped" }, names("stopped")),
        (if dry { "change" } else { "changed" }, names("settings")),
        (if dry { "keep" } else { "kept" }, names("kept")),
    ];
    let idle = ["restarted", "started", "stopped", "settings"].iter().all(|key| value.list(key).is_empty());
    let mut out = match (dry, idle) {
        (true, true) => "a reload would change nothing\n",
        (true, false) => "a reload would\n",
        (false, true) => "reloaded: nothing has changed\n",
        (false, false) => "reloaded\n",
    }
    .to_owned();
    for (what, names) in rows.iter().filter(|(_, names)| !names.is_empty()) {
        out.push_str(&format!("  {what:<10} {names}\n"));
    }
    print(&out)
}

pub(super) fn ping(args: &Arguments) -> Result<(), Failure> {
    Client::of(args)?.get("/v3/ping")?.success()?;
    print("ok\n")
}

pub(super) fn maintenance(args: &Arguments) -> Result<(), Failure> {
    let words = words(args)?;
    let client = || Client::of(args);
    let on = match words.first().copied().unwrap_or_default() {
        "status" => {
            let on = client()?.get("/v3/status")?.json()?.is("maintenance") == Some(true);
            return print(if on { "maintenance is on\n" } else { "maintenance is off\n" });
        }
        "enable" => true,
        "disable" => false,
        other => {
            return Err(Failure::Usage(format!(
                "maintenance cannot be `{other}`; it can be `enable`, `disable` or `status`"
            )));
        }
    };
    let answer = client()?.post(maintenance_path(on), None)?.json()?;
    print(match (on, answer.is("updated") != Some(false)) {
        (true, true) => "maintenance is on: services leave the catalog, checks stop, jobs go on\n",
        (true, false) => "maintenance was on already\n",
        (false, true) => "maintenance is over\n",
        (false, false) => "there was no maintenance\n",
    })
}

fn maintenance_path(on: bool) -> &'static str {
    if on { "/v3/maintenance/enable" } else { "/v3/maintenance/disable" }
}

/// `putenv` and `putmetric`: all pairs in one request, so that all are taken or none. Values may be secret, and are
/// never repeated.
pub(super) fn put(path: &str, args: &Arguments) -> Result<(), Failure> {
    let mut pairs = BTreeMap::new();
    for (nth, word) in (1..).zip(words(args)?) {
        let pair = word.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, value) = pair.ok_or_else(|| Failure::Usage(format!("argument {nth} is no KEY=VALUE")))?;
        pairs.insert(key, value);
    }
    Client::of(args)?.post(path, Some(&body(&pairs)))?.success()?;
    Ok(())
}

fn body(pairs: &BTreeMap<&str, &str>) -> String {
    let mut members = Map::new();
    for (key, value) in pairs {
        members.insert((*key).to_owned(), Value::from(*value));
    }
    Value::Object(members).to_string()
}

/// ContainerPilot 3's flags. It carries out the first of them only and says nothing about the others; here all are
/// carried out, in its order, until one fails.
pub(super) fn flags(args: &Arguments) -> Result<(), Failure> {
    let maintenance = args.text("maintenance");
    let on = match maintenance {
        "enable" => true,
        // 3.8 takes every other word for `disable`, so a slip of the pen would end a maintenance.
        "disable" | "" => false,
        other => {
            return Err(Failure::Usage(format!(
                "-maintenance cannot be `{other}`; it can be `enable` or `disable`"
            )));
        }
    };
    let client = Client::of(args)?;
    let post = |flag: &str, path: &str, body: Option<&str>| match client.post(path, body) {
        Ok(answer) if answer.is_success() => Ok(()),
        Ok(answer) => Err(failed(flag, &answer.reason())),
        Err(trouble) => Err(failed(flag, &trouble.to_string())),
    };
    if args.is_on("reload") {
        post("reload", "/v3/reload", None)?;
    }
    if !maintenance.is_empty() {
        post("maintenance", maintenance_path(on), None)?;
    }
    for (flag, path) in [("putenv", "/v3/environ"), ("putmetric", "/v3/metric")] {
        let pairs = args.pairs(flag);
        if !pairs.is_empty() {
            post(flag, path, Some(&body(&pairs)))?;
        }
    }
    if args.is_on("ping") {
        match client.get("/v3/ping") {
            Ok(answer) if answer.is_success() => print("ok\n")?,
            Ok(answer) => return Err(Failure::Failed(format!("-ping: failed: {}", answer.reason()))),
            Err(trouble) => return Err(Failure::Failed(format!("-ping: failed: {trouble}"))),
        }
    }
    Ok(())
}

/// In 3.8's words, which scripts may look for.
fn failed(flag: &str, why: &str) -> Failure {
    Failure::Failed(format!("-{flag}: failed to run subcommand: {why}"))
}
