//! Fuzz target: any bytes as path, query and body of a control request.

use super::bodies::{BodyError, signal, values, variables};
use super::routes::{RouteMatch, find, flag, number, parameters};

pub(crate) fn run(bytes: &[u8]) {
    bodies(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    for method in ["GET", "POST"] {
        if let RouteMatch::Endpoint { route, job, .. } = find(method, path) {
            assert_eq!(route.contains("{name}"), !job.is_empty());
        }
    }
    match parameters(query, ["follow", "lines"]) {
        Ok([follow, lines]) => {
            let _ = (flag("follow", follow, true), number("lines", lines));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn bodies(bytes: &[u8]) {
    match variables(bytes) {
        Ok(variables) => {
            for (name, value) in variables {
                assert!(!name.is_empty() && !name.contains(['=', '\0', '\n']));
                assert!(
                    !value.is_some_and(|value| value.contains('\0')),
                    "no process could have such a variable"
                );
            }
        }
        Err(BodyError::Form(why) | BodyError::Content(why)) => assert!(!why.is_empty()),
    }
    let _ = values(bytes);
    if let Ok(signal) = signal(bytes) {
        assert!((1..=64).contains(&signal.0));
    }
}
