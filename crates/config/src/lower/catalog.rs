//! The catalog: Consul (D1) or the embedded one (D2).

use containerpilot_core::plan::{Catalog, Consul, ConsulAddress, NetworkParts, Tls, TokenSource};

use super::{Lower, NeededFile, defaults};
use crate::decode::Spanned;
use crate::diagnostics::{Place, Problem, Severity};
use crate::fields::{ConsulFields, TlsFields};
use crate::values::{Either, Scheme, parse_bool, value_of};

impl Lower<'_> {
    pub(super) fn catalog(&mut self, given: Option<&Spanned<Either<ConsulFields>>>) -> Option<Catalog> {
        let Some(given) = given else { return Some(Catalog::Embedded) };
        let (written, place, scheme, token, tls) = match &given.value {
            Either::Text(text) => (text.clone(), given.place, Scheme::Http, (None, None), None),
            Either::Object(fields) => (
                value_of(&fields.address).unwrap_or_default(),
                fields.address.as_ref().map_or(given.key, |address| address.place),
                value_of(&fields.scheme)?,
                (value_of(&fields.token), value_of(&fields.token_file)),
                Some(&fields.tls.as_ref()?.value),
            ),
        };
        let (address, scheme_of_address) = match written.as_str() {
            "" => match self.host.variable("CONSUL_HTTP_ADDR") {
                Some(address) => self.consul_address(&address, None)?,
                None => (ConsulAddress::Network(defaults::CONSUL_ADDRESS.to_owned()), None),
            },
            _ => self.consul_address(&written, Some(place))?,
        };
        // As in 3.8, a plain address in a string, and `scheme`, mean what they say.
        let names_scheme = match &given.value {
            Either::Text(_) => true,
            Either::Object(fields) => fields.scheme.as_ref().is_some_and(|scheme| scheme.written),
        };
        let ssl = || self.host.variable("CONSUL_HTTP_SSL").and_then(|text| parse_bool(&text)) == Some(true);
        let scheme = match scheme_of_address {
            Some(scheme) => scheme,
            None if (written.is_empty() || !names_scheme) && ssl() => Scheme::Https,
            None => scheme,
        };
        let (token, token_file, token_source) = self.token(token);
        let tls = self.tls(tls);
        let https = scheme == Scheme::Https;
        Some(Catalog::Consul(Consul { address, https, token, token_file, token_source, tls }))
    }

    /// The token, or the file with the token, and where it was named. The environment takes precedence over the configuration, and a token file over a
    /// token, as in Consul's own clients. The file is not checked, because it may be created later.
    fn token(
        &self,
        (token, token_file): (Option<String>, Option<String>),
    ) -> (Option<String>, Option<String>, Option<TokenSource>) {
        let from_environment =
            (self.host.variable("CONSUL_HTTP_TOKEN"), self.host.variable("CONSUL_HTTP_TOKEN_FILE"));
        match from_environment {
            (_, Some(file)) => (None, Some(file), Some(TokenSource::TokenFileVariable)),
            (Some(token), None) => (Some(token), None, Some(TokenSource::TokenVariable)),
            (None, None) if token_file.is_some() => (None, token_file, Some(TokenSource::TokenFileKey)),
            (None, None) => {
                let source = token.is_some().then_some(TokenSource::TokenKey);
                (token, None, source)
            }
        }
    }

    /// Parses an address and its scheme, if any. Like 3.8, it accepts more than one scheme.
    fn consul_address(
        &mut self,
        text: &str,
        place: Option<Place>,
    ) -> Option<(ConsulAddress, Option<Scheme>)> {
        let mut rest = text;
        let mut scheme = None;
        while let Some((word, after)) = rest.split_once("://") {
            match word {
                "http" => scheme = Some(Scheme::Http),
                "https" => scheme = Some(Scheme::Https),
                "unix" => return Some((ConsulAddress::Unix(after.to_owned()), scheme)),
                _ => {
                    let message = format!("unsupported Consul scheme `{word}`");
                    let help = "write host:port, or a URL with http://, https:// or unix://";
                    self.address_problem(Severity::Error, place, message, help);
                    return None;
                }
            }
            rest = after;
        }
        // 3.8 starts with the following addresses, and can never connect.
        let mut written = text;
        if let Some((_, after)) = rest.rsplit_once('@') {
            // The plan has the address without them, so that no log shows the password (L5).
            (rest, written) = (after, after);
            let message = "a Consul address cannot contain a user or password";
            self.address_problem(Severity::Fault, place, message.to_owned(), "use `token` or `tokenfile`");
        }
        let address = ConsulAddress::Network(rest.to_owned());
        if !address.network_parts(false).is_some_and(is_reachable) {
            let message = format!("invalid Consul address `{written}`");
            let help = "write host:port, for example \"localhost:8500\"";
            self.address_problem(Severity::Fault, place, message, help);
        }
        Some((address, scheme))
    }

    /// Reports a problem of the address at its place, or of CONSUL_HTTP_ADDR.
    fn address_problem(&mut self, severity: Severity, place: Option<Place>, message: String, help: &str) {
        let problem = match place {
            Some(place) => Problem::new(severity, place, message),
            None => Problem::unlocated(severity, format!("CONSUL_HTTP_ADDR: {message}")),
        };
        self.problems.push(problem.help(help));
    }

    fn tls(&mut self, fields: Option<&TlsFields>) -> Tls {
        let read = |name: &str, field: Option<&Option<Spanned<String>>>| {
            self.host.variable(name).map(|text| (text, None)).or_else(|| {
                let given = field?.as_ref()?;
                Some((given.value.clone(), Some(given.place)))
            })
        };
        let ca_file = read("CONSUL_CACERT", fields.map(|tls| &tls.cafile));
        let ca_path = read("CONSUL_CAPATH", fields.map(|tls| &tls.capath));
        let client_cert = read("CONSUL_CLIENT_CERT", fields.map(|tls| &tls.clientcert));
        let client_key = read("CONSUL_CLIENT_KEY", fields.map(|tls| &tls.clientkey));
        let server_name = read("CONSUL_TLS_SERVER_NAME", fields.map(|tls| &tls.servername));
        self.must_be_readable(&ca_file, "CONSUL_CACERT");
        self.must_be_readable(&ca_path, "CONSUL_CAPATH");
        match (&client_cert, &client_key) {
            (Some(_), Some(_)) => {
                self.must_be_readable(&client_cert, "CONSUL_CLIENT_CERT");
                self.must_be_readable(&client_key, "CONSUL_CLIENT_KEY");
            }
            // 3.8 ignores one without the other.
            (Some((_, place)), None) | (None, Some((_, place))) => {
                let message = "a client certificate needs a key, and a key needs a certificate";
                let problem = match place {
                    Some(place) => Problem::new(Severity::Fault, *place, message),
                    None => Problem::unlocated(Severity::Fault, message),
                };
                self.problems.push(problem.help("set both `clientcert` and `clientkey`, or neither"));
            }
            (None, None) => {}
        }
        let verify = self.verify(fields);
        let text = |read: Option<(String, Option<Place>)>| read.map(|(text, _)| text);
        Tls {
            ca_file: text(ca_file),
            ca_path: text(ca_path),
            client_cert: text(client_cert),
            client_key: text(client_key),
            server_name: text(server_name),
            verify,
        }
    }

    fn must_be_readable(&mut self, file: &Option<(String, Option<Place>)>, variable: &'static str) {
        let Some((path, place)) = file else { return };
        self.files.push(NeededFile { path: path.clone(), named: place.ok_or(variable) });
    }

    /// Certificates are verified unless that is disabled explicitly (D1).
    fn verify(&mut self, fields: Option<&TlsFields>) -> bool {
        let from_file = fields.and_then(|tls| value_of(&tls.verify)).unwrap_or(true);
        let Some(text) = self.host.variable("CONSUL_HTTP_SSL_VERIFY") else { return from_file };
        parse_bool(&text).unwrap_or_else(|| {
            let message = "CONSUL_HTTP_SSL_VERIFY is not a boolean; certificates are verified";
            self.problems
                .push(Problem::unlocated(Severity::Warning, message).help("set it to true or false"));
            true
        })
    }
}

/// Returns false if no host can have this name, or no request this path.
fn is_reachable(parts: NetworkParts<'_>) -> bool {
    let address = parts.host.split('%').next().unwrap_or_default();
    let is_host = !parts.host.contains(':') || address.parse::<std::net::Ipv6Addr>().is_ok();
    let unusable = |c: char| c.is_control() || matches!(c, '?' | '#' | '\\');
    // `http//host` without its colon.
    let is_scheme = matches!(parts.authority, "http" | "https" | "unix") && !parts.prefix.is_empty();
    is_host && !is_scheme && !parts.host.contains(unusable) && !parts.prefix.contains(unusable)
}
