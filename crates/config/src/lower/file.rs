//! Rendered files (D15): their templates are parsed, so that what they use is known.

use std::collections::{BTreeMap, BTreeSet};

use containerpilot_core::inserted;
use containerpilot_core::plan::{FileTest, RenderedFile, Watch, WatchKind};

use super::Lower;
use super::defaults::KEY_INTERVAL;
use crate::decode::{Section, Spanned};
use crate::diagnostics::{FileId, Place, Severity, SourceFile};
use crate::fields::{ConfigFields, FileFields};
use crate::host::{Examined, FileError, PATIENCE};
use crate::limits::{SHORTEST_TIME, TEMPLATE_BYTES};
use crate::span::SourceMap;
use crate::suggest;
use crate::template::data::{LookUpSource, Use};
use crate::template::{self, TemplateError};
use crate::values::{to_duration, value_of};

/// The template of a file, and where it is.
struct Template {
    /// `None` if its file did not answer.
    text: Option<Vec<u8>>,
    name: String,
    /// The value of `from` or `template`.
    place: Place,
    /// True if it is in a file of its own.
    in_file: bool,
}

/// What a template can use.
struct Known<'a> {
    watches: BTreeSet<&'a str>,
    consul: bool,
    /// The templates in files of their own.
    examined: &'a Examined,
}

/// The watch of a key that a template uses.
fn key_watch(one: &Use) -> Option<Watch> {
    let (name, kind) = match one.source {
        LookUpSource::Key => {
            (RenderedFile::key_watch(&one.name), WatchKind::Key { key: one.name.clone(), dc: None })
        }
        LookUpSource::Keys => {
            let prefix = one.name.clone();
            (RenderedFile::prefix_watch(&one.name), WatchKind::Prefix { prefix, dc: None })
        }
        LookUpSource::Watch | LookUpSource::Secret => return None,
    };
    Some(Watch { name, interval: KEY_INTERVAL, kind })
}

impl Lower<'_> {
    /// The rendered files, and the watches of the keys that they use. `None` if one of them has an error.
    pub(crate) fn files(
        &mut self,
        fields: &ConfigFields,
        examined: &Examined,
    ) -> Option<(Vec<RenderedFile>, Vec<Watch>)> {
        let given = || fields.files.iter().flat_map(|given| &given.value);
        self.repeated(given().filter_map(|file| file.name.as_ref()), "two files are named");
        self.repeated(given().filter_map(|file| file.to.as_ref()), "two files are written to");
        let watches = fields.watches.iter().flat_map(|given| &given.value);
        let watches: BTreeSet<&str> =
            inserted(watches.filter_map(|watch| watch.name.as_ref()).map(|name| name.value.as_str()));
        let known = Known { watches, consul: fields.consul.is_some(), examined };
        let files: Vec<_> = given().map(|file| self.file(file, &known)).collect();
        let files: Vec<(RenderedFile, Vec<Watch>)> = files.into_iter().collect::<Option<_>>()?;
        let mut internal: Vec<Watch> = Vec::new();
        for watch in files.iter().flat_map(|(_, watches)| watches) {
            if !internal.contains(watch) {
                internal.push(watch.clone());
            }
        }
        Some((files.into_iter().map(|(file, _)| file).collect(), internal))
    }

    fn repeated<'a>(&mut self, values: impl Iterator<Item = &'a Spanned<String>>, message: &str) {
        let mut known = BTreeSet::new();
        for Spanned { value, place, .. } in values {
            if !known.insert(value) {
                self.error(*place, format!("{message} `{value}`"), "rename one of them, or remove it");
            }
        }
    }

    fn file(&mut self, fields: &FileFields, known: &Known<'_>) -> Option<(RenderedFile, Vec<Watch>)> {
        let at = fields.name.as_ref().map_or(fields.place.first_byte(), |given| given.place);
        let name = self.file_name(fields);
        let to = self.target(fields, at);
        let template = self.template(fields, at, known);
        let user = self.account(fields.user.as_ref(), "user", |host, name| host.has_user(name));
        let group = self.account(fields.group.as_ref(), "group", |host, name| host.has_group(name));
        let test = self.file_test(fields);
        let debounce = fields.debounce.as_ref()?;
        if debounce.value < 0 {
            self.error(debounce.place, "`debounce` cannot be negative", "");
            return None;
        }
        let mode = value_of(&fields.mode)?;
        let template = template?;
        let uses = match &template.text {
            Some(text) => self.uses(&template, text, known)?,
            None => Vec::new(),
        };
        let named = |source| uses.iter().filter(move |one| one.source == source).map(|one| &one.name);
        let mut used: BTreeSet<String> = inserted(named(LookUpSource::Watch).cloned());
        let keys: Vec<Watch> = uses.iter().filter_map(key_watch).collect();
        used.extend(keys.iter().map(|watch| watch.name.clone()));
        let secrets = named(LookUpSource::Secret).filter_map(|name| self.shared.secrets.get_key_value(name));
        let secrets: BTreeMap<String, String> =
            inserted(secrets.map(|(name, file)| (name.clone(), file.clone())));
        if !secrets.is_empty() && mode & 0o004 != 0 {
            let place = fields.mode.as_ref().filter(|mode| mode.written).map_or(at, |mode| mode.place);
            let message = format!("every user can read this file with a secret: its mode is 0{mode:o}");
            self.report(Severity::Warning, place, message, "write mode: \"0600\", and `user` or `group`");
        }
        let file = RenderedFile {
            name: name?,
            template: template.text.map(Into::into),
            template_name: template.name,
            to: to?,
            mode,
            user: user?,
            group: group?,
            test: test?,
            debounce: to_duration(debounce.value),
            watches: used.into_iter().collect(),
            secrets,
        };
        Some((file, keys))
    }

    fn file_name(&mut self, fields: &FileFields) -> Option<String> {
        let Some(given) = &fields.name else {
            self.required(&FileFields::INFO, fields.place, fields.place.first_byte(), "name");
            return None;
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if given.value.is_empty() || !given.value.chars().all(is_plain) {
            let message = format!("`{}` is not a valid name of a file", given.value);
            self.error(given.place, message, "it has letters, digits, `-`, `_` and `.`; the path is `to`");
            return None;
        }
        Some(given.value.clone())
    }

    fn target(&mut self, fields: &FileFields, at: Place) -> Option<String> {
        let Some(given) = &fields.to else {
            self.required(&FileFields::INFO, fields.place, at, "to");
            return None;
        };
        let is_path = !given.value.ends_with('/') && !given.value.contains('\0');
        let last = given.value.rsplit('/').next().unwrap_or_default();
        if !is_path || matches!(last, "" | "." | "..") {
            self.error(
                given.place,
                "`to` must be the path of a file",
                "for example: \"/etc/nginx/app.conf\"",
            );
            return None;
        }
        Some(given.value.clone())
    }

    fn file_test(&mut self, fields: &FileFields) -> Option<Option<FileTest>> {
        let timeout = fields.timeout.as_ref()?;
        if timeout.value < SHORTEST_TIME {
            self.error(timeout.place, "`timeout` must be at least 1ms", "");
            return None;
        }
        match &fields.test {
            None if timeout.written => {
                let message = "`timeout` has no effect without `test`";
                self.report(Severity::Warning, timeout.key, message, "remove it, or add `test`");
                Some(None)
            }
            None => Some(None),
            Some(given) => {
                Some(Some(FileTest { command: given.value.clone(), timeout: to_duration(timeout.value) }))
            }
        }
    }

    fn template(&mut self, fields: &FileFields, at: Place, known: &Known<'_>) -> Option<Template> {
        match (&fields.from, &fields.template) {
            (Some(from), None) => self.read_template(from, known.examined.templates.get(&from.value)),
            (None, Some(given)) => Some(Template {
                text: Some(given.value.clone().into_bytes()),
                name: "template".to_owned(),
                place: given.place,
                in_file: false,
            }),
            (Some(_), Some(given)) => {
                self.error(given.key, "`template` beside `from`", "remove one of them");
                None
            }
            (None, None) => {
                if !self.is_reported(fields.place, "from") && !self.is_reported(fields.place, "template") {
                    self.error(
                        at,
                        "a file needs `from` or `template`",
                        "for example: from: \"/etc/nginx/app.tmpl\"",
                    );
                }
                None
            }
        }
    }

    /// A template in a file of its own, with what the host has found there.
    fn read_template(
        &mut self,
        from: &Spanned<String>,
        found: Option<&Result<Vec<u8>, FileError>>,
    ) -> Option<Template> {
        let path = &from.value;
        let template = |text| Template { text, name: path.clone(), place: from.place, in_file: true };
        let text = match found {
            Some(Ok(text)) => text,
            Some(Err(error)) => {
                self.error(from.place, format!("cannot read `{path}`: {error}"), "");
                return None;
            }
            None => {
                let message = format!("`{path}` could not be read within {}s", PATIENCE.as_secs());
                let help =
                    "check its file system; the file is rendered after a reload that can read its template";
                self.report(Severity::Warning, from.place, message, help);
                return Some(template(None));
            }
        };
        if text.len() > TEMPLATE_BYTES {
            let limit = TEMPLATE_BYTES / 1024;
            self.error(from.place, format!("`{path}` is larger than {limit} KiB"), "check the path");
            return None;
        }
        Some(template(Some(text.clone())))
    }

    /// What a template uses; all of it must exist.
    fn uses(&mut self, template: &Template, text: &[u8], known: &Known<'_>) -> Option<Vec<Use>> {
        let uses = match template::uses(text) {
            Ok(uses) => uses,
            Err(errors) => {
                self.template_errors(template, text, errors);
                return None;
            }
        };
        let errors: Vec<TemplateError> = uses.iter().filter_map(|one| self.unknown(one, known)).collect();
        if errors.is_empty() {
            return Some(uses);
        }
        self.template_errors(template, text, errors);
        None
    }

    /// Why something that a template uses does not exist.
    fn unknown(&self, one: &Use, known: &Known<'_>) -> Option<TemplateError> {
        let Use { source, name, span } = one;
        let (message, help) = match source {
            LookUpSource::Watch if known.watches.contains(name.as_str()) => return None,
            LookUpSource::Secret if self.shared.secrets.contains_key(name) => return None,
            LookUpSource::Watch => {
                let near = suggest::nearest(name, known.watches.iter().copied());
                let help = near.map(|near| format!("did you mean \"{near}\"?"));
                (format!("unknown watch `{name}`"), help.unwrap_or("add it to `watches`".to_owned()))
            }
            LookUpSource::Secret => {
                let near = suggest::nearest(name, self.shared.secrets.keys().map(String::as_str));
                let help = near.map(|near| format!("did you mean \"{near}\"?"));
                let message = format!("`{name}` is not one of `secrets`");
                (message, help.unwrap_or("add it to `secrets` of the top level".to_owned()))
            }
            LookUpSource::Key | LookUpSource::Keys if name.is_empty() || name.starts_with('/') => {
                let help = "for example: \"app/config\", without a slash at the beginning";
                (format!("`{name}` is not the name of a key"), help.to_owned())
            }
            LookUpSource::Key | LookUpSource::Keys if !known.consul => {
                let help = "add consul: \"localhost:8500\" to the configuration";
                ("keys need Consul".to_owned(), help.to_owned())
            }
            LookUpSource::Key | LookUpSource::Keys => return None,
        };
        Some(TemplateError { stage: template::TemplateStage::Parse, span: *span, message, help: Some(help) })
    }

    /// Reports errors in a template at their places in it.
    fn template_errors(&mut self, template: &Template, text: &[u8], errors: Vec<TemplateError>) {
        if !template.in_file {
            for error in errors {
                let (line, column) = template::line_and_column(text, error.span);
                let message = format!("template:{line}:{column}: {}", error.message);
                self.error(template.place, message, error.help.as_deref().unwrap_or_default());
            }
            return;
        }
        let file = FileId::at(self.templates.first + self.templates.files.len());
        let (name, source) = (template.name.clone(), text.to_vec());
        self.templates.files.push(SourceFile {
            name,
            source,
            rendered: Vec::new(),
            map: SourceMap::default(),
        });
        for error in errors {
            let help = error.help.unwrap_or_default();
            self.error(Place::source(file, error.span), error.message, &help);
        }
    }
}
