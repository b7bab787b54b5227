//! Who sends: the attributes of the resource.

use std::collections::BTreeMap;

use containerpilot_core::inserted;
use containerpilot_core::plan::Otlp;
use containerpilot_otlp::{AttributeValue, Ids, Resource};

use crate::VERSION;

const NAME: &str = "containerpilot";

/// The attributes of the configuration win over the usual ones.
pub(super) fn of(otlp: &Otlp, ids: &Ids) -> Resource {
    let pid = AttributeValue::Int(std::process::id().into());
    let mut attributes: BTreeMap<&str, AttributeValue> = inserted([
        ("os.type", "linux".into()),
        ("process.executable.name", NAME.into()),
        ("process.pid", pid),
        // As unique as the trace, of which a supervisor has one.
        ("service.instance.id", AttributeValue::Text(ids.trace().to_string())),
        ("telemetry.sdk.language", "rust".into()),
        ("telemetry.sdk.name", NAME.into()),
        ("telemetry.sdk.version", VERSION.into()),
    ]);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    attributes.extend(container_id(&mounts).map(|id| ("container.id", AttributeValue::from(id))));
    let given =
        otlp.resource.iter().map(|(name, value)| (name.as_str(), AttributeValue::from(value.as_str())));
    attributes.extend(given);
    let attributes: Vec<(String, AttributeValue)> =
        attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Resource::new(&attributes, NAME, VERSION)
}

/// The id of the container, which is part of the path of a file that the engine mounts, such as `/etc/hostname`.
fn container_id(mounts: &str) -> Option<&str> {
    let is_id = |part: &&str| part.len() == 64 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let of_container =
        mounts.lines().filter(|line| line.contains("/containers/") || line.contains("/sandboxes/"));
    of_container.flat_map(|line| line.split('/')).find(is_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_container_id_is_found_in_the_mounts_of_docker_and_containerd() {
        let id = "0123456789abcdef".repeat(4);
        for mount in [
            format!("1 2 8:1 /var/lib/docker/containers/{id}/hostname /etc/hostname rw - ext4 /dev/sda rw"),
            format!("1 2 0:3 /io.containerd.grpc.v1.cri/sandboxes/{id}/resolv.conf /etc/resolv.conf rw"),
        ] {
            assert_eq!(container_id(&format!("1 2 8:1 / / rw\n{mount}\n")), Some(id.as_str()));
        }
        assert_eq!(container_id(&format!("1 2 8:1 /var/lib/layers/{id} / rw\n")), None);
    }
}
