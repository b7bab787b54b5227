//! The JSON Schema of a configuration, generated from the table of fields.

use serde::{Serialize, Serializer};

use crate::decode::{DefaultValue, Field, Section, SectionInfo, Shape};
use crate::fields::ConfigFields;
use crate::values::RESOURCES;

/// The schema, for editors.
#[must_use]
pub fn json_schema() -> String {
    let mut sections: Vec<&SectionInfo> = Vec::new();
    collect(&ConfigFields::INFO, &mut sections);
    let definitions = sections.iter().skip(1).map(|info| (id(info), object(info)));
    let schema = Schema {
        dialect: Some("http://json-schema.org/draft-07/schema#"),
        title: Some("containerpilot configuration"),
        definitions: Some(Members(definitions.collect())),
        ..object(&ConfigFields::INFO)
    };
    // Serialization fails only for maps with keys that are not strings.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// A JSON Schema, with the keywords that are used here.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Schema {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    dialect: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(rename = "$ref", skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    types: Option<Types>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum: Option<i64>,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    strings: Vec<&'static str>,
    #[serde(rename = "const", skip_serializing_if = "Option::is_none")]
    constant: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    any_of: Vec<Schema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<Members>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern_properties: Option<Members>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_properties: Option<Additional>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    definitions: Option<Members>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Types {
    One(&'static str),
    Any([&'static str; 3]),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Additional {
    Allowed(bool),
    Like(Box<Schema>),
}

/// An object of schemas, in the order of the table.
#[derive(Debug)]
struct Members(Vec<(String, Schema)>);

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, schema)| (key, schema)))
    }
}

/// Collects a section and all sections that it refers to, each once.
pub(crate) fn collect(info: &'static SectionInfo, into: &mut Vec<&'static SectionInfo>) {
    if into.iter().any(|known| known.title == info.title) {
        return;
    }
    into.push(info);
    for inner in info.fields.iter().filter_map(|field| field.shape.section()) {
        collect(inner, into);
    }
}

/// The name of a section in the definitions.
fn id(info: &SectionInfo) -> String {
    let plain: String =
        info.title.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.')).collect();
    plain.to_ascii_lowercase().replace([' ', '.'], "-")
}

/// Of these keys of a section, at least one must be given.
const ONE_OF_KEYS: [(&str, &[&str]); 1] = [("A watch", &["interval", "file", "key", "prefix"])];

fn object(info: &SectionInfo) -> Schema {
    let properties = info.fields.iter().map(|field| (field.key.to_owned(), property(field)));
    let own = [("$schema".to_owned(), typed("string"))];
    let required = info.fields.iter().filter(|field| field.default == DefaultValue::Required);
    let required = required.map(|field| field.key);
    let one_of = ONE_OF_KEYS.iter().filter(|(title, _)| *title == info.title).flat_map(|(_, keys)| *keys);
    Schema {
        description: Some(info.help.to_owned()),
        properties: Some(Members(properties.chain(own).collect())),
        pattern_properties: Some(Members(vec![("^[xX]-".to_owned(), Schema::default())])),
        additional_properties: Some(Additional::Allowed(false)),
        required: required.collect(),
        any_of: one_of.map(|key| Schema { required: vec![key], ..Schema::default() }).collect(),
        ..typed("object")
    }
}

fn property(field: &Field) -> Schema {
    let mut description = field.help.to_owned();
    if let DefaultValue::Is(text) | DefaultValue::Says(text) = field.default {
        description += &format!(" Default: {text}.");
    }
    Schema { description: Some(description), ..value(field.shape) }
}

fn typed(name: &'static str) -> Schema {
    Schema { types: Some(Types::One(name)), ..Schema::default() }
}

fn scalar() -> Schema {
    Schema { types: Some(Types::Any(["string", "number", "boolean"])), ..Schema::default() }
}

fn reference(info: &SectionInfo) -> Schema {
    Schema { reference: Some(format!("#/definitions/{}", id(info))), ..Schema::default() }
}

fn list_of(item: Schema) -> Schema {
    Schema { items: Some(Box::new(item)), ..typed("array") }
}

fn map_of(value: Schema) -> Schema {
    Schema { additional_properties: Some(Additional::Like(Box::new(value))), ..typed("object") }
}

fn any_of<const N: usize>(options: [Schema; N]) -> Schema {
    Schema { any_of: options.into(), ..Schema::default() }
}

fn one_of_strings(strings: &[&'static str]) -> Schema {
    Schema { strings: strings.to_vec(), ..Schema::default() }
}

/// The schema of a value. A template can render a number as a string, so most types accept strings.
fn value(shape: Shape) -> Schema {
    match shape {
        Shape::Text => scalar(),
        Shape::Flag => any_of([typed("boolean"), one_of_strings(&["true", "false", "1", "0"])]),
        Shape::Whole { min, max } => {
            any_of([Schema { minimum: Some(min), maximum: Some(max), ..typed("number") }, typed("string")])
        }
        Shape::Ports => {
            any_of([Schema { minimum: Some(0), maximum: Some(65535), ..typed("number") }, typed("string")])
        }
        Shape::Size | Shape::Duration | Shape::DurationOrNever | Shape::Restarts | Shape::Principal => {
            any_of([typed("number"), typed("string")])
        }
        Shape::DurationWithUnit | Shape::Mode => typed("string"),
        Shape::Command | Shape::WordOrWords => any_of([typed("string"), list_of(scalar())]),
        Shape::Words => list_of(scalar()),
        Shape::Numbers => list_of(typed("number")),
        Shape::OneOf(names) => one_of_strings(&both_cases(names)),
        Shape::EventOrFlag(names) => any_of([one_of_strings(names), typed("boolean")]),
        Shape::Map => map_of(scalar()),
        Shape::Variables => map_of(any_of([scalar(), typed("null")])),
        Shape::Limits => {
            let limit = || any_of([typed("number"), one_of_strings(&["unlimited"]), list_of(scalar())]);
            let resources = RESOURCES.iter().map(|(name, _)| ((*name).to_owned(), limit()));
            Schema {
                properties: Some(Members(resources.collect())),
                additional_properties: Some(Additional::Allowed(false)),
                ..typed("object")
            }
        }
        Shape::Capabilities => list_of(typed("string")),
        Shape::PathsOrObjects(info) => {
            let one = || any_of([typed("string"), reference(info)]);
            any_of([one(), list_of(one())])
        }
        Shape::MapOf(info) => map_of(reference(info)),
        Shape::Object(info) => reference(info),
        Shape::List(info) => list_of(reference(info)),
        Shape::OneOrMany(info) => any_of([reference(info), list_of(reference(info))]),
        Shape::DurationOrObject(info) => any_of([typed("number"), typed("string"), reference(info)]),
        Shape::ObjectOrBool(info) => any_of([reference(info), typed("boolean")]),
        Shape::ObjectOrText(info) => any_of([typed("string"), reference(info)]),
        Shape::TextsOrObjects(info) => list_of(any_of([typed("string"), reference(info)])),
        Shape::ObjectOrWord(info, word) => any_of([one_of_strings(&[word]), reference(info)]),
    }
}

/// Levels and formats of the log are often written in capitals.
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
