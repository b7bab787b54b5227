//! Renders the text of a file.

use std::collections::BTreeMap;

use containerpilot_config::template::data::{Data, DataObject, LookUp, LookUpSource};
use containerpilot_config::template::{self, Environment, TemplateError};
use containerpilot_core::answer::{Answer, Entries, Instance};
use containerpilot_core::input::RenderError;
use containerpilot_core::plan::{FileData, RenderedFile};
use containerpilot_process::secrets;

use crate::files::write::{self, TempFile};

/// Everything that a file is rendered from.
#[derive(Debug)]
pub(crate) struct FileInputs {
    pub(crate) file: RenderedFile,
    pub(crate) environment: Environment,
    pub(crate) data: FileData,
}

/// Renders a file into a temporary one; `None` if the file has that text already.
pub(crate) fn prepare(inputs: &FileInputs) -> Result<Option<TempFile>, RenderError> {
    let text = text_of(inputs)?;
    write::prepare(&inputs.file, &text).map_err(|error| RenderError::System(error.to_string()))
}

fn text_of(inputs: &FileInputs) -> Result<Vec<u8>, RenderError> {
    let FileInputs { file, environment, data } = inputs;
    let mut secrets = BTreeMap::new();
    for (name, path) in &file.secrets {
        let value = secrets::value(path)
            .map_err(|why| RenderError::System(format!("secret {name}: {path}: {why}")))?;
        secrets.insert(name.as_str(), value);
    }
    let found = Found { data, secrets };
    let Some(template) = &file.template else {
        let name = &file.template_name;
        return Err(RenderError::Text(format!(
            "{name} did not answer when the configuration was loaded: reload it to try again"
        )));
    };
    template::render_file(template, environment, &found)
        .map_err(|errors| RenderError::Text(found.without_secrets(error_text(file, template, &errors))))
}

/// The first error with its place in the template.
fn error_text(file: &RenderedFile, template: &[u8], errors: &[TemplateError]) -> String {
    let Some(error) = errors.first() else { return "the template has an error".to_owned() };
    let (line, column) = template::line_and_column(template, error.span);
    let mut text = format!("{}:{line}:{column}: {}", file.template_name, error.message);
    if let Some(help) = &error.help {
        text += &format!(" ({help})");
    }
    if let Some(more @ 1..) = errors.len().checked_sub(1) {
        text += &format!("; and {more} more");
    }
    text
}

/// What a template can look up.
struct Found<'a> {
    data: &'a FileData,
    secrets: BTreeMap<&'a str, Vec<u8>>,
}

impl Found<'_> {
    /// A message in which values of secrets are hidden (L5).
    fn without_secrets(&self, mut text: String) -> String {
        let values = self.secrets.values().filter_map(|value| std::str::from_utf8(value).ok());
        for value in values.filter(|value| !value.is_empty()) {
            text = text.replace(value, "***");
        }
        text
    }
}

impl LookUp for Found<'_> {
    fn look_up(&self, source: LookUpSource, name: &str) -> Option<Data> {
        let watch = match source {
            LookUpSource::Secret => return self.secrets.get(name).cloned().map(Data::Text),
            LookUpSource::Watch => name.to_owned(),
            LookUpSource::Key => RenderedFile::key_watch(name),
            LookUpSource::Keys => RenderedFile::prefix_watch(name),
        };
        match self.data.get(&watch)? {
            Answer::Instances(instances) => Some(Data::Objects(instances.iter().map(instance).collect())),
            Answer::Value(value) => Some(Data::Text(value.to_vec())),
            Answer::Entries(entries) => Some(Data::Objects(objects(entries))),
            Answer::Up => Some(Data::Flag(true)),
            Answer::Down(_) => Some(Data::Flag(false)),
            Answer::Absent => None,
        }
    }
}

fn instance(instance: &Instance) -> DataObject {
    let Instance { id, address, port, tags, meta } = instance;
    let fields = vec![
        ("ID", Data::Text(id.clone().into_bytes())),
        ("Address", Data::Text(address.clone().into_bytes())),
        ("Port", Data::Number(i64::from(*port))),
        ("Tags", Data::Texts(tags.clone())),
        ("Meta", Data::Map(meta.clone())),
    ];
    DataObject { kind: "an instance", fields }
}

fn objects(entries: &Entries) -> Vec<DataObject> {
    let object = |(key, value): (&String, &std::sync::Arc<[u8]>)| DataObject {
        kind: "an entry",
        fields: vec![("Key", Data::Text(key.clone().into_bytes())), ("Value", Data::Text(value.to_vec()))],
    };
    entries.iter().map(object).collect()
}
