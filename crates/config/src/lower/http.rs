//! HTTP requests of checks: H5 and H10.

use containerpilot_core::plan::{HttpMethod, HttpProbe};
use containerpilot_template::Pattern;

use super::{Lower, NeededFile};
use crate::decode::{Section, Spanned};
use crate::fields::HttpFields;
use crate::values::{UrlOr, value_of};

impl Lower<'_> {
    /// The request of a check.
    pub(super) fn http(&mut self, given: &Spanned<UrlOr<HttpFields>>) -> Option<HttpProbe> {
        let fields = match &given.value {
            UrlOr::Url(target) => return Some(HttpProbe::get(target.clone())),
            UrlOr::Object(fields) => fields,
        };
        if fields.url.is_none() {
            self.required(&HttpFields::INFO, fields.place, given.key, "url");
        }
        let method = value_of(&fields.method);
        let body = self.body_pattern(fields, method);
        let ca_file = self.probe_ca_file(fields);
        let wrong = ["headers", "status", "method"].iter().any(|key| self.is_reported(fields.place, key));
        (!wrong).then_some(())?;
        Some(HttpProbe {
            target: value_of(&fields.url)?,
            method: method?,
            headers: value_of(&fields.headers).unwrap_or_default(),
            status: value_of(&fields.status)?,
            body: body?,
            ca_file: ca_file?,
        })
    }

    fn body_pattern(&mut self, fields: &HttpFields, method: Option<HttpMethod>) -> Option<Option<String>> {
        let Some(body) = &fields.body else { return Some(None) };
        if method == Some(HttpMethod::Head) {
            self.error(
                body.key,
                "the response to HEAD has no body",
                "remove `body`, or use another `method`",
            );
            return None;
        }
        self.pattern("body", body).map(Some)
    }

    fn probe_ca_file(&mut self, fields: &HttpFields) -> Option<Option<String>> {
        let Some(file) = &fields.cafile else { return Some(None) };
        if fields.url.as_ref().is_some_and(|url| !url.value.https) {
            self.error(file.key, "`cafile` needs a URL with https://", "remove it, or change the URL");
            return None;
        }
        self.files.push(NeededFile { path: file.value.clone(), named: Ok(file.place) });
        Some(Some(file.value.clone()))
    }

    /// A regular expression that is valid.
    pub(super) fn pattern(&mut self, key: &str, given: &Spanned<String>) -> Option<String> {
        match Pattern::new(&given.value) {
            Ok(_) => Some(given.value.clone()),
            Err(error) => {
                let message = format!("`{key}` is not a regular expression: {error}");
                let help = "it uses RE2 syntax: see https://github.com/google/re2/wiki/Syntax";
                self.error(given.place, message, help);
                None
            }
        }
    }
}
