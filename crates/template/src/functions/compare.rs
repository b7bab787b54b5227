//! `eq`, `ne`, `lt`, `le`, `gt`, `ge`: only values of the same kind can be compared.

use crate::error::FunctionError;
use crate::value::TemplateValue;

/// Go's basic kinds. Lists, maps and nil have none.
#[derive(PartialEq, Eq)]
enum Kind {
    Bool,
    Complex,
    Float,
    Int,
    Text,
    Byte,
    None,
}

fn kind(value: &TemplateValue) -> Kind {
    match value {
        TemplateValue::Bool(_) => Kind::Bool,
        TemplateValue::Complex(..) => Kind::Complex,
        TemplateValue::Float(_) => Kind::Float,
        TemplateValue::Int(_) => Kind::Int,
        TemplateValue::Text(_) => Kind::Text,
        TemplateValue::Byte(_) => Kind::Byte,
        TemplateValue::Nil
        | TemplateValue::Ints(_)
        | TemplateValue::Texts(_)
        | TemplateValue::Record(_)
        | TemplateValue::Records(_)
        | TemplateValue::Map(_) => Kind::None,
    }
}

fn mismatch(left: &TemplateValue, right: &TemplateValue, argument: usize) -> FunctionError {
    let problem =
        FunctionError::new(format!("{} cannot be compared with {}", left.described(), right.described()));
    let help = match (left, right) {
        (TemplateValue::Text(_), TemplateValue::Int(_) | TemplateValue::Float(_))
        | (TemplateValue::Int(_) | TemplateValue::Float(_), TemplateValue::Text(_)) => {
            "environment variables are strings: put the number in double quotes"
        }
        (TemplateValue::Int(_), TemplateValue::Float(_))
        | (TemplateValue::Float(_), TemplateValue::Int(_)) => {
            "write both numbers with a decimal point, or both without"
        }
        (TemplateValue::Text(_), TemplateValue::Bool(_))
        | (TemplateValue::Bool(_), TemplateValue::Text(_)) => {
            "environment variables are strings: compare with \"true\" or \"false\""
        }
        _ => "compare values of the same kind",
    };
    problem.help(help).at(argument)
}

/// Returns true if the first value equals any of the others.
pub(crate) fn equal(arguments: &[TemplateValue]) -> Result<bool, FunctionError> {
    let Some((first, others)) = arguments.split_first() else { return Ok(false) };
    if others.is_empty() {
        return Err(
            FunctionError::new("there is only one value to compare").help("write two values: eq .A \"x\"")
        );
    }
    for (index, other) in others.iter().enumerate() {
        let same = match (first, other) {
            (TemplateValue::Bool(left), TemplateValue::Bool(right)) => left == right,
            (TemplateValue::Int(left), TemplateValue::Int(right)) => left == right,
            (TemplateValue::Byte(left), TemplateValue::Byte(right)) => left == right,
            (TemplateValue::Int(int), TemplateValue::Byte(byte))
            | (TemplateValue::Byte(byte), TemplateValue::Int(int)) => *int == i64::from(*byte),
            #[expect(clippy::float_cmp, reason = "Go compares exactly")]
            (TemplateValue::Float(left), TemplateValue::Float(right)) => left == right,
            #[expect(clippy::float_cmp, reason = "Go compares exactly")]
            (TemplateValue::Complex(left, left_i), TemplateValue::Complex(right, right_i)) => {
                left == right && left_i == right_i
            }
            (TemplateValue::Text(left), TemplateValue::Text(right)) => left == right,
            (TemplateValue::Nil, other) | (other, TemplateValue::Nil) => matches!(other, TemplateValue::Nil),
            _ if kind(first) == Kind::None && kind(other) == Kind::None => {
                return Err(FunctionError::new(format!("{} cannot be compared", other.described()))
                    .help("compare an element (`index`), the length (`len`) or the joined string (`join`)")
                    .at(index + 1));
            }
            _ => return Err(mismatch(first, other, index + 1)),
        };
        if same {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if the first value is less than the second.
pub(crate) fn less(arguments: &[TemplateValue]) -> Result<bool, FunctionError> {
    let [left, right] = arguments else { return Ok(false) };
    for (index, value) in arguments.iter().enumerate() {
        if kind(value) == Kind::None {
            return Err(FunctionError::new(format!("{} cannot be ordered", value.described()))
                .help("numbers and strings can be ordered")
                .at(index));
        }
    }
    match (left, right) {
        (TemplateValue::Int(left), TemplateValue::Int(right)) => Ok(left < right),
        (TemplateValue::Byte(left), TemplateValue::Byte(right)) => Ok(left < right),
        (TemplateValue::Int(left), TemplateValue::Byte(right)) => Ok(*left < i64::from(*right)),
        (TemplateValue::Byte(left), TemplateValue::Int(right)) => Ok(i64::from(*left) < *right),
        (TemplateValue::Float(left), TemplateValue::Float(right)) => Ok(left < right),
        (TemplateValue::Text(left), TemplateValue::Text(right)) => Ok(left < right),
        _ if kind(left) == kind(right) => {
            Err(FunctionError::new(format!("{} cannot be ordered", left.described()))
                .help("use eq or ne")
                .at(0))
        }
        _ => Err(mismatch(left, right, 1)),
    }
}

/// Returns true if the first value is less than the second or equal to it.
pub(crate) fn at_most(arguments: &[TemplateValue]) -> Result<bool, FunctionError> {
    Ok(less(arguments)? || equal(arguments)?)
}
