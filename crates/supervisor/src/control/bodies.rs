//! Parses request bodies. They are untrusted: any bytes become a valid request or an error that never shows a value
//! (L5).

use containerpilot_core::plan::{MAX_REPLICAS, Signal};
use serde_json::{Map, Value};
use thiserror::Error;

/// What is wrong with a request body.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum BodyError {
    /// It does not have the required form: 422.
    #[error("{0}")]
    Form(String),
    /// It has the required form but an impossible content: 400.
    #[error("{0}")]
    Content(String),
}

/// The environment variables to set, or to unset where the value is `None`.
pub(super) fn variables(body: &[u8]) -> Result<Vec<(String, Option<String>)>, BodyError> {
    let parse = |(name, value): (String, Value)| {
        if let Some(why) = invalid_name(&name) {
            return Err(BodyError::Content(format!("`{name}` is not a variable name: {why}")));
        }
        match value {
            Value::Null => Ok((name, None)),
            Value::String(value) if value.contains('\0') => {
                Err(BodyError::Content(format!("the value of `{name}` contains a NUL byte")))
            }
            Value::String(value) => Ok((name, Some(value))),
            _ => Err(BodyError::Form(format!("the value of `{name}` must be a string or null"))),
        }
    };
    members(body)?.into_iter().map(parse).collect()
}

/// The values of metrics, each as it is written.
pub(super) fn values(body: &[u8]) -> Result<Vec<(String, String)>, BodyError> {
    let parse = |(name, value): (String, Value)| match value {
        Value::Number(number) => Ok((name, number.to_string())),
        Value::String(text) => Ok((name, text)),
        _ => Err(BodyError::Content(format!("the value of `{name}` must be a number"))),
    };
    members(body)?.into_iter().map(parse).collect()
}

/// The signal to send.
pub(super) fn signal(body: &[u8]) -> Result<Signal, BodyError> {
    let text = match members(body)?.remove("signal") {
        Some(Value::String(name)) => name,
        Some(Value::Number(number)) => number.to_string(),
        _ => {
            return Err(BodyError::Form(
                "the body must be {\"signal\": \"SIGUSR1\"}, or a number".to_owned(),
            ));
        }
    };
    Signal::from_name(&text).ok_or_else(|| BodyError::Content(format!("there is no signal `{text}`")))
}

/// The number of replicas to run (W20).
pub(super) fn replicas(body: &[u8]) -> Result<u16, BodyError> {
    let number = members(body)?.remove("replicas").and_then(|number| number.as_u64());
    let number =
        number.ok_or_else(|| BodyError::Form("the body must be {\"replicas\": NUMBER}".to_owned()))?;
    u16::try_from(number)
        .map_err(|_| BodyError::Content(format!("{number} is more than {MAX_REPLICAS} replicas")))
}

/// The members of a body that is a JSON object. `null` is an empty object, as in Go.
fn members(body: &[u8]) -> Result<Map<String, Value>, BodyError> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(BodyError::Form("the body must be a JSON object: {\"NAME\": VALUE}".to_owned())),
        // A syntax error names a position, never what is there.
        Err(why) => Err(BodyError::Form(format!("the body is not valid JSON: {why}"))),
    }
}

fn invalid_name(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("it is empty"),
        _ if name.contains('=') => Some("it contains `=`"),
        _ if name.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            Some("it contains whitespace or a control character")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_variable_names_are_checked() {
        for good in ["A", "a.b", "_", "FOO-BAR", "1A", "Ä"] {
            assert_eq!(invalid_name(good), None, "{good}");
        }
        for bad in ["", "A=B", "=", "A B", "A\n", "A\0", "\u{7f}"] {
            assert!(invalid_name(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn l5_an_error_about_a_body_never_shows_its_content() {
        for body in
            ["{\"TOKEN\": \"hunter2\"", "{\"TOKEN\": hunter2}", "\"hunter2\"", "[\"hunter2\"]", "hunter2"]
        {
            let Err(BodyError::Form(why)) = variables(body.as_bytes()) else { panic!("{body} was accepted") };
            assert!(!why.contains("hunter2"), "{why}");
        }
        for body in [r#"{"A": "hunter2\u0000"}"#, r#"{"A": ["hunter2"]}"#] {
            assert!(!format!("{:?}", variables(body.as_bytes()).unwrap_err()).contains("hunter2"));
        }
        assert!(variables(b"null").unwrap().is_empty());
    }

    #[test]
    fn x2_signals_are_named_or_numbered() {
        let parse = |body: &str| {
            signal(body.as_bytes())
                .map_err(|error| if matches!(error, BodyError::Content(_)) { 400 } else { 422 })
        };
        assert_eq!(parse("{\"signal\": \"SIGUSR1\"}"), Ok(Signal(10)));
        assert_eq!(parse("{\"signal\": \"hup\"}"), Ok(Signal(1)));
        assert_eq!(parse("{\"signal\": 64}"), Ok(Signal(64)));
        assert_eq!(parse("{\"signal\": \"SIGFOO\"}"), Err(400));
        assert_eq!(parse("{\"signal\": 65}"), Err(400));
        assert_eq!(parse("{\"signal\": 1.5}"), Err(400));
        assert_eq!(parse("{}"), Err(422));
        assert_eq!(parse("{\"signal\": null}"), Err(422));
    }
}
