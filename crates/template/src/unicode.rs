//! Unicode classes by the names that Go uses, and the classes of names and printable characters.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// The general categories that Go knows, and `Any`.
const CATEGORIES: &str = "Any C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs";

/// The scripts with names of at most four letters. Go does not accept the four-letter codes of scripts, such as `Grek`.
const SHORT_SCRIPTS: &str = "Ahom Cham Han Lao Lisu Miao Modi Mro Newa Nko Thai Vai Yi";

/// A general category or a script, spelled exactly as in Go.
pub(crate) fn class(name: &str) -> Option<ClassUnicode> {
    let is_one_of = |names: &str| names.split(' ').any(|known| known == name);
    match name {
        // Unlike regex-syntax, Go counts neither unassigned code points nor surrogates.
        "C" => parsed(r"[\p{Cc}\p{Cf}\p{Co}]"),
        "Cs" => Some(ClassUnicode::empty()),
        _ if is_one_of(CATEGORIES) => parsed(&format!(r"[\p{{{name}}}]")),
        _ if name.len() <= 4 && !is_one_of(SHORT_SCRIPTS) || !is_spelled_as_script(name) => None,
        _ => parsed(&format!(r"[\p{{Script={name}}}]")),
    }
}

/// Returns true for words such as `Greek` and `Old_Italic`.
fn is_spelled_as_script(name: &str) -> bool {
    let is_word = |word: &str| {
        let mut letters = word.chars();
        letters.next().is_some_and(|first| first.is_ascii_uppercase())
            && letters.all(|letter| letter.is_ascii_lowercase())
    };
    name == "SignWriting" || name.split('_').all(is_word)
}

/// The class of a pattern for `regex-syntax`; `None` if it does not know the name.
fn parsed(pattern: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(pattern).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        // A class of one character is simplified to a literal.
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            Some(ClassUnicode::new(text.chars().map(|rune| ClassUnicodeRange::new(rune, rune))))
        }
        _ => None,
    }
}

/// The characters between two code points, which may be surrogates.
pub(crate) fn range(low: u32, high: u32) -> ClassUnicode {
    let start = char::from_u32(low).unwrap_or('\u{e000}');
    let end = char::from_u32(high).unwrap_or('\u{d7ff}');
    let ordered = (start <= end).then(|| ClassUnicodeRange::new(start, end));
    ClassUnicode::new(ordered)
}

/// Returns true if a name may contain the character: a letter, a decimal digit or `_`.
pub(crate) fn is_name(rune: char) -> bool {
    static NAMES: LazyLock<ClassUnicode> =
        LazyLock::new(|| parsed(r"[\pL\p{Nd}]").unwrap_or_else(ClassUnicode::empty));
    if rune.is_ascii() { rune.is_ascii_alphanumeric() || rune == '_' } else { holds(&NAMES, rune) }
}

/// Returns true if Go prints the character as it is: letters, marks, numbers, punctuation, symbols and the space.
pub(crate) fn is_print(rune: char) -> bool {
    static PRINTED: LazyLock<ClassUnicode> =
        LazyLock::new(|| parsed(r"[\pL\pM\pN\pP\pS]").unwrap_or_else(ClassUnicode::empty));
    if rune.is_ascii() { (' '..='~').contains(&rune) } else { holds(&PRINTED, rune) }
}

fn holds(class: &ClassUnicode, rune: char) -> bool {
    let after = class.ranges().partition_point(|range| range.start() <= rune);
    after.checked_sub(1).and_then(|index| class.ranges().get(index)).is_some_and(|range| rune <= range.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_names_and_printable_characters_are_those_of_go() {
        assert!(is_name('é') && is_name('日') && is_name('٣') && !is_name('Ⅷ') && !is_name('-'));
        assert!(is_print('\u{301}') && !is_print('\u{200b}') && !is_print('\u{a0}'));
    }

    #[test]
    fn c2_class_names_are_spelled_as_in_go() {
        for name in CATEGORIES.split(' ').chain(SHORT_SCRIPTS.split(' ')) {
            assert!(class(name).is_some(), "{name}");
        }
        for name in ["Greek", "Old_Italic", "SignWriting", "Phags_Pa", "Zanabazar_Square"] {
            assert!(class(name).is_some_and(|class| !class.ranges().is_empty()), "{name}");
        }
        for name in
            ["greek", "GREEK", "Grek", "Cn", "LC", "Letter", "Uppercase", "sc=Greek", "Old Italic", ""]
        {
            assert!(class(name).is_none(), "{name}");
        }
    }
}
