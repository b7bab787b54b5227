//! Watches: D7, D9 and D13.

use containerpilot_core::plan::{Watch, WatchKind};

use super::{Lower, defaults};
use crate::decode::{Section, Spanned};
use crate::diagnostics::Place;
use crate::fields::WatchFields;
use crate::service_name::{is_service_name, service_name_rule};
use crate::values::value_of;

impl Lower<'_> {
    pub(super) fn watch(&mut self, fields: &WatchFields) -> Option<Watch> {
        let name = match &fields.name {
            None => {
                self.required(&WatchFields::INFO, fields.place, fields.place.first_byte(), "name");
                None
            }
            Some(given) if !is_service_name(&given.value) => {
                let help = service_name_rule(&given.value);
                self.error(given.place, format!("`{}` is not a valid service name", given.value), &help);
                None
            }
            Some(given) => Some(given.value.clone()),
        };
        let kind = self.watch_kind(fields);
        let usual = kind.as_ref().filter(|_| fields.interval.is_none()).and_then(defaults::watch_interval);
        let interval = usual.or_else(|| {
            let at = fields.name.as_ref().map_or(fields.place.first_byte(), |given| given.place);
            self.positive(&WatchFields::INFO, fields.place, at, fields.interval.as_ref(), "interval")
        });
        Some(Watch { name: name?, interval: interval?, kind: kind? })
    }

    fn watch_kind(&mut self, fields: &WatchFields) -> Option<WatchKind> {
        let kinds = [
            ("tcp", fields.tcp.as_ref().map(|given| given.key)),
            ("http", fields.http.as_ref().map(|given| given.key)),
            ("dns", fields.dns.as_ref().map(|given| given.key)),
            ("file", fields.file.as_ref().map(|given| given.key)),
            ("key", fields.key.as_ref().map(|given| given.key)),
            ("prefix", fields.prefix.as_ref().map(|given| given.key)),
        ];
        let mut written = kinds.iter().filter_map(|(key, place)| place.map(|place| (*key, place)));
        let kind = written.next();
        if let Some(((first, _), (second, place))) = kind.zip(written.next()) {
            let message = format!("a watch can have only one of `{first}` and `{second}`");
            self.error(place, message, "write two watches");
            return None;
        }
        // A kind that could not be read was reported.
        if kinds.iter().any(|(key, place)| place.is_none() && self.is_reported(fields.place, key)) {
            return None;
        }
        let kind = kind.map_or("service", |(key, _)| key);
        for (key, place, of) in [
            ("tag", fields.tag.as_ref().map(|given| given.key), &["service"][..]),
            ("dc", fields.dc.as_ref().map(|given| given.key), &["service", "key", "prefix"]),
            ("type", fields.record.as_ref().map(|given| given.key), &["dns"]),
        ] {
            if let Some(place) = place.filter(|_| !of.contains(&kind)) {
                self.not_for_kind(key, place, kind, of);
                return None;
            }
        }
        if let Some((host, port)) = value_of(&fields.tcp) {
            return Some(WatchKind::Tcp { host, port });
        }
        if let Some(given) = &fields.http {
            return self.http(given).map(WatchKind::Http);
        }
        if let Some(given) = &fields.dns {
            let record = value_of(&fields.record).unwrap_or(defaults::DNS_RECORD);
            return self.dns_name(given).map(|name| WatchKind::Dns { name, record });
        }
        if let Some(given) = &fields.file {
            return self.watched_path(given).map(|path| WatchKind::File { path });
        }
        let dc = value_of(&fields.dc);
        if let Some(given) = &fields.key {
            return self.watched_key("key", given).map(|key| WatchKind::Key { key, dc });
        }
        if let Some(given) = &fields.prefix {
            return self.watched_key("prefix", given).map(|prefix| WatchKind::Prefix { prefix, dc });
        }
        Some(WatchKind::Service { tag: value_of(&fields.tag), dc })
    }

    fn not_for_kind(&mut self, key: &str, place: Place, kind: &str, of: &[&str]) {
        let message = match kind {
            "service" => format!("`{key}` needs `{}`", of.join("` or `")),
            _ => format!("`{key}` has no meaning beside `{kind}`"),
        };
        let help = match kind {
            "service" => format!("remove `{key}`: this watch follows a service"),
            _ => format!("remove `{key}`"),
        };
        self.error(place, message, &help);
    }

    fn dns_name(&mut self, given: &Spanned<String>) -> Option<String> {
        let name = &given.value;
        let is_label = |label: &str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..64).contains(&label.len()) && label.bytes().all(is_part)
        };
        let is_name = name.len() <= 253 && name.strip_suffix('.').unwrap_or(name).split('.').all(is_label);
        if !is_name {
            let message = format!("`dns` must be a name, not \"{name}\"");
            self.error(given.place, message, "for example: \"db.example.com\" or \"_http._tcp.example.com\"");
        }
        is_name.then(|| name.clone())
    }

    fn watched_key(&mut self, key: &str, given: &Spanned<String>) -> Option<String> {
        let text = &given.value;
        let is_key = !text.is_empty() && !text.starts_with('/');
        if !is_key {
            let message = format!("`{key}` must be the name of a key, not \"{text}\"");
            self.error(given.place, message, "for example: \"app/config\", without a slash at the beginning");
        }
        is_key.then(|| text.clone())
    }

    fn watched_path(&mut self, given: &Spanned<String>) -> Option<String> {
        let path = &given.value;
        let is_absolute = path.starts_with('/') && !path.contains('\0');
        if !is_absolute {
            let message = format!("`file` must be an absolute path, not \"{path}\"");
            self.error(given.place, message, "for example: \"/etc/app/app.conf\"");
        }
        is_absolute.then(|| path.clone())
    }
}
