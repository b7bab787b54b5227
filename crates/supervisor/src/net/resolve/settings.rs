//! `/etc/resolv.conf`, see resolv.conf(5).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const PORT: u16 = 53;
/// Most name servers, as in glibc.
const MAX_SERVERS: usize = 3;
/// Most search domains.
const MAX_DOMAINS: usize = 32;

/// The settings in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolverSettings {
    pub(super) servers: Vec<SocketAddr>,
    /// Search domains, appended to short names.
    pub(super) domains: Vec<String>,
    /// A name with fewer dots is short.
    pub(super) ndots: usize,
    /// Time for one answer.
    pub(super) timeout: Duration,
    pub(super) attempts: usize,
    /// Whether to use TCP instead of UDP.
    pub(super) use_tcp: bool,
}

impl ResolverSettings {
    /// Parses the file. The defaults are those of glibc: a server on this machine, and the host's own domain.
    pub(super) fn parse(text: &[u8], hostname: &str) -> Self {
        let mut settings = Self {
            servers: Vec::new(),
            domains: hostname.split_once('.').map(|(_, domain)| domain.to_owned()).into_iter().collect(),
            ndots: 1,
            timeout: Duration::from_secs(5),
            attempts: 2,
            use_tcp: false,
        };
        for line in String::from_utf8_lossy(text).lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let server = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    if let Some(server) = server
                        && settings.servers.len() < MAX_SERVERS
                    {
                        settings.servers.push(SocketAddr::new(server, PORT));
                    }
                }
                // The last one wins.
                Some("search") => settings.domains = words.take(MAX_DOMAINS).map(str::to_owned).collect(),
                Some("domain") => settings.domains = words.take(1).map(str::to_owned).collect(),
                Some("options") => words.for_each(|word| settings.option(word)),
                _ => {}
            }
        }
        if settings.servers.is_empty() {
            settings.servers.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
        }
        settings
    }

    fn option(&mut self, word: &str) {
        let (key, value) = word.split_once(':').unwrap_or((word, ""));
        let number = value.parse::<u8>();
        match (key, number) {
            ("ndots", Ok(number)) => self.ndots = usize::from(number.min(15)),
            ("timeout", Ok(number)) => self.timeout = Duration::from_secs(number.clamp(1, 30).into()),
            ("attempts", Ok(number)) => self.attempts = usize::from(number.clamp(1, 5)),
            ("use-vc", _) => self.use_tcp = true,
            // Other options are specific to glibc.
            _ => {}
        }
    }

    /// The names to try, in order. A long name is tried unchanged first, a short name with each search domain first. A
    /// name that ends in a dot is only tried unchanged.
    pub(super) fn candidates(&self, host: &str) -> Vec<String> {
        if let Some(absolute) = host.strip_suffix('.') {
            return vec![absolute.to_owned()];
        }
        let mut names: Vec<String> = Vec::new();
        let is_long = host.bytes().filter(|byte| *byte == b'.').count() >= self.ndots;
        if is_long {
            names.push(host.to_owned());
        }
        for domain in &self.domains {
            let domain = domain.trim_matches('.');
            if !domain.is_empty() {
                names.push(format!("{host}.{domain}"));
            }
        }
        if !is_long {
            names.push(host.to_owned());
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ResolverSettings {
        ResolverSettings::parse(text.as_bytes(), "pod.example.org")
    }

    #[test]
    fn d5_resolv_conf_is_parsed_as_glibc_does() {
        let settings = parse(
            "# a comment\n; another\nnameserver 127.0.0.11\nnameserver nonsense\nnameserver ::1\nnameserver\n\
             nameserver 1.1.1.1\nnameserver 8.8.8.8\ndomain gone.example\nsearch a.example  b.example.\n\
             options ndots:5 timeout:1 attempts:3 use-vc edns0 trust-ad\noptions ndots:x\n",
        );
        let servers: Vec<String> = settings.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["127.0.0.11:53", "[::1]:53", "1.1.1.1:53"]);
        assert_eq!(settings.domains, ["a.example", "b.example."]);
        assert_eq!((settings.ndots, settings.attempts, settings.use_tcp), (5, 3, true));
        assert_eq!(settings.timeout, Duration::from_secs(1));
    }

    #[test]
    fn d5_the_defaults_are_a_local_server_and_the_hosts_own_domain() {
        let settings = parse("");
        assert_eq!(settings.servers, ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!(settings.domains, ["example.org"]);
        assert_eq!((settings.ndots, settings.attempts, settings.timeout.as_secs()), (1, 2, 5));
        assert_eq!(ResolverSettings::parse(b"", "pod").domains, [""; 0]);
        assert_eq!(parse("search").domains, [""; 0]);
    }

    #[test]
    fn d5_options_out_of_range_are_clamped() {
        let settings = parse("options ndots:200 timeout:0 attempts:99");
        assert_eq!((settings.ndots, settings.timeout.as_secs(), settings.attempts), (15, 1, 5));
    }

    #[test]
    fn d5_short_names_are_tried_with_the_search_domains_first() {
        let settings = parse("search a.example b.example. .");
        assert_eq!(settings.candidates("consul"), ["consul.a.example", "consul.b.example", "consul"]);
        assert_eq!(settings.candidates("x.y"), ["x.y", "x.y.a.example", "x.y.b.example"]);
        assert_eq!(settings.candidates("consul."), ["consul"]);
        assert_eq!(parse("options ndots:0").candidates("consul"), ["consul", "consul.example.org"]);
    }
}
