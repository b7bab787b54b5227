//! Runs regular expressions in time proportional to pattern and subject, whatever they are: all threads of the match
//! advance together, one character at a time, the preferred ones first.

use super::budget::Budget;
use super::funcs::Problem;
use super::letters::{self, decode};
use super::regex::Tree;
use crate::limits;
use crate::unicode::holds;
use std::rc::Rc;

/// A condition on a place in the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assertion {
    Start,
    End,
    LineStart,
    LineEnd,
    Word,
    NotWord,
}

#[derive(Clone, Debug)]
enum Instruction {
    Class(Rc<[(char, char)]>),
    Assert(Assertion),
    /// Remember the place in this slot.
    Save(usize),
    /// Go on at the first, or else at the second.
    Split(usize, usize),
    Jump(usize),
    Match,
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Program {
    code: Vec<Instruction>,
    slots: usize,
}

impl Program {
    /// Compiles a tree; `None` when it is too large.
    pub(super) fn compile(tree: &Tree, groups: usize) -> Option<Self> {
        let mut program = Self { code: Vec::new(), slots: groups * 2 };
        program.add(Instruction::Save(0))?;
        program.tree(tree)?;
        program.add(Instruction::Save(1))?;
        program.add(Instruction::Match)?;
        // A thread remembers all groups, and there can be as many threads as instructions.
        (program.len().saturating_mul(groups) <= limits::REGEX_PROGRAM * 40).then_some(program)
    }

    pub(super) fn len(&self) -> usize {
        self.code.len()
    }

    fn add(&mut self, instruction: Instruction) -> Option<usize> {
        if self.code.len() >= limits::REGEX_PROGRAM {
            return None;
        }
        self.code.push(instruction);
        Some(self.code.len() - 1)
    }

    /// A split at `at` between the next instruction and `other`, in the order that `greedy` asks for.
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
                self.add(Instruction::Class(Rc::clone(ranges)))?;
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

/// Where each group begins and ends; `usize::MAX` for a group that took no part.
type Slots = Rc<[usize]>;

const NONE: usize = usize::MAX;

/// The threads at one place of the subject, in order of preference.
struct Threads {
    list: Vec<(usize, Slots)>,
    /// For each instruction the round in which it was last added.
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

struct Machine<'p> {
    program: &'p Program,
    subject: &'p [u8],
    now: Threads,
    later: Threads,
    /// Work of `follow`, kept for its memory.
    stack: Vec<Work>,
    steps: u64,
}

impl Machine<'_> {
    /// The leftmost match at or after `from`, the preferred one of those that begin there.
    fn find(&mut self, from: usize, budget: &mut Budget) -> Result<Option<Slots>, Problem> {
        let mut found: Option<Slots> = None;
        self.now.clear();
        let mut at = from;
        let empty: Slots = vec![NONE; self.program.slots].into();
        loop {
            if found.is_none() {
                self.follow(0, at, &empty, true);
            }
            if self.now.list.is_empty() && found.is_some() {
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
                        // The rest are less preferred.
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

    fn charge(&mut self, budget: &mut Budget) -> Result<(), Problem> {
        // A move of the machine is cheaper than a step of the template.
        if self.steps >= 2 {
            budget.step(self.steps / 2)?;
            self.steps %= 2;
        }
        Ok(())
    }

    /// Adds the thread at `counter` and all that it leads to without reading a character.
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
                    // Copying many slots is work too.
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

/// Replaces every match of the program in `subject` by the expansion of `to`.
pub(super) fn replace_all(
    program: &Program,
    names: &[Option<String>],
    to: &[u8],
    subject: &[u8],
    budget: &mut Budget,
) -> Result<Vec<u8>, Problem> {
    let size = program.len();
    let mut machine = Machine {
        program,
        subject,
        now: Threads::new(size),
        later: Threads::new(size),
        stack: Vec::new(),
        steps: 0,
    };
    let mut out = Vec::new();
    let (mut copied, mut search) = (0, 0);
    while search <= subject.len() {
        let Some(slots) = machine.find(search, budget)? else { break };
        let (start, end) = (slots.first().copied().unwrap_or(0), slots.get(1).copied().unwrap_or(0));
        let length = out.len();
        out.extend_from_slice(subject.get(copied..start).unwrap_or_default());
        // An empty match right after another match is not replaced.
        if end > copied || start == 0 {
            expand(&mut out, to, names, subject, &slots);
        }
        budget.bytes(out.len() - length)?;
        copied = end;
        let (_, width) = decode(subject.get(search..).unwrap_or_default());
        search = if search + width > end {
            search + width
        } else if search + 1 > end {
            search + 1
        } else {
            end
        };
    }
    out.extend_from_slice(subject.get(copied..).unwrap_or_default());
    budget.bytes(subject.len().saturating_sub(copied))?;
    Ok(out)
}

fn expand(out: &mut Vec<u8>, to: &[u8], names: &[Option<String>], subject: &[u8], slots: &[usize]) {
    let mut rest = to;
    while let Some(dollar) = memchr::memchr(b'$', rest) {
        out.extend_from_slice(rest.get(..dollar).unwrap_or_default());
        rest = rest.get(dollar + 1..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix(b"$") {
            out.push(b'$');
            rest = after;
            continue;
        }
        let Some((name, after)) = reference(rest) else {
            out.push(b'$');
            continue;
        };
        rest = after;
        let matched = |group: usize| {
            let start = *slots.get(group * 2)?;
            let end = *slots.get(group * 2 + 1)?;
            if start == NONE { None } else { subject.get(start..end) }
        };
        let number = std::str::from_utf8(name)
            .ok()
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            .filter(|name| *name == "0" || !name.starts_with('0'));
        let part = match number {
            Some(number) => {
                number.parse::<usize>().ok().filter(|&number| number < names.len()).and_then(matched)
            }
            // The first group of that name that took part.
            None => names
                .iter()
                .enumerate()
                .filter(|(_, group)| group.as_ref().is_some_and(|group| group.as_bytes() == name))
                .find_map(|(group, _)| matched(group)),
        };
        out.extend_from_slice(part.unwrap_or_default());
    }
    out.extend_from_slice(rest);
}

/// The name after a `$`, in braces or bare, and what follows it.
fn reference(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(b"{");
    let start = inner.unwrap_or(text);
    let mut length = 0;
    loop {
        let (rune, width) = decode(start.get(length..).unwrap_or_default());
        if width == 0 || !letters::is_name(rune) {
            break;
        }
        length += width;
    }
    if length == 0 {
        return None;
    }
    let (name, rest) = start.split_at_checked(length)?;
    if inner.is_some() { rest.strip_prefix(b"}").map(|rest| (name, rest)) } else { Some((name, rest)) }
}
