//! What the top level of the file says about all processes.

use crate::yaml::{Map, YamlNode};

pub(super) struct Project {
    pub(super) vars: Map,
    pub(super) shell: [String; 2],
    pub(super) expand: bool,
    /// Whether there is a file `.env`.
    pub(super) dotenv: bool,
}

/// `web-0` is a replica of `web`. Here a job waits for all replicas.
pub(super) fn process_of<'a>(name: &'a str, processes: &Map) -> &'a str {
    let group = name.rsplit_once('-').map(|(group, _)| group);
    let is_replica = |group: &&str| processes.get(name).is_none() && processes.get(group).is_some();
    group.filter(is_replica).unwrap_or(name)
}

pub(super) fn shell(node: Option<&YamlNode>) -> [String; 2] {
    let word = |key| node.and_then(|node| node.get(key)).and_then(YamlNode::text);
    [word("shell_command").unwrap_or("bash").to_owned(), word("shell_argument").unwrap_or("-c").to_owned()]
}
