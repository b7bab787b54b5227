//! Fuzz target: any bytes as `/etc/passwd` and `/etc/group`. A user that is found is in the file.

use containerpilot_core::plan::Principal;

use containerpilot_process::users::{group_in, groups_in, user_in};

pub(crate) fn run(bytes: &[u8]) {
    let (name, files) = bytes.split_at(bytes.iter().position(|byte| *byte == 0).unwrap_or(0));
    let name = Principal::Name(String::from_utf8_lossy(name).into_owned());
    for principal in [name, Principal::Id(33), Principal::Id(0)] {
        let Some(user) = user_in(files, &principal) else { continue };
        match &principal {
            Principal::Name(name) => assert_eq!(user.name, name.as_bytes()),
            Principal::Id(id) => assert_eq!(user.id, *id),
        }
        assert!(!user.home.is_empty() && !user.home.contains(&b':') && !user.home.contains(&b'\n'));
        let groups = groups_in(files, &user, user.group);
        assert_eq!(groups.first(), Some(&user.group));
        let lines = files.split(|byte| *byte == b'\n').count();
        assert!(groups.len() <= lines + 1, "one group per line");
        assert_eq!(group_in(files, &Principal::Id(user.group)), Some(user.group));
        let _ = group_in(files, &principal);
    }
}
