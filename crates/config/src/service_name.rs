//! Names of services in the catalog (D9).

/// A valid service name similar to an invalid one.
pub(crate) fn service_name_like(name: &str) -> Option<String> {
    let last = name.rsplit('/').next().unwrap_or_default();
    let valid: String =
        last.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let valid = valid.trim_matches(|c: char| !c.is_ascii_alphabetic()).to_owned();
    is_service_name(&valid).then_some(valid)
}

/// Returns true if a name is valid in the catalog (D9).
pub(crate) fn is_service_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_lowercase())
        && name.len() > 1
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Help for an invalid service name.
pub(crate) fn service_name_rule(name: &str) -> String {
    let rule = "a lowercase letter first, then letters, digits and dashes, at least two characters in total";
    match service_name_like(name) {
        Some(like) => format!("for example \"{like}\": {rule}"),
        None => format!("the catalog requires {rule}"),
    }
}
