//! Fuzz target: any text as a schedule, and any bytes as the data of its time zone (W15).
//!
//! The first line is the schedule, the second one the time in seconds since 1970. What follows is the data of a time
//! zone of the host; without it, the zone is one of the binary.

use containerpilot_config::host::StaticHost;
use containerpilot_config::{ConfigFile, Options, load};

use super::decode;

pub(crate) fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |byte| *byte == b'\n');
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (schedule, time) = (text(), text());
    let own_zone = parts.next().map(|data| ("Own/Zone".to_owned(), data.to_vec()));
    let zone = own_zone.as_ref().map_or("Europe/Berlin", |(name, _)| name);
    let when = serde_json::json!({ "cron": schedule, "timezone": zone });
    let config = serde_json::json!({ "jobs": [{ "name": "a", "exec": "x", "when": when }] }).to_string();
    let host = StaticHost {
        zone_version: Some("9999z".into()),
        zones: own_zone.clone().into_iter().collect(),
        ..decode::host()
    };
    let file = ConfigFile { name: "cron.json5".into(), text: config.into() };
    let Some(plan) = load(vec![file], &host, Options { version: "0" }).plan else { return };
    let Some(cron) = plan.jobs.first().and_then(|job| job.when.cron()) else { return };
    let mut now = time.trim().parse().unwrap_or(0);
    for _ in 0..10 {
        let Some(next) = cron.next_after(now) else { return };
        assert!(next > now, "a time that has come does not come again");
        let between = now + (next - now) / 2;
        assert_eq!(cron.next_after(between), Some(next), "no time is left out");
        now = next;
    }
}
