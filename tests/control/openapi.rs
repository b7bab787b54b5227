//! The running server responds as `docs/openapi.json` describes.

use serde_json::Value;

use crate::support::http_client::{Pilot, request};

fn description() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openapi.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Follows `$ref`.
fn resolve<'a>(whole: &'a Value, part: &'a Value) -> &'a Value {
    match part["$ref"].as_str() {
        Some(path) => resolve(whole, whole.pointer(path.trim_start_matches('#')).unwrap()),
        None => part,
    }
}

/// Checks a value against a schema. Properties that the schema does not list are errors.
fn validate(whole: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolve(whole, schema);
    if let Some(choices) = schema["oneOf"].as_array() {
        let all: Vec<_> = choices.iter().map(|choice| validate(whole, choice, value)).collect();
        return if all.iter().any(Result::is_ok) { Ok(()) } else { all.into_iter().next().unwrap() };
    }
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return Err(format!("a schema without a type: {schema}")),
    };
    let wide = found == "integer" && allowed.contains(&"number");
    if !wide && !allowed.contains(&found) {
        return Err(format!("{value} is not of type {allowed:?}"));
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        return Err(format!("{value} is not one of {choices:?}"));
    }
    for item in value.as_array().into_iter().flatten() {
        validate(whole, &schema["items"], item)?;
    }
    if let Some(members) = value.as_object() {
        let (known, others) = (&schema["properties"], &schema["additionalProperties"]);
        for (key, member) in members {
            let schema = known.get(key).or(Some(others).filter(|others| others.is_object()));
            let schema = schema.ok_or(format!("`{key}` is not described"))?;
            validate(whole, schema, member).map_err(|why| format!("{key}: {why}"))?;
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            let key = required.as_str().unwrap();
            if !members.contains_key(key) {
                return Err(format!("`{key}` is missing"));
            }
        }
    }
    Ok(())
}

#[test]
fn x2_every_path_responds_as_openapi_json_describes() {
    let description = description();
    let pilot = Pilot::start(
        "{ jobs: [
            { name: 'main', exec: 'sleep 1000', port: 80, interfaces: 'static:10.0.0.1', restarts: 'unlimited',
              health: { exec: 'true', interval: 1, ttl: 5 } },
            { name: 'turn', exec: 'true', when: { interval: '1h' } },
            { name: 'wait', exec: 'true', when: { source: 'main', once: 'exitFailed', timeout: '1h' } },
            { name: 'failed', exec: ['sh', '-c', 'kill -9 $$'] },
        ], watches: [{ name: 'main', interval: 1 }, { name: 'other', interval: 1 }],
        telemetry: { port: 0, interfaces: 'static:127.0.0.1',
            metrics: [{ namespace: 'my', subsystem: 'app', name: 'requests', help: 'h', type: 'counter' }] } }",
    );
    pilot.wait_for_state("failed", "failed");
    for (path, methods) in description["paths"].as_object().unwrap() {
        let concrete =
            path.replace("{name}", "main") + if path == "/v3/events" { "?follow=false" } else { "" };
        for (method, operation) in methods.as_object().unwrap() {
            let method = method.to_uppercase();
            let example = &operation["requestBody"]["content"]["application/json"]["example"];
            let body = if example.is_null() { String::new() } else { example.to_string() };
            let answer = request(&pilot.socket, &method, &concrete, &body);
            let described = resolve(&description, &operation["responses"][answer.status.to_string()]);
            assert!(described.is_object(), "{method} {path}: {} is not described: {answer:?}", answer.status);
            let kinds = described["content"].as_object().unwrap();
            let kind = answer.header("content-type").unwrap().split(';').next().unwrap();
            let content = kinds.get(kind).unwrap_or_else(|| panic!("{method} {path}: {kind}"));
            match kind {
                "application/json" => {
                    let valid = validate(&description, &content["schema"], &answer.json());
                    assert!(valid.is_ok(), "{method} {path}: {valid:?} in {}", answer.body);
                }
                "text/event-stream" => {
                    let events = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
                    for event in events {
                        let event = serde_json::from_str(event).unwrap();
                        let valid = validate(&description, &content["schema"], &event);
                        assert!(valid.is_ok(), "{valid:?} in {event}");
                    }
                }
                _ => {}
            }
            // The documented errors: a method that is not allowed, an unknown job, a body that is not JSON.
            let other = if method == "GET" { "POST" } else { "GET" };
            assert_eq!(request(&pilot.socket, other, &concrete, "").status, 405, "{other} {path}");
            let responses = operation["responses"].as_object().unwrap();
            // The one without a name is for a supervisor that records nothing.
            if responses.contains_key("404") && path.contains("{name}") {
                let unknown = path.replace("{name}", "unknown");
                assert_eq!(
                    request(&pilot.socket, &method, &unknown, &body).status,
                    404,
                    "{method} {unknown}"
                );
            }
            if responses.contains_key("422") && operation["requestBody"].is_object() {
                assert_eq!(request(&pilot.socket, &method, &concrete, "{").status, 422, "{method} {path}");
            }
        }
    }
}
