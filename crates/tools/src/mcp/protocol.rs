//! JSON-RPC 2.0, and the methods of the protocol.

use containerpilot_command_line::version::VERSION;
use serde_json::{Map, Value, json};

use super::error::RpcError;
use super::run::Programs;
use super::tools;

/// The revisions of the protocol, the latest first. What this server uses is the same in all of them.
const REVISIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];

/// The longest batch: each of its calls can take as long as a call.
const LONGEST_BATCH: usize = 16;

const INSTRUCTIONS: &str = "containerpilot is an init system for containers. `status` shows the jobs of the running \
     supervisor, `explain` why a job is in its state, `logs` and `events` what happened. `check` validates a \
     configuration file, `simulate` plays one in virtual time and starts nothing. \
     `replay` shows what happened in a recording of a supervisor.";

/// What a client and this server agree on.
pub(super) struct Session {
    pub(super) programs: Programs,
    /// Whether tools that change something are offered.
    pub(super) control: bool,
}

/// The answer to a line that is longer than a message may be.
pub(super) fn too_long(limit: u64) -> Value {
    failed(&Value::Null, &RpcError::invalid_request(format!("the message is longer than {limit} bytes")))
}

fn failed(id: &Value, error: &RpcError) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": error.code, "message": error.message } })
}

impl Session {
    /// The answer to a line; `None` if it needs none.
    pub(super) fn answer(&self, line: &[u8]) -> Option<Value> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        match serde_json::from_slice(line) {
            Err(error) => {
                Some(failed(&Value::Null, &RpcError::new(-32700, format!("this is not JSON: {error}"))))
            }
            Ok(Value::Array(batch)) if batch.is_empty() || batch.len() > LONGEST_BATCH => {
                let message = format!("a batch has 1 to {LONGEST_BATCH} messages");
                Some(failed(&Value::Null, &RpcError::invalid_request(message)))
            }
            Ok(Value::Array(batch)) => {
                let answers: Vec<Value> = batch.iter().filter_map(|message| self.message(message)).collect();
                Some(Value::Array(answers)).filter(|answers| *answers != json!([]))
            }
            Ok(message) => self.message(&message),
        }
    }

    fn message(&self, message: &Value) -> Option<Value> {
        let invalid = |why: &str| Some(failed(&Value::Null, &RpcError::invalid_request(why)));
        let Some(fields) = message.as_object() else { return invalid("a message is an object") };
        if fields.get("jsonrpc") != Some(&json!("2.0")) {
            return invalid("`jsonrpc` must be \"2.0\"");
        }
        let id = match fields.get("id") {
            None => None,
            Some(id @ (Value::String(_) | Value::Number(_))) => Some(id),
            Some(_) => return invalid("`id` must be a string or a number"),
        };
        let Some(method) = fields.get("method") else {
            // The answer to a request, which this server does not send.
            let is_answer = ["result", "error"].iter().any(|key| fields.contains_key(*key));
            return if is_answer { None } else { invalid("`method` is missing") };
        };
        let Some(method) = method.as_str() else { return invalid("`method` must be a string") };
        // A notification.
        let id = id?;
        let none = Map::new();
        let result = match fields.get("params") {
            None => self.call(method, &none),
            Some(Value::Object(params)) => self.call(method, params),
            Some(_) => Err(RpcError::invalid_params("`params` must be an object")),
        };
        Some(match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => failed(id, &error),
        })
    }

    fn call(&self, method: &str, params: &Map<String, Value>) -> Result<Value, RpcError> {
        match method {
            "initialize" => initialize(params),
            "ping" => Ok(json!({})),
            "tools/list" if params.contains_key("cursor") => {
                Err(RpcError::invalid_params("unknown cursor: the list has one page"))
            }
            "tools/list" => {
                let tools: Vec<Value> = tools::offered(self.control).map(tools::Tool::description).collect();
                Ok(json!({ "tools": tools }))
            }
            "tools/call" => {
                let name = params.get("name").and_then(Value::as_str);
                let name =
                    name.ok_or_else(|| RpcError::invalid_params("`name` must be the name of a tool"))?;
                let none = Map::new();
                let arguments = match params.get("arguments") {
                    None => &none,
                    Some(Value::Object(arguments)) => arguments,
                    Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
                };
                let Some(tool) = tools::offered(self.control).find(|tool| tool.name == name) else {
                    return Err(RpcError::invalid_params(self.unknown_tool(name)));
                };
                let outcome = tool.call(arguments, &self.programs)?;
                Ok(
                    json!({ "content": [{ "type": "text", "text": outcome.text }], "isError": outcome.is_error }),
                )
            }
            _ => Err(RpcError::new(-32601, format!("unknown method `{method}`"))),
        }
    }

    fn unknown_tool(&self, name: &str) -> String {
        match tools::offered(true).any(|tool| tool.name == name) {
            true => format!("`{name}` is offered only with --control"),
            false => {
                let names: Vec<&str> = tools::offered(self.control).map(|tool| tool.name).collect();
                format!("unknown tool `{name}`: the tools are {}", names.join(", "))
            }
        }
    }
}

fn initialize(params: &Map<String, Value>) -> Result<Value, RpcError> {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let asked = asked.ok_or_else(|| RpcError::invalid_params("`protocolVersion` must be a string"))?;
    // A client that does not know the answer disconnects.
    let revision = REVISIONS.iter().find(|revision| **revision == asked).unwrap_or(&REVISIONS[0]);
    Ok(json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "containerpilot", "version": VERSION },
        "instructions": INSTRUCTIONS,
    }))
}
