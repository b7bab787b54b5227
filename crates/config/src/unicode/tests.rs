//! Makes `tables.rs` from the tables of three crates, and compares every answer with theirs. `BLESS=1` writes the file anew.

use super::*;
use regex_syntax::hir::{self, ClassUnicode, ClassUnicodeRange, HirKind};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use unicode_width::UnicodeWidthChar;

const LEAVES: [&str; 28] = [
    "Cc", "Cf", "Co", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl", "No", "Pc", "Pd", "Pe",
    "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs",
];

/// What else Go takes as a name of categories.
const OTHERS: [&str; 9] = ["Any", "C", "Cs", "L", "M", "N", "P", "S", "Z"];

/// The scripts of Unicode 13, which Go 1.19 knows.
#[rustfmt::skip]
const SCRIPTS: [&str; 156] = [
    "Adlam", "Ahom", "Anatolian_Hieroglyphs", "Arabic", "Armenian", "Avestan", "Balinese", "Bamum", "Bassa_Vah",
    "Batak", "Bengali", "Bhaiksuki", "Bopomofo", "Brahmi", "Braille", "Buginese", "Buhid", "Canadian_Aboriginal",
    "Carian", "Caucasian_Albanian", "Chakma", "Cham", "Cherokee", "Chorasmian", "Common", "Coptic", "Cuneiform",
    "Cypriot", "Cyrillic", "Deseret", "Devanagari", "Dives_Akuru", "Dogra", "Duployan", "Egyptian_Hieroglyphs",
    "Elbasan", "Elymaic", "Ethiopic", "Georgian", "Glagolitic", "Gothic", "Grantha", "Greek", "Gujarati",
    "Gunjala_Gondi", "Gurmukhi", "Han", "Hangul", "Hanifi_Rohingya", "Hanunoo", "Hatran", "Hebrew", "Hiragana",
    "Imperial_Aramaic", "Inherited", "Inscriptional_Pahlavi", "Inscriptional_Parthian", "Javanese", "Kaithi",
    "Kannada", "Katakana", "Kayah_Li", "Kharoshthi", "Khitan_Small_Script", "Khmer", "Khojki", "Khudawadi", "Lao",
    "Latin", "Lepcha", "Limbu", "Linear_A", "Linear_B", "Lisu", "Lycian", "Lydian", "Mahajani", "Makasar",
    "Malayalam", "Mandaic", "Manichaean", "Marchen", "Masaram_Gondi", "Medefaidrin", "Meetei_Mayek",
    "Mende_Kikakui", "Meroitic_Cursive", "Meroitic_Hieroglyphs", "Miao", "Modi", "Mongolian", "Mro", "Multani",
    "Myanmar", "Nabataean", "Nandinagari", "New_Tai_Lue", "Newa", "Nko", "Nushu", "Nyiakeng_Puachue_Hmong",
    "Ogham", "Ol_Chiki", "Old_Hungarian", "Old_Italic", "Old_North_Arabian", "Old_Permic", "Old_Persian",
    "Old_Sogdian", "Old_South_Arabian", "Old_Turkic", "Oriya", "Osage", "Osmanya", "Pahawh_Hmong", "Palmyrene",
    "Pau_Cin_Hau", "Phags_Pa", "Phoenician", "Psalter_Pahlavi", "Rejang", "Runic", "Samaritan", "Saurashtra",
    "Sharada", "Shavian", "Siddham", "SignWriting", "Sinhala", "Sogdian", "Sora_Sompeng", "Soyombo", "Sundanese",
    "Syloti_Nagri", "Syriac", "Tagalog", "Tagbanwa", "Tai_Le", "Tai_Tham", "Tai_Viet", "Takri", "Tamil", "Tangut",
    "Telugu", "Thaana", "Thai", "Tibetan", "Tifinagh", "Tirhuta", "Ugaritic", "Vai", "Wancho", "Warang_Citi",
    "Yezidi", "Yi", "Zanabazar_Square",
];

/// What `regex-syntax` says, turned back to Unicode 13, which is the one Go 1.19 knows; all later characters are nothing
/// to it.
mod known {
    use super::*;

    pub(super) fn members(runes: impl IntoIterator<Item = char>) -> ClassUnicode {
        ClassUnicode::new(runes.into_iter().map(|rune| ClassUnicodeRange::new(rune, rune)))
    }

    fn newest(pattern: &str) -> ClassUnicode {
        match regex_syntax::parse(pattern).unwrap().into_kind() {
            HirKind::Class(hir::Class::Unicode(class)) => class,
            // A class of one member is simplified to a literal.
            HirKind::Literal(literal) => members(std::str::from_utf8(&literal.0).unwrap().chars()),
            other => panic!("{pattern} is no class: {other:?}"),
        }
    }

    pub(super) fn assigned() -> &'static ClassUnicode {
        static ASSIGNED: LazyLock<ClassUnicode> = LazyLock::new(|| newest(r"[\p{age:13.0}]"));
        &ASSIGNED
    }

    pub(super) fn class(name: &str) -> Option<ClassUnicode> {
        let pattern = match name {
            "Any" => return Some(newest(r"(?s:.)")),
            // Go counts no unassigned characters among the others, and no surrogate is a character.
            "C" => r"[\p{Cc}\p{Cf}\p{Co}]".to_owned(),
            "Cs" => return Some(ClassUnicode::empty()),
            _ if LEAVES.contains(&name) || OTHERS.contains(&name) => format!(r"[\p{{{name}}}]"),
            _ if SCRIPTS.contains(&name) => format!(r"[\p{{Script={name}}}]"),
            _ => return None,
        };
        let mut class = newest(&pattern);
        class.intersect(assigned());
        // What has another category or script now than in Unicode 13.
        let (marks, signs) = (['\u{1734}', '\u{1171e}'], ['\u{16fe2}', '\u{16fe3}']);
        match name {
            "Mn" => class.union(&members(marks)),
            "Mc" => class.difference(&members(marks)),
            "Common" => class.union(&members(signs)),
            "Han" => class.difference(&members(signs)),
            _ => {}
        }
        Some(class)
    }

    /// What can differ in case only.
    fn folding() -> &'static ClassUnicode {
        static FOLDING: LazyLock<ClassUnicode> = LazyLock::new(|| {
            let mut folding = assigned().clone();
            // These became pairs of one another in Unicode 15.1.
            folding
                .difference(&members(['\u{390}', '\u{3b0}', '\u{1fd3}', '\u{1fe3}', '\u{fb05}', '\u{fb06}']));
            folding
        });
        &FOLDING
    }

    /// The characters that differ from one only in case, itself included.
    pub(super) fn ring(rune: char) -> ClassUnicode {
        let mut ring = members([rune]);
        ring.try_case_fold_simple().unwrap();
        // Most are alone, and need not be looked up.
        if ring.ranges().len() > 1 || ring.ranges()[0].len() > 1 {
            ring.intersect(folding());
            let alone = !ring.iter().any(|range| (range.start()..=range.end()).contains(&rune));
            return if alone { members([rune]) } else { ring };
        }
        ring
    }

    pub(super) fn fold(class: &mut ClassUnicode) {
        let mut folded = class.clone();
        folded.intersect(folding());
        folded.try_case_fold_simple().unwrap();
        folded.intersect(folding());
        class.union(&folded);
    }
}

fn ranges(class: &ClassUnicode) -> Vec<(char, char)> {
    class.iter().map(|range| (range.start(), range.end())).collect()
}

fn runes() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

/// Writes a number as [`number`] reads it.
fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// A table of what each character is; characters that are not told are of kind 0.
fn table(kinds: u32, told: impl Iterator<Item = (char, u32)>) -> Vec<u8> {
    let mut codes = vec![0; 0x11_0000];
    for (rune, kind) in told {
        assert!(codes[rune as usize] == 0 && kind < kinds, "{rune:?} has two kinds");
        codes[rune as usize] = kind;
    }
    let mut bytes = Vec::new();
    let runs: Vec<&[u32]> = codes.chunk_by(|one, other| one == other).collect();
    let last = runs.iter().rposition(|run| run[0] != 0).unwrap();
    for run in &runs[..=last] {
        put(&mut bytes, (run.len() as u32 - 1) * kinds + run[0]);
    }
    bytes
}

fn by_name(names: &[&str]) -> Vec<u8> {
    let class = |name: &str| known::class(name).unwrap();
    let told = (1..).zip(names).flat_map(|(kind, name)| {
        ranges(&class(name))
            .into_iter()
            .flat_map(move |(start, end)| (start..=end).map(move |rune| (rune, kind)))
    });
    table(names.len() as u32 + 1, told)
}

/// For each character the next one of those that differ from it only in case.
fn rings() -> Vec<u8> {
    let mut next: BTreeMap<u32, u32> = BTreeMap::new();
    for rune in runes() {
        let ring: Vec<char> =
            ranges(&known::ring(rune)).into_iter().flat_map(|(start, end)| start..=end).collect();
        let after = ring.iter().find(|&&other| other > rune).or(ring.first()).copied().unwrap();
        if after != rune {
            next.insert(rune.into(), after.into());
        }
    }
    let step = |code: u32| next.get(&code).map(|&other| i64::from(other) - i64::from(code));
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some((&start, _)) = next.range(at..).next() {
        let pairs =
            (start..).step_by(2).take_while(|&c| step(c) == Some(1) && step(c + 1) == Some(-1)).count() * 2;
        let same = (start..).take_while(|&code| step(code) == step(start)).count();
        put(&mut bytes, start - at);
        put(&mut bytes, pairs.max(same) as u32 - 1);
        put(
            &mut bytes,
            match step(start) {
                _ if pairs >= same => 0,
                Some(step) => step.unsigned_abs() as u32 * 2 + u32::from(step < 0),
                None => unreachable!(),
            },
        );
        at = start + pairs.max(same) as u32;
    }
    bytes
}

struct Made {
    categories: Vec<u8>,
    scripts: Vec<u8>,
    words: Vec<u8>,
    widths: Vec<u8>,
    folds: Vec<u8>,
}

fn made() -> &'static Made {
    static MADE: LazyLock<Made> = LazyLock::new(|| {
        let word = |rune| match rune {
            _ if unicode_ident::is_xid_start(rune) => 2,
            _ => u32::from(unicode_ident::is_xid_continue(rune)),
        };
        let width = |rune: char| match rune.width().unwrap_or(1) {
            1 => 0,
            0 => 1,
            wide => wide as u32,
        };
        Made {
            categories: by_name(&LEAVES),
            scripts: by_name(&SCRIPTS),
            words: table(3, runes().map(|rune| (rune, word(rune)))),
            widths: table(4, runes().map(|rune| (rune, width(rune)))),
            folds: rings(),
        }
    });
    &MADE
}

fn literal(bytes: &[u8]) -> String {
    let mut out = String::from("b\"");
    let mut line = 0;
    for &byte in bytes {
        // A blank at the beginning of a line would not count.
        let text = if byte == b' ' { "\\x20".to_owned() } else { byte.escape_ascii().to_string() };
        if line + text.len() > 112 {
            out.push_str("\\\n    ");
            line = 0;
        }
        line += text.len();
        out.push_str(&text);
    }
    out + "\""
}

fn wrapped(names: &[&str]) -> String {
    let mut out = String::new();
    let mut line = 0;
    for name in names {
        if line + name.len() > 110 {
            out.push_str(" \\\n    ");
            line = 0;
        }
        out.push_str(if line == 0 { "" } else { " " });
        line += name.len() + 1;
        out.push_str(name);
    }
    out
}

fn file() -> String {
    let made = made();
    let mut out = String::from(
        "//! Made by the tests beside it with `BLESS=1`, from the tables of Unicode 13 and later.\n\nuse super::Table;\n",
    );
    for (name, comment, names) in [
        ("CATEGORY_NAMES", "The kinds of [`CATEGORIES`], from 1.", &LEAVES[..]),
        ("SCRIPT_NAMES", "The kinds of [`SCRIPTS`], from 1.", &SCRIPTS),
    ] {
        let _ =
            writeln!(out, "\n/// {comment}\npub(super) const {name}: &str = \"\\\n    {}\";", wrapped(names));
    }
    for (name, comment, kinds, runs) in [
        ("CATEGORIES", "General categories.", LEAVES.len() + 1, &made.categories),
        ("SCRIPTS", "Scripts.", SCRIPTS.len() + 1, &made.scripts),
        ("WORDS", "What may stand in a word: 2 at its beginning, 1 later.", 3, &made.words),
        ("WIDTHS", "What is not one column wide: 1 has no width, 2 and 3 are widths.", 4, &made.widths),
    ] {
        let _ = writeln!(
            out,
            "\n/// {comment}\npub(super) static {name}: Table = Table {{ kinds: {kinds}, runs: {} }};",
            literal(runs)
        );
    }
    let _ = writeln!(
        out,
        "\n/// Rings of characters that differ only in case: how far the row is from the last one, its length less one, and the\n\
         /// step: 0 for pairs of neighbours, or twice the distance, plus one if it is backwards.\n\
         pub(super) static FOLDS: &[u8] = {};",
        literal(&made.folds)
    );
    out
}

/// True right after `BLESS=1` has written another file than the one that was compiled.
fn just_written() -> bool {
    let made = made();
    let kept = [
        tables::CATEGORIES.runs,
        tables::SCRIPTS.runs,
        tables::WORDS.runs,
        tables::WIDTHS.runs,
        tables::FOLDS,
    ];
    blessed() && kept != [&made.categories[..], &made.scripts, &made.words, &made.widths, &made.folds]
}

fn blessed() -> bool {
    std::env::var_os("BLESS").is_some_and(|value| value == "1")
}

#[test]
fn the_tables_are_what_the_crates_say_and_small() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/runes/tables.rs");
    let file = file();
    if blessed() {
        std::fs::write(&path, &file).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == file, "{} is out of date: write it with `make docs`", path.display());
    let made = made();
    let sizes = [&made.categories, &made.scripts, &made.words, &made.widths, &made.folds].map(Vec::len);
    assert!(sizes.iter().sum::<usize>() < 16_000, "{sizes:?}");
}

#[test]
fn c2_every_name_of_a_class_means_what_it_means_in_go() {
    if just_written() {
        return;
    }
    for name in LEAVES.iter().chain(&OTHERS).chain(&SCRIPTS) {
        let (ours, theirs) = (class(name).unwrap(), known::class(name).unwrap());
        assert_eq!(ours.ranges(), ranges(&theirs), "{name}");

        let mut negated = theirs.clone();
        negated.negate();
        assert_eq!(ours.negated().ranges(), ranges(&negated), "not {name}");

        let (mut ours, mut theirs) = (ours, theirs);
        fold(&mut ours);
        known::fold(&mut theirs);
        assert_eq!(ours.ranges(), ranges(&theirs), "{name} without case");
    }
    for name in [
        "",
        " ",
        "l",
        "Cn",
        "LC",
        "Lx",
        "latin",
        "Latin ",
        "Latin Lao",
        "Kawi",
        "Script=Latin",
        "Letter",
        "any",
    ] {
        assert!(class(name).is_none() && known::class(name).is_none(), "{name}");
    }
}

#[test]
fn c2_every_character_is_what_it_is_to_the_crates() {
    if just_written() {
        return;
    }
    for rune in runes() {
        let mut ring = Class::of(&[(rune, rune)]);
        fold(&mut ring);
        assert_eq!(ring.ranges(), ranges(&known::ring(rune)), "{rune:?} without case");
        assert_eq!(caseless(rune), ring.ranges()[0].0, "the first of those like {rune:?}");
        assert_eq!(
            begins_word(rune),
            unicode_ident::is_xid_start(rune),
            "{rune:?} as the beginning of a word"
        );
        assert_eq!(continues_word(rune), unicode_ident::is_xid_continue(rune), "{rune:?} in a word");
        assert_eq!(width(rune), rune.width().unwrap_or(1), "the width of {rune:?}");
    }
}

#[test]
fn c2_classes_are_added_up_as_sets_are() {
    let mut class = Class::of(&[('m', 'p'), ('a', 'c'), ('x', 'z')]);
    assert_eq!(class.ranges(), [('a', 'c'), ('m', 'p'), ('x', 'z')]);
    class.add('d', 'd');
    class.add('b', 'c');
    assert_eq!(class.ranges(), [('a', 'd'), ('m', 'p'), ('x', 'z')]);
    class.add('f', 'w');
    assert_eq!(class.ranges(), [('a', 'd'), ('f', 'z')]);
    assert!(class.holds('a') && !class.holds('e') && class.holds('z') && !class.holds('{'));
    class.add_codes(0xd900, 0xe001);
    class.add_codes(0xd900, 0xd901);
    assert_eq!(class.ranges(), [('a', 'd'), ('f', 'z'), ('\u{e000}', '\u{e001}')]);
    assert_eq!(class.negated().negated(), class);
    assert_eq!(Class::any().negated(), Class::default());
    assert_eq!(Class::default().negated(), Class::any());
}
