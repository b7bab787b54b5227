//! Answers good and bad, byte by byte.

use super::*;

/// An answer, with its parts as text: a number for the flags and code, and records behind the question.
struct Made(Vec<u8>);

impl Made {
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
const ASKED: &[u8] = &[0xc0, 12];

fn name() -> Name {
    Name::of("Consul.example").unwrap()
}

fn asked() -> Vec<u8> {
    question(7, &name(), Family::V4)
}

fn read(made: &Made) -> Option<Answered> {
    answer(&made.0, 7, &name(), Family::V4)
}

fn addresses_of(made: &Made) -> Vec<String> {
    match read(made).unwrap().answer {
        Answer::Addresses(addresses) => addresses.iter().map(IpAddr::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn d5_names_are_checked_before_they_are_asked_for() {
    assert_eq!(Name::of("a.Bc.").unwrap().0, b"\x01a\x02bc");
    assert!(Name::of("_http._tcp.my-service").is_ok());
    assert!(Name::of(&"a".repeat(63)).is_ok());
    for wrong in
        ["", ".", "a..b", ".a", "a b", "a/b", "bücher.example", "a\0b", &"a".repeat(64), &"ab.".repeat(90)]
    {
        assert!(Name::of(wrong).is_err(), "{wrong:?}");
    }
    let longest = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)].join(".");
    assert_eq!((longest.len(), Name::of(&longest).map(|name| name.0.len())), (253, Ok(254)));
    assert!(Name::of(&format!("{longest}e")).is_err());
}

#[test]
fn d5_a_question_has_the_bytes_that_servers_expect() {
    let expected =
        b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06consul\x07example\x00\x00\x01\x00\x01";
    assert_eq!(asked(), expected);
}

#[test]
fn d5_addresses_are_taken_from_an_answer_in_its_order() {
    let made = Made::to(&asked(), GOOD, 3)
        .record(ASKED, 1, &[10, 0, 0, 2])
        .record(ASKED, 16, b"\x04text")
        .record(b"\x06CONSUL\x07Example\x00", 1, &[10, 0, 0, 1]);
    assert_eq!(addresses_of(&made), ["10.0.0.2", "10.0.0.1"]);
    let six = question(7, &name(), Family::V6);
    let made =
        Made::to(&six, GOOD, 1).record(ASKED, 28, &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    let read = answer(&made.0, 7, &name(), Family::V6).unwrap();
    assert_eq!(read.answer, Answer::Addresses(vec!["fd00::5".parse().unwrap()]));
}

#[test]
fn d5_other_names_of_a_name_are_followed_in_whatever_order_and_strangers_are_not_believed() {
    let made = Made::to(&asked(), GOOD, 4)
        .record(b"\x01b\x00", 1, &[10, 0, 0, 9])
        .record(b"\x01a\x00", 5, b"\x01b\x00")
        .record(ASKED, 5, b"\x01a\x00")
        .record(b"\x08stranger\x00", 1, &[6, 6, 6, 6]);
    assert_eq!(addresses_of(&made), ["10.0.0.9"]);
    // Two names that are each other's, which ends too.
    let made = Made::to(&asked(), GOOD, 2).record(ASKED, 5, b"\x01a\x00").record(b"\x01a\x00", 5, ASKED);
    assert_eq!(addresses_of(&made), [""; 0]);
}

#[test]
fn d5_what_is_no_answer_to_the_question_is_passed_over() {
    let good = Made::to(&asked(), GOOD, 1).record(ASKED, 1, &[10, 0, 0, 2]);
    assert!(answer(&good.0, 8, &name(), Family::V4).is_none(), "another number");
    assert!(answer(&good.0, 7, &name(), Family::V6).is_none(), "another family");
    assert!(answer(&good.0, 7, &Name::of("other").unwrap(), Family::V4).is_none(), "another name");
    assert!(read(&Made(asked())).is_none(), "a question");
    assert!(read(&Made::to(&asked(), 0xa180, 0)).is_none(), "an answer of another kind");
}

#[test]
fn d5_an_error_is_told_with_its_number_and_no_such_name_apart() {
    assert_eq!(read(&Made::to(&asked(), 0x8183, 0)).unwrap().answer, Answer::NoSuchName);
    assert_eq!(read(&Made::to(&asked(), 0x8182, 0)).unwrap().answer, Answer::Failed(2));
    let short = Made(vec![0, 7, 0x81, 0x85, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(read(&short).unwrap().answer, Answer::Failed(5));
}

#[test]
fn d5_an_answer_that_was_cut_off_says_so_and_gives_what_is_whole() {
    let mut made = Made::to(&asked(), GOOD | 0x0200, 2).record(ASKED, 1, &[10, 0, 0, 2]).record(
        ASKED,
        1,
        &[10, 0, 0, 3],
    );
    made.0.truncate(made.0.len() - 3);
    assert!(read(&made).unwrap().cut_off);
    assert_eq!(addresses_of(&made), ["10.0.0.2"]);
}

#[test]
fn d5_pointers_that_go_in_circles_or_forward_are_refused() {
    let behind = u8::try_from(asked().len()).unwrap();
    for owner in [[0xc0, behind], [0xc0, behind + 1], [0xff, 0xff], [0x80, 0]] {
        assert!(read(&Made::to(&asked(), GOOD, 1).record(&owner, 1, &[1, 2, 3, 4])).is_none(), "{owner:x?}");
    }
    // Each one further back, but with so many parts that no name can have.
    let mut bytes = Made::to(&asked(), GOOD, 1).0;
    let mut last = vec![0xc0, 12];
    for _ in 0..40 {
        let at = u16::try_from(bytes.len()).unwrap();
        bytes.extend([6, b'a', b'b', b'c', b'd', b'e', b'f']);
        bytes.extend(&last);
        last = (at | 0xc000).to_be_bytes().to_vec();
    }
    assert!(read(&Made(bytes).record(&last, 1, &[1, 2, 3, 4])).is_none());
}

#[test]
fn d5_no_bytes_whatever_make_it_fall_over() {
    let made = Made::to(&asked(), GOOD, 3)
        .record(ASKED, 5, b"\x01a\xc0\x13")
        .record(b"\x01a\xc0\x13", 1, &[10, 0, 0, 2])
        .record(ASKED, 1, &[10, 0, 0, 3]);
    assert!(read(&made).is_some());
    for end in 0..made.0.len() {
        assert!(read(&Made(made.0[..end].to_vec())).is_none(), "{end}");
    }
    let mut dice = 1_u64;
    for _ in 0..200_000 {
        let mut bytes = made.0.clone();
        for _ in 0..3 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(dice >> 40).unwrap() % bytes.len();
            bytes[at] = dice.to_be_bytes()[3];
        }
        read(&Made(bytes));
    }
}
