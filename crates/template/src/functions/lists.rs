//! `len`, `index`, `slice`, `loop`.

use crate::error::FunctionError;
use crate::functions::CallContext;
use crate::value::{List, TemplateValue, TextValue};

pub(crate) fn length(value: &TemplateValue) -> Result<TemplateValue, FunctionError> {
    let length = match value {
        TemplateValue::Text(text) => text.len(),
        TemplateValue::Ints(list) => list.len(),
        TemplateValue::Texts(list) => list.len(),
        TemplateValue::Records(list) => list.len(),
        TemplateValue::Map(map) => map.len(),
        other => {
            return Err(FunctionError::new(format!("{} has no length", other.described()))
                .help("`len` works on strings, lists and the environment")
                .at(0));
        }
    };
    Ok(TemplateValue::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

/// An index from 0 to `most`, inclusive.
fn position(value: &TemplateValue, argument: usize, most: usize) -> Result<usize, FunctionError> {
    let number = match value {
        TemplateValue::Int(number) => *number,
        TemplateValue::Byte(byte) => i64::from(*byte),
        TemplateValue::Text(text) if !text.is_empty() && text.iter().all(u8::is_ascii_digit) => {
            return Err(FunctionError::new("an index is a number, not a string")
                .help("remove the quotes")
                .at(argument));
        }
        other => {
            return Err(
                FunctionError::new(format!("an index is an integer, not {}", other.described())).at(argument)
            );
        }
    };
    usize::try_from(number)
        .ok()
        .filter(|&index| index <= most)
        .ok_or_else(|| out_of_range(number, most, argument))
}

fn out_of_range(number: i64, length: usize, argument: usize) -> FunctionError {
    FunctionError::new(format!("the index {number} is out of range: the length is {length}"))
        .help("the first element has index 0; check the length with `len`")
        .at(argument)
}

pub(crate) fn index(arguments: &[TemplateValue]) -> Result<TemplateValue, FunctionError> {
    let Some((first, indexes)) = arguments.split_first() else { return Ok(TemplateValue::Nil) };
    if matches!(first, TemplateValue::Nil) {
        return Err(FunctionError::new("nil has no elements").at(0));
    }
    let mut item = first.clone();
    for (number, key) in indexes.iter().enumerate() {
        let argument = number + 1;
        let within = |length: usize| {
            let at = position(key, argument, length)?;
            if at == length {
                Err(out_of_range(i64::try_from(at).unwrap_or(i64::MAX), length, argument))
            } else {
                Ok(at)
            }
        };
        item = match &item {
            TemplateValue::Text(text) => {
                TemplateValue::Byte(text.get(within(text.len())?).copied().unwrap_or_default())
            }
            TemplateValue::Ints(list) => {
                TemplateValue::Int(list.items().get(within(list.len())?).copied().unwrap_or_default())
            }
            TemplateValue::Texts(list) => list
                .items()
                .get(within(list.len())?)
                .map_or(TemplateValue::Nil, |text| TemplateValue::Text(text.clone())),
            TemplateValue::Records(list) => {
                let found = list.items().get(within(list.len())?);
                found.map_or(TemplateValue::Nil, |record| TemplateValue::Record(std::rc::Rc::clone(record)))
            }
            TemplateValue::Map(map) => match key {
                TemplateValue::Text(name) => {
                    TemplateValue::Text(map.get(name).cloned().unwrap_or_else(|| TextValue::from(&b""[..])))
                }
                other => {
                    return Err(FunctionError::new(format!(
                        "the name of an environment variable is a string, not {}",
                        other.described()
                    ))
                    .help("write: index . \"NAME\"")
                    .at(argument));
                }
            },
            other => {
                return Err(FunctionError::new(format!("{} has no elements", other.described())).at(0));
            }
        };
    }
    Ok(item)
}

pub(crate) fn slice(arguments: &[TemplateValue]) -> Result<TemplateValue, FunctionError> {
    let Some((item, indexes)) = arguments.split_first() else { return Ok(TemplateValue::Nil) };
    if matches!(item, TemplateValue::Nil) {
        return Err(FunctionError::new("nil cannot be sliced").at(0));
    }
    if indexes.len() > 3 {
        return Err(FunctionError::new("`slice` takes at most three indexes").at(4));
    }
    let (length, capacity) = match item {
        TemplateValue::Text(_) if indexes.len() == 3 => {
            return Err(FunctionError::new("a string is sliced with one or two indexes, not three").at(3));
        }
        TemplateValue::Text(text) => (text.len(), text.len()),
        TemplateValue::Ints(list) => (list.len(), list.capacity()),
        TemplateValue::Texts(list) => (list.len(), list.capacity()),
        TemplateValue::Records(list) => (list.len(), list.capacity()),
        other => return Err(FunctionError::new(format!("{} cannot be sliced", other.described())).at(0)),
    };
    let mut bounds = [0, length, capacity];
    for (number, (index, bound)) in indexes.iter().zip(bounds.iter_mut()).enumerate() {
        *bound = position(index, number + 1, capacity)?;
    }
    let [from, to, limit] = bounds;
    if from > to || to > limit {
        return Err(FunctionError::new(format!(
            "the slice starts at {from} and ends before that, at {to}",
            to = to.min(limit)
        ))
        .help("the second index is the end, not the length"));
    }
    Ok(match item {
        TemplateValue::Text(text) => TemplateValue::Text(text.cut(from, to)),
        TemplateValue::Ints(list) => TemplateValue::Ints(list.window(from, to, limit)),
        TemplateValue::Texts(list) => TemplateValue::Texts(list.window(from, to, limit)),
        TemplateValue::Records(list) => TemplateValue::Records(list.window(from, to, limit)),
        other => other.clone(),
    })
}

fn whole(value: &TemplateValue, argument: usize) -> Result<i64, FunctionError> {
    match value {
        TemplateValue::Int(number) => Ok(*number),
        TemplateValue::Text(text) => {
            std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
                let shown: String = String::from_utf8_lossy(text).chars().take(40).collect();
                let problem =
                    FunctionError::new(format!("`loop` needs an integer, not \"{shown}\"")).at(argument);
                if text.is_empty() { problem.help("add a default: (.NAME | default \"1\")") } else { problem }
            })
        }
        other => {
            Err(FunctionError::new(format!("`loop` needs an integer, not {}", other.described()))
                .at(argument))
        }
    }
}

/// `loop 3` is 0 1 2, `loop 2 5` is 2 3 4, `loop 5 2` is 5 4 3.
pub(crate) fn integers(
    context: &mut CallContext<'_>,
    arguments: &[TemplateValue],
) -> Result<TemplateValue, FunctionError> {
    let (start, stop) = match arguments {
        [stop] => (0, whole(stop, 0)?),
        [start, stop] => (whole(start, 0)?, whole(stop, 1)?),
        _ => {
            return Err(FunctionError::new(format!(
                "`loop` takes one or two numbers, not {}",
                arguments.len()
            ))
            .help("write: loop 3, or: loop 2 5"));
        }
    };
    let count = start.abs_diff(stop);
    context.budget.step(count)?;
    let length = usize::try_from(count).unwrap_or(usize::MAX);
    context.budget.bytes(length.saturating_mul(size_of::<i64>() * 2))?;
    let mut items: Vec<i64> =
        if stop < start { (stop..start).rev().map(|i| i + 1).collect() } else { (start..stop).collect() };
    // Go doubles the capacity of a growing list, which `slice` can observe. Above 512 elements Go grows it in other
    // steps, which are not imitated.
    if length <= 512 && length > 0 {
        items.resize(length.next_power_of_two(), 0);
    }
    Ok(TemplateValue::Ints(List::new(items, length)))
}
