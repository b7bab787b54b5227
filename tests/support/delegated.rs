//! A cgroup v2 for the supervisor of a test, as a container engine or systemd delegates one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::deadline::holds_within;

/// A cgroup that is delegated to the supervisor of a test; removed at the end.
pub(crate) struct Delegated {
    pub(crate) directory: PathBuf,
    /// Where cgroup v2 is mounted.
    pub(crate) mount: &'static str,
}

impl Delegated {
    pub(crate) fn new() -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].into_iter().find_map(|mount| {
            let name = format!("delegated-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
            let directory = Path::new(mount).join(own).join(name);
            fs::create_dir(&directory).ok()?;
            if !directory.join("cgroup.kill").exists() {
                fs::remove_dir(directory).unwrap();
                return None;
            }
            Some(Self { directory, mount })
        })
    }

    /// A shell command that enters it.
    pub(crate) fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.directory.display())
    }

    /// Requires that no cgroup was left in it.
    pub(crate) fn assert_empty(&self) {
        let entries = fs::read_dir(&self.directory).unwrap().map(|entry| entry.unwrap().path());
        let inner: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
        assert!(inner.is_empty(), "{inner:?}");
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        let _ = fs::write(self.directory.join("cgroup.kill"), "1");
        // The kernel may take a moment to remove the last process.
        holds_within(Duration::from_secs(5), || remove(&self.directory));
    }
}

fn remove(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.is_dir()).for_each(|path| _ = remove(&path));
    fs::remove_dir(directory).is_ok()
}
