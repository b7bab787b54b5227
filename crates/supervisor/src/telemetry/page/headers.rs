//! The document of the page, and the headers that keep it apart from everything else in a browser.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use ring::digest::{SHA256, digest};

use crate::net::server::ServerResponse;

const STYLE: &str = include_str!("page.css");
/// One script in several files, in this order.
const SCRIPT: &str = concat!(
    include_str!("script/base.js"),
    include_str!("script/nodes.js"),
    include_str!("script/graph.js"),
    include_str!("script/overview.js"),
    include_str!("script/timeline.js"),
    include_str!("script/panel.js"),
    include_str!("script/live.js"),
);

/// The document and its policy.
pub(super) struct Document {
    pub(super) text: String,
    pub(super) policy: String,
}

/// Made at the first request. The policy names the style and the script by their hashes: nothing else is applied or
/// executed, and no text can be turned into markup by mistake (`require-trusted-types-for`).
pub(super) static DOCUMENT: LazyLock<Document> = LazyLock::new(|| {
    let text = include_str!("page.html").replace("{{style}}", STYLE).replace("{{script}}", SCRIPT);
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    Document { text, policy }
});

/// The policy of responses that are not documents.
pub(super) const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

fn hash(text: &str) -> String {
    STANDARD.encode(digest(&SHA256, text.as_bytes()))
}

/// Adds the headers of every response of the page.
pub(super) fn add(mut response: ServerResponse, policy: &str) -> ServerResponse {
    let headers = response.headers_mut();
    // Its hashes are base64, so it is a valid value.
    if let Ok(policy) = HeaderValue::from_str(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in [
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
