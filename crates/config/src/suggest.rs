//! Guesses what a misspelt word was meant to be, for the "did you mean" part of a message.

use crate::unicode;

/// The known word that is nearest to `word`, if any is near enough to be worth suggesting: at most a third of
/// its letters differ (one difference is always allowed). Case does not count, and two swapped neighbours count as
/// one difference.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word this long is no slip of the finger, and the comparison below costs its length squared.
    const LONGEST: usize = 64;
    let caseless = |word: &str| word.chars().take(LONGEST + 1).map(unicode::caseless).collect::<Vec<char>>();
    let word = caseless(word);
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let mut best: Option<(usize, &'a str)> = None;
    for candidate in known {
        let letters = caseless(candidate);
        let allowed = (word.len().max(letters.len()) / 3).max(1);
        if letters.len().abs_diff(word.len()) > allowed || letters.len() > LONGEST {
            continue;
        }
        let distance = distance(&word, &letters);
        // A word of one or two letters is not "misspelt" when all of it differs.
        let near = distance <= allowed && distance < word.len().max(letters.len());
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// What a word was meant to be: one that is called otherwise elsewhere (`others` has the word and what it is called
/// here), or the nearest of the known ones.
#[must_use]
pub fn best_match<'a>(word: &str, known: &[&'a str], others: &[(&str, &'a str)]) -> Option<&'a str> {
    let other = others.iter().find(|(other, _)| other.eq_ignore_ascii_case(word));
    let other = other.map(|(_, here)| *here).filter(|here| known.contains(here));
    other.or_else(|| nearest(word, known.iter().copied()))
}

/// The number of insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    let mut earlier: Option<char> = None;
    for (row, &letter) in from.iter().enumerate() {
        let mut current = Vec::with_capacity(to.len() + 1);
        current.push(row + 1);
        let mut previous: Option<char> = None;
        for (column, &other) in to.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut least = (at(&last, column) + usize::from(letter != other))
                .min(at(&last, column + 1) + 1)
                .min(at(&current, column) + 1);
            if earlier == Some(other)
                && previous == Some(letter)
                && let Some(swapped) = column.checked_sub(1)
            {
                least = least.min(at(&before, swapped) + 1);
            }
            current.push(least);
            previous = Some(other);
        }
        before = core::mem::replace(&mut last, current);
        earlier = Some(letter);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["default", "env", "split", "join", "regexReplaceAll", "le"];

    #[test]
    fn c5_a_slip_finds_the_word_that_was_meant() {
        assert_eq!(nearest("defualt", KNOWN), Some("default"));
        assert_eq!(nearest("Default", KNOWN), Some("default"));
        assert_eq!(nearest("SPLIT", KNOWN), Some("split"));
        assert_eq!(nearest("regexReplace", KNOWN), Some("regexReplaceAll"));
        assert_eq!(nearest("jion", KNOWN), Some("join"));
    }

    #[test]
    fn c5_a_word_that_is_far_from_all_finds_nothing() {
        assert_eq!(nearest("upper", KNOWN), None);
        assert_eq!(nearest("", KNOWN), None);
        assert_eq!(nearest("x", KNOWN), None);
        assert_eq!(nearest(&"x".repeat(100_000), KNOWN), None);
    }

    #[test]
    fn c5_a_word_from_elsewhere_is_known_by_what_it_is_called_here() {
        let others = [("always", "unlimited"), ("cmd", "exec")];
        assert_eq!(best_match("Always", &["never", "unlimited"], &others), Some("unlimited"));
        assert_eq!(best_match("nevr", &["never", "unlimited"], &others), Some("never"));
        assert_eq!(best_match("cmd", &["never", "unlimited"], &others), None);
    }

    #[test]
    fn c5_the_exact_word_in_another_case_is_preferred() {
        assert_eq!(nearest("JOBs", ["job", "jobs"]), Some("jobs"));
    }
}
