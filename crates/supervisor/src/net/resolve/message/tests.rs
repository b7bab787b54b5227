//! Valid and invalid answers, byte by byte.

use super::*;

/// Builds an answer to a question.
struct AnswerBytes(Vec<u8>);

impl AnswerBytes {
    fn to(question: &[u8], flags: u16, answers: u16) -> Self {
        let mut bytes = question.to_vec();
        bytes[2..4].copy_from_slice(&flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&answers.to_be_bytes());
        Self(bytes)
    }

    fn record(mut self, owner: &[u8], kind: u16, data: &[u8]) -> Self {
        self.0.extend(owner);
        self.0.extend(kind.to_be_bytes());
        self.0.extend([0, 1, 0, 0, 0, 60]);
        self.0.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        self.0.extend(data);
        self
    }
}

const GOOD: u16 = 0x8180;
/// A pointer to the question's name.
const NAME: &[u8] = &[0xc0, 12];

fn name() -> DnsName {
    DnsName::parse("Consul.example").unwrap()
}

fn question_bytes() -> Vec<u8> {
    question(7, &name(), DnsRecord::A)
}

fn parse(bytes: &AnswerBytes) -> Option<Answered> {
    parse_answer(&bytes.0, 7, &name(), DnsRecord::A)
}

fn addresses_of(bytes: &AnswerBytes) -> Vec<String> {
    match parse(bytes).unwrap().answer {
        DnsAnswer::Records(found) => {
            found.iter().filter_map(FoundRecord::address).map(|address| address.to_string()).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn d5_names_are_validated() {
    assert_eq!(DnsName::parse("a.Bc.").unwrap().0, b"\x01a\x02bc");
    assert!(DnsName::parse("_http._tcp.my-service").is_ok());
    assert!(DnsName::parse(&"a".repeat(63)).is_ok());
    for wrong in
        ["", ".", "a..b", ".a", "a b", "a/b", "bücher.example", "a\0b", &"a".repeat(64), &"ab.".repeat(90)]
    {
        assert!(DnsName::parse(wrong).is_err(), "{wrong:?}");
    }
    let longest = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)].join(".");
    assert_eq!((longest.len(), DnsName::parse(&longest).map(|name| name.0.len())), (253, Ok(254)));
    assert!(DnsName::parse(&format!("{longest}e")).is_err());
}

#[test]
fn d5_a_question_is_encoded_as_in_rfc_1035() {
    let expected =
        b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06consul\x07example\x00\x00\x01\x00\x01";
    assert_eq!(question_bytes(), expected);
}

#[test]
fn d5_addresses_keep_the_order_of_the_answer() {
    let made = AnswerBytes::to(&question_bytes(), GOOD, 3)
        .record(NAME, 1, &[10, 0, 0, 2])
        .record(NAME, 16, b"\x04text")
        .record(b"\x06CONSUL\x07Example\x00", 1, &[10, 0, 0, 1]);
    assert_eq!(addresses_of(&made), ["10.0.0.2", "10.0.0.1"]);
    let six = question(7, &name(), DnsRecord::Aaaa);
    let made =
        AnswerBytes::to(&six, GOOD, 1).record(NAME, 28, &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    let read = parse_answer(&made.0, 7, &name(), DnsRecord::Aaaa).unwrap();
    let data = RecordData::Address("fd00::5".parse().unwrap());
    assert_eq!(read.answer, DnsAnswer::Records(vec![FoundRecord { data, ttl: 60 }]));
}

#[test]
fn d5_aliases_are_followed_in_any_order_and_other_names_are_ignored() {
    let made = AnswerBytes::to(&question_bytes(), GOOD, 4)
        .record(b"\x01b\x00", 1, &[10, 0, 0, 9])
        .record(b"\x01a\x00", 5, b"\x01b\x00")
        .record(NAME, 5, b"\x01a\x00")
        .record(b"\x08stranger\x00", 1, &[6, 6, 6, 6]);
    assert_eq!(addresses_of(&made), ["10.0.0.9"]);
    // A loop of aliases ends.
    let made = AnswerBytes::to(&question_bytes(), GOOD, 2).record(NAME, 5, b"\x01a\x00").record(
        b"\x01a\x00",
        5,
        NAME,
    );
    assert_eq!(addresses_of(&made), [""; 0]);
}

#[test]
fn d5_a_message_that_does_not_match_the_question_is_ignored() {
    let good = AnswerBytes::to(&question_bytes(), GOOD, 1).record(NAME, 1, &[10, 0, 0, 2]);
    assert!(parse_answer(&good.0, 8, &name(), DnsRecord::A).is_none(), "another id");
    assert!(parse_answer(&good.0, 7, &name(), DnsRecord::Aaaa).is_none(), "another family");
    assert!(
        parse_answer(&good.0, 7, &DnsName::parse("other").unwrap(), DnsRecord::A).is_none(),
        "another name"
    );
    assert!(parse(&AnswerBytes(question_bytes())).is_none(), "a question");
    assert!(parse(&AnswerBytes::to(&question_bytes(), 0xa180, 0)).is_none(), "another opcode");
}

#[test]
fn d5_nxdomain_is_distinguished_from_other_errors() {
    assert_eq!(parse(&AnswerBytes::to(&question_bytes(), 0x8183, 0)).unwrap().answer, DnsAnswer::NoSuchName);
    assert_eq!(
        parse(&AnswerBytes::to(&question_bytes(), 0x8182, 0)).unwrap().answer,
        DnsAnswer::Failed(ResponseCode(2))
    );
    let short = AnswerBytes(vec![0, 7, 0x81, 0x85, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(parse(&short).unwrap().answer, DnsAnswer::Failed(ResponseCode(5)));
}

#[test]
fn d5_a_truncated_answer_keeps_its_complete_records() {
    let mut made = AnswerBytes::to(&question_bytes(), GOOD | 0x0200, 2)
        .record(NAME, 1, &[10, 0, 0, 2])
        .record(NAME, 1, &[10, 0, 0, 3]);
    made.0.truncate(made.0.len() - 3);
    assert!(parse(&made).unwrap().truncated);
    assert_eq!(addresses_of(&made), ["10.0.0.2"]);
}

#[test]
fn d5_pointers_that_loop_or_point_forward_are_refused() {
    let after = u8::try_from(question_bytes().len()).unwrap();
    for owner in [[0xc0, after], [0xc0, after + 1], [0xff, 0xff], [0x80, 0]] {
        assert!(
            parse(&AnswerBytes::to(&question_bytes(), GOOD, 1).record(&owner, 1, &[1, 2, 3, 4])).is_none(),
            "{owner:x?}"
        );
    }
    // Each pointer points backwards, but the name is too long.
    let mut bytes = AnswerBytes::to(&question_bytes(), GOOD, 1).0;
    let mut last = vec![0xc0, 12];
    for _ in 0..40 {
        let at = u16::try_from(bytes.len()).unwrap();
        bytes.extend([6, b'a', b'b', b'c', b'd', b'e', b'f']);
        bytes.extend(&last);
        last = (at | 0xc000).to_be_bytes().to_vec();
    }
    assert!(parse(&AnswerBytes(bytes).record(&last, 1, &[1, 2, 3, 4])).is_none());
}

#[test]
fn d5_no_bytes_cause_a_panic() {
    let made = AnswerBytes::to(&question_bytes(), GOOD, 3)
        .record(NAME, 5, b"\x01a\xc0\x13")
        .record(b"\x01a\xc0\x13", 1, &[10, 0, 0, 2])
        .record(NAME, 1, &[10, 0, 0, 3]);
    assert!(parse(&made).is_some());
    for end in 0..made.0.len() {
        assert!(parse(&AnswerBytes(made.0[..end].to_vec())).is_none(), "{end}");
    }
    let mut random = 1_u64;
    for _ in 0..200_000 {
        let mut bytes = made.0.clone();
        for _ in 0..3 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(random >> 40).unwrap() % bytes.len();
            bytes[at] = random.to_be_bytes()[3];
        }
        parse(&AnswerBytes(bytes));
    }
}

#[test]
fn d13_services_have_a_host_a_port_and_a_ttl() {
    let asked = question(7, &name(), DnsRecord::Srv);
    let made = AnswerBytes::to(&asked, GOOD, 3)
        .record(NAME, 33, b"\x00\x01\x00\x02\x1f\x90\x03db1\xc0\x13")
        // There is no such service, and a host with a space.
        .record(NAME, 33, b"\x00\x00\x00\x00\x00\x00\x00")
        .record(NAME, 33, b"\x00\x00\x00\x00\x00\x01\x03a b\x00");
    let read = parse_answer(&made.0, 7, &name(), DnsRecord::Srv).unwrap();
    let data = RecordData::Service { host: "db1.example".into(), port: 8080, priority: 1, weight: 2 };
    assert_eq!(read.answer, DnsAnswer::Records(vec![FoundRecord { data, ttl: 60 }]));
}

#[test]
fn d13_a_record_is_valid_for_no_longer_than_its_alias() {
    let mut made = AnswerBytes::to(&question_bytes(), GOOD, 2).record(NAME, 5, b"\x01a\x00");
    // The TTL of the alias: NAME, type and class come before it.
    let at = question_bytes().len() + NAME.len() + 4;
    made.0[at..at + 4].copy_from_slice(&[0, 0, 0, 5]);
    let made = made.record(b"\x01a\x00", 1, &[10, 0, 0, 9]);
    let DnsAnswer::Records(found) = parse(&made).unwrap().answer else { panic!("no records") };
    assert_eq!(found.iter().map(|found| found.ttl).collect::<Vec<_>>(), [5]);
}
