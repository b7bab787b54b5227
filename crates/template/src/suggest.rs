//! Finds the word that a misspelled one was probably meant to be, for "did you mean".

/// The known word closest to `word`. At most a third of the letters may differ, but one difference is always accepted.
/// Case is ignored, and swapping two neighbours counts as one difference.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A longer word is not a typing error, and the comparison takes quadratic time.
    const MAX_LETTERS: usize = 64;
    let lowercase =
        |word: &str| word.chars().take(MAX_LETTERS + 1).flat_map(char::to_lowercase).collect::<String>();
    let count = |word: &str| word.chars().count();
    let word = lowercase(word);
    let length = count(&word);
    if length == 0 || length > MAX_LETTERS {
        return None;
    }
    let mut best: Option<(usize, &'a str)> = None;
    for candidate in known {
        let lower = lowercase(candidate);
        let longest = length.max(count(&lower));
        let allowed = (longest / 3).max(1);
        if count(&lower).abs_diff(length) > allowed || longest > MAX_LETTERS {
            continue;
        }
        let distance = strsim::osa_distance(&word, &lower);
        // A short word with no letter in common is a different word.
        let near = distance <= allowed && distance < longest;
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The word of `known` that `word` stands for: its translation in `others`, which maps names used elsewhere, or the nearest.
#[must_use]
pub fn best_match<'a>(word: &str, known: &[&'a str], others: &[(&str, &'a str)]) -> Option<&'a str> {
    let other = others.iter().find(|(other, _)| other.eq_ignore_ascii_case(word));
    let other = other.map(|(_, here)| *here).filter(|here| known.contains(here));
    other.or_else(|| nearest(word, known.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["default", "env", "split", "join", "regexReplaceAll", "le"];

    #[test]
    fn c5_a_misspelled_word_finds_the_nearest_known_one() {
        assert_eq!(nearest("defualt", KNOWN), Some("default"));
        assert_eq!(nearest("Default", KNOWN), Some("default"));
        assert_eq!(nearest("SPLIT", KNOWN), Some("split"));
        assert_eq!(nearest("regexReplace", KNOWN), Some("regexReplaceAll"));
        assert_eq!(nearest("jion", KNOWN), Some("join"));
    }

    #[test]
    fn c5_a_word_unlike_all_known_ones_finds_nothing() {
        assert_eq!(nearest("upper", KNOWN), None);
        assert_eq!(nearest("", KNOWN), None);
        assert_eq!(nearest("x", KNOWN), None);
        assert_eq!(nearest(&"x".repeat(100_000), KNOWN), None);
    }

    #[test]
    fn c5_a_name_used_elsewhere_is_translated() {
        let others = [("always", "unlimited"), ("cmd", "exec")];
        assert_eq!(best_match("Always", &["never", "unlimited"], &others), Some("unlimited"));
        assert_eq!(best_match("nevr", &["never", "unlimited"], &others), Some("never"));
        assert_eq!(best_match("cmd", &["never", "unlimited"], &others), None);
    }

    #[test]
    fn c5_the_same_word_in_another_case_is_preferred() {
        assert_eq!(nearest("JOBs", ["job", "jobs"]), Some("jobs"));
    }
}
