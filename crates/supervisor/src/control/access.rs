//! Who may use the control socket, and who sees the variables of jobs (X12).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use containerpilot_core::plan;
use containerpilot_process::sys;

/// Decides by the user of a connection. The clones of it decide by the same configuration.
#[derive(Clone, Debug)]
pub(super) struct Access {
    own_uid: u32,
    /// Whether the configuration opens the socket to other users. Then the file's mode and group decide who may
    /// connect.
    open_to_others: Arc<AtomicBool>,
}

impl Access {
    pub(super) fn new(plan: &plan::Control) -> Self {
        let open_to_others = Arc::new(AtomicBool::new(is_open_to_others(plan)));
        Self { own_uid: sys::effective_ids().0, open_to_others }
    }

    /// R3: applies another plan.
    pub(super) fn follow(&self, plan: &plan::Control) {
        self.open_to_others.store(is_open_to_others(plan), Ordering::Relaxed);
    }

    /// Refuses a user who may not use the socket. The file's mode already keeps other users out. This check holds even
    /// if the mode was changed from outside.
    pub(super) fn to_socket(&self, peer_uid: Option<u32>) -> Result<(), &'static str> {
        if self.open_to_others.load(Ordering::Relaxed) || self.is_own_user(peer_uid) {
            return Ok(());
        }
        Err(
            "only root and the supervisor's own user may use this socket; control: { mode, group } admits others",
        )
    }

    /// X12. The variables of a job may be secret: users whom only the mode of the socket admits do not get them.
    pub(super) fn to_variables(&self, peer_uid: Option<u32>) -> Result<(), &'static str> {
        if self.is_own_user(peer_uid) {
            return Ok(());
        }
        Err("only root and the supervisor's own user may run commands as a job")
    }

    /// Returns true for root and the supervisor's own user.
    fn is_own_user(&self, peer_uid: Option<u32>) -> bool {
        peer_uid.is_some_and(|uid| uid == 0 || uid == self.own_uid)
    }
}

/// Returns true if the file's mode lets users other than its owner connect, for which they need to write.
const fn is_open_to_others(plan: &plan::Control) -> bool {
    plan.mode & 0o022 != 0
}
