//! What Unicode says of characters: their categories and scripts, what differs only in case, what may stand in an unquoted
//! key, and how wide they are on a screen.
//!
//! Crates have all this, in tables of 190 KB with code to match; here it is 13 KB, read when somebody asks. `tables.rs`
//! is made from those crates by the tests, which also compare every answer.

mod class;
#[rustfmt::skip]
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use class::{Class, holds};
use std::sync::LazyLock;

/// What each character is, as runs of characters of the same kind. ValueType 0 is what is not of interest.
///
/// A run is a number: its length less one, times the number of kinds, plus its kind. Numbers have seven bits in a byte,
/// the lowest first, and the top bit where more follows.
struct Table {
    kinds: u32,
    runs: &'static [u8],
}

impl Table {
    /// First character, last character and kind of each run.
    fn runs(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let mut bytes = self.runs;
        let mut next = 0;
        std::iter::from_fn(move || {
            let run = number(&mut bytes)?;
            let start = next;
            next = start + run / self.kinds + 1;
            Some((start, next - 1, run % self.kinds))
        })
    }

    /// The characters of those kinds whose bits are set.
    fn class(&self, wanted: u32) -> Class {
        let mut class = Class::default();
        for (start, end, kind) in self.runs() {
            if wanted >> kind & 1 == 1 {
                class.add_codes(start, end);
            }
        }
        class
    }

    /// Where each run begins, with its kind, to look up many characters.
    fn starts(&self) -> Vec<(u32, u32)> {
        let mut starts = Vec::new();
        let mut rest = 0;
        for (start, end, kind) in self.runs() {
            starts.push((start, kind));
            rest = end + 1;
        }
        starts.push((rest, 0));
        starts
    }
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return Some(number);
        }
    }
}

/// The kind of a character, by what [`BTreeMap::starts`] gave.
fn kind(starts: &[(u32, u32)], rune: char) -> u32 {
    let after = starts.partition_point(|&(start, _)| start <= u32::from(rune));
    after.checked_sub(1).and_then(|index| starts.get(index)).map_or(0, |&(_, kind)| kind)
}

/// A class by the name Go knows it under: a general category or a script of Unicode 13, spelt exactly.
pub(crate) fn class(name: &str) -> Option<Class> {
    match name {
        "Any" => return Some(Class::any()),
        // Surrogates are no characters.
        "Cs" => return Some(Class::default()),
        _ => {}
    }
    if let Some(class) = category(name) {
        return Some(class);
    }
    let kind = (1..).zip(tables::SCRIPT_NAMES.split(' ')).find(|(_, script)| *script == name)?.0;
    let mut class = Class::default();
    for (start, end, script) in tables::SCRIPTS.runs() {
        if script == kind {
            class.add_codes(start, end);
        }
    }
    Some(class)
}

/// The characters of a category, or of all that begin with a letter.
fn category(name: &str) -> Option<Class> {
    let fits = |known: &str| known == name || name.len() == 1 && known.starts_with(name);
    let wanted = (1..)
        .zip(tables::CATEGORY_NAMES.split(' '))
        .filter(|(_, known)| fits(known))
        .fold(0, |bits, (kind, _)| bits | 1 << kind);
    (wanted != 0).then(|| tables::CATEGORIES.class(wanted))
}

/// The characters of several categories.
pub(crate) fn categories(names: &[&str]) -> Class {
    let mut all = Class::default();
    for class in names.iter().filter_map(|name| category(name)) {
        all.add_all(&class);
    }
    all
}

/// Whether an unquoted key may begin with it.
pub(crate) fn begins_word(rune: char) -> bool {
    word_kind(rune) == 2
}

/// Whether an unquoted key may go on with it.
pub(crate) fn continues_word(rune: char) -> bool {
    word_kind(rune) >= 1
}

fn word_kind(rune: char) -> u32 {
    static WORDS: LazyLock<Vec<(u32, u32)>> = LazyLock::new(|| tables::WORDS.starts());
    match rune {
        'a'..='z' | 'A'..='Z' => 2,
        _ => kind(&WORDS, rune),
    }
}

/// How many columns of a terminal it takes. Control characters count as one, for something is shown in their place.
pub(crate) fn width(rune: char) -> usize {
    static WIDTHS: LazyLock<Vec<(u32, u32)>> = LazyLock::new(|| tables::WIDTHS.starts());
    if rune.is_ascii() {
        return 1;
    }
    match kind(&WIDTHS, rune) {
        0 => 1,
        1 => 0,
        wide => wide as usize,
    }
}

/// Characters that differ only in case are a ring: this is the way from each to the next. Most rings have two members.
struct Fold {
    start: u32,
    end: u32,
    step: Step,
}

enum Step {
    /// The next one is that far away.
    By(i32),
    /// Neighbours are pairs.
    Pairs,
}

static FOLDS: LazyLock<Vec<Fold>> = LazyLock::new(|| {
    let mut bytes = tables::FOLDS;
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next + number(&mut bytes)?;
        next = start + number(&mut bytes)? + 1;
        let step = match number(&mut bytes)? {
            0 => Step::Pairs,
            // The lowest bit is the sign.
            code if code & 1 == 0 => Step::By((code >> 1).cast_signed()),
            code => Step::By(-(code >> 1).cast_signed()),
        };
        Some(Fold { start, end: next - 1, step })
    })
    .collect()
});

/// The rows that have something to say of characters in this range.
fn folds(start: u32, end: u32) -> &'static [Fold] {
    let from = FOLDS.partition_point(|fold| fold.end < start);
    let to = FOLDS.partition_point(|fold| fold.start <= end);
    FOLDS.get(from..to).unwrap_or_default()
}

/// The next character of the ring.
fn folded(code: u32) -> Option<u32> {
    let fold = folds(code, code).first()?;
    match fold.step {
        Step::By(distance) => code.checked_add_signed(distance),
        Step::Pairs if (code - fold.start).is_multiple_of(2) => Some(code + 1),
        Step::Pairs => Some(code - 1),
    }
}

/// The first of all characters that differ from it only in case.
pub(crate) fn caseless(rune: char) -> char {
    if rune.is_ascii() {
        return rune.to_ascii_uppercase();
    }
    let first = ring(u32::from(rune)).fold(u32::from(rune), u32::min);
    char::from_u32(first).unwrap_or(rune)
}

/// The other characters that differ from one only in case.
fn ring(code: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(folded(code), |&other| folded(other)).take_while(move |&other| other != code)
}

/// Adds to a class what differs only in case, as it was in Unicode 13.
pub(crate) fn fold(class: &mut Class) {
    let before = class.clone();
    for &(start, end) in before.ranges() {
        let (start, end) = (u32::from(start), u32::from(end));
        for fold in folds(start, end) {
            for code in fold.start.max(start)..=fold.end.min(end) {
                for other in ring(code) {
                    class.add_codes(other, other);
                }
            }
        }
    }
}
