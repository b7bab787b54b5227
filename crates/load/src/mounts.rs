//! Which file systems are mounted (P15).

use containerpilot_process::proc::kernel_text;

/// File systems that the kernel serves by itself, from a disk or from memory. All others may wait for another machine
/// or for a program.
const LOCAL: [&str; 36] = [
    "bdev",
    "binder",
    "binfmt_misc",
    "bpf",
    "btrfs",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "erofs",
    "exfat",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "fusectl",
    "hugetlbfs",
    "iso9660",
    "mqueue",
    "nsfs",
    "overlay",
    "proc",
    "pstore",
    "ramfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "squashfs",
    "sysfs",
    "tmpfs",
    "tracefs",
    "vfat",
    "xfs",
];

/// Returns true if every mounted file system is local: then every path answers. Without `/proc` that is not known.
pub(crate) fn are_local() -> bool {
    kernel_text("/proc/self/mountinfo").is_ok_and(|text| lists_only_local(&String::from_utf8_lossy(&text)))
}

fn lists_only_local(mounts: &str) -> bool {
    let kind =
        |line: &str| line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').next()).map(str::to_owned);
    let mut lines = mounts.lines().peekable();
    lines.peek().is_some() && lines.all(|line| kind(line).is_some_and(|kind| LOCAL.contains(&kind.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p15_mounts_of_other_machines_and_programs_are_not_local() {
        let root = "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n";
        assert!(lists_only_local(root));
        for kind in ["fuse.sshfs", "fuse", "nfs4", "9p", "cifs", "autofs", "virtiofs", "somethingnew"] {
            let line = format!("{root}30 27 0:40 / /mnt rw - {kind} host:/ rw\n");
            assert!(!lists_only_local(&line), "{kind}");
        }
        assert!(!lists_only_local("") && !lists_only_local("nonsense\n"));
    }
}
