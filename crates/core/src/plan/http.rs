//! HTTP requests of health checks and watches (H5, H10).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// An HTTP request, and which response it expects.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpProbe {
    /// Where it is sent.
    pub target: HttpTarget,
    /// The method.
    pub method: HttpMethod,
    /// Its headers, besides those that every request has.
    #[serde(serialize_with = "crate::recorded::names_as_is")]
    pub headers: Vec<(String, String)>,
    /// The expected statuses, at least one.
    pub status: Vec<StatusRange>,
    /// A regular expression in Go's syntax that a part of the body must match.
    pub body: Option<String>,
    /// The file with the certificates that are trusted in place of the system's. Only for https.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub ca_file: Option<String>,
}

impl HttpProbe {
    /// A GET request, for which 2xx and 3xx are a success (H5).
    #[must_use]
    pub fn get(target: HttpTarget) -> Self {
        Self {
            target,
            method: HttpMethod::Get,
            headers: Vec::new(),
            status: StatusRange::DEFAULT.to_vec(),
            body: None,
            ca_file: None,
        }
    }

    /// Compares the status of a response with the expected ones.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn check_status(&self, status: u16) -> Result<(), UnexpectedStatus> {
        if self.status.iter().any(|range| range.contains(status)) {
            return Ok(());
        }
        Err(UnexpectedStatus { status, expected: self.status.clone() })
    }
}

/// A response has another status than expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnexpectedStatus {
    /// The status of the response.
    pub status: u16,
    /// The expected ones.
    pub expected: Vec<StatusRange>,
}

impl fmt::Display for UnexpectedStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "status {}, expected ", self.status)?;
        for (nth, range) in self.expected.iter().enumerate() {
            let separator = match nth {
                0 => "",
                _ if nth + 1 == self.expected.len() => " or ",
                _ => ", ",
            };
            write!(out, "{separator}{range}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnexpectedStatus {}

/// `GET http://127.0.0.1:8000/health`
impl fmt::Display for HttpProbe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.method.name(), self.target)
    }
}

impl fmt::Debug for HttpProbe {
    /// Hides the values of headers: they may be secrets (L5).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        out.debug_struct("HttpProbe")
            .field("target", &self.target)
            .field("method", &self.method)
            .field("headers", &headers)
            .field("status", &self.status)
            .field("body", &self.body)
            .field("ca_file", &self.ca_file)
            .finish()
    }
}

/// The parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HttpTarget {
    /// True for https.
    pub https: bool,
    /// Host name or address, without brackets.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query, starting with a slash.
    #[serde(serialize_with = "crate::recorded::url_path")]
    pub path: String,
}

impl HttpTarget {
    /// Host and port, as in a URL.
    #[must_use]
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl fmt::Display for HttpTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(out, "{scheme}://{}{}", self.authority(), self.path)
    }
}

/// The method of a request. No request has a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpMethod {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `OPTIONS`
    Options,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

impl HttpMethod {
    /// Its name in a request.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Returns true if servers expect the length of a body, even if it is empty.
    #[must_use]
    pub const fn needs_length(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// Statuses of a response: one code, or a class such as `2xx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatusRange {
    /// One code, from 100 to 599.
    Code(u16),
    /// The codes with this first digit, from 1 to 5.
    Class(u16),
}

impl StatusRange {
    /// The statuses that are a success if none are given (H5).
    pub const DEFAULT: [Self; 2] = [Self::Class(2), Self::Class(3)];

    /// Returns true if the status is one of them.
    #[must_use]
    pub const fn contains(self, status: u16) -> bool {
        match self {
            Self::Code(code) => status == code,
            Self::Class(class) => status / 100 == class,
        }
    }
}

impl fmt::Display for StatusRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(out, "{code}"),
            Self::Class(class) => write!(out, "{class}xx"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn h10_an_unexpected_status_names_the_expected_ones() {
        let target = HttpTarget { https: true, host: "::1".into(), port: 1, path: "/x".into() };
        let mut probe = HttpProbe::get(target);
        assert_eq!(probe.to_string(), "GET https://[::1]:1/x");
        assert_eq!((probe.check_status(204), probe.check_status(399)), (Ok(()), Ok(())));
        let error = |status| probe.check_status(status).unwrap_err().to_string();
        assert_eq!(error(400), "status 400, expected 2xx or 3xx");
        probe.status = [StatusRange::Code(200), StatusRange::Code(429), StatusRange::Class(5)].into();
        assert_eq!((probe.check_status(200), probe.check_status(503)), (Ok(()), Ok(())));
        let error = probe.check_status(201).unwrap_err();
        assert_eq!(error.to_string(), "status 201, expected 200, 429 or 5xx");
        probe.headers = [("Authorization".into(), "Bearer hush".into())].into();
        assert!(!format!("{probe:?}").contains("hush"));
    }
}
