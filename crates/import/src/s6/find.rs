//! Finds service directories.

use std::collections::BTreeSet;

use super::importer::{Importer, Service, ServiceType};
use super::script;
use crate::error::ImportError;
use crate::files::Text;

/// What a directory contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Subdirectories with a file `type`.
    Source,
    /// Subdirectories with a file `run`.
    Services,
    Init,
    Finish,
    FixAttributes,
}

fn named(directory: &str) -> Option<Layout> {
    Some(match directory {
        "s6-rc.d" | "user-bundles.d" => Layout::Source,
        "services.d" => Layout::Services,
        "cont-init.d" => Layout::Init,
        "cont-finish.d" => Layout::Finish,
        "fix-attrs.d" => Layout::FixAttributes,
        _ => return None,
    })
}

impl Importer<'_> {
    /// Finds the service directories at a path.
    pub(super) fn find(&mut self, path: &str) -> Result<(), ImportError> {
        let trimmed = path.trim_end_matches('/');
        let path = if trimmed.is_empty() && !path.is_empty() { "/" } else { trimmed };
        let Some(names) = self.files.list(path) else {
            let kinds =
                "name an s6-rc source directory, a scan directory, or the root of an image with s6-overlay";
            let why = match path {
                "-" => format!("standard input is not a directory: {kinds}"),
                _ => self.files.read(path).err().unwrap_or_else(|| format!("it is not a directory: {kinds}")),
            };
            return Err(ImportError::Unreadable { path: path.to_owned(), why });
        };
        let join = |rest: &str| format!("{}/{rest}", path.trim_end_matches('/'));
        if let Some(layout) = named(script::base(path)) {
            self.read(path, layout);
            return Ok(());
        }
        if names.iter().any(|name| matches!(name.as_str(), "run" | "type")) {
            self.service(path, script::base(path), false);
            return Ok(());
        }
        let mut found = false;
        for inside in ["", "s6-overlay/", "etc/", "etc/s6-overlay/"] {
            for name in
                ["s6-rc.d", "user-bundles.d", "cont-init.d", "services.d", "cont-finish.d", "fix-attrs.d"]
            {
                let directory = join(&format!("{inside}{name}"));
                if let Some(layout) = named(name).filter(|_| self.files.list(&directory).is_some()) {
                    self.read(&directory, layout);
                    found = true;
                }
            }
        }
        if !found {
            self.read(path, Layout::Services);
        }
        Ok(())
    }

    fn read(&mut self, directory: &str, layout: Layout) {
        for name in self.files.list(directory).unwrap_or_default() {
            let path = format!("{}/{name}", directory.trim_end_matches('/'));
            match layout {
                _ if name.starts_with('.') => {}
                Layout::Source => self.service(&path, &name, false),
                Layout::Services => self.service(&path, &name, script::base(directory) == "services.d"),
                Layout::Init => self.init.push(path),
                Layout::Finish => self.finish.push(path),
                Layout::FixAttributes => {
                    for (place, line) in self.text(&path).iter().flat_map(Text::lines) {
                        if !line.trim().is_empty() && !line.starts_with('#') {
                            self.document.inexact(&place, "set owner and mode in the image, or with a job that runs `chown` and `chmod`");
                        }
                    }
                }
            }
        }
    }

    fn service(&mut self, path: &str, name: &str, legacy: bool) {
        let Some(names) = self.files.list(path) else { return };
        let files: BTreeSet<String> = names.into_iter().collect();
        let mut service =
            Service { path: path.to_owned(), kind: ServiceType::Longrun, files, legacy, job: String::new() };
        let kind = self.value(&service, "type");
        service.kind = match kind.as_ref().map(|(kind, _)| kind.as_str()) {
            Some("oneshot") => ServiceType::Oneshot,
            Some("bundle") => ServiceType::Bundle,
            Some("longrun") => ServiceType::Longrun,
            None if service.files.contains("run") => ServiceType::Longrun,
            None if service.files.contains("contents.d") => ServiceType::Bundle,
            None => return,
            Some(_) => {
                if let Some((_, place)) = &kind {
                    self.document.inexact(place, "the type is `longrun`, `oneshot` or `bundle`");
                }
                return;
            }
        };
        if service.kind == ServiceType::Longrun && !service.files.contains("run") {
            self.document.inexact(&self.place(&format!("{path}/type")), "a longrun without `run`");
            return;
        }
        if service.kind != ServiceType::Bundle {
            service.job = self.document.free_name(name);
        }
        if let Some((pipeline, _)) = self.value(&service, "pipeline-name") {
            self.pipelines.insert(pipeline, name.to_owned());
        }
        let log = format!("{path}/log");
        let has_log = service.kind == ServiceType::Longrun
            && self.files.list(&log).is_some_and(|files| files.iter().any(|file| file == "run"));
        if !self.services.contains_key(name) {
            self.order.push(name.to_owned());
            self.services.insert(name.to_owned(), service);
        }
        if has_log {
            self.logger(&log, name);
        }
    }
}
