//! The document of the page, and the headers that keep it apart from everything else in a browser.

use containerpilot_views::page::{LIVE, LIVE_POLICY};
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName,
    HeaderValue, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

use crate::net::server::{ServerResponse, StatusCode, error, ok};

/// The policy of responses that are not documents.
pub(super) const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// The response to a request of the document.
pub(super) fn document(request: &HeaderMap) -> ServerResponse {
    // It is not in the program a second time for clients that cannot read gzip. There are no browsers among them.
    let mut response = if accepts_gzip(request) {
        let mut response = add(ok("text/html; charset=utf-8", LIVE), LIVE_POLICY);
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        let reason = "the page is compressed with gzip: open it in a browser, or use `curl --compressed`";
        add(error(StatusCode::NOT_ACCEPTABLE, reason), NOTHING)
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

/// Whether `Accept-Encoding` allows gzip: by its name, or else by `*`, and not with a weight of 0.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let codings = || {
        let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).map(|coding| coding.split_once(';').unwrap_or((coding, "q=1")))
    };
    let is_allowed = |name: &str| {
        let (_, weight) = codings().find(|(coding, _)| coding.trim().eq_ignore_ascii_case(name))?;
        let (_, weight) = weight.split_once('=')?;
        Some(!weight.trim().trim_matches(['0', '.']).is_empty())
    };
    is_allowed("gzip").or_else(|| is_allowed("*")).unwrap_or_default()
}

/// Adds the headers of every response of the page.
pub(super) fn add(mut response: ServerResponse, policy: &'static str) -> ServerResponse {
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns true if the browser marks the request as one of another site. That site cannot read the response, but it
/// could use up streams and queries.
pub(super) fn is_cross_site(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none")
}
