//! `/etc/resolv.conf`: whom to ask, for which names, and with how much write_timeout. Its manual page is resolv.conf(5).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The port of a name server.
const PORT: u16 = 53;
/// How many servers are asked, as everywhere.
const MOST_SERVERS: usize = 3;
/// How many domains are tried.
const MOST_DOMAINS: usize = 32;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// Whom to ask, first to last.
    pub(super) servers: Vec<SocketAddr>,
    /// What is added to a short name.
    pub(super) domains: Vec<String>,
    /// So many dots make a name a long one.
    pub(super) dots: usize,
    /// For how long an answer is waited for.
    pub(super) write_timeout: Duration,
    /// How often each server is asked.
    pub(super) attempts: usize,
    /// Whether to ask through TCP at once.
    pub(super) through_tcp: bool,
}

impl Settings {
    /// Reads the file's text. What it does not say is as everywhere: a server on this machine, and the host's own domain.
    pub(super) fn read(text: &[u8], hostname: &str) -> Self {
        let mut settings = Self {
            servers: Vec::new(),
            domains: hostname.split_once('.').map(|(_, domain)| domain.to_owned()).into_iter().collect(),
            dots: 1,
            write_timeout: Duration::from_secs(5),
            attempts: 2,
            through_tcp: false,
        };
        for line in String::from_utf8_lossy(text).lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let server = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    if let Some(server) = server
                        && settings.servers.len() < MOST_SERVERS
                    {
                        settings.servers.push(SocketAddr::new(server, PORT));
                    }
                }
                // The last of them counts.
                Some("search") => settings.domains = words.take(MOST_DOMAINS).map(str::to_owned).collect(),
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
            ("ndots", Ok(number)) => self.dots = usize::from(number.min(15)),
            ("timeout", Ok(number)) => self.write_timeout = Duration::from_secs(number.clamp(1, 30).into()),
            ("attempts", Ok(number)) => self.attempts = usize::from(number.clamp(1, 5)),
            ("use-vc", _) => self.through_tcp = true,
            // The others are about how the C library asks.
            _ => {}
        }
    }

    /// The names to try for a name, first to last: a long one as it stands first, a short one in each domain first, and one
    /// that ends in a dot only as it stands.
    pub(super) fn candidates(&self, host: &str) -> Vec<String> {
        if let Some(whole) = host.strip_suffix('.') {
            return vec![whole.to_owned()];
        }
        let mut names: Vec<String> = Vec::new();
        let long = host.bytes().filter(|byte| *byte == b'.').count() >= self.dots;
        if long {
            names.push(host.to_owned());
        }
        for domain in &self.domains {
            let domain = domain.trim_matches('.');
            if !domain.is_empty() {
                names.push(format!("{host}.{domain}"));
            }
        }
        if !long {
            names.push(host.to_owned());
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Settings {
        Settings::read(text.as_bytes(), "pod.example.org")
    }

    #[test]
    fn d5_settings_are_read_as_resolv_conf_is_everywhere() {
        let settings = read(
            "# a comment\n; another\nnameserver 127.0.0.11\nnameserver nonsense\nnameserver ::1\nnameserver\n\
             nameserver 1.1.1.1\nnameserver 8.8.8.8\ndomain gone.example\nsearch a.example  b.example.\n\
             options ndots:5 timeout:1 attempts:3 use-vc edns0 trust-ad\noptions ndots:x\n",
        );
        let servers: Vec<String> = settings.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["127.0.0.11:53", "[::1]:53", "1.1.1.1:53"]);
        assert_eq!(settings.domains, ["a.example", "b.example."]);
        assert_eq!((settings.dots, settings.attempts, settings.through_tcp), (5, 3, true));
        assert_eq!(settings.write_timeout, Duration::from_secs(1));
    }

    #[test]
    fn d5_an_empty_file_means_this_machine_and_the_hosts_own_domain() {
        let settings = read("");
        assert_eq!(settings.servers, ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!(settings.domains, ["example.org"]);
        assert_eq!((settings.dots, settings.attempts, settings.write_timeout.as_secs()), (1, 2, 5));
        assert_eq!(Settings::read(b"", "pod").domains, [""; 0]);
        assert_eq!(read("search").domains, [""; 0]);
    }

    #[test]
    fn d5_numbers_out_of_bounds_are_brought_inside() {
        let settings = read("options ndots:200 timeout:0 attempts:99");
        assert_eq!((settings.dots, settings.write_timeout.as_secs(), settings.attempts), (15, 1, 5));
    }

    #[test]
    fn d5_short_names_are_tried_in_the_domains_first() {
        let settings = read("search a.example b.example. .");
        assert_eq!(settings.candidates("consul"), ["consul.a.example", "consul.b.example", "consul"]);
        assert_eq!(settings.candidates("x.y"), ["x.y", "x.y.a.example", "x.y.b.example"]);
        assert_eq!(settings.candidates("consul."), ["consul"]);
        assert_eq!(read("options ndots:0").candidates("consul"), ["consul", "consul.example.org"]);
    }
}
