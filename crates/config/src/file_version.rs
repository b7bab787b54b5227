//! The version of a file, by its keys (C8).

use crate::decode::DecodeContext;
use crate::json5::{Member, Value};

/// The version of the format of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Services, backends and tasks, with the main program on the command line.
    Two,
    /// Jobs and watches.
    #[default]
    Three,
}

const PRE_START_HELP: &str = "in version 3 write a job, and when: { source: \"preStart\", once: \"exitSuccess\" } in \
                              the jobs that wait for it";

/// The keys that only a ContainerPilot 2 file has, and their replacement in version 3.
const LEGACY_KEYS: [(&str, &str); 8] = [
    ("services", "in version 3 write `jobs`, each with `exec` and health: { exec: …, interval: …, ttl: … }"),
    (
        "backends",
        "in version 3 write `watches`, and a job with when: { source: \"watch.NAME\", each: \"changed\" } for \
         `onChange`",
    ),
    ("tasks", "in version 3 write `jobs` with when: { interval: … }"),
    ("preStart", PRE_START_HELP),
    ("onStart", PRE_START_HELP),
    ("preStop", "in version 3 write a job with when: { source: \"NAME\", once: \"stopping\" }"),
    ("postStop", "in version 3 write a job with when: { source: \"NAME\", once: \"stopped\" }"),
    ("etcd", "etcd is not supported: use Consul, for example consul: \"localhost:8500\""),
];

/// The keys that only a version 3 file has.
const CURRENT_KEYS: [&str; 3] = ["jobs", "watches", "control"];

/// The key of version 2 that is closest to a word.
pub(crate) fn nearest_legacy_key(word: &str) -> Option<&'static str> {
    crate::suggest::nearest(word, LEGACY_KEYS.iter().map(|(key, _)| *key))
}

fn is_legacy(member: &Member) -> bool {
    LEGACY_KEYS.iter().any(|(key, _)| *key == member.key)
}

fn is_current(member: &Member) -> bool {
    CURRENT_KEYS.contains(&member.key.as_str())
}

/// The version of a file, by its top-level keys. A file without keys of version 2 has version 3.
pub(crate) fn version_of(members: &[Member]) -> Version {
    let sensors = |member: &Member| {
        let Value::Object(inner) = &member.value.value else { return false };
        member.key == "telemetry" && inner.iter().any(|one| one.key.eq_ignore_ascii_case("sensors"))
    };
    let old = members.iter().any(|member| is_legacy(member) || sensors(member));
    if old && !members.iter().any(is_current) { Version::Two } else { Version::Three }
}

/// Reports keys of version 2 in a version 3 file, and removes them.
pub(crate) fn reject_legacy_keys(cx: &mut DecodeContext<'_>, members: Vec<Member>) -> Vec<Member> {
    let new = members.iter().find(|member| is_current(member)).map(|member| member.key.clone());
    let (old, rest): (Vec<Member>, Vec<Member>) = members.into_iter().partition(is_legacy);
    for member in old {
        let beside = new.as_deref().unwrap_or("jobs");
        let message = format!(
            "`{}` is a key of ContainerPilot 2 and cannot be combined with `{beside}` of version 3",
            member.key
        );
        let help = LEGACY_KEYS.iter().find(|(key, _)| *key == member.key).map_or("", |(_, help)| help);
        cx.error(member.key_span, message, help);
    }
    rest
}
