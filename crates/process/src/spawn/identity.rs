//! The user and groups of a new process (P9).

use std::io;

use containerpilot_core::plan::{Principal, Process};

use crate::{sys, users};

/// The user and groups to switch to. A field is `None` if it stays as it is.
#[derive(Debug, Default)]
pub(super) struct Identity {
    pub(super) user: Option<u32>,
    pub(super) group: Option<u32>,
    pub(super) groups: Option<Vec<u32>>,
    /// The home directory of the user.
    pub(super) home: Option<Vec<u8>>,
}

/// A user or group that was removed after the configuration was loaded, or cannot be looked up.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("there is no user `{0}`")]
    NoUser(String),
    #[error("there is no group `{0}`")]
    NoGroup(String),
    #[error("cannot look up its user or group: {0}")]
    Unreadable(#[from] io::Error),
}

impl Identity {
    /// Whether the process switches to another user or group.
    pub(super) fn changes(&self) -> bool {
        self.user.is_some() || self.group.is_some() || self.groups.is_some()
    }

    pub(super) fn of(process: &Process) -> Result<Self, IdentityError> {
        let group = match &process.group {
            None => None,
            Some(group) => {
                Some(users::group(group)?.ok_or_else(|| IdentityError::NoGroup(principal_name(group)))?)
            }
        };
        let Some(principal) = &process.user else { return Ok(Self { group, ..Self::default() }) };
        let (own_user, own_group) = sys::effective_ids();
        let user = match (users::user(principal)?, principal) {
            (Some(user), _) => user,
            // A number needs no entry. Such a user has the supervisor's group and no others.
            (None, Principal::Id(id)) => {
                users::User { name: Vec::new(), id: *id, group: own_group, home: b"/".to_vec() }
            }
            (None, Principal::Name(name)) => return Err(IdentityError::NoUser(name.clone())),
        };
        let group = group.unwrap_or(user.group);
        // An unprivileged supervisor may run a job as its own user.
        if (own_user, own_group) == (user.id, group) && own_user != 0 {
            return Ok(Self { home: Some(user.home), ..Self::default() });
        }
        let groups = users::groups_of(&user, group)?;
        Ok(Self { user: Some(user.id), group: Some(group), groups: Some(groups), home: Some(user.home) })
    }
}

/// The name, or the number in digits.
pub(super) fn principal_name(principal: &Principal) -> String {
    match principal {
        Principal::Name(name) => name.clone(),
        Principal::Id(id) => id.to_string(),
    }
}
