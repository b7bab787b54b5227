//! Maps methods and paths to endpoints. `docs/openapi.json` documents the same table; a test compares the two.

use containerpilot_api::{SubjectKind, percent_decoded};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Ping,
    Environ,
    Metric,
    Reload,
    Maintenance(bool),
    Status,
    Health,
    Events,
    Recording,
    Logs,
    Execution,
    Explain(SubjectKind),
    Start,
    Stop,
    Restart,
    Scale,
    Signal,
}

/// What is wrong with a query parameter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum ParameterError {
    #[error("the query parameter `{0}` is malformed")]
    Malformed(String),
    #[error("unknown query parameter `{name}`; known are {}", known.join(" and "))]
    Unknown { name: String, known: Vec<&'static str> },
    #[error("`{name}` must be true or false, not `{value}`")]
    NotBoolean { name: &'static str, value: String },
    #[error("`{name}` must be a whole number, not `{value}`")]
    NotNumber { name: &'static str, value: String },
}

/// A path with its only method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// `{name}` stands for a job's name.
    pub(super) path: &'static str,
    method: &'static str,
    pub(super) endpoint: Endpoint,
}

const fn get(path: &'static str, endpoint: Endpoint) -> Route {
    Route { path, method: "GET", endpoint }
}

const fn post(path: &'static str, endpoint: Endpoint) -> Route {
    Route { path, method: "POST", endpoint }
}

const ROUTES: [Route; 22] = [
    get("/v3/ping", Endpoint::Ping),
    post("/v3/environ", Endpoint::Environ),
    post("/v3/env", Endpoint::Environ),
    post("/v3/metric", Endpoint::Metric),
    post("/v3/reload", Endpoint::Reload),
    post("/v3/maintenance/enable", Endpoint::Maintenance(true)),
    post("/v3/maintenance/disable", Endpoint::Maintenance(false)),
    get("/v3/status", Endpoint::Status),
    get("/v3/health", Endpoint::Health),
    get("/v3/events", Endpoint::Events),
    get("/v3/recording", Endpoint::Recording),
    get("/v3/jobs/{name}/logs", Endpoint::Logs),
    get("/v3/jobs/{name}/execution", Endpoint::Execution),
    get("/v3/jobs/{name}/explain", Endpoint::Explain(SubjectKind::Job)),
    get("/v3/locks/{name}/explain", Endpoint::Explain(SubjectKind::Lock)),
    get("/v3/watches/{name}/explain", Endpoint::Explain(SubjectKind::Watch)),
    get("/v3/files/{name}/explain", Endpoint::Explain(SubjectKind::File)),
    post("/v3/jobs/{name}/start", Endpoint::Start),
    post("/v3/jobs/{name}/stop", Endpoint::Stop),
    post("/v3/jobs/{name}/restart", Endpoint::Restart),
    post("/v3/jobs/{name}/scale", Endpoint::Scale),
    post("/v3/jobs/{name}/signal", Endpoint::Signal),
];

/// The result of matching a request against the routes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RouteMatch {
    Endpoint {
        endpoint: Endpoint,
        /// The path as it is in the table.
        route: &'static str,
        /// The job's name; empty if the endpoint is not about a job.
        job: String,
    },
    /// The path is known, but accepts only another method.
    WrongMethod {
        allowed: &'static str,
        route: &'static str,
    },
    UnknownPath,
    /// The job's name is not percent-encoded UTF-8.
    InvalidName,
}

/// Finds the endpoint of a request.
pub(super) fn find(method: &str, path: &str) -> RouteMatch {
    for route in &ROUTES {
        let Some(name) = matches(route.path, path) else { continue };
        if method != route.method {
            return RouteMatch::WrongMethod { allowed: route.method, route: route.path };
        }
        return match percent_decoded(name, false) {
            Some(job) => RouteMatch::Endpoint { endpoint: route.endpoint, route: route.path, job },
            None => RouteMatch::InvalidName,
        };
    }
    RouteMatch::UnknownPath
}

/// The part of a path that matches `{name}`; empty for a pattern without one. `None` if the path does not match.
fn matches<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once("{name}") else {
        return (pattern == path).then_some("");
    };
    let name = path.strip_prefix(before)?.strip_suffix(after)?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

/// The values of the known query parameters. An unknown parameter is an error.
pub(super) fn parameters<const N: usize>(
    query: Option<&str>,
    known: [&'static str; N],
) -> Result<[Option<String>; N], ParameterError> {
    let mut found = [const { None }; N];
    for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let decoded = percent_decoded(name, true).zip(percent_decoded(value, true));
        let (name, value) = decoded.ok_or_else(|| ParameterError::Malformed(part.to_owned()))?;
        let place = known.iter().zip(&mut found).find(|(known, _)| **known == name);
        match place {
            Some((_, place)) => *place = Some(value),
            None => return Err(ParameterError::Unknown { name, known: known.to_vec() }),
        }
    }
    Ok(found)
}

/// A boolean parameter; a parameter without a value is true.
pub(super) fn flag(name: &'static str, value: Option<String>, default: bool) -> Result<bool, ParameterError> {
    let Some(value) = value else { return Ok(default) };
    match value.as_str() {
        "" | "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(ParameterError::NotBoolean { name, value }),
    }
}

/// An unsigned integer parameter.
pub(super) fn number(name: &'static str, value: Option<String>) -> Result<Option<u64>, ParameterError> {
    let parse = |value: String| value.parse().map_err(|_| ParameterError::NotNumber { name, value });
    value.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn x2_openapi_documents_every_route_and_no_other() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let text = std::fs::read_to_string(path).unwrap();
        let openapi: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut documented = BTreeSet::new();
        for (path, methods) in openapi["paths"].as_object().unwrap() {
            for (method, about) in methods.as_object().unwrap() {
                documented.insert((path.clone(), method.to_uppercase()));
                assert!(about["responses"]["405"].is_object(), "{path}: 405 is not documented");
            }
        }
        let implemented: BTreeSet<_> =
            ROUTES.iter().map(|route| (route.path.to_owned(), route.method.to_owned())).collect();
        assert_eq!(documented, implemented);
    }

    #[test]
    fn x2_a_name_in_a_path_is_decoded() {
        let found = |path: &str| find("POST", path);
        let start = |name: &str| RouteMatch::Endpoint {
            endpoint: Endpoint::Start,
            route: "/v3/jobs/{name}/start",
            job: name.to_owned(),
        };
        assert_eq!(found("/v3/jobs/web/start"), start("web"));
        assert_eq!(found("/v3/jobs/%2Fbin%2Fserver/start"), start("/bin/server"));
        assert_eq!(found("/v3/jobs/a+b%20c/start"), start("a+b c"));
        assert_eq!(found("/v3/jobs/100%/start"), RouteMatch::InvalidName);
        assert_eq!(found("/v3/jobs/%ff/start"), RouteMatch::InvalidName);
        for path in ["/v3/jobs//start", "/v3/jobs/a/b/start", "/v3/jobs/start", "/v3/ping/", "/", ""] {
            assert_eq!(found(path), RouteMatch::UnknownPath, "{path}");
        }
    }

    #[test]
    fn x1_a_known_path_with_another_method_names_the_allowed_one() {
        assert_eq!(
            find("GET", "/v3/environ"),
            RouteMatch::WrongMethod { allowed: "POST", route: "/v3/environ" }
        );
        assert_eq!(find("POST", "/v3/ping"), RouteMatch::WrongMethod { allowed: "GET", route: "/v3/ping" });
    }

    #[test]
    fn x2_unknown_parameters_are_refused() {
        let read = |query| parameters(query, ["follow", "since"]);
        assert_eq!(read(None), Ok([None, None]));
        assert_eq!(read(Some("follow&since=4+%35")), Ok([Some(String::new()), Some("4 5".to_owned())]));
        assert!(read(Some("folow=1")).unwrap_err().to_string().contains("known are follow and since"));
        assert!(read(Some("follow=%")).is_err());
        assert_eq!(flag("follow", Some("0".to_owned()), true), Ok(false));
        assert!(flag("follow", Some("no".to_owned()), true).is_err());
        assert_eq!(number("since", Some("7".to_owned())), Ok(Some(7)));
        assert!(number("since", Some("-7".to_owned())).is_err());
    }
}
