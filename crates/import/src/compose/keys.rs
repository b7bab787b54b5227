//! What the keys of a service in a Compose file mean, for the conversion and for the audit.

use std::time::Duration;

use crate::durations;
use crate::merge::names_of_list;
use crate::yaml::{Map, YamlEntry, YamlNode};

/// How long Docker waits after the stop signal if a service does not set `stop_grace_period`.
pub const GRACE: Duration = Duration::from_secs(10);

/// The services of a file.
#[must_use]
pub fn services(file: &Map) -> Option<&Map> {
    file.get("services")?.map()
}

/// A text without variables, which Compose replaces.
#[must_use]
pub fn plain(node: &YamlNode) -> Option<&str> {
    node.text().filter(|text| !text.contains('$'))
}

/// A duration without variables.
#[must_use]
pub fn duration(node: &YamlNode) -> Option<Duration> {
    plain(node).and_then(durations::compose)
}

/// The variables of `environment`, also of a list of `NAME=VALUE`. The value is null where it comes from elsewhere.
#[must_use]
pub fn variables(environment: &YamlNode) -> YamlNode {
    names_of_list(environment)
}

/// What a health check does, with the entry that says so.
#[derive(Clone, Copy, Debug)]
pub enum HealthTest<'a> {
    /// What the image says.
    OfImage,
    /// Nothing.
    Disabled(&'a YamlEntry),
    /// It executes a program with arguments.
    Words(&'a YamlEntry, &'a [YamlNode]),
    /// It runs a line in a shell.
    Line(&'a YamlEntry, &'a YamlNode),
    /// Compose refuses it.
    Invalid(&'a YamlEntry),
}

/// What a health check does.
#[must_use]
pub fn health_test(check: &Map) -> HealthTest<'_> {
    if let Some(disable) = check.entry("disable").filter(|disable| disable.value.flag() == Some(true)) {
        return HealthTest::Disabled(disable);
    }
    let Some(test) = check.entry("test").filter(|test| !test.value.is_null()) else {
        return HealthTest::OfImage;
    };
    match test.value.list() {
        None => HealthTest::Line(test, &test.value),
        Some([]) => HealthTest::OfImage,
        Some([kind, rest @ ..]) => match (kind.text(), rest) {
            (Some("NONE"), _) => HealthTest::Disabled(test),
            (Some("CMD"), [_, ..]) => HealthTest::Words(test, rest),
            (Some("CMD-SHELL"), [line]) => HealthTest::Line(test, line),
            _ => HealthTest::Invalid(test),
        },
    }
}

/// When a service is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Never.
    No,
    /// Whenever it ends.
    Always,
    /// When it fails.
    OnFailure,
    /// Compose refuses the value, or it has a variable.
    Invalid,
}

/// The restart policy, where it is, and how many restarts it allows. `deploy.restart_policy` takes precedence over `restart`.
#[must_use]
pub fn restart_policy(service: &Map) -> Option<(&YamlEntry, RestartPolicy, Option<u64>)> {
    let deploy = service.get("deploy").and_then(YamlNode::map);
    let policy_of_deploy = deploy.and_then(|deploy| deploy.entry("restart_policy"));
    if let Some(entry) = policy_of_deploy.filter(|policy| !policy.value.is_null()) {
        let policy = match entry.value.get("condition").and_then(plain).unwrap_or("any") {
            "none" | "no" => RestartPolicy::No,
            "any" | "always" | "unless-stopped" => RestartPolicy::Always,
            "on-failure" => RestartPolicy::OnFailure,
            _ => RestartPolicy::Invalid,
        };
        let count = entry.value.get("max_attempts").and_then(YamlNode::integer);
        return Some((entry, policy, count.and_then(|count| u64::try_from(count).ok())));
    }
    let entry = service.entry("restart").filter(|restart| !restart.value.is_null())?;
    let text = plain(&entry.value).unwrap_or_default();
    let (policy, count) = text.split_once(':').map_or((text, None), |(policy, count)| (policy, Some(count)));
    Some(match (policy, count.map(str::parse::<u64>)) {
        ("no" | "false", None) => (entry, RestartPolicy::No, None),
        ("always" | "unless-stopped", None) => (entry, RestartPolicy::Always, None),
        ("on-failure", None | Some(Ok(0))) => (entry, RestartPolicy::OnFailure, None),
        ("on-failure", Some(Ok(count))) => (entry, RestartPolicy::OnFailure, Some(count)),
        _ => (entry, RestartPolicy::Invalid, None),
    })
}

/// Whether a dependency must be there.
pub(super) fn is_required(dependency: &YamlEntry) -> bool {
    dependency.value.get("required").and_then(YamlNode::flag) != Some(false)
}
