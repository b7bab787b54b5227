//! The linker's map: which function is where.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The functions of the binary.
pub(crate) struct Map {
    /// Where each begins, rising, and what it is called.
    functions: Vec<(u64, String)>,
    sizes: HashMap<String, u64>,
}

impl Map {
    /// Reads what the linker wrote beside the binary.
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}; build the release binary first", path.display()));
        let mut functions: Vec<(u64, String)> = Vec::new();
        let mut sizes = HashMap::new();
        let mut in_text = false;
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
            match depth {
                0 => in_text = rest == ".text",
                16 if in_text => {
                    // Of two names for one place, the first.
                    if functions.last().is_none_or(|(last, _)| *last != start) {
                        functions.push((start, rest.trim().to_owned()));
                    }
                    sizes.insert(rest.trim().to_owned(), size);
                }
                _ => {}
            }
        }
        functions.sort_by_key(|(start, _)| *start);
        assert!(functions.len() > 100, "{}: this is no map", path.display());
        Self { functions, sizes }
    }

    /// The place of a function in the list, from an address within it.
    pub(crate) fn place(&self, address: u64) -> Option<usize> {
        let after = self.functions.partition_point(|(start, _)| *start <= address);
        (after < self.functions.len()).then(|| after.checked_sub(1)).flatten()
    }

    /// The name of the function at a place.
    pub(crate) fn name(&self, place: usize) -> &str {
        &self.functions[place].1
    }

    /// How large a function is.
    pub(crate) fn size(&self, name: &str) -> u64 {
        self.sizes.get(name).copied().unwrap_or_default()
    }

    /// Where a function begins.
    pub(crate) fn start(&self, name: &str) -> Option<u64> {
        self.functions.iter().find(|(_, other)| other == name).map(|(start, _)| *start)
    }
}
