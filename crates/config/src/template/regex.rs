//! `regexReplaceAll`: Go's regular expressions (RE2), read here and run in [`super::pike`].
//!
//! Crates were weighed and left: their syntax is not Go's, they know no bound on steps, and all that is needed beside
//! the reader is a machine of two hundred lines.

use super::budget::Budget;
use super::funcs::Problem;
use super::pike::{self, Assertion, Program};
use crate::limits;
use crate::unicode::{self, Class};
use std::rc::Rc;

/// Replaces what `pattern` matches in `subject` by `to`, in which `$1` and `${name}` stand for groups.
pub(super) fn replace_all(
    pattern: &[u8],
    to: &[u8],
    subject: &[u8],
    budget: &mut Budget,
) -> Result<Vec<u8>, Problem> {
    budget.step(pattern.len() as u64)?;
    let (tree, names) = parse(pattern).map_err(|flaw| flaw.problem(pattern))?;
    // Groups that are not asked for need not be remembered.
    let groups = if to.contains(&b'$') { names.len() } else { 1 };
    let program = Program::compile(&tree, groups).ok_or_else(|| {
        Problem::new(format!("the pattern compiles to more than {} instructions", limits::REGEX_PROGRAM))
            .help("make the repeat counts smaller")
            .at(0)
    })?;
    budget.step(program.len() as u64)?;
    pike::replace_all(&program, &names, to, subject, budget)
}

/// A regular expression.
#[derive(Debug)]
pub(super) enum Tree {
    Empty,
    Class(Rc<[(char, char)]>),
    Assert(Assertion),
    Group(usize, Box<Tree>),
    Concat(Vec<Tree>),
    Alternate(Vec<Tree>),
    Repeat { tree: Box<Tree>, min: u32, max: Option<u32>, greedy: bool },
}

/// Why a pattern is none.
struct Flaw {
    message: &'static str,
    at: usize,
}

impl Flaw {
    fn problem(&self, pattern: &[u8]) -> Problem {
        let rest = pattern.get(self.at..).unwrap_or_default();
        let part: String = String::from_utf8_lossy(rest).chars().take(20).collect();
        let place = if part.is_empty() { "at its end".to_owned() } else { format!("at `{part}`") };
        Problem::new(format!("the pattern is wrong {place}: {}", self.message))
            .help("patterns are RE2's: see https://github.com/google/re2/wiki/Syntax")
            .at(0)
    }
}

#[derive(Clone, Copy, Default)]
struct Flags {
    fold: bool,
    multi_line: bool,
    dot_all: bool,
    lazy: bool,
}

/// A group that is open, with what was read before it.
struct Open {
    capture: Option<usize>,
    /// The flags to return to.
    flags: Flags,
    branches: Vec<(Tree, u32)>,
    items: Vec<(Tree, u32)>,
    at: usize,
}

struct Reader<'p> {
    pattern: &'p str,
    at: usize,
    flags: Flags,
    open: Vec<Open>,
    branches: Vec<(Tree, u32)>,
    /// What the branch has so far; with each item the product of the repeat counts in it.
    items: Vec<(Tree, u32)>,
    names: Vec<Option<String>>,
    /// How many ranges of characters the classes have in all.
    ranges: usize,
}

type Read<T> = Result<T, Flaw>;

/// Go's bound on a repeat count, and on the product of nested ones.
const MOST_REPEATS: u32 = 1000;

/// How many ranges of characters a pattern may have, which bounds its memory.
const MOST_RANGES: usize = 500_000;

/// Reads a pattern; gives also the names of its groups, the first being the whole match.
fn parse(pattern: &[u8]) -> Read<(Tree, Vec<Option<String>>)> {
    let pattern = std::str::from_utf8(pattern)
        .map_err(|error| Flaw { message: "it is not valid UTF-8", at: error.valid_up_to() })?;
    let mut reader = Reader {
        pattern,
        at: 0,
        flags: Flags::default(),
        open: Vec::new(),
        branches: Vec::new(),
        items: Vec::new(),
        names: vec![None],
        ranges: 0,
    };
    reader.all()?;
    if let Some(open) = reader.open.last() {
        return Err(Flaw { message: "this `(` is not closed", at: open.at });
    }
    let (tree, _) = reader.branch_end();
    Ok((tree, reader.names))
}

impl<'p> Reader<'p> {
    fn rest(&self) -> &'p str {
        self.pattern.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let rune = self.peek()?;
        self.at += rune.len_utf8();
        Some(rune)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn push(&mut self, tree: Tree) {
        self.items.push((tree, 1));
    }

    fn class(&mut self, class: &Class) {
        self.ranges += class.ranges().len();
        self.push(Tree::Class(class.ranges().into()));
    }

    fn literal(&mut self, rune: Option<char>) {
        let mut class = Class::default();
        // A code that is no character (half of a surrogate pair) matches nothing.
        if let Some(rune) = rune {
            class.add(rune, rune);
            self.fold(&mut class);
        }
        self.class(&class);
    }

    fn fold(&self, class: &mut Class) {
        if self.flags.fold {
            unicode::fold(class);
        }
    }

    fn all(&mut self) -> Read<()> {
        let mut repeated: Option<usize> = None;
        while let Some(rune) = self.peek() {
            let at = self.at;
            let last = repeated.take();
            if self.ranges > MOST_RANGES {
                return Err(Flaw { message: "its classes of characters are too large", at });
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
                    let class =
                        if self.flags.dot_all { Class::any() } else { Class::of(&[('\n', '\n')]).negated() };
                    self.class(&class);
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
                        let fits = |count: u32| count <= MOST_REPEATS;
                        if !fits(min) || !max.is_none_or(fits) || max.is_some_and(|max| min > max) {
                            return Err(Flaw { message: "the repeat count is too large or upside down", at });
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
    ) -> Read<()> {
        let lazy = self.eat("?") != self.flags.lazy;
        if let Some(last) = last {
            return Err(Flaw { message: "a repetition cannot be repeated again", at: last });
        }
        let Some((tree, product)) = self.items.pop() else {
            return Err(Flaw { message: "there is nothing to repeat", at });
        };
        let times = if counted { max.unwrap_or(min).max(1) } else { 1 };
        // What is repeated no times at all does not count.
        let product = if max == Some(0) { 1 } else { product.saturating_mul(times) };
        if counted && times >= 2 && product > MOST_REPEATS {
            return Err(Flaw { message: "nested repeats multiply to more than 1000", at });
        }
        self.items.push((Tree::Repeat { tree: Box::new(tree), min, max, greedy: !lazy }, product));
        Ok(())
    }

    /// `{n}`, `{n,}` or `{n,m}`; anything else is literal text. A number that is too large comes out as such.
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

    fn group(&mut self) -> Read<()> {
        let at = self.at;
        if self.open.len() >= limits::TEMPLATE_DEPTH {
            return Err(Flaw { message: "groups nest too deep", at });
        }
        let before = self.flags;
        let mut capture = Some(self.names.len());
        if self.eat("(?P<") {
            let length =
                self.rest().find('>').ok_or(Flaw { message: "the name of the group has no `>`", at })?;
            let name = self.rest().get(..length).unwrap_or_default();
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(Flaw { message: "the name of a group has letters, digits and `_`", at });
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

    /// Reads `i:` or `s-m)`; true when it opens a group.
    fn flag_letters(&mut self, at: usize) -> Read<bool> {
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
        Err(Flaw { message: "this kind of group does not exist in RE2", at })
    }

    fn close(&mut self) -> Read<()> {
        let at = self.at;
        self.at += 1;
        let (tree, product) = self.branch_end();
        let Some(open) = self.open.pop() else {
            return Err(Flaw { message: "this `)` closes nothing", at });
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

    fn escape(&mut self) -> Read<()> {
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

    /// `\d`, `\pL` and their like.
    fn class_escape(&mut self) -> Read<Option<Class>> {
        let at = self.at;
        let Some(letter @ (b'd' | b'D' | b's' | b'S' | b'w' | b'W' | b'p' | b'P')) =
            self.rest().as_bytes().get(1).copied()
        else {
            return Ok(None);
        };
        if !self.rest().starts_with('\\') {
            return Ok(None);
        }
        self.at += 2;
        let mut negated = letter.is_ascii_uppercase();
        let mut class = match letter.to_ascii_lowercase() {
            b'd' => Class::of(&[('0', '9')]),
            b's' => Class::of(&[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')]),
            b'w' => Class::of(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
            _ => {
                let unknown = Flaw { message: "there is no such class of characters", at };
                let name = if self.eat("{") {
                    let Some(length) = self.rest().find('}') else { return Err(unknown) };
                    let name = self.rest().get(..length).unwrap_or_default();
                    self.at += length + 1;
                    name
                } else {
                    let start = self.at;
                    self.next();
                    self.pattern.get(start..self.at).unwrap_or_default()
                };
                let bare = name.strip_prefix('^').unwrap_or(name);
                negated ^= bare.len() != name.len();
                unicode::class(bare).ok_or(unknown)?
            }
        };
        self.fold(&mut class);
        if negated {
            class = class.negated();
        }
        Ok(Some(class))
    }

    fn character_escape(&mut self) -> Read<u32> {
        let at = self.at;
        let wrong = || Flaw { message: "there is no such escape", at };
        self.at += 1;
        let rune = self.next().ok_or(Flaw { message: "a lone backslash ends it", at })?;
        let octal = |rune: Option<char>| rune.and_then(|rune| rune.to_digit(8));
        match rune {
            '1'..='7' if octal(self.peek()).is_none() => Err(wrong()),
            '0'..='7' => {
                let mut code = rune.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = octal(self.peek()) else { break };
                    code = code * 8 + digit;
                    self.at += 1;
                }
                Ok(code)
            }
            'x' => self.hexadecimal().ok_or_else(wrong),
            'a' => Ok(7),
            'f' => Ok(12),
            'n' => Ok(10),
            'r' => Ok(13),
            't' => Ok(9),
            'v' => Ok(11),
            _ if rune.is_ascii() && !rune.is_ascii_alphanumeric() => Ok(u32::from(rune)),
            _ => Err(wrong()),
        }
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        if !self.eat("{") {
            let high = self.next()?.to_digit(16)?;
            return Some(high * 16 + self.next()?.to_digit(16)?);
        }
        let mut code: Option<u32> = None;
        loop {
            match self.next()? {
                '}' => return code,
                digit => code = Some(code.unwrap_or(0) * 16 + digit.to_digit(16)?),
            }
            if code.is_some_and(|code| code > u32::from(char::MAX)) {
                return None;
            }
        }
    }

    fn bracket(&mut self) -> Read<Class> {
        let open = self.at;
        self.at += 1;
        let negated = self.eat("^");
        let mut class = Class::default();
        let mut first = true;
        loop {
            match self.peek() {
                None => return Err(Flaw { message: "this `[` is not closed", at: open }),
                Some(']') if !first => break,
                Some(_) => {}
            }
            first = false;
            if let Some(named) = self.named_class()? {
                class.add_all(&named);
                continue;
            }
            if self.rest().starts_with('\\')
                && let Some(escaped) = self.class_escape()?
            {
                class.add_all(&escaped);
                continue;
            }
            let at = self.at;
            let low = self.class_character(open)?;
            let mut high = low;
            let rest = self.rest().as_bytes();
            if rest.first() == Some(&b'-') && rest.get(1).is_some_and(|&byte| byte != b']') {
                self.at += 1;
                high = self.class_character(open)?;
                if high < low {
                    return Err(Flaw { message: "this range of characters is upside down", at });
                }
            }
            let mut part = Class::default();
            part.add_codes(low, high);
            self.fold(&mut part);
            class.add_all(&part);
        }
        self.at += 1;
        if negated {
            class = class.negated();
        }
        Ok(class)
    }

    fn class_character(&mut self, open: usize) -> Read<u32> {
        match self.peek() {
            None => Err(Flaw { message: "this `[` is not closed", at: open }),
            Some('\\') => self.character_escape(),
            Some(rune) => {
                self.at += rune.len_utf8();
                Ok(u32::from(rune))
            }
        }
    }

    /// `[:alpha:]`
    fn named_class(&mut self) -> Read<Option<Class>> {
        let Some(inner) = self.rest().strip_prefix("[:") else { return Ok(None) };
        let Some(length) = inner.find(":]") else { return Ok(None) };
        let name = inner.get(..length).unwrap_or_default();
        let bare = name.strip_prefix('^').unwrap_or(name);
        let ranges: &[(char, char)] = match bare {
            "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
            "alpha" => &[('A', 'Z'), ('a', 'z')],
            "ascii" => &[('\0', '\x7f')],
            "blank" => &[('\t', '\t'), (' ', ' ')],
            "cntrl" => &[('\0', '\x1f'), ('\x7f', '\x7f')],
            "digit" => &[('0', '9')],
            "graph" => &[('!', '~')],
            "lower" => &[('a', 'z')],
            "print" => &[(' ', '~')],
            "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
            "space" => &[('\t', '\r'), (' ', ' ')],
            "upper" => &[('A', 'Z')],
            "word" => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
            "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
            _ => return Err(Flaw { message: "there is no such class of characters", at: self.at }),
        };
        self.at += length + 4;
        let mut class = Class::of(ranges);
        self.fold(&mut class);
        if bare.len() != name.len() {
            class = class.negated();
        }
        Ok(Some(class))
    }
}
