//! The JSON Schema of a configuration, made from the table of fields.

use crate::decode::{DefaultValue, Field, Section, SectionInfo, Shape};
use crate::fields::ConfigFields;
use crate::json::Json;
use crate::values::RESOURCES;

/// The schema, for editors.
#[must_use]
pub fn json_schema() -> String {
    let mut sections: Vec<&SectionInfo> = Vec::new();
    collect(&ConfigFields::INFO, &mut sections);
    let definitions = sections.iter().skip(1).map(|info| (id(info), object(info)));
    let mut schema = vec![
        ("$schema".to_owned(), Json::text("http://json-schema.org/draft-07/schema#")),
        ("title".to_owned(), Json::text("containerpilot configuration")),
    ];
    if let Json::Object(members) = object(&ConfigFields::INFO) {
        schema.extend(members);
    }
    schema.push(("definitions".to_owned(), Json::object(definitions)));
    Json::Object(schema).pretty()
}

/// All sections that can be reached from one, itself first, each once.
pub(crate) fn collect(info: &'static SectionInfo, into: &mut Vec<&'static SectionInfo>) {
    if into.iter().any(|known| known.title == info.title) {
        return;
    }
    into.push(info);
    for field in info.fields {
        if let Some(inner) = section_of(field.shape) {
            collect(inner, into);
        }
    }
}

/// The section that a shape holds, if it holds one.
pub(crate) fn section_of(shape: Shape) -> Option<&'static SectionInfo> {
    match shape {
        Shape::Object(info)
        | Shape::List(info)
        | Shape::OneOrMany(info)
        | Shape::ObjectOrFalse(info)
        | Shape::ObjectOrText(info) => Some(info),
        _ => None,
    }
}

/// The name of a section among the definitions.
fn id(info: &SectionInfo) -> String {
    let plain: String =
        info.title.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.')).collect();
    plain.to_ascii_lowercase().replace([' ', '.'], "-")
}

fn object(info: &SectionInfo) -> Json {
    let properties = info.fields.iter().map(|field| (field.key, property(field)));
    let notes = [("^[xX]-", Json::object::<&str>([]))];
    let required: Vec<&str> = info
        .fields
        .iter()
        .filter(|field| field.default == DefaultValue::Required)
        .map(|field| field.key)
        .collect();
    let mut members = vec![
        ("description", Json::text(info.help)),
        ("type", Json::text("object")),
        (
            "properties",
            Json::object(properties.chain([("$schema", Json::object([("type", Json::text("string"))]))])),
        ),
        ("patternProperties", Json::object(notes)),
        ("additionalProperties", Json::Bool(false)),
    ];
    // In a list of checks one ttl is enough for all, so an editor cannot tell that one is missing.
    let required: Vec<&str> = required.into_iter().filter(|key| *key != "ttl").collect();
    if !required.is_empty() {
        members.push(("required", Json::texts(&required)));
    }
    Json::object(members)
}

fn property(field: &Field) -> Json {
    let mut description = field.help.to_owned();
    match field.default {
        DefaultValue::None | DefaultValue::Required => {}
        DefaultValue::Is(text) => description += &format!(" Default: {text}."),
        DefaultValue::Says(text) => description += &format!(" Default: {text}."),
    }
    let mut members = vec![("description".to_owned(), Json::Text(description))];
    if let Json::Object(shape) = shape(field.shape) {
        members.extend(shape);
    }
    Json::Object(members)
}

fn typed(name: &str) -> Json {
    Json::object([("type", Json::text(name))])
}

fn reference(info: &SectionInfo) -> Json {
    Json::object([("$ref", Json::Text(format!("#/definitions/{}", id(info))))])
}

fn list_of(item: Json) -> Json {
    Json::object([("type", Json::text("array")), ("items", item)])
}

fn any_of(options: impl IntoIterator<Item = Json>) -> Json {
    Json::object([("anyOf", Json::List(options.into_iter().collect()))])
}

fn one_of_texts(texts: &[&str]) -> Json {
    Json::object([("enum", Json::texts(texts))])
}

/// What a value may look like. Templates are rendered first, so that a number may come as a text.
fn shape(shape: Shape) -> Json {
    let scalar = || Json::object([("type", Json::texts(&["string", "number", "boolean"]))]);
    match shape {
        Shape::Text => scalar(),
        Shape::Flag => any_of([typed("boolean"), one_of_texts(&["true", "false", "1", "0"])]),
        Shape::Whole { min, max } => any_of([
            Json::object([
                ("type", Json::text("number")),
                ("minimum", Json::whole(min)),
                ("maximum", Json::whole(max)),
            ]),
            typed("string"),
        ]),
        Shape::Duration | Shape::DurationOrNever | Shape::Restarts | Shape::Principal => {
            any_of([typed("number"), typed("string")])
        }
        Shape::DurationWithUnit | Shape::Mode => typed("string"),
        Shape::Command => any_of([typed("string"), list_of(scalar())]),
        Shape::Words => list_of(scalar()),
        Shape::Numbers => list_of(typed("number")),
        Shape::WordOrWords => any_of([typed("string"), list_of(scalar())]),
        Shape::OneOf(names) => one_of_texts(&both_cases(names)),
        Shape::EventOrFlag(names) => any_of([one_of_texts(names), typed("boolean")]),
        Shape::Map => Json::object([("type", Json::text("object")), ("additionalProperties", scalar())]),
        Shape::Limits => {
            let limit = || any_of([typed("number"), one_of_texts(&["unlimited"]), list_of(scalar())]);
            let resources = RESOURCES.iter().map(|(name, _)| (*name, limit()));
            Json::object([
                ("type", Json::text("object")),
                ("properties", Json::object(resources)),
                ("additionalProperties", Json::Bool(false)),
            ])
        }
        Shape::Object(info) => reference(info),
        Shape::List(info) => list_of(reference(info)),
        Shape::OneOrMany(info) => any_of([reference(info), list_of(reference(info))]),
        Shape::ObjectOrFalse(info) => any_of([reference(info), Json::object([("const", Json::Bool(false))])]),
        Shape::ObjectOrText(info) => any_of([typed("string"), reference(info)]),
    }
}

/// Levels and formats of the log are written in capitals as often as not.
fn both_cases(names: &'static [&'static str]) -> Vec<&'static str> {
    const CAPITALS: [(&str, &str); 10] = [
        ("debug", "DEBUG"),
        ("info", "INFO"),
        ("warn", "WARN"),
        ("warning", "WARNING"),
        ("error", "ERROR"),
        ("fatal", "FATAL"),
        ("panic", "PANIC"),
        ("default", "DEFAULT"),
        ("text", "TEXT"),
        ("json", "JSON"),
    ];
    let any_case = names.contains(&"debug") || names.contains(&"json");
    let capital =
        |name: &&'static str| CAPITALS.iter().find(|(small, _)| small == name).map(|(_, capital)| *capital);
    let capitals = names.iter().filter(|_| any_case).filter_map(capital);
    names.iter().copied().chain(capitals).collect()
}
