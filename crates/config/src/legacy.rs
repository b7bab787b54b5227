//! ContainerPilot 2 files (C8): what they are known by, what their keys mean, and what they become.
//!
//! Such a file is read with a table of its own, so that mistakes in it are told in its own words. What is good becomes a
//! tree of version 3 keys, which goes the way of every file from there on. So an old file means what its translation
//! means, and `migrate` only has to print that.

mod check;
pub mod fields;
pub(crate) mod print;
mod translate;
mod tree;

use containerpilot_core::plan::{Plan, Role};

use crate::decode::DecodeContext;
use crate::json5::{Member, Value};

pub(crate) use check::check;
pub(crate) use translate::{Program, differences, main_name, translate};
pub(crate) use tree::{Entry, members};

/// The version of ContainerPilot that a file is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Services, backends, tasks, and a main program on the command line.
    Two,
    /// Jobs and watches.
    #[default]
    Three,
}

/// Keys that only a ContainerPilot 2 file has, and what has become of them.
const OLD_KEYS: [(&str, &str); 7] = [
    (
        "services",
        "in version 3 these are `jobs`, each with its `exec` and health: { exec: …, interval: …, ttl: … }",
    ),
    (
        "backends",
        "in version 3 these are `watches`, and `onChange` is a job with when: { source: \"watch.NAME\", each: \
         \"changed\" }",
    ),
    ("tasks", "in version 3 these are `jobs` with when: { interval: … }"),
    (
        "preStart",
        "in version 3 this is a job, and the others wait for it with when: { source: \"preStart\", once: \
         \"exitSuccess\" }",
    ),
    ("preStop", "in version 3 this is a job with when: { source: \"NAME\", once: \"stopping\" }"),
    ("postStop", "in version 3 this is a job with when: { source: \"NAME\", once: \"stopped\" }"),
    ("etcd", "containerpilot speaks to Consul only: write consul: \"localhost:8500\""),
];

/// Keys that only a version 3 file has.
const NEW_KEYS: [&str; 3] = ["jobs", "watches", "control"];

/// The key of version 2 that a word at the top of a file was probably meant to be.
pub(crate) fn nearest_key(word: &str) -> Option<&'static str> {
    crate::suggest::nearest(word, OLD_KEYS.iter().map(|(key, _)| *key))
}

fn is_old(member: &Member) -> bool {
    OLD_KEYS.iter().any(|(key, _)| *key == member.key)
}

fn is_new(member: &Member) -> bool {
    NEW_KEYS.contains(&member.key.as_str())
}

/// The version of a file, by the keys at its top. What has only keys of both versions is of version 3.
pub(crate) fn version_of(members: &[Member]) -> Version {
    let sensors = |member: &Member| {
        let Value::Object(inner) = &member.value.value else { return false };
        member.key == "telemetry" && inner.iter().any(|one| one.key.eq_ignore_ascii_case("sensors"))
    };
    let old = members.iter().any(|member| is_old(member) || sensors(member));
    if old && !members.iter().any(is_new) { Version::Two } else { Version::Three }
}

/// Takes the keys of version 2 out of a file of version 3, and says that a file is one or the other.
pub(crate) fn refuse_mixture(cx: &mut DecodeContext<'_>, members: Vec<Member>) -> Vec<Member> {
    let new = members.iter().find(|member| is_new(member)).map(|member| member.key.clone());
    let (old, rest): (Vec<Member>, Vec<Member>) = members.into_iter().partition(is_old);
    for member in old {
        let beside = new.as_deref().unwrap_or("jobs");
        let message = format!(
            "`{}` belongs to ContainerPilot 2 and cannot stand beside `{beside}` of version 3",
            member.key
        );
        let help = OLD_KEYS.iter().find(|(key, _)| *key == member.key).map_or("", |(_, help)| help);
        cx.error(member.key_span, message, help);
    }
    rest
}

/// A plan without what no version 3 file can say: which job came from the command line, and that SIGUSR1 is about
/// maintenance.
pub(crate) fn as_version_3(mut plan: Plan) -> Plan {
    plan.toggle_maintenance = false;
    for job in plan.jobs.iter_mut().filter(|job| job.role == Role::Main) {
        job.role = Role::User;
    }
    plan
}
