//! Fuzz target: any bytes as a DNS response, as `/etc/hosts` and as `/etc/resolv.conf`.

use containerpilot_core::plan::DnsRecord;

use super::message::{self, DnsAnswer, DnsName, RecordData};
use super::{hosts, settings::ResolverSettings};

#[expect(clippy::panic, reason = "a target reports a broken promise by panicking")]
pub(crate) fn run(bytes: &[u8]) {
    let Ok(name) = DnsName::parse("consul.example") else { panic!("a valid name is refused") };
    for record in [DnsRecord::A, DnsRecord::Aaaa, DnsRecord::Srv] {
        // As they are, with their own id; and after a valid header.
        let id = bytes.first_chunk().map_or(0, |id| u16::from_be_bytes(*id));
        check(bytes, id, &name, record);
        let mut answer = message::question(id, &name, record);
        let flags = bytes.iter().copied().chain([0; 2]).take(2);
        for (byte, flags) in answer.iter_mut().skip(2).zip(flags) {
            *byte = flags | 0x80;
        }
        for (byte, count) in answer.iter_mut().skip(6).zip([0, 200]) {
            *byte = count;
        }
        answer.extend(bytes.iter().skip(2));
        check(&answer, id, &name, record);
    }
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(hosts::addresses(bytes, "consul").len() <= lines, "one address per line");
    let settings = ResolverSettings::parse(bytes, "pod.example");
    assert!((1..=3).contains(&settings.servers.len()) && (1..=5).contains(&settings.attempts));
    assert!((1..=30).contains(&settings.timeout.as_secs()));
    let names = settings.candidates("consul");
    assert!((1..=33).contains(&names.len()) && names.iter().any(|name| name == "consul"));
}

fn check(bytes: &[u8], id: u16, name: &DnsName, record: DnsRecord) {
    let Some(answered) = message::parse_answer(bytes, id, name, record) else { return };
    if let DnsAnswer::Records(found) = answered.answer {
        // A record takes at least twelve bytes and an address.
        assert!(found.len() <= bytes.len() / 16);
        assert!(found.iter().all(|found| match &found.data {
            RecordData::Address(address) =>
                address.is_ipv4() == (record == DnsRecord::A) && record != DnsRecord::Srv,
            RecordData::Service { host, .. } => record == DnsRecord::Srv && DnsName::parse(host).is_ok(),
        }));
    }
}
