//! `eq`, `ne`, `lt`, `le`, `gt`, `ge`: only values of the same kind can be compared.

use crate::error::FunctionError;
use crate::value::Value;

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

fn kind(value: &Value) -> Kind {
    match value {
        Value::Bool(_) => Kind::Bool,
        Value::Complex(..) => Kind::Complex,
        Value::Float(_) => Kind::Float,
        Value::Int(_) => Kind::Int,
        Value::Text(_) => Kind::Text,
        Value::Byte(_) => Kind::Byte,
        Value::Nil
        | Value::Ints(_)
        | Value::Texts(_)
        | Value::Record(_)
        | Value::Records(_)
        | Value::Map(_) => Kind::None,
    }
}

fn mismatch(left: &Value, right: &Value, argument: usize) -> FunctionError {
    let problem =
        FunctionError::new(format!("{} cannot be compared with {}", left.described(), right.described()));
    let help = match (left, right) {
        (Value::Text(_), Value::Int(_) | Value::Float(_))
        | (Value::Int(_) | Value::Float(_), Value::Text(_)) => {
            "environment variables are strings: put the number in double quotes"
        }
        (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_)) => {
            "write both numbers with a decimal point, or both without"
        }
        (Value::Text(_), Value::Bool(_)) | (Value::Bool(_), Value::Text(_)) => {
            "environment variables are strings: compare with \"true\" or \"false\""
        }
        _ => "compare values of the same kind",
    };
    problem.help(help).at(argument)
}

/// Returns true if the first value equals any of the others.
pub(crate) fn equal(arguments: &[Value]) -> Result<bool, FunctionError> {
    let Some((first, others)) = arguments.split_first() else { return Ok(false) };
    if others.is_empty() {
        return Err(
            FunctionError::new("there is only one value to compare").help("write two values: eq .A \"x\"")
        );
    }
    for (index, other) in others.iter().enumerate() {
        let same = match (first, other) {
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Int(left), Value::Int(right)) => left == right,
            (Value::Byte(left), Value::Byte(right)) => left == right,
            (Value::Int(int), Value::Byte(byte)) | (Value::Byte(byte), Value::Int(int)) => {
                *int == i64::from(*byte)
            }
            #[expect(clippy::float_cmp, reason = "Go compares exactly")]
            (Value::Float(left), Value::Float(right)) => left == right,
            #[expect(clippy::float_cmp, reason = "Go compares exactly")]
            (Value::Complex(left, left_i), Value::Complex(right, right_i)) => {
                left == right && left_i == right_i
            }
            (Value::Text(left), Value::Text(right)) => left == right,
            (Value::Nil, other) | (other, Value::Nil) => matches!(other, Value::Nil),
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
pub(crate) fn less(arguments: &[Value]) -> Result<bool, FunctionError> {
    let [left, right] = arguments else { return Ok(false) };
    for (index, value) in arguments.iter().enumerate() {
        if kind(value) == Kind::None {
            return Err(FunctionError::new(format!("{} cannot be ordered", value.described()))
                .help("numbers and strings can be ordered")
                .at(index));
        }
    }
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Ok(left < right),
        (Value::Byte(left), Value::Byte(right)) => Ok(left < right),
        (Value::Int(left), Value::Byte(right)) => Ok(*left < i64::from(*right)),
        (Value::Byte(left), Value::Int(right)) => Ok(i64::from(*left) < *right),
        (Value::Float(left), Value::Float(right)) => Ok(left < right),
        (Value::Text(left), Value::Text(right)) => Ok(left < right),
        _ if kind(left) == kind(right) => {
            Err(FunctionError::new(format!("{} cannot be ordered", left.described()))
                .help("use eq or ne")
                .at(0))
        }
        _ => Err(mismatch(left, right, 1)),
    }
}

/// Returns true if the first value is less than the second or equal to it.
pub(crate) fn at_most(arguments: &[Value]) -> Result<bool, FunctionError> {
    Ok(less(arguments)? || equal(arguments)?)
}
