//! Answers of a collector. Nothing in them is trusted: unknown and broken fields are skipped.

/// What an accepting answer says. All answers have the same fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectorAnswer {
    /// How many items were rejected.
    pub rejected: u64,
    /// Why, or a warning.
    pub message: String,
}

/// The content of a field.
#[derive(Clone, Copy)]
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

/// Reads the body of an answer with status 200: `partial_success`, if there is one.
#[must_use]
pub fn read_answer(body: &[u8]) -> CollectorAnswer {
    let mut answer = CollectorAnswer::default();
    for (number, content) in fields(body) {
        let (1, Content::Bytes(partial)) = (number, content) else { continue };
        for field in fields(partial) {
            match field {
                // A negative number is nonsense.
                (1, Content::Number(rejected)) if i64::try_from(rejected).is_ok() => {
                    answer.rejected = rejected
                }
                (2, Content::Bytes(text)) => answer.message = shown(text),
                _ => {}
            }
        }
    }
    answer
}

/// Reads the body of any other answer, a `google.rpc.Status`: its message, if there is one.
#[must_use]
pub fn read_status_message(body: &[u8]) -> String {
    let messages = fields(body).filter_map(|field| match field {
        (2, Content::Bytes(text)) if std::str::from_utf8(text).is_ok() => Some(shown(text)),
        _ => None,
    });
    messages.last().unwrap_or_default()
}

/// How much of a message is shown, in characters.
const SHOWN: usize = 160;

fn shown(text: &[u8]) -> String {
    let start = text.get(..text.len().min(SHOWN * 4)).unwrap_or_default();
    let text = String::from_utf8_lossy(start);
    text.trim().chars().take(SHOWN).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// The fields of a message, until its end or the first that is broken.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, Content<'_>)> {
    std::iter::from_fn(move || {
        let key = varint(&mut rest)?;
        let content = match key & 7 {
            0 => Content::Number(varint(&mut rest)?),
            1 => skip(&mut rest, 8)?,
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                let (content, others) = rest.split_at_checked(length)?;
                rest = others;
                Content::Bytes(content)
            }
            5 => skip(&mut rest, 4)?,
            _ => return None,
        };
        Some((key >> 3, content))
    })
}

fn skip<'a>(rest: &mut &[u8], length: usize) -> Option<Content<'a>> {
    *rest = rest.get(length..)?;
    Some(Content::Other)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, others) = rest.split_first()?;
        *rest = others;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
