//! The part of Markdown that the manual uses: headings, paragraphs, lists, tables, code blocks, code, emphasis, links and
//! pictures.

use std::ops::Range;

/// A block of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Block {
    /// A heading with its level.
    Heading(usize, String),
    /// Text, with its lines joined.
    Paragraph(String),
    /// The lines of a code block.
    Code(Vec<String>),
    /// A list.
    List(Vec<Item>),
    /// A table; the first row is its head.
    Table(Vec<Vec<String>>),
}

/// An item of a list.
#[derive(Debug, PartialEq, Eq)]
pub struct Item {
    /// `-` or `1.`.
    pub marker: String,
    /// Its first paragraph.
    pub text: String,
    /// The blocks after that.
    pub rest: Vec<Block>,
}

/// A link or a picture.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    /// Its place in the page.
    pub range: Range<usize>,
    /// What is between the brackets.
    pub text: String,
    /// The path or address.
    pub target: String,
    /// `![…](…)`.
    pub is_picture: bool,
}

/// A heading with its place in the page.
#[derive(Debug, PartialEq, Eq)]
pub struct Heading {
    /// 1 for the title of the page.
    pub level: usize,
    /// Its Markdown.
    pub text: String,
    /// Where its line starts.
    pub start: usize,
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    text.strip_prefix(' ').filter(|_| (1..=6).contains(&level)).map(|text| (level, text.trim()))
}

fn fence(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("```")
}

/// The marker of an item, and the width of its indentation.
fn marker(line: &str) -> Option<(&str, usize)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let end = match line.get(digits..)? {
        rest if digits > 0 && rest.starts_with(". ") => digits + 1,
        _ if line.starts_with("- ") => 1,
        _ => return None,
    };
    Some((line.get(..end)?, end + 1))
}

/// The lines of a page that are not in a code block, with their places.
fn lines_outside_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut place, mut in_code) = (0, false);
    text.split_inclusive('\n').filter_map(move |line| {
        let start = place;
        place += line.len();
        let is_fence = fence(line).is_some();
        in_code ^= is_fence;
        (!in_code && !is_fence).then_some((start, line))
    })
}

/// All headings of a page.
#[must_use]
pub fn headings(text: &str) -> Vec<Heading> {
    let lines = lines_outside_code(text);
    let found = lines.filter_map(|(start, line)| {
        heading(line).map(|(level, text)| Heading { level, text: text.to_owned(), start })
    });
    found.collect()
}

/// The blocks of a page.
#[must_use]
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if fence(line).is_some() {
            let code = lines.by_ref().take_while(|line| fence(line).is_none());
            blocks.push(Block::Code(code.map(str::to_owned).collect()));
        } else if let Some((level, text)) = heading(line) {
            blocks.push(Block::Heading(level, text.to_owned()));
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(cells(row));
            }
            rows.retain(|row| !row.iter().all(|cell| is_rule(cell)));
            blocks.push(Block::Table(rows));
        } else if let Some((marker, indentation)) = marker(line) {
            let mut inside = line.get(indentation..).unwrap_or_default().to_owned();
            while let Some(line) = lines.next_if(|line| line.starts_with("  ") || line.is_empty()) {
                let blank = line.len() - line.trim_start().len();
                inside.push('\n');
                inside.push_str(line.get(blank.min(indentation)..).unwrap_or_default());
            }
            let mut rest = self::blocks(&inside);
            let text = match rest.first() {
                Some(Block::Paragraph(text)) => text.clone(),
                _ => String::new(),
            };
            rest.drain(..rest.len().min(usize::from(!text.is_empty())));
            let item = Item { marker: marker.to_owned(), text, rest };
            match blocks.last_mut() {
                Some(Block::List(items)) => items.push(item),
                _ => blocks.push(Block::List(vec![item])),
            }
        } else if !line.trim().is_empty() {
            let mut text = line.trim().to_owned();
            let continues = |line: &&str| {
                let ends = line.trim().is_empty() || line.starts_with('|') || marker(line).is_some();
                !ends && fence(line).is_none() && heading(line).is_none()
            };
            while let Some(line) = lines.next_if(continues) {
                text.push(' ');
                text.push_str(line.trim());
            }
            blocks.push(Block::Paragraph(text));
        }
    }
    blocks
}

fn is_rule(cell: &str) -> bool {
    !cell.is_empty() && cell.bytes().all(|byte| matches!(byte, b'-' | b':'))
}

/// The cells of a row. `\|` is a bar.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|');
    let line = line.strip_suffix('|').unwrap_or(line).replace("\\|", "\0");
    line.split('|').map(|cell| cell.trim().replace('\0', "|")).collect()
}

/// The length of the code span at the start of a text, with its backquotes.
fn code_span(text: &str) -> Option<usize> {
    let marks = text.bytes().take_while(|byte| *byte == b'`').count();
    if marks == 0 {
        return None;
    }
    let mut place = marks;
    loop {
        place += text.get(place..)?.find('`')?;
        let run = text.get(place..)?.bytes().take_while(|byte| *byte == b'`').count();
        place += run;
        if run == marks {
            return Some(place);
        }
    }
}

/// The link or picture at the start of a text, with its place in that.
fn link(text: &str) -> Option<Link> {
    let is_picture = text.starts_with('!');
    let start = usize::from(is_picture) + 1;
    text.get(..start)?.ends_with('[').then_some(())?;
    let (mut place, mut depth) = (start, 1);
    while depth > 0 {
        let rest = text.get(place..)?;
        let next = rest.chars().next()?;
        match next {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        place += code_span(rest).unwrap_or(next.len_utf8());
    }
    let target = text.get(place..)?.strip_prefix('(')?;
    let length = target.find(')')?;
    let target = target.get(..length)?;
    let is_target = !target.is_empty() && !target.contains(char::is_whitespace);
    is_target.then(|| Link {
        range: 0..place + length + 2,
        text: text.get(start..place - 1).unwrap_or_default().to_owned(),
        target: target.to_owned(),
        is_picture,
    })
}

/// All links and pictures of a page, outside of code.
#[must_use]
pub fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    let mut places = Vec::new();
    // The text of a link may have line breaks, so lines that follow each other are searched together.
    for (start, line) in lines_outside_code(text) {
        match places.last_mut() {
            Some(Range { end, .. }) if *end == start => *end += line.len(),
            _ => places.push(start..start + line.len()),
        }
    }
    for Range { start: mut place, end } in places {
        while let Some(rest) = text.get(place..end).filter(|rest| !rest.is_empty()) {
            if let Some(link) = link(rest) {
                let range = place..place + link.range.end;
                place = range.end;
                found.push(Link { range, ..link });
            } else {
                place += code_span(rest).unwrap_or_else(|| rest.chars().next().map_or(1, char::len_utf8));
            }
        }
    }
    found
}

/// A text without emphasis and without the marks of links. Code keeps its backquotes. `reference` says what follows the text of
/// a link.
#[must_use]
pub fn inline(text: &str, reference: &dyn Fn(&Link) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let length = if let Some(length) = code_span(rest) {
            out.push_str(rest.get(..length).unwrap_or_default());
            length
        } else if let Some(link) = link(rest) {
            out.push_str(&inline(&link.text, reference));
            out.push_str(&reference(&link));
            link.range.end
        } else {
            // A star between blanks is a star.
            let is_star = next == '*' && !(out.ends_with(' ') && rest.starts_with("* "));
            if !is_star {
                out.push(if next == '\n' { ' ' } else { next });
            }
            next.len_utf8()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// A text without any marks but the backquotes of code.
#[must_use]
pub fn plain(text: &str) -> String {
    inline(text, &|_| String::new())
}
