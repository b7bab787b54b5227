//! `eq`, `ne`, `lt`, `le`, `gt`, `ge`: only values of one kind can be compared.

use super::funcs::Problem;
use super::value::Value;

/// Go's basic kinds; lists, maps and nothing have none.
#[derive(PartialEq, Eq)]
enum ValueType {
    Bool,
    Complex,
    Float,
    Int,
    Text,
    Byte,
    None,
}

fn kind(value: &Value) -> ValueType {
    match value {
        Value::Bool(_) => ValueType::Bool,
        Value::Complex(..) => ValueType::Complex,
        Value::Float(_) => ValueType::Float,
        Value::Int(_) => ValueType::Int,
        Value::Text(_) => ValueType::Text,
        Value::Byte(_) => ValueType::Byte,
        Value::Nil | Value::Ints(_) | Value::Texts(_) | Value::Map(_) => ValueType::None,
    }
}

fn mismatch(left: &Value, right: &Value, argument: usize) -> Problem {
    let problem = Problem::new(format!("{} cannot be compared with {}", left.described(), right.described()));
    let help = match (left, right) {
        (Value::Text(_), Value::Int(_) | Value::Float(_))
        | (Value::Int(_) | Value::Float(_), Value::Text(_)) => {
            "variables of the environment are text: put the number in double quotes"
        }
        (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_)) => {
            "write both numbers with a fraction, or both without"
        }
        (Value::Text(_), Value::Bool(_)) | (Value::Bool(_), Value::Text(_)) => {
            "variables of the environment are text: compare with \"true\" or \"false\""
        }
        _ => "compare values of the same kind",
    };
    problem.help(help).at(argument)
}

/// Whether the first value equals one of the others.
pub(super) fn equal(arguments: &[Value]) -> Result<bool, Problem> {
    let Some((first, others)) = arguments.split_first() else { return Ok(false) };
    if others.is_empty() {
        return Err(Problem::new("there is nothing to compare with").help("write two values: eq .A \"x\""));
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
            _ if kind(first) == ValueType::None && kind(other) == ValueType::None => {
                return Err(Problem::new(format!("{} cannot be compared", other.described()))
                    .help("compare an element (`index`), the length (`len`), or the joined text (`join`)")
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

/// Whether the first value is less than the second.
pub(super) fn less(arguments: &[Value]) -> Result<bool, Problem> {
    let [left, right] = arguments else { return Ok(false) };
    for (index, value) in arguments.iter().enumerate() {
        if kind(value) == ValueType::None {
            return Err(Problem::new(format!("{} has no order", value.described()))
                .help("numbers and texts can be compared")
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
            Err(Problem::new(format!("{} has no order", left.described())).help("use eq or ne").at(0))
        }
        _ => Err(mismatch(left, right, 1)),
    }
}

/// Whether the first value is less than the second or equal to it.
pub(super) fn at_most(arguments: &[Value]) -> Result<bool, Problem> {
    Ok(less(arguments)? || equal(arguments)?)
}
