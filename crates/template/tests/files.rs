//! D15: the functions of the templates of rendered files.
#![cfg(test)]

use std::collections::BTreeMap;

use containerpilot_template::data::{Data, DataObject, LookUp, LookUpSource};
use containerpilot_template::{Environment, render, render_file, uses};

struct Found;

impl LookUp for Found {
    fn look_up(&self, source: LookUpSource, name: &str) -> Option<Data> {
        match (source, name) {
            (LookUpSource::Watch, "app") => Some(Data::Objects(vec![instance(1), instance(2)])),
            (LookUpSource::Watch, "none") => Some(Data::Objects(Vec::new())),
            (LookUpSource::Watch, "db") => Some(Data::Flag(true)),
            (LookUpSource::Key, "a/b") => Some(Data::Text(b"value".to_vec())),
            (LookUpSource::Keys, "a/") => Some(Data::Objects(vec![DataObject {
                kind: "a key",
                fields: vec![("Key", Data::Text(b"b".to_vec())), ("Value", Data::Text(b"value".to_vec()))],
            }])),
            (LookUpSource::Secret, "PASSWORD") => Some(Data::Text(b"hunter2".to_vec())),
            _ => None,
        }
    }
}

fn instance(number: i64) -> DataObject {
    let fields = vec![
        ("ID", Data::Text(format!("app-{number}").into_bytes())),
        ("Address", Data::Text(format!("10.0.0.{number}").into_bytes())),
        ("Port", Data::Number(8000 + number)),
        ("Tags", Data::Texts(vec!["v1".to_owned(), "blue".to_owned()])),
        ("Meta", Data::Map(BTreeMap::from([("zone".to_owned(), "a".to_owned())]))),
    ];
    DataObject { kind: "an instance", fields }
}

fn environment() -> Environment {
    [(b"HOME".to_vec(), b"/root".to_vec())].into()
}

fn rendered(source: &str) -> String {
    let text = render_file(source.as_bytes(), &environment(), &Found);
    String::from_utf8(text.unwrap_or_else(|errors| panic!("{errors:?}"))).unwrap()
}

/// The place, message and help of the first error.
fn failed(source: &str) -> (String, String, String) {
    let errors = render_file(source.as_bytes(), &environment(), &Found).unwrap_err();
    let error = errors.first().unwrap();
    let help = error.help.clone().unwrap_or_default();
    (source[error.span.range()].to_owned(), error.message.clone(), help)
}

#[test]
fn d15_instances_have_fields() {
    let upstreams = "{{ range watch \"app\" }}server {{ .Address }}:{{ .Port }}; # {{ .ID }}\n{{ end }}";
    assert_eq!(rendered(upstreams), "server 10.0.0.1:8001; # app-1\nserver 10.0.0.2:8002; # app-2\n");
    let nested = "{{ range $i, $one := watch \"app\" }}{{ $i }} {{ .Tags | join \"+\" }} {{ .Meta.zone }} \
                  [{{ .Meta.none }}] {{ $.HOME }};{{ end }}";
    assert_eq!(rendered(nested), "0 v1+blue a [] /root;1 v1+blue a [] /root;");
    assert_eq!(rendered("{{ len (watch \"app\") }} {{ (index (watch \"app\") 1).ID }}"), "2 app-2");
    assert_eq!(rendered("{{ range watch \"none\" }}x{{ else }}down{{ end }}"), "down");
    assert_eq!(rendered("{{ if watch \"db\" }}up{{ end }}"), "up");
    assert_eq!(
        rendered("{{ with slice (watch \"app\") 0 1 }}{{ . }}{{ end }}"),
        "[{app-1 10.0.0.1 8001 [v1 blue] map[zone:a]}]"
    );
}

#[test]
fn d15_keys_have_values_and_defaults() {
    assert_eq!(rendered("{{ key \"a/b\" }} {{ keyOrDefault \"a/c\" \"x\" }}"), "value x");
    assert_eq!(rendered("{{ range keys \"a/\" }}{{ .Key }}={{ .Value }}{{ end }}"), "b=value");
    assert_eq!(rendered("{{ range keys \"none/\" }}x{{ else }}empty{{ end }}"), "empty");
    assert_eq!(rendered("{{ secret \"PASSWORD\" }}"), "hunter2");
}

#[test]
fn d15_what_is_missing_is_an_error_at_its_place() {
    let (place, message, help) = failed("a\n{{ key \"a/c\" }}");
    assert_eq!((place.as_str(), message.as_str()), ("\"a/c\"", "the key `a/c` does not exist in Consul"));
    assert_eq!(help, "create it, or write: keyOrDefault \"a/c\" \"value\"");
    let (place, message, help) = failed("{{ range watch \"app\" }}{{ .Adress }}{{ end }}");
    assert_eq!((place.as_str(), message.as_str()), (".Adress", "an instance has no field `Adress`"));
    assert_eq!(help, "did you mean .Address?");
    let (_, _, help) = failed("{{ range watch \"app\" }}{{ .HOME }}{{ end }}");
    assert!(help.ends_with("write $.HOME for an environment variable"), "{help}");
}

#[test]
fn d15_uses_are_known_before_rendering() {
    let source = "{{ define \"x\" }}{{ key \"a/b\" }}{{ end }}{{ if eq (keyOrDefault \"c\" \"d\") .HOME }}\
                  {{ range watch \"app\" }}{{ end }}{{ else }}{{ keys \"p/\" }}{{ secret \"S\" }}{{ end }}";
    let found: Vec<(LookUpSource, String)> =
        uses(source.as_bytes()).unwrap().into_iter().map(|one| (one.source, one.name)).collect();
    let expected = [
        (LookUpSource::Key, "a/b"),
        (LookUpSource::Key, "c"),
        (LookUpSource::Watch, "app"),
        (LookUpSource::Keys, "p/"),
        (LookUpSource::Secret, "S"),
    ];
    assert_eq!(found, expected.map(|(source, name)| (source, name.to_owned())));
    for (source, place) in [
        ("{{ watch .HOME }}", ".HOME"),
        ("{{ \"app\" | watch }}", "watch"),
        ("{{ print (key (print \"a\")) }}", "(print \"a\")"),
        ("{{ template \"x\" watch }}{{ define \"x\" }}{{ end }}", "watch"),
    ] {
        let errors = uses(source.as_bytes()).unwrap_err();
        assert_eq!(&source[errors[0].span.range()], place);
        assert!(errors[0].message.ends_with("needs a name in quotes"), "{}", errors[0].message);
    }
}

#[test]
fn d15_a_configuration_does_not_have_these_functions() {
    let errors = render(b"{{ watch \"app\" }}", &environment()).unwrap_err();
    assert_eq!(errors[0].message, "`watch` works only in the template of a rendered file");
}

#[test]
fn d15_a_template_that_loops_has_an_end() {
    let (_, message, _) = failed("{{ define \"x\" }}{{ template \"x\" }}{{ end }}{{ template \"x\" }}");
    assert_eq!(message, "template calls are nested more than 10000 deep");
    let (_, message, _) = failed(
        "{{ range loop 100000 }}{{ range watch \"app\" }}{{ range loop 100 }}x{{ end }}{{ end }}{{ end }}",
    );
    assert!(message.contains("more than"), "{message}");
}
