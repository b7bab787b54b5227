//! The syntax of Go's regular expressions (RE2).

use std::sync::Arc;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use crate::limits;

/// A condition on a position in the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assertion {
    Start,
    End,
    LineStart,
    LineEnd,
    Word,
    NotWord,
}

/// A regular expression.
#[derive(Debug)]
pub(crate) enum Tree {
    Empty,
    Class(Arc<[(char, char)]>),
    Assert(Assertion),
    Group(usize, Box<Tree>),
    Concat(Vec<Tree>),
    Alternate(Vec<Tree>),
    Repeat { tree: Box<Tree>, min: u32, max: Option<u32>, greedy: bool },
}

/// An error in a pattern.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct PatternError {
    pub(super) message: &'static str,
    /// The offset in the pattern.
    pub(crate) at: usize,
}

#[derive(Clone, Copy, Default)]
struct Flags {
    fold: bool,
    multi_line: bool,
    dot_all: bool,
    lazy: bool,
}

/// A group that is open, with the terms before it.
struct Open {
    capture: Option<usize>,
    /// The flags to restore at the end of the group.
    flags: Flags,
    branches: Vec<(Tree, u32)>,
    items: Vec<(Tree, u32)>,
    at: usize,
}

pub(super) struct PatternParser<'p> {
    pub(super) pattern: &'p str,
    pub(super) at: usize,
    flags: Flags,
    open: Vec<Open>,
    branches: Vec<(Tree, u32)>,
    /// The terms of the current branch, each with the product of the repeat counts inside it.
    items: Vec<(Tree, u32)>,
    names: Vec<Option<String>>,
    /// The number of character ranges so far.
    ranges: usize,
}

pub(super) type PatternResult<T> = Result<T, PatternError>;

/// Go's limit on a repeat count, and on the product of nested ones.
const MAX_REPEATS: u32 = 1000;

/// The number of character ranges in one pattern, which bounds its memory.
const MAX_RANGES: usize = 500_000;

/// Parses a pattern. Also returns the names of its groups; group 0 is the whole match.
pub(crate) fn parse(pattern: &[u8]) -> PatternResult<(Tree, Vec<Option<String>>)> {
    let pattern = std::str::from_utf8(pattern)
        .map_err(|error| PatternError { message: "invalid UTF-8", at: error.valid_up_to() })?;
    let mut parser = PatternParser {
        pattern,
        at: 0,
        flags: Flags::default(),
        open: Vec::new(),
        branches: Vec::new(),
        items: Vec::new(),
        names: vec![None],
        ranges: 0,
    };
    parser.all()?;
    if let Some(open) = parser.open.last() {
        return Err(PatternError { message: "unclosed `(`", at: open.at });
    }
    let (tree, _) = parser.branch_end();
    Ok((tree, parser.names))
}

impl<'p> PatternParser<'p> {
    pub(super) fn rest(&self) -> &'p str {
        self.pattern.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let rune = self.peek()?;
        self.at += rune.len_utf8();
        Some(rune)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn push(&mut self, tree: Tree) {
        self.items.push((tree, 1));
    }

    fn class(&mut self, class: &ClassUnicode) {
        self.ranges += class.ranges().len();
        self.push(Tree::Class(class.iter().map(|range| (range.start(), range.end())).collect()));
    }

    fn literal(&mut self, rune: Option<char>) {
        let mut class = ClassUnicode::empty();
        // A surrogate is not a character and matches nothing.
        if let Some(rune) = rune {
            class.push(ClassUnicodeRange::new(rune, rune));
            self.fold(&mut class);
        }
        self.class(&class);
    }

    pub(super) fn fold(&self, class: &mut ClassUnicode) {
        if self.flags.fold {
            class.case_fold_simple();
        }
    }

    fn all(&mut self) -> PatternResult<()> {
        let mut repeated: Option<usize> = None;
        while let Some(rune) = self.peek() {
            let at = self.at;
            let last = repeated.take();
            if self.ranges > MAX_RANGES {
                return Err(PatternError { message: "its character classes are too large", at });
            }
            match rune {
                '(' => self.group()?,
                ')' => self.close()?,
                '|' => {
                    self.at += 1;
                    self.alternative();
                }
                '[' => {
                    let class = self.bracket()?;
                    self.class(&class);
                }
                '.' => {
                    self.at += 1;
                    let any: &[(char, char)] = match self.flags.dot_all {
                        true => &[('\0', char::MAX)],
                        false => &[('\0', '\x09'), ('\x0b', char::MAX)],
                    };
                    self.class(&class_of(any));
                }
                '^' => {
                    self.at += 1;
                    let line = self.flags.multi_line;
                    self.push(Tree::Assert(if line { Assertion::LineStart } else { Assertion::Start }));
                }
                '$' => {
                    self.at += 1;
                    let line = self.flags.multi_line;
                    self.push(Tree::Assert(if line { Assertion::LineEnd } else { Assertion::End }));
                }
                '*' | '+' | '?' => {
                    self.at += 1;
                    let (min, max) = match rune {
                        '*' => (0, None),
                        '+' => (1, None),
                        _ => (0, Some(1)),
                    };
                    self.repeat(min, max, false, at, last)?;
                    repeated = Some(at);
                }
                '{' => match self.counts() {
                    None => {
                        self.at = at + 1;
                        self.literal(Some('{'));
                    }
                    Some((min, max)) => {
                        let fits = |count: u32| count <= MAX_REPEATS;
                        if !fits(min) || !max.is_none_or(fits) || max.is_some_and(|max| min > max) {
                            return Err(PatternError {
                                message: "the repeat count is larger than 1000, or the minimum is larger than the maximum",
                                at,
                            });
                        }
                        self.repeat(min, max, true, at, last)?;
                        repeated = Some(at);
                    }
                },
                '\\' => self.escape()?,
                _ => {
                    self.at += rune.len_utf8();
                    self.literal(Some(rune));
                }
            }
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        min: u32,
        max: Option<u32>,
        counted: bool,
        at: usize,
        last: Option<usize>,
    ) -> PatternResult<()> {
        let lazy = self.eat("?") != self.flags.lazy;
        if let Some(last) = last {
            return Err(PatternError { message: "a repetition cannot be repeated", at: last });
        }
        let Some((tree, product)) = self.items.pop() else {
            return Err(PatternError { message: "nothing to repeat", at });
        };
        let times = if counted { max.unwrap_or(min).max(1) } else { 1 };
        // `{0}` removes the term.
        let product = if max == Some(0) { 1 } else { product.saturating_mul(times) };
        if counted && times >= 2 && product > MAX_REPEATS {
            return Err(PatternError { message: "nested repeat counts multiply to more than 1000", at });
        }
        self.items.push((Tree::Repeat { tree: Box::new(tree), min, max, greedy: !lazy }, product));
        Ok(())
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`. Returns `None` for anything else, which is literal text.
    fn counts(&mut self) -> Option<(u32, Option<u32>)> {
        self.at += 1;
        let min = self.count()?;
        let max = if !self.eat(",") {
            Some(min)
        } else if self.peek() == Some('}') {
            None
        } else {
            Some(self.count()?)
        };
        self.eat("}").then_some((min, max))
    }

    fn count(&mut self) -> Option<u32> {
        let rest = self.rest();
        let length = rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest.get(..length)?;
        if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        self.at += length;
        Some(digits.parse().unwrap_or(u32::MAX))
    }

    fn alternative(&mut self) {
        let branch = self.concatenation();
        self.branches.push(branch);
    }

    fn concatenation(&mut self) -> (Tree, u32) {
        let items = std::mem::take(&mut self.items);
        let product = items.iter().map(|(_, product)| *product).max().unwrap_or(1);
        let mut trees: Vec<Tree> = items.into_iter().map(|(tree, _)| tree).collect();
        match trees.len() {
            0 => (Tree::Empty, 1),
            1 => (trees.pop().unwrap_or(Tree::Empty), product),
            _ => (Tree::Concat(trees), product),
        }
    }

    fn branch_end(&mut self) -> (Tree, u32) {
        let (last, product) = self.concatenation();
        if self.branches.is_empty() {
            return (last, product);
        }
        let branches = std::mem::take(&mut self.branches);
        let product = branches.iter().map(|(_, product)| *product).fold(product, u32::max);
        let trees = branches.into_iter().map(|(tree, _)| tree).chain([last]);
        (Tree::Alternate(trees.collect()), product)
    }

    fn group(&mut self) -> PatternResult<()> {
        let at = self.at;
        if self.open.len() >= limits::DEPTH {
            return Err(PatternError { message: "groups are nested too deeply", at });
        }
        let before = self.flags;
        let mut capture = Some(self.names.len());
        if self.eat("(?P<") {
            let length = self
                .rest()
                .find('>')
                .ok_or(PatternError { message: "the group name has no closing `>`", at })?;
            let name = self.rest().get(..length).unwrap_or_default();
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(PatternError { message: "a group name consists of letters, digits and `_`", at });
            }
            self.names.push(Some(name.to_owned()));
            self.at += length + 1;
        } else if self.eat("(?") {
            capture = None;
            if !self.flag_letters(at)? {
                return Ok(());
            }
        } else {
            self.at += 1;
            self.names.push(None);
        }
        self.open.push(Open {
            capture,
            flags: before,
            branches: std::mem::take(&mut self.branches),
            items: std::mem::take(&mut self.items),
            at,
        });
        Ok(())
    }

    /// Reads flags such as `i:` or `s-m)`. Returns true if they open a group.
    fn flag_letters(&mut self, at: usize) -> PatternResult<bool> {
        let mut flags = self.flags;
        let (mut set, mut seen) = (true, false);
        while let Some(rune) = self.next() {
            match rune {
                'i' => flags.fold = set,
                'm' => flags.multi_line = set,
                's' => flags.dot_all = set,
                'U' => flags.lazy = set,
                '-' if set => {
                    set = false;
                    seen = false;
                    continue;
                }
                ':' | ')' if set || seen => {
                    self.flags = flags;
                    return Ok(rune == ':');
                }
                _ => break,
            }
            seen = true;
        }
        Err(PatternError { message: "RE2 does not support this kind of group", at })
    }

    fn close(&mut self) -> PatternResult<()> {
        let at = self.at;
        self.at += 1;
        let (tree, product) = self.branch_end();
        let Some(open) = self.open.pop() else {
            return Err(PatternError { message: "unmatched `)`", at });
        };
        self.flags = open.flags;
        self.branches = open.branches;
        self.items = open.items;
        let tree = match open.capture {
            Some(number) => Tree::Group(number, Box::new(tree)),
            None => tree,
        };
        self.items.push((tree, product));
        Ok(())
    }

    fn escape(&mut self) -> PatternResult<()> {
        let assertion = match self.rest().as_bytes().get(1) {
            Some(b'A') => Some(Assertion::Start),
            Some(b'z') => Some(Assertion::End),
            Some(b'b') => Some(Assertion::Word),
            Some(b'B') => Some(Assertion::NotWord),
            _ => None,
        };
        if let Some(assertion) = assertion {
            self.at += 2;
            self.push(Tree::Assert(assertion));
            return Ok(());
        }
        if self.eat("\\Q") {
            let rest = self.rest();
            let (literal, skip) = match rest.find("\\E") {
                Some(length) => (rest.get(..length).unwrap_or_default(), length + 2),
                None => (rest, rest.len()),
            };
            for rune in literal.chars() {
                self.literal(Some(rune));
            }
            self.at += skip;
            return Ok(());
        }
        if let Some(class) = self.class_escape()? {
            self.class(&class);
            return Ok(());
        }
        let code = self.character_escape()?;
        self.literal(char::from_u32(code));
        Ok(())
    }
}

pub(super) fn class_of(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(start, end)| ClassUnicodeRange::new(start, end)))
}
