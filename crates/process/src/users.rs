//! Users and groups, from `/etc/passwd` and `/etc/group`.
//!
//! The C library's lookup (NSS) would load plug-ins of the container's library into this static binary, and may use the
//! network. Every image has the two files, or needs none.

use std::io;

use containerpilot_core::plan::Principal;

use crate::error_text::describe;
use crate::regular_file;

/// How much of a file is read.
const FILE_BYTES: u64 = 16 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: Vec<u8>,
    pub id: u32,
    pub group: u32,
    pub home: Vec<u8>,
}

/// Looks up a user by name or number. A number without an entry is still a valid user, which the caller handles.
pub fn user(who: &Principal) -> io::Result<Option<User>> {
    Ok(user_in(&read("/etc/passwd")?, who))
}

/// The number of a group. A number needs no entry.
pub fn group(which: &Principal) -> io::Result<Option<u32>> {
    Ok(group_in(&read("/etc/group")?, which))
}

/// The groups of a user: `group` first, then the supplementary ones.
pub fn groups_of(user: &User, group: u32) -> io::Result<Vec<u32>> {
    Ok(groups_in(&read("/etc/group")?, user, group))
}

/// The names in `/etc/passwd` or `/etc/group`.
pub fn names(path: &str) -> Vec<String> {
    let text = read(path).unwrap_or_default();
    let names =
        entries(&text).filter_map(|entry| std::str::from_utf8(entry.first()?).ok().map(str::to_owned));
    names.filter(|name| !name.is_empty()).collect()
}

/// The content of a file. One that is missing has no entries; what one contains that cannot be read is not known.
fn read(path: &str) -> io::Result<Vec<u8>> {
    match regular_file::read(path, FILE_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io::Error::new(error.kind(), format!("{path}: {}", describe(&error)))),
        content => content,
    }
}

/// The fields of each line.
fn entries(text: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    text.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b':').collect())
}

fn number(field: &[u8]) -> Option<u32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

pub fn user_in(text: &[u8], who: &Principal) -> Option<User> {
    entries(text).find_map(|entry| match *entry.as_slice() {
        [name, _, id, group, ref more @ ..] => {
            let id = number(id)?;
            let matches = match who {
                Principal::Name(wanted) => wanted.as_bytes() == name,
                Principal::Id(wanted) => *wanted == id,
            };
            matches.then(|| {
                let home = more.get(1).filter(|home| !home.is_empty()).copied().unwrap_or(b"/").to_owned();
                Some(User { name: name.to_owned(), id, group: number(group)?, home })
            })?
        }
        _ => None,
    })
}

pub fn group_in(text: &[u8], which: &Principal) -> Option<u32> {
    match which {
        Principal::Id(id) => Some(*id),
        Principal::Name(wanted) => entries(text).find_map(|entry| match *entry.as_slice() {
            [name, _, id, ..] if name == wanted.as_bytes() => number(id),
            _ => None,
        }),
    }
}

pub fn groups_in(text: &[u8], user: &User, group: u32) -> Vec<u32> {
    let mut groups = vec![group];
    // A user without an entry has an empty name, which must not match an empty list of members.
    if user.name.is_empty() {
        return groups;
    }
    for entry in entries(text) {
        let [_, _, id, members] = *entry.as_slice() else { continue };
        let Some(id) = number(id) else { continue };
        if members.split(|byte| *byte == b',').any(|member| member == user.name) && !groups.contains(&id) {
            groups.push(id);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &[u8] = b"root:x:0:0:root:/root:/bin/sh\nbroken\n:x:y\nweb:x:33:34::/:/x\n";
    const GROUP: &[u8] = b"root:x:0:\nweb:x:34:\nlogs:x:7:adm,web\nadm:x:8:webby\nagain:x:7:web\n\n";

    fn name(name: &str) -> Principal {
        Principal::Name(name.to_owned())
    }

    #[test]
    fn p9_user_is_found_by_name_and_by_number() {
        let web = User { name: b"web".to_vec(), id: 33, group: 34, home: b"/".to_vec() };
        assert_eq!(user_in(PASSWD, &name("web")), Some(web.clone()));
        assert_eq!(user_in(PASSWD, &Principal::Id(33)), Some(web));
        let root = user_in(PASSWD, &name("root")).map(|user| user.home);
        assert_eq!(root.as_deref(), Some(&b"/root"[..]));
        assert_eq!(user_in(PASSWD, &name("nobody")), None);
        assert_eq!(user_in(PASSWD, &name("")), None);
    }

    #[test]
    fn p9_supplementary_groups_follow_the_primary_group_without_duplicates() {
        let web = User { name: b"web".to_vec(), id: 33, group: 34, home: b"/".to_vec() };
        assert_eq!(groups_in(GROUP, &web, 34), [34, 7]);
        let unlisted = User { name: Vec::new(), id: 99, group: 0, home: b"/".to_vec() };
        assert_eq!(groups_in(GROUP, &unlisted, 5), [5]);
        assert_eq!(group_in(GROUP, &name("logs")), Some(7));
        assert_eq!(group_in(GROUP, &Principal::Id(99)), Some(99));
        assert_eq!(group_in(GROUP, &name("log")), None);
    }
}
