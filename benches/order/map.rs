//! The linker's map, and the binary that belongs to it: which function and which constant is where.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// What lies one after the other.
#[derive(Default)]
pub(crate) struct Things {
    /// Where each begins, rising, and what it is called.
    starts: Vec<(u64, String)>,
    sizes: HashMap<String, u64>,
    /// With what comes along: a function of the C library is not to be had without all that is in its file.
    brought: HashMap<String, u64>,
    all: Range<u64>,
}

impl Things {
    fn add(&mut self, start: u64, size: u64, name: &str) {
        // Of two names for one place, the first.
        if self.starts.last().is_none_or(|(last, _)| *last != start) {
            self.starts.push((start, name.to_owned()));
        }
        self.sizes.insert(name.to_owned(), size);
    }

    fn sort(&mut self) {
        self.starts.sort_by_key(|(start, _)| *start);
    }

    /// The place of a thing in the list, from an address within it.
    pub(crate) fn place(&self, address: u64) -> Option<usize> {
        let after = self.starts.partition_point(|(start, _)| *start <= address);
        self.all.contains(&address).then(|| after.checked_sub(1)).flatten()
    }

    /// The name of the thing at a place.
    pub(crate) fn name(&self, place: usize) -> &str {
        &self.starts[place].1
    }

    /// How large a thing is.
    pub(crate) fn size(&self, name: &str) -> u64 {
        self.sizes.get(name).copied().unwrap_or_default()
    }

    /// How large it is with what comes along.
    pub(crate) fn brought(&self, name: &str) -> u64 {
        self.brought.get(name).copied().unwrap_or_else(|| self.size(name))
    }

    /// Where a thing begins.
    pub(crate) fn start(&self, name: &str) -> Option<u64> {
        self.starts.iter().find(|(_, other)| other == name).map(|(start, _)| *start)
    }
}

/// The functions and the constants of the binary.
pub(crate) struct Map {
    pub(crate) functions: Things,
    /// By the names of their sections. What has no name that is its own is left out.
    pub(crate) constants: Things,
    code: Vec<u8>,
}

impl Map {
    /// Reads the binary, and what the linker wrote beside it.
    pub(crate) fn read(binary: &Path) -> Self {
        let path = binary.with_extension("map");
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; build the release binary first", path.display()));
        let (mut functions, mut constants) = (Things::default(), Things::default());
        let mut section = "";
        let mut brought = 0;
        let mut shared = HashSet::new();
        for line in text.lines() {
            // VMA, LMA, size, alignment, and what it is, set in by its depth: a section, a file's part of it, a symbol.
            let mut rest = line;
            let mut columns = Vec::new();
            while columns.len() < 4
                && let Some((column, more)) = rest.trim_start().split_once(' ')
            {
                columns.push(column);
                rest = more;
            }
            let depth = rest.len() - rest.trim_start().len();
            let number = |nth: usize| columns.get(nth).and_then(|text| u64::from_str_radix(text, 16).ok());
            let (Some(start), Some(size)) = (number(0), number(2)) else { continue };
            match (depth, section) {
                (0, _) => {
                    section = rest;
                    match section {
                        ".text" => functions.all = start..start + size,
                        // The first is what was put together the last time.
                        HOT => constants.all = start..start + size,
                        ".rodata" => constants.all = constants.all.start.min(start)..start + size,
                        _ => {}
                    }
                }
                (8, ".text") => brought = size,
                (16, ".text") => {
                    functions.add(start, size, rest.trim());
                    functions.brought.insert(rest.trim().to_owned(), brought);
                }
                (8, HOT | ".rodata") => {
                    let name = rest.rsplit_once(":(").map_or("", |(_, name)| name.trim_end_matches(')'));
                    if constants.sizes.contains_key(name) {
                        shared.insert(name.to_owned());
                    }
                    constants.add(start, size, name);
                }
                _ => {}
            }
        }
        functions.sort();
        constants.sort();
        for (_, name) in &mut constants.starts {
            // A large table would stand between what is used together.
            let large = constants.sizes.get(name).is_some_and(|size| *size > 16 << 10);
            if large
                || shared.contains(name)
                || !name.starts_with(".rodata.")
                || name.starts_with(".rodata.str")
            {
                name.clear();
            }
        }
        assert!(functions.starts.len() > 100, "{}: this is no map", path.display());
        Self { code: code(binary, &functions.all), functions, constants }
    }

    /// The code from an address on.
    pub(crate) fn code(&self, address: u64) -> &[u8] {
        let from = address.checked_sub(self.functions.all.start).and_then(|from| usize::try_from(from).ok());
        from.and_then(|from| self.code.get(from..)).unwrap_or_default()
    }
}

/// The section of constants that are used together, see `build.rs`.
pub(crate) const HOT: &str = ".rodata.hot";

/// What is loaded to these addresses.
fn code(binary: &Path, addresses: &Range<u64>) -> Vec<u8> {
    let file = fs::read(binary).unwrap();
    let number = |at: u64, size: usize| -> u64 {
        let at = usize::try_from(at).unwrap();
        file[at..at + size].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    // ELF: where the program headers begin, how long each is, and how many there are.
    let (start, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    let segment = (0..count).map(|nth| start + nth * size).find_map(|header| {
        let (offset, address, length) =
            (number(header + 8, 8), number(header + 16, 8), number(header + 32, 8));
        let loaded = number(header, 4) == 1 && (address..address + length).contains(&addresses.start);
        loaded.then(|| offset + addresses.start - address)
    });
    let from = usize::try_from(segment.expect("the code is loaded")).unwrap();
    file[from..from + usize::try_from(addresses.end - addresses.start).unwrap()].to_vec()
}
