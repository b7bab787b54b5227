//! A Pike machine: all threads of a match advance together, one character at a time, in order of preference.
//!
//! Matching takes time proportional to the pattern and the subject. Each step is charged to the budget, because finding
//! all matches can still take quadratic time.

use std::rc::Rc;
use std::sync::Arc;

use crate::budget::Budget;
use crate::error::FunctionError;
use crate::functions::regex::pattern::{Assertion, Tree};
use crate::limits;
use crate::utf8::decode;

#[derive(Clone, Debug)]
enum Instruction {
    Class(Arc<[(char, char)]>),
    Assert(Assertion),
    /// Stores the position in this slot.
    Save(usize),
    /// Continues at the first target; at the second if that fails.
    Split(usize, usize),
    Jump(usize),
    Match,
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct PatternProgram {
    code: Vec<Instruction>,
    slots: usize,
    /// Whether a match can only start where the text does.
    anchored: bool,
}

/// What the first byte of a text tells about whether it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstByte {
    Matches,
    Fails,
    Undecided,
}

/// The instructions that are reached without reading a character.
struct Reached {
    classes: Vec<usize>,
    /// Whether one of them is the match.
    matches: bool,
    /// Whether some depend on what surrounds the position.
    uncertain: bool,
}

impl PatternProgram {
    /// Compiles a pattern; `None` if the program is too large.
    pub(crate) fn compile(tree: &Tree, groups: usize) -> Option<Self> {
        let mut program = Self { code: Vec::new(), slots: groups * 2, anchored: false };
        program.add(Instruction::Save(0))?;
        program.tree(tree)?;
        program.add(Instruction::Save(1))?;
        program.add(Instruction::Match)?;
        let inside = program.reached(0, |assertion| (assertion != Assertion::Start).then_some(true));
        program.anchored = inside.classes.is_empty() && !inside.matches;
        // Each thread stores the positions of all groups, and there can be one thread per instruction.
        (program.len().saturating_mul(groups) <= limits::REGEX_PROGRAM * 40).then_some(program)
    }

    #[cfg(test)]
    pub(crate) fn unanchored(self) -> Self {
        Self { anchored: false, ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.code.len()
    }

    /// Follows the instructions from `start` on that read no character. `holds` tells whether an assertion holds there; `None` if
    /// that is not known.
    fn reached(&self, start: usize, holds: impl Fn(Assertion) -> Option<bool>) -> Reached {
        let mut reached = Reached { classes: Vec::new(), matches: false, uncertain: false };
        let (mut stack, mut seen) = (vec![start], vec![false; self.len()]);
        while let Some(at) = stack.pop() {
            match seen.get_mut(at) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            match self.code.get(at) {
                Some(Instruction::Class(_)) => reached.classes.push(at),
                Some(Instruction::Save(_)) => stack.push(at + 1),
                Some(Instruction::Jump(target)) => stack.push(*target),
                Some(Instruction::Split(first, second)) => stack.extend([*first, *second]),
                Some(Instruction::Match) => reached.matches = true,
                Some(Instruction::Assert(assertion)) => match holds(*assertion) {
                    Some(true) => stack.push(at + 1),
                    Some(false) => {}
                    None => reached.uncertain = true,
                },
                None => {}
            }
        }
        reached
    }

    /// What each first byte of a text tells; `None` if it tells nothing, because a match may start later.
    pub(crate) fn first_bytes(&self) -> Option<Box<[FirstByte; 256]>> {
        let start = self.reached(0, |assertion| match assertion {
            Assertion::Start | Assertion::LineStart => Some(true),
            Assertion::End => Some(false),
            Assertion::LineEnd | Assertion::Word | Assertion::NotWord => None,
        });
        if !self.anchored || start.uncertain {
            return None;
        }
        let classes = start.classes.iter().filter_map(|at| match self.code.get(*at) {
            Some(Instruction::Class(ranges)) => Some((ranges, self.reached(at + 1, |_| None).matches)),
            _ => None,
        });
        let nothing = if start.matches { FirstByte::Matches } else { FirstByte::Fails };
        let mut first = Box::new([nothing; 256]);
        for (ranges, completes) in classes {
            for (byte, tells) in (0_u8..=255).zip(first.iter_mut()) {
                // A first byte that is not ASCII does not tell the character.
                let (possible, certain) = if byte.is_ascii() {
                    (holds(ranges, byte.into()), completes)
                } else {
                    (ranges.iter().any(|(_, end)| !end.is_ascii()), false)
                };
                if possible && certain {
                    *tells = FirstByte::Matches;
                } else if possible && *tells == FirstByte::Fails {
                    *tells = FirstByte::Undecided;
                }
            }
        }
        Some(first)
    }

    fn add(&mut self, instruction: Instruction) -> Option<usize> {
        if self.code.len() >= limits::REGEX_PROGRAM {
            return None;
        }
        self.code.push(instruction);
        Some(self.code.len() - 1)
    }

    /// A split at `at` between the next instruction and `other`, in the order given by `greedy`.
    fn split(&mut self, at: usize, next: usize, other: usize, greedy: bool) {
        if let Some(instruction) = self.code.get_mut(at) {
            *instruction =
                if greedy { Instruction::Split(next, other) } else { Instruction::Split(other, next) };
        }
    }

    fn tree(&mut self, tree: &Tree) -> Option<()> {
        match tree {
            Tree::Empty => {}
            Tree::Class(ranges) => {
                self.add(Instruction::Class(Arc::clone(ranges)))?;
            }
            Tree::Assert(assertion) => {
                self.add(Instruction::Assert(*assertion))?;
            }
            Tree::Group(number, inner) => {
                self.add(Instruction::Save(number * 2))?;
                self.tree(inner)?;
                self.add(Instruction::Save(number * 2 + 1))?;
            }
            Tree::Concat(parts) => {
                for part in parts {
                    self.tree(part)?;
                }
            }
            Tree::Alternate(branches) => self.alternate(branches)?,
            Tree::Repeat { tree, min, max, greedy } => self.repeat(tree, *min, *max, *greedy)?,
        }
        Some(())
    }

    fn alternate(&mut self, branches: &[Tree]) -> Option<()> {
        let mut exits = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            if index + 1 == branches.len() {
                self.tree(branch)?;
                break;
            }
            let split = self.add(Instruction::Match)?;
            self.tree(branch)?;
            exits.push(self.add(Instruction::Match)?);
            let next = self.code.len();
            self.split(split, split + 1, next, true);
        }
        let end = self.code.len();
        for exit in exits {
            if let Some(instruction) = self.code.get_mut(exit) {
                *instruction = Instruction::Jump(end);
            }
        }
        Some(())
    }

    fn repeat(&mut self, tree: &Tree, min: u32, max: Option<u32>, greedy: bool) -> Option<()> {
        // Copying nothing many times would still take time.
        let times = if matches!(tree, Tree::Empty) { min.min(1) } else { min };
        let Some(max) = max else {
            if min == 0 {
                // As `(tree+)?`, which keeps the order of preference when the tree can match nothing.
                let split = self.add(Instruction::Match)?;
                self.plus(tree, greedy)?;
                let end = self.code.len();
                self.split(split, split + 1, end, greedy);
                return Some(());
            }
            for _ in 1..times {
                self.tree(tree)?;
            }
            return self.plus(tree, greedy);
        };
        for _ in 0..times {
            self.tree(tree)?;
        }
        let mut splits = Vec::new();
        for _ in 0..max.saturating_sub(min) {
            splits.push(self.add(Instruction::Match)?);
            self.tree(tree)?;
        }
        let end = self.code.len();
        for split in splits {
            self.split(split, split + 1, end, greedy);
        }
        Some(())
    }

    fn plus(&mut self, tree: &Tree, greedy: bool) -> Option<()> {
        let start = self.code.len();
        self.tree(tree)?;
        let split = self.add(Instruction::Match)?;
        self.split(split, start, split + 1, greedy);
        Some(())
    }
}

/// Start and end of each group; `usize::MAX` for a group that did not match.
pub(crate) type Slots = Rc<[usize]>;

pub(crate) const NONE: usize = usize::MAX;

/// The threads at one position of the subject, in order of preference.
struct Threads {
    list: Vec<(usize, Slots)>,
    /// The round in which each instruction was last added.
    seen: Vec<u64>,
    round: u64,
}

impl Threads {
    fn new(size: usize) -> Self {
        Self { list: Vec::new(), seen: vec![0; size], round: 1 }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.round += 1;
    }
}

enum Work {
    Visit(usize),
    Restore(Slots),
}

pub(crate) struct Machine<'p> {
    program: &'p PatternProgram,
    subject: &'p [u8],
    now: Threads,
    later: Threads,
    /// The stack of `follow`; a field so that its memory is reused.
    stack: Vec<Work>,
    steps: u64,
}

impl<'p> Machine<'p> {
    pub(crate) fn new(program: &'p PatternProgram, subject: &'p [u8]) -> Self {
        let size = program.len();
        Self {
            program,
            subject,
            now: Threads::new(size),
            later: Threads::new(size),
            stack: Vec::new(),
            steps: 0,
        }
    }

    /// The leftmost match at or after `from`; of several that start there, the preferred one.
    pub(crate) fn find(&mut self, from: usize, budget: &mut Budget) -> Result<Option<Slots>, FunctionError> {
        let mut found: Option<Slots> = None;
        self.now.clear();
        let mut at = from;
        let empty: Slots = vec![NONE; self.program.slots].into();
        loop {
            if found.is_none() {
                self.follow(0, at, &empty, true);
            }
            if self.now.list.is_empty() && (found.is_some() || self.program.anchored && at > 0) {
                break;
            }
            self.steps += 1;
            self.charge(budget)?;
            let (rune, width) = decode(self.subject.get(at..).unwrap_or_default());
            self.later.clear();
            let threads = std::mem::take(&mut self.now.list);
            for (counter, slots) in &threads {
                self.steps += 1;
                match self.program.code.get(*counter) {
                    Some(Instruction::Match) => {
                        found = Some(Rc::clone(slots));
                        // The remaining threads are less preferred.
                        break;
                    }
                    Some(Instruction::Class(ranges)) if width > 0 && holds(ranges, rune) => {
                        self.follow(counter + 1, at + width, slots, false);
                    }
                    _ => {}
                }
            }
            std::mem::swap(&mut self.now, &mut self.later);
            self.later.list = threads;
            if width == 0 {
                break;
            }
            at += width;
        }
        self.charge(budget)?;
        Ok(found)
    }

    fn charge(&mut self, budget: &mut Budget) -> Result<(), FunctionError> {
        // Two steps of the machine cost as much as one step of the template.
        if self.steps >= 2 {
            budget.step(self.steps / 2)?;
            self.steps %= 2;
        }
        Ok(())
    }

    /// Adds the thread at `counter`, and every thread it reaches without reading a character.
    fn follow(&mut self, counter: usize, at: usize, slots: &Slots, now: bool) {
        let program = self.program;
        let mut stack = std::mem::take(&mut self.stack);
        let mut slots = Rc::clone(slots);
        stack.push(Work::Visit(counter));
        while let Some(work) = stack.pop() {
            let counter = match work {
                Work::Visit(counter) => counter,
                Work::Restore(before) => {
                    slots = before;
                    continue;
                }
            };
            self.steps += 1;
            let threads = if now { &mut self.now } else { &mut self.later };
            match threads.seen.get_mut(counter) {
                Some(seen) if *seen != threads.round => *seen = threads.round,
                _ => continue,
            }
            match program.code.get(counter) {
                Some(Instruction::Jump(target)) => stack.push(Work::Visit(*target)),
                Some(Instruction::Split(first, second)) => {
                    stack.push(Work::Visit(*second));
                    stack.push(Work::Visit(*first));
                }
                Some(Instruction::Save(slot)) if *slot >= program.slots => {
                    stack.push(Work::Visit(counter + 1))
                }
                Some(Instruction::Save(slot)) => {
                    stack.push(Work::Restore(Rc::clone(&slots)));
                    let mut saved = slots.to_vec();
                    if let Some(place) = saved.get_mut(*slot) {
                        *place = at;
                    }
                    // Copying the slots takes time too.
                    self.steps += saved.len() as u64 / 16;
                    slots = saved.into();
                    stack.push(Work::Visit(counter + 1));
                }
                Some(Instruction::Assert(assertion)) if asserts(*assertion, self.subject, at) => {
                    stack.push(Work::Visit(counter + 1));
                }
                Some(Instruction::Class(_) | Instruction::Match) => {
                    threads.list.push((counter, Rc::clone(&slots)))
                }
                Some(Instruction::Assert(_)) | None => {}
            }
        }
        self.stack = stack;
    }
}

fn asserts(assertion: Assertion, subject: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|index| subject.get(index)).copied();
    let after = subject.get(at).copied();
    let word = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match assertion {
        Assertion::Start => at == 0,
        Assertion::End => at == subject.len(),
        Assertion::LineStart => at == 0 || before == Some(b'\n'),
        Assertion::LineEnd => at == subject.len() || after == Some(b'\n'),
        Assertion::Word => word(before) != word(after),
        Assertion::NotWord => word(before) == word(after),
    }
}

/// Returns true if one of the sorted `ranges` contains the character.
fn holds(ranges: &[(char, char)], rune: char) -> bool {
    if let [(start, end)] = ranges {
        return (*start..=*end).contains(&rune);
    }
    let after = ranges.partition_point(|&(start, _)| start <= rune);
    after.checked_sub(1).and_then(|index| ranges.get(index)).is_some_and(|&(_, end)| rune <= end)
}
