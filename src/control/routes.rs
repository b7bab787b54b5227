//! Which path means what. The same table is written down for users in `docs/openapi.json`; a test compares them.

/// Something that can be asked for.
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
    Logs,
    Explain,
    Start,
    Stop,
    Restart,
    Signal,
}

/// A path with its one method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// The path; `{name}` stands for a job's name.
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

/// Everything that is answered.
const ROUTES: [Route; 16] = [
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
    get("/v3/jobs/{name}/logs", Endpoint::Logs),
    get("/v3/jobs/{name}/explain", Endpoint::Explain),
    post("/v3/jobs/{name}/start", Endpoint::Start),
    post("/v3/jobs/{name}/stop", Endpoint::Stop),
    post("/v3/jobs/{name}/restart", Endpoint::Restart),
    post("/v3/jobs/{name}/signal", Endpoint::Signal),
];

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// To this endpoint, for the job of this name if it is about one.
    Endpoint(Endpoint, &'static str, String),
    /// To a path that takes another method.
    Method(&'static str, &'static str),
    /// Nowhere.
    Nothing,
    /// The name is no text.
    BadName,
}

/// Finds what a request is for.
pub(super) fn find(method: &str, path: &str) -> Found {
    for route in &ROUTES {
        let Some(name) = matches(route.path, path) else { continue };
        if method != route.method {
            return Found::Method(route.method, route.path);
        }
        return match decode(name, false) {
            Some(name) => Found::Endpoint(route.endpoint, route.path, name),
            None => Found::BadName,
        };
    }
    Found::Nothing
}

/// What stands in a path in place of `{name}`, if the path is of that form.
fn matches<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once("{name}") else {
        return (pattern == path).then_some("");
    };
    let name = path.strip_prefix(before)?.strip_suffix(after)?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

/// A text without its percent-encoding; nothing if it is not well-formed.
fn decode(text: &str, plus_is_blank: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            b'+' if plus_is_blank => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// The parameters of a query, each of which must be known.
pub(super) fn parameters<const N: usize>(
    query: Option<&str>,
    known: [&'static str; N],
) -> Result<[Option<String>; N], String> {
    let mut found = [const { None }; N];
    for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let decoded = decode(name, true).zip(decode(value, true));
        let (name, value) = decoded.ok_or_else(|| format!("the query `{part}` is not well-formed"))?;
        let place = known.iter().zip(&mut found).find(|(known, _)| **known == name);
        match place {
            Some((_, place)) => *place = Some(value),
            None => {
                return Err(format!("there is no parameter `{name}`; there are {}", known.join(" and ")));
            }
        }
    }
    Ok(found)
}

/// A parameter that is on or off; on if it stands there alone.
pub(super) fn flag(name: &str, value: Option<String>, default: bool) -> Result<bool, String> {
    match value.as_deref() {
        None => Ok(default),
        Some("" | "true" | "1") => Ok(true),
        Some("false" | "0") => Ok(false),
        Some(other) => Err(format!("`{name}` is true or false, not `{other}`")),
    }
}

/// A parameter that is a whole number.
pub(super) fn number(name: &str, value: Option<String>) -> Result<Option<u64>, String> {
    let parse = |text: String| text.parse().map_err(|_| format!("`{name}` is a whole number, not `{text}`"));
    value.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn x2_the_description_has_every_route_and_no_other() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openapi.json");
        let text = std::fs::read_to_string(path).unwrap();
        let described: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut written = BTreeSet::new();
        for (path, methods) in described["paths"].as_object().unwrap() {
            for (method, about) in methods.as_object().unwrap() {
                written.insert((path.clone(), method.to_uppercase()));
                assert!(about["responses"]["405"].is_object(), "{path}: another method is 405");
            }
        }
        let built: BTreeSet<_> =
            ROUTES.iter().map(|route| (route.path.to_owned(), route.method.to_owned())).collect();
        assert_eq!(written, built);
    }

    #[test]
    fn x2_a_name_in_a_path_is_decoded() {
        let found = |path: &str| find("POST", path);
        let start = |name: &str| Found::Endpoint(Endpoint::Start, "/v3/jobs/{name}/start", name.to_owned());
        assert_eq!(found("/v3/jobs/web/start"), start("web"));
        assert_eq!(found("/v3/jobs/%2Fbin%2Fserver/start"), start("/bin/server"));
        assert_eq!(found("/v3/jobs/a+b%20c/start"), start("a+b c"));
        assert_eq!(found("/v3/jobs/100%/start"), Found::BadName);
        assert_eq!(found("/v3/jobs/%ff/start"), Found::BadName);
        for nothing in ["/v3/jobs//start", "/v3/jobs/a/b/start", "/v3/jobs/start", "/v3/ping/", "/", ""] {
            assert_eq!(found(nothing), Found::Nothing, "{nothing}");
        }
    }

    #[test]
    fn x1_a_known_path_with_another_method_says_which_it_takes() {
        assert_eq!(find("GET", "/v3/environ"), Found::Method("POST", "/v3/environ"));
        assert_eq!(find("POST", "/v3/ping"), Found::Method("GET", "/v3/ping"));
    }

    #[test]
    fn x2_parameters_are_known_or_refused() {
        let read = |query| parameters(query, ["follow", "since"]);
        assert_eq!(read(None), Ok([None, None]));
        assert_eq!(read(Some("follow&since=4+%35")), Ok([Some(String::new()), Some("4 5".to_owned())]));
        assert!(read(Some("folow=1")).unwrap_err().contains("there are follow and since"));
        assert!(read(Some("follow=%")).is_err());
        assert_eq!(flag("follow", Some("0".to_owned()), true), Ok(false));
        assert!(flag("follow", Some("no".to_owned()), true).is_err());
        assert_eq!(number("since", Some("7".to_owned())), Ok(Some(7)));
        assert!(number("since", Some("-7".to_owned())).is_err());
    }
}
