//! The commands that control a running supervisor: `start`, `stop`, `restart`, `signal`, `reload`, `maintenance`,
//! `putenv`, `putmetric` and `ping`, and the flags of ContainerPilot 3 that do the same.

use std::collections::BTreeMap;
use std::io::Write;

use containerpilot_api::percent_encoded;
use containerpilot_api::responses::{JobMessage, JobResult, Maintenance, Reload, Status};
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::{self, Arguments};
use containerpilot_command_line::options::as_json;
use containerpilot_command_line::output::print;
use containerpilot_config::values::nearest_signal;
use containerpilot_core::plan::Signal;
use serde::Serialize;

use super::client::{ApiResponse, Client};

fn utf8_arguments(args: &Arguments) -> Result<Vec<&str>, Failure> {
    let words: Option<Vec<&str>> = args.rest.iter().map(|word| word.to_str()).collect();
    words.ok_or_else(|| Failure::Usage("an argument is not UTF-8".to_owned()))
}

/// `start`, `stop` and `restart`. If one job fails, the following jobs are still tried.
pub(super) fn jobs(command: &str, args: &Arguments) -> Result<(), Failure> {
    let client = Client::of(args);
    if command == "restart" && args.is_on("rolling") {
        return rolling_restart(&client, &utf8_arguments(args)?);
    }
    let mut ok = true;
    for job in utf8_arguments(args)? {
        let response = client.post(&format!("/v3/jobs/{}/{command}", percent_encoded(job)), None)?;
        ok &= report(job, response.json())?;
    }
    if ok { Ok(()) } else { Err(Failure::Reported) }
}

/// `restart --rolling`. If one job fails, the following jobs are not restarted.
fn rolling_restart(client: &Client, jobs: &[&str]) -> Result<(), Failure> {
    for (nth, job) in jobs.iter().enumerate() {
        let path = format!("/v3/jobs/{}/restart?rolling=true", percent_encoded(job));
        if !report(job, done(&client.post_until_done(&path, None)?))? {
            let left = jobs.get(nth + 1..).unwrap_or_default();
            let left = (!left.is_empty()).then(|| format!("not restarted: {}", left.join(", ")));
            return Err(left.map_or(Failure::Reported, Failure::Failed));
        }
    }
    Ok(())
}

/// The body of a request that was accepted before it was done is empty if the supervisor exits first.
fn check_complete(response: &ApiResponse) -> Result<(), Failure> {
    if response.status == 202 && response.body.is_empty() {
        return Err(Failure::Failed("the supervisor exited before this was done".to_owned()));
    }
    Ok(())
}

/// The outcome of a request that may have been accepted before it was done.
fn done(response: &ApiResponse) -> Result<JobMessage, Failure> {
    check_complete(response)?;
    let message: JobMessage = response.json()?;
    if message.done == Some(false) { Err(Failure::Failed(message.message)) } else { Ok(message) }
}

/// `scale`: another number of replicas.
pub(super) fn scale(args: &Arguments) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Body {
        replicas: u16,
    }
    let mut wanted = Vec::new();
    for word in utf8_arguments(args)? {
        let pair = word.rsplit_once('=').and_then(|(job, count)| Some((job, count.parse::<u16>().ok()?)));
        let usage = || Failure::Usage(format!("`{word}` is not JOB=NUMBER, for example web=4"));
        wanted.push(pair.filter(|(job, _)| !job.is_empty()).ok_or_else(usage)?);
    }
    let client = Client::of(args);
    let mut ok = true;
    for (job, replicas) in wanted {
        let path = format!("/v3/jobs/{}/scale", percent_encoded(job));
        let response = client.post_until_done(&path, Some(&json_body(&Body { replicas })?))?;
        ok &= report(job, done(&response))?;
    }
    if ok { Ok(()) } else { Err(Failure::Reported) }
}

/// Prints the outcome for one job, or for each job of a group. Returns true if the command succeeded.
fn report(job: &str, outcome: Result<JobMessage, Failure>) -> Result<bool, Failure> {
    match outcome {
        Ok(done) if !done.jobs.is_empty() => {
            for JobResult { job, message, done } in &done.jobs {
                if *done {
                    print(&format!("{job}: {message}\n"))?;
                } else {
                    let _ = writeln!(std::io::stderr(), "containerpilot: {job}: {message}");
                }
            }
            Ok(done.jobs.iter().all(|job| job.done))
        }
        Ok(done) => print(&format!("{job}: {}\n", done.message)).map(|()| true),
        Err(failure) => {
            // The reason names the job. If standard error is closed, the exit code still reports the failure.
            let _ = writeln!(std::io::stderr(), "containerpilot: {failure}");
            Ok(false)
        }
    }
}

pub(super) fn signal(args: &Arguments) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Body<'a> {
        signal: &'a str,
    }
    let words = utf8_arguments(args)?;
    let [job, signal] = words.as_slice() else {
        return Err(Failure::Usage("`signal` needs a job and a signal".to_owned()));
    };
    if Signal::from_name(signal).is_none() {
        let help = match nearest_signal(signal) {
            Some(near) => format!("did you mean {near}?"),
            None => "use a name such as TERM or a number".to_owned(),
        };
        let message = format!("unknown signal `{signal}`; {help}");
        return Err(Failure::Usage(message));
    }
    let (client, body) = (Client::of(args), json_body(&Body { signal })?);
    let response = client.post(&format!("/v3/jobs/{}/signal", percent_encoded(job)), Some(&body))?;
    if report(job, response.json())? { Ok(()) } else { Err(Failure::Reported) }
}

pub(super) fn reload(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    print_reload(args, &Client::of(args).post_until_done("/v3/reload", None)?, json, false)
}

/// `check --diff`: what a reload would do. Only the supervisor knows the current configuration.
pub(super) fn diff(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    print_reload(args, &Client::of(args).post_until_done("/v3/reload?dry-run=true", None)?, json, true)
}

fn print_reload(args: &Arguments, response: &ApiResponse, json: bool, dry_run: bool) -> Result<(), Failure> {
    let reload = reloaded(response)?;
    if !reload.warnings.is_empty() {
        // The reload has been done, whether or not standard error is open.
        let _ = writeln!(std::io::stderr(), "{}", reload.warnings.trim_end());
    }
    if json {
        return print(&response.text());
    }
    print(&reload_text(&reload, dry_run, args.is_on("verbose")))
}

/// The outcome of a reload, which may have been accepted before it was done.
fn reloaded(response: &ApiResponse) -> Result<Reload, Failure> {
    check_complete(response)?;
    if !response.is_success() {
        return Err(Failure::Failed(response.reason()));
    }
    // The response of 3.8 is empty.
    let reload: Reload = serde_json::from_slice(&response.body).unwrap_or_default();
    if reload.message.is_empty() { Ok(reload) } else { Err(Failure::Failed(reload.message)) }
}

/// More names than these are only counted, unless all are requested.
const MAX_NAMES: usize = 10;

fn reload_text(reload: &Reload, dry_run: bool, verbose: bool) -> String {
    let Some(kept) = &reload.kept else { return "reloaded\n".to_owned() };
    let Reload { adjusted, restarted, waiting, started, stopped, settings, .. } = reload;
    let unchanged =
        [adjusted, restarted, waiting, started, stopped, settings].iter().all(|names| names.is_empty());
    let mut out = match (dry_run, unchanged) {
        (true, true) => "a reload would change nothing\n",
        (true, false) => "a reload would\n",
        (false, true) => "reloaded: nothing changed\n",
        (false, false) => "reloaded\n",
    }
    .to_owned();
    for (future, past, names) in [
        ("adjust", "adjusted", adjusted),
        ("restart", "restarted", restarted),
        ("change", "waiting", waiting),
        ("start", "started", started),
        ("remove", "removed", stopped),
        ("change", "changed", settings),
        ("keep", "kept", kept),
    ] {
        if !names.is_empty() {
            let verb = if dry_run { future } else { past };
            let names = match verbose || names.len() <= MAX_NAMES {
                true => names.join(", "),
                false => format!("{} jobs (-v prints their names)", names.len()),
            };
            out.push_str(&format!("  {verb:<10} {names}\n"));
        }
    }
    out
}

pub(super) fn ping(args: &Arguments) -> Result<(), Failure> {
    Client::of(args).get("/v3/ping")?.success()?;
    print("ok\n")
}

pub(super) fn maintenance(args: &Arguments) -> Result<(), Failure> {
    let words = utf8_arguments(args)?;
    let client = || Client::of(args);
    let enable = match words.first().copied().unwrap_or_default() {
        "status" => {
            let status: Status = client().get("/v3/status")?.json()?;
            return print(if status.maintenance {
                "in maintenance mode: checks are suspended\n"
            } else {
                "not in maintenance mode\n"
            });
        }
        "enable" => true,
        "disable" => false,
        other => {
            return Err(Failure::Usage(format!(
                "`maintenance` takes `enable`, `disable` or `status`, not `{other}`"
            )));
        }
    };
    let response: Maintenance = client().post(maintenance_path(enable), None)?.json()?;
    print(match (enable, response.updated != Some(false)) {
        (true, true) => {
            "entered maintenance mode: services are deregistered, checks are suspended, jobs keep running\n"
        }
        (true, false) => "already in maintenance mode\n",
        (false, true) => "left maintenance mode\n",
        (false, false) => "not in maintenance mode\n",
    })
}

fn maintenance_path(enable: bool) -> &'static str {
    if enable { "/v3/maintenance/enable" } else { "/v3/maintenance/disable" }
}

/// `putenv` and `putmetric`. All pairs go in one request, so that either all of them or none is taken.
pub(super) fn put(path: &str, args: &Arguments) -> Result<(), Failure> {
    let mut pairs = BTreeMap::new();
    for (number, word) in (1..).zip(utf8_arguments(args)?) {
        let pair = word.split_once('=').filter(|(key, _)| !key.is_empty());
        let not_a_pair = || Failure::Usage(flags::not_a_pair(&format!("argument {number}"), word));
        let (key, value) = pair.ok_or_else(not_a_pair)?;
        pairs.insert(key, value);
    }
    Client::of(args).post(path, Some(&json_body(&pairs)?))?.success()?;
    Ok(())
}

fn json_body(body: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(body).map_err(|error| Failure::Failed(error.to_string()))
}

/// The flags of ContainerPilot 3. 3.8 obeys only the first of them; here all are obeyed, in the same order, until one
/// fails.
pub(super) fn flags(args: &Arguments) -> Result<(), Failure> {
    let maintenance = args.text("maintenance");
    let enable = match maintenance {
        "enable" => true,
        // 3.8 takes every other word for `disable`, so that a typing error would end maintenance mode.
        "disable" | "" => false,
        other => {
            return Err(Failure::Usage(format!("-maintenance takes `enable` or `disable`, not `{other}`")));
        }
    };
    let client = Client::of(args);
    let post = |flag: &str, path: &str, body: Option<&str>| match client.post(path, body) {
        Ok(response) if response.is_success() => Ok(()),
        Ok(response) => Err(failed(flag, &response.reason())),
        Err(error) => Err(failed(flag, &error.to_string())),
    };
    if args.is_on("reload") {
        let response = client.post_until_done("/v3/reload", None);
        let outcome = response.map_err(Failure::from).and_then(|response| reloaded(&response));
        outcome.map_err(|error| failed("reload", &error.to_string()))?;
    }
    if !maintenance.is_empty() {
        post("maintenance", maintenance_path(enable), None)?;
    }
    for (flag, path) in [("putenv", "/v3/environ"), ("putmetric", "/v3/metric")] {
        let pairs = args.pairs(flag);
        if !pairs.is_empty() {
            post(flag, path, Some(&json_body(&pairs)?))?;
        }
    }
    if args.is_on("ping") {
        match client.get("/v3/ping") {
            Ok(response) if response.is_success() => print("ok\n")?,
            Ok(response) => return Err(Failure::Failed(format!("-ping: failed: {}", response.reason()))),
            Err(error) => return Err(Failure::Failed(format!("-ping: failed: {error}"))),
        }
    }
    Ok(())
}

/// The wording of 3.8; scripts may match it.
fn failed(flag: &str, why: &str) -> Failure {
    Failure::Failed(format!("-{flag}: failed to run subcommand: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r3_reload_prints_only_the_lists_that_are_not_empty() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let reload = Reload { kept: Some(names(&["a", "b"])), started: names(&["c"]), ..Reload::default() };
        assert_eq!(reload_text(&reload, false, false), "reloaded\n  started    c\n  kept       a, b\n");
        assert_eq!(reload_text(&reload, true, false), "a reload would\n  start      c\n  keep       a, b\n");
        assert_eq!(reload_text(&Reload::default(), false, false), "reloaded\n");
    }

    #[test]
    fn r3_reload_counts_many_jobs_and_names_them_on_request() {
        let many: Vec<String> = (0..2_000).map(|nth| format!("job-{nth}")).collect();
        let reload = Reload { kept: Some(many), waiting: vec!["a".to_owned()], ..Reload::default() };
        let text = "reloaded\n  waiting    a\n  kept       2000 jobs (-v prints their names)\n";
        assert_eq!(reload_text(&reload, false, false), text);
        assert!(reload_text(&reload, false, true).ends_with(", job-1999\n"));
    }
}
