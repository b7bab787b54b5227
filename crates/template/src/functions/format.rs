//! `print` and `println`: Go's fmt for the values of a template.

use crate::functions::{escape, float};
use crate::unicode;
use crate::utf8::{self, decode};
use crate::value::TemplateValue;

/// A buffer that stops growing at a limit.
pub(crate) struct LimitedBuffer {
    bytes: Vec<u8>,
    limit: usize,
    /// True if more was written than fits.
    pub(crate) full: bool,
}

impl LimitedBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, full: false }
    }

    /// The text, or `None` if it exceeds the limit.
    pub(crate) fn finish(self) -> Option<Vec<u8>> {
        (!self.full).then_some(self.bytes)
    }

    fn has_space(&mut self, more: usize) -> bool {
        self.full |= self.bytes.len().saturating_add(more) > self.limit;
        !self.full
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.has_space(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn fill(&mut self, byte: u8, count: usize) {
        if self.has_space(count) {
            self.bytes.resize(self.bytes.len() + count, byte);
        }
    }
}

/// Prints values side by side, with a space between two neighbours that are not strings.
pub(crate) fn print(out: &mut LimitedBuffer, values: &[TemplateValue]) {
    let mut after_text = true;
    for value in values {
        let text = matches!(value, TemplateValue::Text(_));
        if !text && !after_text {
            out.write(b" ");
        }
        ValuePrinter::new(out).argument(value, 'v');
        after_text = text;
    }
}

/// Prints values with spaces between them and a newline at the end.
pub(crate) fn println(out: &mut LimitedBuffer, values: &[TemplateValue]) {
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.write(b" ");
        }
        ValuePrinter::new(out).argument(value, 'v');
    }
    out.write(b"\n");
}

/// The flags of a verb.
#[derive(Clone, Copy, Default)]
pub(crate) struct Flags {
    pub(crate) width: Option<usize>,
    pub(crate) precision: Option<usize>,
    pub(crate) minus: bool,
    pub(crate) plus: bool,
    pub(crate) sharp: bool,
    pub(crate) space: bool,
    pub(crate) zero: bool,
    /// `%#v`: Go syntax.
    pub(crate) sharp_v: bool,
}

/// Formats values by a verb and its flags.
pub(crate) struct ValuePrinter<'o> {
    pub(crate) out: &'o mut LimitedBuffer,
    pub(crate) flags: Flags,
}

impl<'o> ValuePrinter<'o> {
    pub(crate) fn new(out: &'o mut LimitedBuffer) -> Self {
        Self { out, flags: Flags::default() }
    }

    pub(crate) fn argument(&mut self, value: &TemplateValue, verb: char) {
        match (verb, value) {
            ('v' | 'T', TemplateValue::Nil) => self.pad(b"<nil>"),
            ('T', _) => self.text(value.type_name().as_bytes()),
            // Go prints an address here; the value has no meaning.
            (
                'p',
                TemplateValue::Ints(_)
                | TemplateValue::Texts(_)
                | TemplateValue::Records(_)
                | TemplateValue::Map(_),
            ) => self.integer(0xc0_0001_0000, false, 16, 'x'),
            // For a value that is not basic, Go passes `%w` to its methods.
            ('w', TemplateValue::Ints(_) | TemplateValue::Texts(_) | TemplateValue::Map(_)) => {
                self.bad_verb(value, verb)
            }
            _ => self.value(value, verb),
        }
    }

    fn bad_verb(&mut self, value: &TemplateValue, verb: char) {
        self.out.write(format!("%!{verb}(").as_bytes());
        if matches!(value, TemplateValue::Nil) {
            self.out.write(b"<nil>");
        } else {
            self.out.write(value.type_name().as_bytes());
            self.out.write(b"=");
            self.value(value, 'v');
        }
        self.out.write(b")");
    }

    fn value(&mut self, value: &TemplateValue, verb: char) {
        match value {
            TemplateValue::Bool(truth) if matches!(verb, 't' | 'v') => {
                self.pad(if *truth { b"true" } else { b"false" });
            }
            TemplateValue::Int(number) => self.number(number.cast_unsigned(), true, value, verb),
            TemplateValue::Byte(number) => self.number(u64::from(*number), false, value, verb),
            TemplateValue::Float(number) if is_float_verb(verb) => self.float(*number, verb),
            TemplateValue::Complex(real, imaginary) if is_float_verb(verb) => {
                let plus = self.flags.plus;
                self.out.write(b"(");
                self.float(*real, verb);
                self.flags.plus = true;
                self.float(*imaginary, verb);
                self.out.write(b"i)");
                self.flags.plus = plus;
            }
            TemplateValue::Text(text) => match verb {
                'v' if self.flags.sharp_v => self.quoted(text),
                'v' | 's' => self.text(text),
                'x' | 'X' => self.hexadecimal(text, verb == 'X'),
                'q' => self.quoted(text),
                _ => self.bad_verb(value, verb),
            },
            TemplateValue::Ints(list) => {
                self.sequence(
                    "[]int",
                    list.items().iter().map(|item| (None, TemplateValue::Int(*item))),
                    verb,
                );
            }
            TemplateValue::Texts(list) => {
                self.sequence(
                    "[]string",
                    list.items().iter().map(|item| (None, TemplateValue::Text(item.clone()))),
                    verb,
                );
            }
            TemplateValue::Record(record) => {
                self.out.write(b"{");
                for (index, (_, item)) in record.fields.iter().enumerate() {
                    if index > 0 {
                        self.out.write(b" ");
                    }
                    self.value(item, verb);
                }
                self.out.write(b"}");
            }
            TemplateValue::Records(list) => {
                let items =
                    list.items().iter().map(|item| (None, TemplateValue::Record(std::rc::Rc::clone(item))));
                self.sequence("[]template.Object", items, verb);
            }
            TemplateValue::Map(map) => {
                let items = map.iter().map(|(key, item)| {
                    (Some(TemplateValue::Text(key.clone())), TemplateValue::Text(item.clone()))
                });
                self.sequence("template.Environment", items, verb);
            }
            TemplateValue::Nil
            | TemplateValue::Bool(_)
            | TemplateValue::Float(_)
            | TemplateValue::Complex(..) => self.bad_verb(value, verb),
        }
    }

    fn sequence(
        &mut self,
        name: &str,
        items: impl Iterator<Item = (Option<TemplateValue>, TemplateValue)>,
        verb: char,
    ) {
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

    /// Writes `bytes` padded to the width, which is counted in runes.
    fn pad(&mut self, bytes: &[u8]) {
        let missing = self.flags.width.map_or(0, |width| width.saturating_sub(utf8::count(bytes)));
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

    /// Cuts the text at the precision, which is counted in runes.
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
        // The quoted text is at most ten times as long.
        if !self.out.has_space(text.len()) {
            return;
        }
        let mut quoted = Vec::with_capacity(text.len() + 2);
        if self.flags.sharp && escape::can_backquote(text) {
            quoted.push(b'`');
            quoted.extend_from_slice(text);
            quoted.push(b'`');
        } else {
            escape::quote(&mut quoted, text, self.flags.plus);
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

    fn number(&mut self, number: u64, signed: bool, value: &TemplateValue, verb: char) {
        let rune = || u32::try_from(number).ok().and_then(char::from_u32).unwrap_or(utf8::REPLACEMENT);
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
                utf8::push(&mut out, rune());
                self.pad(&out);
            }
            'q' => {
                let mut out = Vec::new();
                escape::quote_rune(&mut out, rune(), self.flags.plus);
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
        let requested = match (flags.precision, flags.width) {
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
        let zeros = requested.saturating_sub(digits.len());
        if !self.out.has_space(zeros) {
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
        if !self.out.has_space(zeros) {
            return;
        }
        let mut out = b"U+".to_vec();
        out.resize(out.len() + zeros, b'0');
        out.extend(hexadecimal.bytes());
        let rune =
            u32::try_from(number).ok().and_then(char::from_u32).filter(|&rune| unicode::is_print(rune));
        if let Some(rune) = rune.filter(|_| self.flags.sharp) {
            out.extend_from_slice(b" '");
            utf8::push(&mut out, rune);
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
        if !self.out.has_space(precision.unwrap_or(0)) {
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

/// `%#g` and similar verbs always print the decimal point; `g` also keeps trailing zeros.
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
