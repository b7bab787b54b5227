//! The times that the rules give and that a configuration does not change.

use std::time::Duration;

/// How long a process may take to execute its program.
pub(super) const EXEC_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a job may wait for its deregistration (S2), unless a quarter of the stop timeout is less.
pub(super) const DEREGISTER_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a hook without a `timeout` may run (S15).
pub(super) const HOOK_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a job waits for its process after SIGKILL (P6).
pub(super) const ABANDON_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the supervisor may wait for killed processes (S4).
pub(super) const KILL_TIMEOUT: Duration = Duration::from_millis(400);

/// How long everything after the last SIGKILL may take (S4).
pub(super) const MARGIN: Duration = Duration::from_secs(1);
