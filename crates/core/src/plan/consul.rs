//! The catalog, and how a Consul agent is reached.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// Where services are registered and looked up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "a plan has one of it")]
pub enum Catalog {
    /// Inside this process (D2).
    Embedded,
    /// A Consul agent (D1).
    Consul(Consul),
}

/// How the Consul agent is reached (D1).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consul {
    /// Where it listens.
    pub address: ConsulAddress,
    /// True for HTTPS.
    pub https: bool,
    /// The ACL token.
    pub token: Option<String>,
    /// A file that contains the ACL token.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub token_file: Option<String>,
    /// Where the token or its file was named.
    pub token_source: Option<TokenSource>,
    /// TLS settings.
    pub tls: Tls,
}

/// Where the ACL token of Consul, or its file, was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenSource {
    /// The key `consul.token`.
    TokenKey,
    /// The key `consul.tokenfile`.
    TokenFileKey,
    /// The variable `CONSUL_HTTP_TOKEN`.
    TokenVariable,
    /// The variable `CONSUL_HTTP_TOKEN_FILE`.
    TokenFileVariable,
}

impl TokenSource {
    /// The key or the variable.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenKey => "the key `consul.token`",
            Self::TokenFileKey => "the key `consul.tokenfile`",
            Self::TokenVariable => "the variable CONSUL_HTTP_TOKEN",
            Self::TokenFileVariable => "the variable CONSUL_HTTP_TOKEN_FILE",
        }
    }
}

impl core::fmt::Debug for Consul {
    /// Hides the token, so that it never appears in a log (L5).
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Consul")
            .field("address", &self.address)
            .field("https", &self.https)
            .field("token", &self.token.as_ref().map(|_| "(hidden)"))
            .field("token_file", &self.token_file)
            .field("token_source", &self.token_source)
            .field("tls", &self.tls)
            .finish()
    }
}

/// Where a Consul agent listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConsulAddress {
    /// `host:port`, optionally with a path prefix.
    Network(#[serde(serialize_with = "crate::recorded::as_is")] String),
    /// The path of a unix socket.
    Unix(#[serde(serialize_with = "crate::recorded::as_is")] String),
}

/// The parts of a network address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkParts<'a> {
    /// Host and port as written.
    pub authority: &'a str,
    /// Host name or address, without brackets.
    pub host: &'a str,
    /// Port.
    pub port: u16,
    /// The path prefix: empty, or starting with a slash.
    pub prefix: &'a str,
}

impl ConsulAddress {
    /// The parts of a network address; `None` for a socket or an invalid address. The port defaults to 80 or 443, as
    /// in Go.
    #[must_use]
    pub fn network_parts(&self, https: bool) -> Option<NetworkParts<'_>> {
        let Self::Network(text) = self else { return None };
        let (authority, prefix) = match text.find('/') {
            Some(slash) => text.split_at(slash),
            None => (text.as_str(), ""),
        };
        let default_port = if https { 443 } else { 80 };
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, default_port),
            Some((host, port)) => (host, port.strip_prefix(':')?.parse().ok()?),
            None => match authority.split_once(':') {
                None => (authority, default_port),
                // More than one colon is an IPv6 address, which needs brackets to have a port.
                Some((_, rest)) if rest.contains(':') => (authority, default_port),
                Some((host, port)) => (host, port.parse().ok()?),
            },
        };
        let valid = !host.is_empty() && port != 0 && !text.contains(char::is_whitespace);
        valid.then_some(NetworkParts { authority, host, port, prefix })
    }
}

/// TLS settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// File with trusted CA certificates.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub ca_file: Option<String>,
    /// Directory with such files.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub ca_path: Option<String>,
    /// File with the client certificate.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub client_cert: Option<String>,
    /// File with the client key.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub client_key: Option<String>,
    /// The name that the server certificate must have, if it is not the host name.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub server_name: Option<String>,
    /// True if the server certificate is verified.
    pub verify: bool,
}
