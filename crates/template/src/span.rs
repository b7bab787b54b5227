//! Ranges of a text, and the map from rendered text back to its source.
//!
//! Readers of rendered text know only rendered offsets. [`SourceMap`] translates them back, so that a message can point at
//! the text that the user can edit (C5).

/// A half-open range of bytes. Offsets have 32 bits, because texts are limited to a few megabytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end`. Offsets are clamped to 32 bits, which the size limits exclude.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Self {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: clamp(start), end: clamp(end.max(start)) }
    }

    /// The empty range at `offset`.
    #[must_use]
    pub fn at(offset: usize) -> Self {
        Self::new(offset, offset)
    }

    /// The range as indices.
    #[must_use]
    pub fn range(self) -> core::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The smallest range that contains both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns true if the range contains no byte.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// The origin of a byte of rendered text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrigin {
    /// Copied from this offset of the source.
    Copied(u32),
    /// Printed by the `{{ action }}` at this range of the source.
    Produced(Span),
}

/// Rendered bytes with a common origin, up to the start of the next piece.
#[derive(Clone, Copy, Debug)]
struct Piece {
    rendered: u32,
    source: Span,
    copied: bool,
}

/// Maps rendered offsets to source offsets.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    pieces: Vec<Piece>,
    /// The actions that printed nothing, with the rendered offset of their empty output.
    silent: Vec<(u32, Span)>,
}

/// The number of actions without output that are recorded. A loop can contain millions.
const MAX_SILENT: usize = 10_000;

impl SourceMap {
    /// The map of a text that is not a template.
    #[must_use]
    pub fn identity(length: usize) -> Self {
        let mut map = Self::default();
        map.copied(0, Span::new(0, length));
        map
    }

    /// Records that the rendered bytes from `rendered` on are a copy of `source`.
    pub fn copied(&mut self, rendered: usize, source: Span) {
        self.push(rendered, source, true);
    }

    /// Records that the action at `source` printed the rendered bytes from `rendered` on.
    pub fn produced(&mut self, rendered: usize, source: Span) {
        self.push(rendered, source, false);
    }

    fn push(&mut self, rendered: usize, source: Span, copied: bool) {
        let rendered = Span::at(rendered).start;
        // An empty piece is replaced by the next one.
        if self.pieces.last().is_some_and(|last| last.rendered == rendered) {
            self.pieces.pop();
        }
        self.pieces.push(Piece { rendered, source, copied });
    }

    /// Records that the action at `source` printed nothing at `rendered`.
    pub fn silent(&mut self, rendered: usize, source: Span) {
        if self.silent.len() < MAX_SILENT {
            self.silent.push((Span::at(rendered).start, source));
        }
    }

    /// The first action that printed nothing between two rendered offsets, inclusive.
    #[must_use]
    pub fn silent_between(&self, start: u32, end: u32) -> Option<Span> {
        let first = self.silent.partition_point(|(offset, _)| *offset < start);
        self.silent.get(first).filter(|(offset, _)| *offset <= end).map(|(_, source)| *source)
    }

    /// The action that printed the byte at `offset`, and the range of its output. `length` is the length of the rendered text.
    #[must_use]
    pub fn printed_at(&self, offset: u32, length: usize) -> Option<(Span, Span)> {
        let after = self.pieces.partition_point(|piece| piece.rendered <= offset);
        let piece = after.checked_sub(1).and_then(|index| self.pieces.get(index))?;
        let end = self.pieces.get(after).map_or(length, |next| next.rendered as usize);
        let printed = !piece.copied && (offset as usize) < end;
        printed.then(|| (piece.source, Span::new(piece.rendered as usize, end)))
    }

    /// The first output of an action that starts in a rendered range.
    #[must_use]
    pub fn printed_in(&self, range: Span, length: usize) -> Option<(Span, Span)> {
        let first = self.pieces.partition_point(|piece| piece.rendered < range.start);
        let mut inside = self.pieces.get(first..)?.iter().take_while(|piece| piece.rendered < range.end);
        let piece = inside.find(|piece| !piece.copied)?;
        self.printed_at(piece.rendered, length)
    }

    /// The same as [`printed_at`](Self::printed_at), if the byte before `offset` is part of the same output.
    #[must_use]
    pub fn printed_around(&self, offset: u32, length: usize) -> Option<(Span, Span)> {
        self.printed_at(offset, length).filter(|(_, printed)| printed.start < offset)
    }

    /// The origin of the rendered byte at `offset`. The offset after the last byte belongs to the last piece.
    #[must_use]
    pub fn origin(&self, offset: u32) -> ByteOrigin {
        let after = self.pieces.partition_point(|piece| piece.rendered <= offset);
        let Some(piece) = after.checked_sub(1).and_then(|index| self.pieces.get(index)) else {
            return ByteOrigin::Copied(offset);
        };
        if piece.copied {
            let into = offset - piece.rendered;
            ByteOrigin::Copied((piece.source.start + into).min(piece.source.end))
        } else {
            ByteOrigin::Produced(piece.source)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c5_a_rendered_offset_is_mapped_to_its_source() {
        // `ab{{ .X }}cd` with X = "123"
        let mut map = SourceMap::default();
        map.copied(0, Span::new(0, 2));
        map.produced(2, Span::new(2, 10));
        map.copied(5, Span::new(10, 12));
        assert_eq!(map.origin(1), ByteOrigin::Copied(1));
        assert_eq!(map.origin(2), ByteOrigin::Produced(Span::new(2, 10)));
        assert_eq!(map.origin(4), ByteOrigin::Produced(Span::new(2, 10)));
        assert_eq!(map.origin(5), ByteOrigin::Copied(10));
        assert_eq!(map.origin(7), ByteOrigin::Copied(12));
    }

    #[test]
    fn c5_offsets_inside_the_output_of_an_action_are_found() {
        // `ab{{ .X }}cd` with X = "123"
        let mut map = SourceMap::default();
        map.copied(0, Span::new(0, 2));
        map.produced(2, Span::new(2, 10));
        map.copied(5, Span::new(10, 12));
        let inside = Some((Span::new(2, 10), Span::new(2, 5)));
        assert_eq!([2, 3, 4, 5].map(|at| map.printed_around(at, 7)), [None, inside, inside, None]);
        let found =
            [(0, 7), (2, 3), (3, 7), (0, 2)].map(|(start, end)| map.printed_in(Span::new(start, end), 7));
        assert_eq!(found, [inside, inside, None, None]);
    }

    #[test]
    fn c5_an_action_without_output_is_found_at_its_offset() {
        let mut map = SourceMap::default();
        map.silent(3, Span::new(3, 9));
        assert_eq!(map.silent_between(2, 3), Some(Span::new(3, 9)));
        assert_eq!(map.silent_between(4, 9), None);
    }

    #[test]
    fn c5_an_action_without_output_has_no_bytes() {
        let mut map = SourceMap::default();
        map.produced(0, Span::new(0, 8));
        map.copied(0, Span::new(8, 10));
        assert_eq!(map.origin(0), ByteOrigin::Copied(8));
    }
}
