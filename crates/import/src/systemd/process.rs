//! The properties of a process: user, environment, limits and output.

use containerpilot_core::plan::Capabilities;

use super::converter::Converter;
use super::exec::{Command, Privileges, unknown_specifier};
use super::keys;
use super::unit::UnitSetting;
use super::words::{strip, words};
use crate::document::{Field, Fields, Value};

impl Converter<'_> {
    /// The user, the environment and the limits: the fields that its hooks have, too.
    pub(super) fn process(&mut self) -> Vec<Field> {
        let mut fields = Vec::new();
        for (key, field) in [("User", "user"), ("Group", "group")] {
            if let Some(entry) = self.get(key)
                && let Some(value) = self.text(&entry)
            {
                fields.set(field, value, Some(&entry.place));
            }
        }
        if let Some(entry) = self.get("WorkingDirectory")
            && let Some(value) = self.text(&entry)
        {
            let (optional, path) = strip(&value, '-');
            match path {
                "~" => self.document.inexact(&entry.place, "write the home directory of the user in `cwd`"),
                path => fields.set("cwd", path, Some(&entry.place)),
            }
            if optional {
                self.document.inexact(&entry.place, "`-`: the directory must exist here");
            }
        }
        self.environment(&mut fields);
        self.numbers(&mut fields);
        self.capabilities(&mut fields);
        self.limits(&mut fields);
        self.output(&mut fields);
        fields
    }

    fn environment(&mut self, fields: &mut Vec<Field>) {
        let (mut env, mut secrets): (Vec<Field>, Vec<Field>) = (Vec::new(), Vec::new());
        for (key, root, variable) in keys::DIRECTORIES {
            let entries = self.unit.all("Service", key);
            let all = entries.iter().flat_map(|entry| words(&entry.value).unwrap_or_default());
            let paths: Vec<String> = all
                .filter_map(|word| self.unit.expand(&word.text).ok())
                .map(|path| format!("{root}/{}", path.split(':').next().unwrap_or_default()))
                .collect();
            if let Some(first) = entries.first().filter(|_| !paths.is_empty()) {
                env.set(variable, paths.join(":"), Some(&first.place));
            }
        }
        for entry in self.unit.all("Service", "Environment") {
            let Some(all) = words(&entry.value) else {
                self.document.inexact(&entry.place, "its quotes or escapes are invalid");
                continue;
            };
            for word in all {
                match (self.unit.expand(&word.text), word.text.contains('=')) {
                    (Ok(text), true) => {
                        if let Some((name, value)) = text.split_once('=') {
                            env.set(name, value, Some(&entry.place));
                        }
                    }
                    (Err(unknown), _) => self.document.inexact(&entry.place, unknown_specifier(unknown)),
                    (Ok(_), false) => {
                        self.document.inexact(&entry.place, format!("`{}` is not NAME=value", word.text))
                    }
                }
            }
        }
        for entry in self.unit.all("Service", "Environment") {
            if !env.iter().any(|field| field.from.as_ref() == Some(&entry.place)) {
                self.document.not_needed(&entry.place, "other lines set its variables again");
            }
        }
        let mut env_files = Vec::new();
        for entry in self.unit.all("Service", "EnvironmentFile") {
            let Ok(value) = self.unit.expand(&entry.value) else {
                self.document.inexact(&entry.place, "its specifier is known only on the machine of systemd");
                continue;
            };
            let (optional, path) = strip(&value, '-');
            if path.contains(['*', '?', '[']) {
                self.document.inexact(&entry.place, "a pattern: name the files one by one in `envFile`");
                continue;
            }
            let file = match optional {
                true => Value::Object(vec![Field::new("path", path), Field::new("optional", true)]),
                false => path.into(),
            };
            env_files.push(file.commented(vec![entry.place.to_string()]));
        }
        for entry in self.unit.all("Service", "LoadCredential") {
            let Some((name, path)) = entry.value.split_once(':').filter(|(_, path)| path.starts_with('/'))
            else {
                self.document
                    .inexact(&entry.place, "only a credential from a file has an equivalent: `secrets`");
                continue;
            };
            let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
            let variable: String = name.chars().map(letter).collect();
            let valid = variable.starts_with(|c: char| !c.is_ascii_digit());
            if valid && let Ok(path) = self.unit.expand(path) {
                secrets.set(&variable, Value::Object(vec![Field::new("file", path)]), Some(&entry.place));
            }
            let why =
                "a secret is a variable here, not a file in `$CREDENTIALS_DIRECTORY`: change the program";
            self.document.inexact(&entry.place, why);
        }
        if !env_files.is_empty() {
            fields.set("envFile", Value::List(env_files), None);
            env = self.below_files(env);
        }
        for (key, members) in [("env", env), ("secrets", secrets)] {
            if !members.is_empty() {
                fields.set(key, Value::Object(members), None);
            }
        }
    }

    /// The files win over `Environment=` in systemd, and over `env` of the top level here. With other services, the variables stay in
    /// `env` of the job, and are listed. Returns what stays.
    fn below_files(&mut self, env: Vec<Field>) -> Vec<Field> {
        // `HOME` of the user wins over the top level.
        if self.alone && env.get("HOME").is_none() {
            if !env.is_empty() {
                self.document.top.set("env", Value::Object(env), None);
                self.document
                    .top
                    .note("env", "at the top level, so that `envFile` of the job wins, as in systemd");
            }
            return Vec::new();
        }
        for entry in self.unit.all("Service", "Environment") {
            let names = env.iter().filter(|field| field.from.as_ref() == Some(&entry.place));
            let names: Vec<String> = names.map(|field| format!("`{}`", field.key)).collect();
            if !names.is_empty() {
                let why = format!(
                    "{}: `env` wins over `envFile` here, in systemd the file wins: remove from `env` what the file sets",
                    names.join(", ")
                );
                self.document.inexact(&entry.place, why);
            }
        }
        env
    }

    fn numbers(&mut self, fields: &mut Vec<Field>) {
        if let Some(entry) = self.get("UMask") {
            match entry.value.len() <= 5 && entry.value.chars().all(|c| matches!(c, '0'..='7')) {
                true => fields.set("umask", format!("{:0>4}", entry.value), Some(&entry.place)),
                false => self.document.inexact(&entry.place, "this is not a mask in octal digits"),
            }
        }
        for (key, field, range) in
            [("Nice", "nice", -20..=19), ("OOMScoreAdjust", "oomScoreAdj", -1000..=1000)]
        {
            let Some(entry) = self.get(key) else { continue };
            match entry.value.parse::<i32>().ok().filter(|number| range.contains(number)) {
                Some(number) => fields.set(field, Value::Number(number.to_string()), Some(&entry.place)),
                None => self.document.inexact(&entry.place, "this number is out of range"),
            }
        }
        if let Some(entry) = self.get("NoNewPrivileges").filter(|_| self.yes("NoNewPrivileges")) {
            fields.set("noNewPrivileges", true, Some(&entry.place));
        }
    }

    /// The fields of one command: `+` has full privileges, and `!` no `User=`.
    pub(super) fn for_command(&self, command: &Command, process: &[Field]) -> Vec<Field> {
        let mut fields = process.to_vec();
        let removed: &[&str] = match command.privileges {
            Privileges::Service => &[],
            Privileges::NoUser => &["user", "group", "capabilities"],
            Privileges::Full => &["user", "group", "capabilities", "noNewPrivileges", "limits"],
        };
        fields.retain(|field| !removed.contains(&field.key.as_str()));
        if command.privileges == Privileges::NoUser
            && let Some(names) = self.capability_set("CapabilityBoundingSet").and_then(capability_names)
        {
            fields.set("capabilities", names, None);
        }
        fields
    }

    /// `CapabilityBoundingSet=` limits root. Another user has no capabilities except those of `AmbientCapabilities=`.
    fn capabilities(&mut self, fields: &mut Vec<Field>) {
        const AMBIENT: &str = "AmbientCapabilities";
        const BOUNDING: &str = "CapabilityBoundingSet";
        let user =
            fields.get("user").is_some_and(|user| !["root", "0"].iter().any(|root| *user == (*root).into()));
        let key = if user { AMBIENT } else { BOUNDING };
        let other = if user { BOUNDING } else { AMBIENT };
        let set = self.capability_set(key).filter(|set| !(user && set.0 == 0));
        let names = set.map(capability_names);
        let lines =
            |key| -> Vec<UnitSetting> { self.unit.all("Service", key).into_iter().cloned().collect() };
        let (own, others) = (lines(key), lines(other));
        match &names {
            Some(Some(names)) => {
                let mut places =
                    self.unit.entries.iter().filter(|entry| entry.key == key).map(|entry| &entry.place);
                let first = places.next();
                let comments = places.map(ToString::to_string).collect();
                fields.set("capabilities", Value::from(names.clone()).commented(comments), first);
            }
            Some(None) => {
                for entry in &own {
                    self.document
                        .inexact(&entry.place, "list the capabilities that it keeps in `capabilities`");
                }
            }
            None => {}
        }
        if user && matches!(names, Some(Some(_))) {
            self.document.remark(
                "`capabilities` of another user also limits set-uid programs. `AmbientCapabilities=` does not.",
            );
        }
        for entry in others {
            match (user, &names) {
                (false, _) => self.document.not_needed(&entry.place, "root has these capabilities already"),
                (true, Some(Some(_))) => self.document.not_needed(&entry.place, "`capabilities` drops all others"),
                (true, _) => self.document.inexact(
                    &entry.place,
                    "another user has no capabilities here; `noNewPrivileges` also keeps set-uid programs from them",
                ),
            }
        }
    }

    /// The capabilities of all lines of a key; `None` if there are none.
    fn capability_set(&self, key: &str) -> Option<Capabilities> {
        let lines = self.unit.entries.iter().filter(|entry| entry.section == "Service" && entry.key == key);
        lines
            .fold(None, |set: Option<Capabilities>, entry| {
                let (inverted, names) = strip(&entry.value, '~');
                let mut line = Capabilities::default();
                for name in names.split_whitespace().map(str::to_ascii_uppercase) {
                    let name = name.strip_prefix("CAP_").unwrap_or(&name);
                    if let Some(number) = Capabilities::NAMES.iter().position(|known| *known == name) {
                        line.insert(number);
                    }
                }
                let bits = if inverted { !line.0 } else { line.0 };
                Some(Capabilities(match set {
                    Some(before) if line.0 != 0 && inverted => before.0 & bits,
                    Some(before) if line.0 != 0 => before.0 | bits,
                    _ => bits,
                }))
            })
            .filter(|set| *set != Capabilities::ALL)
    }

    fn limits(&mut self, fields: &mut Vec<Field>) {
        let mut limits: Vec<Field> = Vec::new();
        for entry in self.unit.entries.iter().filter(|entry| entry.section == "Service") {
            let Some(resource) = entry.key.strip_prefix("Limit") else { continue };
            let resource = resource.to_ascii_lowercase();
            let Some(&(name, base)) = keys::LIMITS.iter().find(|(name, _)| *name == resource) else {
                continue;
            };
            let one = |text: &str| keys::limit(text, base);
            let value = match entry.value.split_once(':') {
                Some((soft, hard)) => {
                    one(soft).zip(one(hard)).map(|(soft, hard)| Value::List(vec![soft, hard]))
                }
                None => one(&entry.value),
            };
            match value {
                Some(value) => limits.set(name, value, Some(&entry.place)),
                None => self.document.inexact(&entry.place, "this limit has no equivalent number"),
            }
        }
        if !limits.is_empty() {
            fields.set("limits", Value::Object(limits), None);
        }
    }

    /// `StandardOutput=` and `StandardError=`.
    fn output(&mut self, fields: &mut Vec<Field>) {
        let (out, error) = (self.get("StandardOutput"), self.get("StandardError"));
        let path = |entry: &Option<UnitSetting>| {
            let value = entry.as_ref()?.value.clone();
            let found = ["file:", "append:", "truncate:"].iter().find_map(|kind| value.strip_prefix(kind));
            self.unit.expand(found?).ok()
        };
        let (out_path, error_path) = (path(&out), path(&error));
        if let (Some(path), Some(entry)) = (&out_path, &out)
            && (error_path.as_ref().is_none_or(|other| other == path))
            && error.as_ref().is_none_or(|entry| error_path.is_some() || entry.value == "inherit")
        {
            let comments = error.iter().map(|entry| entry.place.to_string()).collect();
            let file = Value::Object(vec![Field::new("file", path.as_str())]);
            fields.set("logging", file.commented(comments), Some(&entry.place));
            return;
        }
        for entry in out.into_iter().chain(error) {
            let kept = ["journal", "inherit", "syslog", "kmsg", "journal+console", "syslog+console"];
            if !kept.contains(&entry.value.as_str()) {
                let why =
                    "stdout and stderr of a job go to the log, or both to one file (`logging: { file }`)";
                self.document.inexact(&entry.place, why);
            }
        }
    }
}

/// The names of a set; `None` for all capabilities except some.
fn capability_names(set: Capabilities) -> Option<Vec<String>> {
    let named: Vec<(usize, &str)> = Capabilities::NAMES.iter().copied().enumerate().collect();
    let unnamed = set.0.checked_shr(u32::try_from(named.len()).ok()?)? != 0;
    let names = named.into_iter().filter(|(number, _)| set.contains(*number));
    (!unnamed).then(|| names.map(|(_, name)| name.to_owned()).collect())
}
