//! What the bodies of requests say. They come from outside, so all of it is here, with nothing around it: any bytes become
//! something that was meant, or words about what is wrong. The words never show a value (L5).

use containerpilot_config::values::signal_named;
use containerpilot_core::plan::Signal;
use serde_json::{Map, Value};

/// What is wrong with a body, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It does not have the form that is asked for.
    Form(String),
    /// It has, but says something that cannot be.
    Content(String),
}

/// The variables to set, or to unset.
pub(super) fn variables(body: &[u8]) -> Result<Vec<(String, Option<String>)>, Wrong> {
    let read = |(name, value): (String, Value)| {
        if let Some(why) = bad_name(&name) {
            return Err(Wrong::Content(format!("`{name}` is no name of a variable: {why}")));
        }
        match value {
            Value::Null => Ok((name, None)),
            Value::String(value) if value.contains('\0') => {
                Err(Wrong::Content(format!("the value of `{name}` has a NUL in it")))
            }
            Value::String(value) => Ok((name, Some(value))),
            _ => Err(Wrong::Form(format!("the value of `{name}` must be a text or null"))),
        }
    };
    members(body)?.into_iter().map(read).collect()
}

/// The values of metrics, each as it is written.
pub(super) fn values(body: &[u8]) -> Result<Vec<(String, String)>, Wrong> {
    let read = |(name, value): (String, Value)| match value {
        Value::Number(number) => Ok((name, number.to_string())),
        Value::String(text) => Ok((name, text)),
        _ => Err(Wrong::Content(format!("the value of `{name}` must be a number"))),
    };
    members(body)?.into_iter().map(read).collect()
}

/// The signal to send.
pub(super) fn signal(body: &[u8]) -> Result<Signal, Wrong> {
    let text = match members(body)?.remove("signal") {
        Some(Value::String(text)) => text,
        Some(Value::Number(number)) => number.to_string(),
        _ => return Err(Wrong::Form("the body must be {\"signal\": \"SIGUSR1\"}, or a number".to_owned())),
    };
    signal_named(&text).ok_or_else(|| Wrong::Content(format!("there is no signal `{text}`")))
}

/// The members of a body that is an object. `null` is an object without members, as it was to Go.
fn members(body: &[u8]) -> Result<Map<String, Value>, Wrong> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(Wrong::Form("the body must be a JSON object: {\"NAME\": VALUE}".to_owned())),
        // The parser's words name a place and never what stands there.
        Err(why) => Err(Wrong::Form(format!("the body is no JSON: {why}"))),
    }
}

/// Why a name cannot be a variable's.
fn bad_name(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("it is empty"),
        _ if name.contains('=') => Some("it has an `=` in it"),
        _ if name.contains(|c: char| c.is_whitespace() || c.is_control()) => Some("it has a blank in it"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_names_of_variables() {
        for good in ["A", "a.b", "_", "FOO-BAR", "1A", "Ä"] {
            assert_eq!(bad_name(good), None, "{good}");
        }
        for bad in ["", "A=B", "=", "A B", "A\n", "A\0", "\u{7f}"] {
            assert!(bad_name(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn l5_an_error_about_a_body_never_shows_what_is_in_it() {
        for body in
            ["{\"TOKEN\": \"hunter2\"", "{\"TOKEN\": hunter2}", "\"hunter2\"", "[\"hunter2\"]", "hunter2"]
        {
            let Err(Wrong::Form(why)) = variables(body.as_bytes()) else { panic!("{body} was taken") };
            assert!(!why.contains("hunter2"), "{why}");
        }
        for body in [r#"{"A": "hunter2\u0000"}"#, r#"{"A": ["hunter2"]}"#] {
            assert!(!format!("{:?}", variables(body.as_bytes()).unwrap_err()).contains("hunter2"));
        }
        assert!(variables(b"null").unwrap().is_empty());
    }

    #[test]
    fn x2_signals_by_name_and_number() {
        let read = |body: &str| {
            signal(body.as_bytes())
                .map_err(|wrong| if matches!(wrong, Wrong::Content(_)) { 400 } else { 422 })
        };
        assert_eq!(read("{\"signal\": \"SIGUSR1\"}"), Ok(Signal(10)));
        assert_eq!(read("{\"signal\": \"hup\"}"), Ok(Signal(1)));
        assert_eq!(read("{\"signal\": 64}"), Ok(Signal(64)));
        assert_eq!(read("{\"signal\": \"SIGFOO\"}"), Err(400));
        assert_eq!(read("{\"signal\": 65}"), Err(400));
        assert_eq!(read("{\"signal\": 1.5}"), Err(400));
        assert_eq!(read("{}"), Err(422));
        assert_eq!(read("{\"signal\": null}"), Err(422));
    }
}
