//! Input that was made to hurt: each importer ends, with a result or an error, and never panics.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::collections::BTreeMap;

use containerpilot_import::files::Files;
use containerpilot_import::{ImportError, ImportFormat, Imported, import};

/// Files in memory. A directory is what other paths begin with.
#[derive(Default)]
struct Memory(BTreeMap<String, Vec<u8>>);

impl Memory {
    fn with(files: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect())
    }
}

impl Files for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).cloned().ok_or_else(|| "there is no such file".to_owned())
    }

    fn list(&self, directory: &str) -> Option<Vec<String>> {
        let start = format!("{directory}/");
        let inside = self.0.range(start.clone()..).take_while(|(path, _)| path.starts_with(&start));
        let mut names: Vec<String> =
            inside.filter_map(|(path, _)| Some(path[start.len()..].split('/').next()?.to_owned())).collect();
        names.dedup();
        (!names.is_empty()).then_some(names)
    }
}

fn of(source: &str, files: &Memory) -> Result<Imported, ImportError> {
    import(ImportFormat::from_name(source).unwrap(), &["d".to_owned()], files)
}

fn unit(text: &str) -> Result<Imported, ImportError> {
    of("systemd", &Memory::with([("d/x.service".to_owned(), text.to_owned())]))
}

#[test]
fn c11_hostile_units_are_converted_or_refused() {
    let start = "[Service]\nExecStart=/bin/x\n";
    for text in [
        "RestartSec=99999999999999999999999999999999h\nRestart=always".to_owned(),
        "TimeoutStopSec=1e999".to_owned(),
        "LimitNOFILE=99999999999999999999999:1".to_owned(),
        "LimitCORE=99999999999T".to_owned(),
        "Nice=99999999999999".to_owned(),
        "UMask=9".to_owned(),
        "Environment=\"\\".to_owned(),
        "ExecStop=%".to_owned(),
        "ExecStop=${".to_owned(),
        "ExecStop=$ $$ ${} ${A} $A$B".to_owned(),
        "ExecStop=- @ ; ; \\; ;".to_owned(),
        "ExecStop=-@:+!".to_owned(),
        "[Unit]\nStartLimitBurst=0\nStartLimitIntervalSec=infinity".to_owned(),
        "[Unit]\nAfter=x.service x.service\nRequires=x.service\nOnFailure=x.service".to_owned(),
        format!("Environment={}", "\\\n".repeat(100_000)),
        format!("ExecStop=/bin/y {}", "${A}".repeat(100_000)),
        format!("ExecStop=/bin/y {}", "%%".repeat(100_000)),
        "]\n[\n[]\n=\n[Service\n\u{0}=\u{1}".to_owned(),
    ] {
        unit(&format!("{start}{text}\n")).unwrap();
    }
    for refused in ["", "[Service]\n", "[Service]\nExecStart=/bin/x '\n", "[Service]\nExecStart=@\n"] {
        assert!(unit(refused).is_err(), "{refused}");
    }
}

#[test]
fn c11_a_template_that_names_itself_ends() {
    let template = "[Unit]\nWants=x@%i%i.service x@a%i.service\n[Service]\nExecStart=/bin/x %i\n[Install]\nDefaultInstance=a\n";
    let files = Memory::with([("d/x@.service".to_owned(), template.to_owned())]);
    assert!(of("systemd", &files).unwrap().text.len() < 4_000_000);
}

#[test]
fn c11_long_chains_and_cycles_end() {
    let many = 3000;
    for cycle in [false, true] {
        let next = |n: usize| if cycle { (n + 1) % many } else { n + 1 };
        let units = (0..many).map(|n| {
            let text = format!(
                "[Unit]\nAfter=u{0}.service\nRequires=u{0}.service\n[Service]\nExecStart=/bin/x\n",
                next(n)
            );
            (format!("d/u{n}.service"), text)
        });
        of("systemd", &Memory::with(units)).unwrap();
        let services = (0..many).flat_map(|n| {
            [
                (format!("d/u{n}/type"), "longrun".to_owned()),
                (format!("d/u{n}/run"), "#!/bin/sh\nexec x\n".to_owned()),
                (format!("d/u{n}/dependencies"), format!("u{}\n", next(n))),
                (format!("d/u{n}/producer-for"), format!("u{}\n", next(n))),
            ]
        });
        let _ = of("s6", &Memory::with(services));
    }
}

#[test]
fn c11_hostile_service_directories_are_converted_or_refused() {
    let bundle =
        [("d/a/type", "bundle"), ("d/a/contents", "a\nb\n"), ("d/b/type", "bundle"), ("d/b/contents", "a\n")];
    let owned = |(path, text): (&str, &str)| (path.to_owned(), text.to_owned());
    assert!(of("s6", &Memory::with(bundle.map(owned))).is_err());
    for (file, text) in [
        ("timeout-kill", "99999999999999999999"),
        ("timeout-kill", "-1"),
        ("notification-fd", "99999999999"),
        ("down-signal", "SIGNOTHING"),
        ("finish", "#!/bin/sh\n"),
        ("finish", ""),
        ("dependencies", "x\nx\n\n#\n"),
        ("producer-for", "x"),
        ("run", ""),
        ("run", "#!"),
        ("run", "#!/bin/sh\nexec '"),
        ("run", "#!/bin/sh\nexec \\"),
        ("run", "#!/bin/execlineb\n\"\\"),
    ] {
        let files = [("d/x/type", "longrun"), ("d/x/run", "#!/bin/sh\nexec y\n")].map(owned);
        let more = (format!("d/x/{file}"), text.to_owned());
        of("s6", &Memory::with(files.into_iter().chain([more]))).unwrap();
    }
    let mut binary = Memory::with([owned(("d/x/type", "longrun"))]);
    binary.0.insert("d/x/run".to_owned(), vec![0x7f, 0xff, 0xfe]);
    assert!(of("s6", &binary).unwrap().text.contains("\"./run\""));
}

#[test]
fn c11_many_checks_with_the_variables_of_one_service_are_refused() {
    let layer = |checks: usize| {
        let check = |n| format!("  c{n}: {{override: replace, exec: {{command: x, service-context: a}}}}\n");
        let checks: String = (0..checks).map(check).collect();
        let service =
            format!("a: {{override: replace, command: a, environment: {{A: {}}}}}", "x".repeat(100_000));
        let text = format!("services:\n  {service}\nchecks:\n{checks}");
        of("pebble", &Memory::with([("d/001-base.yaml".to_owned(), text)]))
    };
    layer(5).unwrap();
    assert!(layer(1900).is_err());
}
