//! Sets of characters.

/// A set of characters, as ranges in their order that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Class(Vec<(char, char)>);

impl Class {
    /// All characters.
    pub(crate) fn any() -> Self {
        Self(vec![('\0', char::MAX)])
    }

    /// The characters of some ranges.
    pub(crate) fn of(ranges: &[(char, char)]) -> Self {
        let mut class = Self::default();
        for &(start, end) in ranges {
            class.add(start, end);
        }
        class
    }

    /// Its ranges, each with its first and its last character.
    pub(crate) fn ranges(&self) -> &[(char, char)] {
        &self.0
    }

    /// Whether it has this character.
    pub(crate) fn holds(&self, rune: char) -> bool {
        holds(&self.0, rune)
    }

    /// Adds the characters from `start` to `end`.
    pub(crate) fn add(&mut self, start: char, end: char) {
        let ranges = &mut self.0;
        let from = ranges.partition_point(|&(_, last)| u32::from(last) + 1 < u32::from(start));
        let to = ranges.partition_point(|&(first, _)| u32::from(first) <= u32::from(end) + 1);
        let touched = ranges.get(from..to).unwrap_or_default();
        let joined = (
            touched.first().map_or(start, |&(first, _)| first.min(start)),
            touched.last().map_or(end, |&(_, last)| last.max(end)),
        );
        match ranges.get_mut(from) {
            Some(range) if from < to => {
                *range = joined;
                ranges.drain(from + 1..to);
            }
            _ => ranges.insert(from, joined),
        }
    }

    /// The same for codes, of which those of surrogates are no characters.
    pub(crate) fn add_codes(&mut self, start: u32, end: u32) {
        const SURROGATES: std::ops::Range<u32> = 0xd800..0xe000;
        let start = if SURROGATES.contains(&start) { SURROGATES.end } else { start };
        let end = if SURROGATES.contains(&end) { SURROGATES.start - 1 } else { end };
        if start <= end
            && let (Some(start), Some(end)) = (char::from_u32(start), char::from_u32(end))
        {
            self.add(start, end);
        }
    }

    /// Adds all characters of another.
    pub(crate) fn add_all(&mut self, other: &Self) {
        for &(start, end) in &other.0 {
            self.add(start, end);
        }
    }

    /// All other characters.
    pub(crate) fn negated(&self) -> Self {
        let mut others = Self::default();
        let mut next = 0;
        for &(start, end) in &self.0 {
            if let Some(before) = u32::from(start).checked_sub(1).filter(|&before| before >= next) {
                others.add_codes(next, before);
            }
            next = u32::from(end) + 1;
        }
        if next <= u32::from(char::MAX) {
            others.add_codes(next, u32::from(char::MAX));
        }
        others
    }
}

/// Whether one of the ranges, which are in order, has this character.
pub(crate) fn holds(ranges: &[(char, char)], rune: char) -> bool {
    if let [(start, end)] = ranges {
        return (*start..=*end).contains(&rune);
    }
    let after = ranges.partition_point(|&(start, _)| start <= rune);
    after.checked_sub(1).and_then(|index| ranges.get(index)).is_some_and(|&(_, end)| rune <= end)
}
