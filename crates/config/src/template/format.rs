//! `print`, `println` and `printf`: Go's fmt for the values of a template.

use super::letters::{self, decode};
use super::value::Value;
use super::{float, quote};

/// A buffer that stops growing at a limit.
pub(super) struct Output {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl Output {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, full: false }
    }

    /// What was written, unless it was too much.
    pub(super) fn finish(self) -> Option<Vec<u8>> {
        (!self.full).then_some(self.bytes)
    }

    fn room(&mut self, more: usize) -> bool {
        self.full |= self.bytes.len().saturating_add(more) > self.limit;
        !self.full
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.room(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn fill(&mut self, byte: u8, count: usize) {
        if self.room(count) {
            self.bytes.resize(self.bytes.len() + count, byte);
        }
    }
}

/// Values side by side, with a space between two that are not texts.
pub(super) fn print(out: &mut Output, values: &[Value]) {
    let mut after_text = true;
    for value in values {
        let text = matches!(value, Value::Text(_));
        if !text && !after_text {
            out.write(b" ");
        }
        Printer::new(out).argument(value, 'v');
        after_text = text;
    }
}

/// Values with spaces between them and a newline after them.
pub(super) fn println(out: &mut Output, values: &[Value]) {
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.write(b" ");
        }
        Printer::new(out).argument(value, 'v');
    }
    out.write(b"\n");
}

#[derive(Clone, Copy, Default)]
struct Flags {
    width: Option<usize>,
    precision: Option<usize>,
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// `%#v`: Go syntax.
    sharp_v: bool,
}

/// Where `printf` stands in its arguments.
struct Place {
    next: usize,
    /// The format named an argument by its number.
    reordered: bool,
    /// The number was good.
    good: bool,
    after_index: bool,
}

/// Values in the places of the format's verbs.
pub(super) fn printf(out: &mut Output, format: &[u8], values: &[Value]) {
    let mut place = Place { next: 0, reordered: false, good: true, after_index: false };
    let mut rest = format;
    while !out.full {
        let Some(percent) = memchr::memchr(b'%', rest) else {
            out.write(rest);
            break;
        };
        out.write(rest.get(..percent).unwrap_or_default());
        rest = rest.get(percent + 1..).unwrap_or_default();
        place.good = true;
        place.after_index = false;
        let mut flags = Flags::default();
        take_flags(&mut rest, &mut flags);
        index(&mut place, &mut rest, values.len());
        if eat(&mut rest, b'*') {
            match from_argument(&mut place, values) {
                Some(width) => {
                    flags.width = usize::try_from(width.unsigned_abs()).ok();
                    if width < 0 {
                        flags.minus = true;
                        flags.zero = false;
                    }
                }
                None => out.write(b"%!(BADWIDTH)"),
            }
            place.after_index = false;
        } else {
            flags.width = digits(&mut rest);
            if place.after_index && flags.width.is_some() {
                place.good = false;
            }
        }
        // A point that ends the format is the verb itself: Go 1.19 wants something after it.
        if rest.len() > 1 && eat(&mut rest, b'.') {
            if place.after_index {
                place.good = false;
            }
            index(&mut place, &mut rest, values.len());
            if eat(&mut rest, b'*') {
                flags.precision =
                    from_argument(&mut place, values).and_then(|digits| usize::try_from(digits).ok());
                if flags.precision.is_none() {
                    out.write(b"%!(BADPREC)");
                }
                place.after_index = false;
            } else {
                flags.precision = Some(digits(&mut rest).unwrap_or(0));
            }
        }
        if !place.after_index {
            index(&mut place, &mut rest, values.len());
        }
        let (verb, width) = decode(rest);
        if width == 0 {
            out.write(b"%!(NOVERB)");
            break;
        }
        rest = rest.get(width..).unwrap_or_default();
        verb_with(out, &mut place, flags, verb, values);
    }
    if !place.reordered && place.next < values.len() {
        extra(out, values.get(place.next..).unwrap_or_default());
    }
}

fn verb_with(out: &mut Output, place: &mut Place, mut flags: Flags, verb: char, values: &[Value]) {
    if verb == '%' {
        out.write(b"%");
        return;
    }
    let missing = if !place.good { "(BADINDEX)" } else { "(MISSING)" };
    let Some(value) = values.get(place.next).filter(|_| place.good) else {
        out.write(format!("%!{verb}{missing}").as_bytes());
        return;
    };
    place.next += 1;
    if verb == 'v' {
        flags.sharp_v = flags.sharp;
        flags.sharp = false;
        // `%+v` means something for structures only.
        flags.plus = false;
    }
    Printer { out, flags }.argument(value, verb);
}

fn extra(out: &mut Output, values: &[Value]) {
    out.write(b"%!(EXTRA ");
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.write(b", ");
        }
        if matches!(value, Value::Nil) {
            out.write(b"<nil>");
        } else {
            out.write(value.type_name().as_bytes());
            out.write(b"=");
            Printer::new(out).argument(value, 'v');
        }
    }
    out.write(b")");
}

fn take_flags(rest: &mut &[u8], flags: &mut Flags) {
    while let Some((flag, after)) = rest.split_first() {
        match flag {
            b'#' => flags.sharp = true,
            b'0' => flags.zero = !flags.minus,
            b'+' => flags.plus = true,
            b'-' => {
                flags.minus = true;
                flags.zero = false;
            }
            b' ' => flags.space = true,
            _ => return,
        }
        *rest = after;
    }
}

fn eat(rest: &mut &[u8], byte: u8) -> bool {
    match rest.split_first() {
        Some((first, after)) if *first == byte => {
            *rest = after;
            true
        }
        _ => false,
    }
}

/// Go's bound on a width or precision.
const WIDEST: i64 = 1_000_000;

/// A number in the format. One that is too large counts as none, and its digits as read up to there.
fn digits(rest: &mut &[u8]) -> Option<usize> {
    let mut number = None;
    while let Some((digit, after)) = rest.split_first().filter(|(digit, _)| digit.is_ascii_digit()) {
        let value = number.unwrap_or(0);
        if value > WIDEST.unsigned_abs() as usize {
            // Go gives up on the number and its whole format here.
            *rest = &[];
            return None;
        }
        number = Some(value * 10 + usize::from(digit - b'0'));
        *rest = after;
    }
    number
}

/// A width or precision that is an argument.
fn from_argument(place: &mut Place, values: &[Value]) -> Option<i64> {
    let value = values.get(place.next)?;
    place.next += 1;
    match value {
        Value::Int(number) => Some(*number),
        Value::Byte(number) => Some(i64::from(*number)),
        _ => None,
    }
    .filter(|number| (-WIDEST..=WIDEST).contains(number))
}

/// An explicit argument number such as `[3]`.
fn index(place: &mut Place, rest: &mut &[u8], count: usize) {
    if rest.first() != Some(&b'[') {
        place.after_index = false;
        return;
    }
    place.reordered = true;
    let close = rest.iter().position(|&byte| byte == b']').filter(|_| rest.len() >= 3);
    let Some(close) = close else {
        place.good = false;
        *rest = rest.get(1..).unwrap_or_default();
        place.after_index = false;
        return;
    };
    let mut inner = rest.get(1..close).unwrap_or_default();
    let number = digits(&mut inner).filter(|_| inner.is_empty());
    *rest = rest.get(close + 1..).unwrap_or_default();
    match number {
        Some(number) if (1..=count).contains(&number) => {
            place.next = number - 1;
            place.after_index = true;
        }
        number => {
            place.good = false;
            place.after_index = number.is_some();
        }
    }
}

struct Printer<'o> {
    out: &'o mut Output,
    flags: Flags,
}

impl<'o> Printer<'o> {
    fn new(out: &'o mut Output) -> Self {
        Self { out, flags: Flags::default() }
    }

    fn argument(&mut self, value: &Value, verb: char) {
        match (verb, value) {
            ('v' | 'T', Value::Nil) => self.pad(b"<nil>"),
            ('T', _) => self.text(value.type_name().as_bytes()),
            // The address of something that has one: any will do.
            ('p', Value::Ints(_) | Value::Texts(_) | Value::Map(_)) => {
                self.integer(0xc0_0001_0000, false, 16, 'x')
            }
            // Go hands `%w` to the methods of a value that is not basic.
            ('w', Value::Ints(_) | Value::Texts(_) | Value::Map(_)) => self.bad_verb(value, verb),
            _ => self.value(value, verb),
        }
    }

    fn bad_verb(&mut self, value: &Value, verb: char) {
        self.out.write(format!("%!{verb}(").as_bytes());
        if matches!(value, Value::Nil) {
            self.out.write(b"<nil>");
        } else {
            self.out.write(value.type_name().as_bytes());
            self.out.write(b"=");
            self.value(value, 'v');
        }
        self.out.write(b")");
    }

    fn value(&mut self, value: &Value, verb: char) {
        match value {
            Value::Bool(truth) if matches!(verb, 't' | 'v') => {
                self.pad(if *truth { b"true" } else { b"false" });
            }
            Value::Int(number) => self.number(number.cast_unsigned(), true, value, verb),
            Value::Byte(number) => self.number(u64::from(*number), false, value, verb),
            Value::Float(number) if is_float_verb(verb) => self.float(*number, verb),
            Value::Complex(real, imaginary) if is_float_verb(verb) => {
                let plus = self.flags.plus;
                self.out.write(b"(");
                self.float(*real, verb);
                self.flags.plus = true;
                self.float(*imaginary, verb);
                self.out.write(b"i)");
                self.flags.plus = plus;
            }
            Value::Text(text) => match verb {
                'v' if self.flags.sharp_v => self.quoted(text),
                'v' | 's' => self.text(text),
                'x' | 'X' => self.hexadecimal(text, verb == 'X'),
                'q' => self.quoted(text),
                _ => self.bad_verb(value, verb),
            },
            Value::Ints(list) => {
                self.sequence("[]int", list.items().iter().map(|item| (None, Value::Int(*item))), verb);
            }
            Value::Texts(list) => {
                self.sequence(
                    "[]string",
                    list.items().iter().map(|item| (None, Value::Text(item.clone()))),
                    verb,
                );
            }
            Value::Map(map) => {
                let items =
                    map.iter().map(|(key, item)| (Some(Value::Text(key.clone())), Value::Text(item.clone())));
                self.sequence("template.Environment", items, verb);
            }
            Value::Nil | Value::Bool(_) | Value::Float(_) | Value::Complex(..) => self.bad_verb(value, verb),
        }
    }

    fn sequence(&mut self, name: &str, items: impl Iterator<Item = (Option<Value>, Value)>, verb: char) {
        let map = name == "template.Environment";
        let syntax = self.flags.sharp_v;
        self.out.write(match (syntax, map) {
            (true, _) => name.as_bytes(),
            (false, true) => b"map[",
            (false, false) => b"[",
        });
        if syntax {
            self.out.write(b"{");
        }
        for (index, (key, item)) in items.enumerate() {
            if self.out.full {
                return;
            }
            if index > 0 {
                self.out.write(if syntax { b", " } else { b" " });
            }
            if let Some(key) = key {
                self.value(&key, verb);
                self.out.write(b":");
            }
            self.value(&item, verb);
        }
        self.out.write(if syntax { b"}" } else { b"]" });
    }

    /// Writes `bytes`, padded to the width, which counts runes.
    fn pad(&mut self, bytes: &[u8]) {
        let missing = self.flags.width.map_or(0, |width| width.saturating_sub(letters::count(bytes)));
        if !self.flags.minus {
            self.padding(missing);
        }
        self.out.write(bytes);
        if self.flags.minus {
            self.padding(missing);
        }
    }

    fn padding(&mut self, count: usize) {
        self.out.fill(if self.flags.zero { b'0' } else { b' ' }, count);
    }

    fn pad_without_zeros(&mut self, bytes: &[u8]) {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.pad(bytes);
        self.flags.zero = zero;
    }

    /// The text up to the precision, which counts runes.
    fn truncated<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let Some(precision) = self.flags.precision else { return text };
        let mut end = 0;
        for _ in 0..precision {
            let (_, width) = decode(text.get(end..).unwrap_or_default());
            if width == 0 {
                break;
            }
            end += width;
        }
        text.get(..end).unwrap_or(text)
    }

    fn text(&mut self, text: &[u8]) {
        self.pad(self.truncated(text));
    }

    fn quoted(&mut self, text: &[u8]) {
        let text = self.truncated(text);
        // A quoted text is at most ten times as long.
        if !self.out.room(text.len()) {
            return;
        }
        let mut quoted = Vec::with_capacity(text.len() + 2);
        if self.flags.sharp && quote::can_backquote(text) {
            quoted.push(b'`');
            quoted.extend_from_slice(text);
            quoted.push(b'`');
        } else {
            quote::quote(&mut quoted, text, self.flags.plus);
        }
        self.pad(&quoted);
    }

    fn hexadecimal(&mut self, text: &[u8], upper: bool) {
        let text = self.flags.precision.and_then(|precision| text.get(..precision)).unwrap_or(text);
        if text.is_empty() {
            self.padding(self.flags.width.unwrap_or(0));
            return;
        }
        let prefix: &[u8] = if upper { b"0X" } else { b"0x" };
        let mut out = Vec::with_capacity(text.len() * 2 + 2);
        for (index, byte) in text.iter().enumerate() {
            if index > 0 && self.flags.space {
                out.push(b' ');
            }
            if self.flags.sharp && (index == 0 || self.flags.space) {
                out.extend_from_slice(prefix);
            }
            let pair = if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
            out.extend(pair.bytes());
        }
        self.pad(&out);
    }

    fn number(&mut self, number: u64, signed: bool, value: &Value, verb: char) {
        let rune = || u32::try_from(number).ok().and_then(char::from_u32).unwrap_or(letters::REPLACEMENT);
        match verb {
            'v' if self.flags.sharp_v && !signed => {
                let sharp = std::mem::replace(&mut self.flags.sharp, true);
                self.integer(number, signed, 16, 'v');
                self.flags.sharp = sharp;
            }
            'v' | 'd' => self.integer(number, signed, 10, verb),
            'b' => self.integer(number, signed, 2, verb),
            'o' | 'O' => self.integer(number, signed, 8, verb),
            'x' | 'X' => self.integer(number, signed, 16, verb),
            'c' => {
                let mut out = Vec::new();
                letters::push(&mut out, rune());
                self.pad(&out);
            }
            'q' => {
                let mut out = Vec::new();
                quote::quote_rune(&mut out, rune(), self.flags.plus);
                self.pad(&out);
            }
            'U' => self.code_point(number),
            _ => self.bad_verb(value, verb),
        }
    }

    fn integer(&mut self, number: u64, signed: bool, base: u32, verb: char) {
        let negative = signed && number.cast_signed() < 0;
        let size = if negative { number.wrapping_neg() } else { number };
        let flags = self.flags;
        if flags.precision == Some(0) && size == 0 {
            self.out.fill(b' ', flags.width.unwrap_or(0));
            return;
        }
        let signs = negative || flags.plus || flags.space;
        let wanted = match (flags.precision, flags.width) {
            (Some(precision), _) => precision,
            (None, Some(width)) if flags.zero => width.saturating_sub(usize::from(signs)),
            _ => 0,
        };
        let digits = match base {
            2 => format!("{size:b}"),
            8 => format!("{size:o}"),
            16 if verb == 'X' => format!("{size:X}"),
            16 => format!("{size:x}"),
            _ => size.to_string(),
        };
        let zeros = wanted.saturating_sub(digits.len());
        if !self.out.room(zeros) {
            return;
        }
        let mut out = Vec::with_capacity(zeros + digits.len() + 3);
        match (negative, flags.plus, flags.space) {
            (true, ..) => out.push(b'-'),
            (_, true, _) => out.push(b'+'),
            (_, _, true) => out.push(b' '),
            _ => {}
        }
        if verb == 'O' {
            out.extend_from_slice(b"0o");
        }
        if flags.sharp {
            match base {
                2 => out.extend_from_slice(b"0b"),
                8 if zeros == 0 && !digits.starts_with('0') => out.push(b'0'),
                16 => out.extend_from_slice(if verb == 'X' { b"0X" } else { b"0x" }),
                _ => {}
            }
        }
        out.resize(out.len() + zeros, b'0');
        out.extend(digits.bytes());
        self.pad_without_zeros(&out);
    }

    fn code_point(&mut self, number: u64) {
        let digits = self.flags.precision.unwrap_or(4).max(4);
        let hexadecimal = format!("{number:X}");
        let zeros = digits.saturating_sub(hexadecimal.len());
        if !self.out.room(zeros) {
            return;
        }
        let mut out = b"U+".to_vec();
        out.resize(out.len() + zeros, b'0');
        out.extend(hexadecimal.bytes());
        let rune =
            u32::try_from(number).ok().and_then(char::from_u32).filter(|&rune| letters::is_print(rune));
        if let Some(rune) = rune.filter(|_| self.flags.sharp) {
            out.extend_from_slice(b" '");
            letters::push(&mut out, rune);
            out.push(b'\'');
        }
        self.pad_without_zeros(&out);
    }

    fn float(&mut self, value: f64, verb: char) {
        let (verb, usual) = match verb {
            'v' => ('g', None),
            'F' => ('f', Some(6)),
            'e' | 'E' | 'f' => (verb, Some(6)),
            _ => (verb, None),
        };
        let precision = self.flags.precision.or(usual);
        if !self.out.room(precision.unwrap_or(0)) {
            return;
        }
        let mut number = float::format(value, verb, precision);
        if let Some(sign) = number.first_mut().filter(|sign| **sign == b'+')
            && self.flags.space
            && !self.flags.plus
        {
            *sign = b' ';
        }
        if !value.is_finite() {
            let bare = number.get(1..).unwrap_or_default();
            let unsigned = number.first() == Some(&b'+') && !self.flags.plus || value.is_nan();
            self.pad_without_zeros(if unsigned { bare } else { &number });
            return;
        }
        if self.flags.sharp && verb != 'b' {
            sharpen(&mut number, verb, precision);
        }
        if !self.flags.plus && number.first() == Some(&b'+') {
            self.pad(number.get(1..).unwrap_or_default());
            return;
        }
        match self.flags.width {
            // The sign goes before the zeros.
            Some(width) if self.flags.zero && width > number.len() => {
                self.out.write(number.get(..1).unwrap_or_default());
                self.padding(width - number.len());
                self.out.write(number.get(1..).unwrap_or_default());
            }
            _ => self.pad(&number),
        }
    }
}

fn is_float_verb(verb: char) -> bool {
    matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E')
}

/// `%#g` and the like: a decimal point always, and for `g` no digits left out at the end.
fn sharpen(number: &mut Vec<u8>, verb: char, precision: Option<usize>) {
    let mut missing = match verb {
        'g' | 'G' | 'x' => i64::try_from(precision.unwrap_or(6)).unwrap_or(i64::MAX),
        _ => 0,
    };
    let hexadecimal = matches!(verb, 'x' | 'X');
    let exponent = number
        .iter()
        .position(|byte| matches!(byte, b'p' | b'P') || !hexadecimal && matches!(byte, b'e' | b'E'))
        .unwrap_or(number.len());
    let tail = number.split_off(exponent);
    let mut significant = false;
    for &byte in number.iter().skip(1).filter(|&&byte| byte != b'.') {
        significant |= byte != b'0';
        missing -= i64::from(significant);
    }
    if !number.contains(&b'.') {
        if number.get(1..) == Some(b"0") {
            missing -= 1;
        }
        number.push(b'.');
    }
    number.resize(number.len() + usize::try_from(missing).unwrap_or(0), b'0');
    number.extend(tail);
}
