//! `printf`: Go's format strings.

use crate::functions::format::{Flags, LimitedBuffer, ValuePrinter};
use crate::utf8::decode;
use crate::value::TemplateValue;

/// The position of `printf` in its arguments.
struct Arguments {
    next: usize,
    /// The format named an argument by its number, such as `%[2]d`.
    reordered: bool,
    /// The number exists.
    good: bool,
    after_index: bool,
}

/// Values in the argumentss of the format's verbs.
pub(crate) fn printf(out: &mut LimitedBuffer, format: &[u8], values: &[TemplateValue]) {
    let mut arguments = Arguments { next: 0, reordered: false, good: true, after_index: false };
    let mut rest = format;
    while !out.full {
        let Some(percent) = memchr::memchr(b'%', rest) else {
            out.write(rest);
            break;
        };
        out.write(rest.get(..percent).unwrap_or_default());
        rest = rest.get(percent + 1..).unwrap_or_default();
        arguments.good = true;
        arguments.after_index = false;
        let mut flags = Flags::default();
        take_flags(&mut rest, &mut flags);
        index(&mut arguments, &mut rest, values.len());
        if eat(&mut rest, b'*') {
            match from_argument(&mut arguments, values) {
                Some(width) => {
                    flags.width = usize::try_from(width.unsigned_abs()).ok();
                    if width < 0 {
                        flags.minus = true;
                        flags.zero = false;
                    }
                }
                None => out.write(b"%!(BADWIDTH)"),
            }
            arguments.after_index = false;
        } else {
            flags.width = digits(&mut rest);
            if arguments.after_index && flags.width.is_some() {
                arguments.good = false;
            }
        }
        // A `.` at the end of the format is the verb itself: Go 1.19 expects more after a precision.
        if rest.len() > 1 && eat(&mut rest, b'.') {
            if arguments.after_index {
                arguments.good = false;
            }
            index(&mut arguments, &mut rest, values.len());
            if eat(&mut rest, b'*') {
                flags.precision =
                    from_argument(&mut arguments, values).and_then(|digits| usize::try_from(digits).ok());
                if flags.precision.is_none() {
                    out.write(b"%!(BADPREC)");
                }
                arguments.after_index = false;
            } else {
                flags.precision = Some(digits(&mut rest).unwrap_or(0));
            }
        }
        if !arguments.after_index {
            index(&mut arguments, &mut rest, values.len());
        }
        let (verb, width) = decode(rest);
        if width == 0 {
            out.write(b"%!(NOVERB)");
            break;
        }
        rest = rest.get(width..).unwrap_or_default();
        verb_with(out, &mut arguments, flags, verb, values);
    }
    if !arguments.reordered && arguments.next < values.len() {
        extra(out, values.get(arguments.next..).unwrap_or_default());
    }
}

fn verb_with(
    out: &mut LimitedBuffer,
    arguments: &mut Arguments,
    mut flags: Flags,
    verb: char,
    values: &[TemplateValue],
) {
    if verb == '%' {
        out.write(b"%");
        return;
    }
    let missing = if !arguments.good { "(BADINDEX)" } else { "(MISSING)" };
    let Some(value) = values.get(arguments.next).filter(|_| arguments.good) else {
        out.write(format!("%!{verb}{missing}").as_bytes());
        return;
    };
    arguments.next += 1;
    if verb == 'v' {
        flags.sharp_v = flags.sharp;
        flags.sharp = false;
        // `%+v` means something for structures only.
        flags.plus = false;
    }
    ValuePrinter { out, flags }.argument(value, verb);
}

fn extra(out: &mut LimitedBuffer, values: &[TemplateValue]) {
    out.write(b"%!(EXTRA ");
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.write(b", ");
        }
        if matches!(value, TemplateValue::Nil) {
            out.write(b"<nil>");
        } else {
            out.write(value.type_name().as_bytes());
            out.write(b"=");
            ValuePrinter::new(out).argument(value, 'v');
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

/// Go's limit on a width or a precision.
const MAX_WIDTH: i64 = 1_000_000;

/// Reads a number of the format. Go drops the rest of the format when the number is too large.
fn digits(rest: &mut &[u8]) -> Option<usize> {
    let mut number = None;
    while let Some((digit, after)) = rest.split_first().filter(|(digit, _)| digit.is_ascii_digit()) {
        let value = number.unwrap_or(0);
        if value > MAX_WIDTH.unsigned_abs() as usize {
            *rest = &[];
            return None;
        }
        number = Some(value * 10 + usize::from(digit - b'0'));
        *rest = after;
    }
    number
}

/// A width or precision given as an argument (`*`).
fn from_argument(arguments: &mut Arguments, values: &[TemplateValue]) -> Option<i64> {
    let value = values.get(arguments.next)?;
    arguments.next += 1;
    match value {
        TemplateValue::Int(number) => Some(*number),
        TemplateValue::Byte(number) => Some(i64::from(*number)),
        _ => None,
    }
    .filter(|number| (-MAX_WIDTH..=MAX_WIDTH).contains(number))
}

/// Reads an explicit argument number such as `[3]`.
fn index(arguments: &mut Arguments, rest: &mut &[u8], count: usize) {
    if rest.first() != Some(&b'[') {
        arguments.after_index = false;
        return;
    }
    arguments.reordered = true;
    let close = rest.iter().position(|&byte| byte == b']').filter(|_| rest.len() >= 3);
    let Some(close) = close else {
        arguments.good = false;
        *rest = rest.get(1..).unwrap_or_default();
        arguments.after_index = false;
        return;
    };
    let mut inner = rest.get(1..close).unwrap_or_default();
    let number = digits(&mut inner).filter(|_| inner.is_empty());
    *rest = rest.get(close + 1..).unwrap_or_default();
    match number {
        Some(number) if (1..=count).contains(&number) => {
            arguments.next = number - 1;
            arguments.after_index = true;
        }
        number => {
            arguments.good = false;
            arguments.after_index = number.is_some();
        }
    }
}
