use super::*;
use crate::files::{SourceLine, Text};

fn parsed(text: &str) -> Result<Vec<YamlNode>, String> {
    let text = Text::new("f.yaml", text);
    parse(&text).map_err(|error| error.to_string())
}

fn one(text: &str) -> YamlNode {
    let mut documents = parsed(text).unwrap();
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

fn keys(node: &YamlNode) -> Vec<&str> {
    node.map().unwrap().entries().iter().map(|entry| entry.key.as_str()).collect()
}

#[test]
fn c11_yaml_values_have_their_lines() {
    let node = one("# comment\nservices:\n  web:\n    command: [a, 'b']\n\n    tty:\n");
    let web = node.map().unwrap().get("services").unwrap().map().unwrap().entry("web").unwrap();
    assert_eq!(web.place(), SourceLine { file: "f.yaml".into(), line: 3, text: "web:".into() });
    let command = web.value.map().unwrap().entry("command").unwrap();
    assert_eq!((command.place().line, command.value.place().line), (4, 4));
    let words: Vec<&str> = command.value.list().unwrap().iter().filter_map(YamlNode::text).collect();
    assert_eq!(words, ["a", "b"]);
    assert!(web.value.get("tty").unwrap().is_null());
    assert_eq!(web.value.get("tty").unwrap().text(), None);
    let node = one("a: 1\r\nb: 2\rc: 3\n");
    let lines: Vec<_> = node.map().unwrap().entries().iter().map(YamlEntry::place).collect();
    assert_eq!(lines.iter().map(|place| place.line).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(lines[2].text, "c: 3");
}

#[test]
fn c11_yaml_scalars_keep_their_text() {
    let node = one(
        "[0644, '0644', yes, true, 1m30s, 1.50, ~, \"\", 0x1f, -3, 1_000, !!str 12, 08, on, 1e3, 1:30, .inf]",
    );
    let seen: Vec<(Kind, Option<&str>)> =
        node.list().unwrap().iter().map(|item| (item.kind().unwrap(), item.text())).collect();
    use Kind::*;
    let expected = [
        (Integer, Some("0644")),
        (Text, Some("0644")),
        (Text, Some("yes")),
        (Flag, Some("true")),
        (Text, Some("1m30s")),
        (Float, Some("1.50")),
        (Null, None),
        (Text, Some("")),
        (Integer, Some("0x1f")),
        (Integer, Some("-3")),
        (Integer, Some("1_000")),
        (Text, Some("12")),
        (Float, Some("08")),
        (Text, Some("on")),
        (Float, Some("1e3")),
        (Text, Some("1:30")),
        (Float, Some(".inf")),
    ];
    assert_eq!(seen, expected);
    let integers: Vec<Option<i64>> = node.list().unwrap().iter().map(YamlNode::integer).take(5).collect();
    assert_eq!(integers, [Some(420), Some(420), None, None, None]);
    assert_eq!(node.list().unwrap()[2].flag(), Some(true));
}

#[test]
fn c11_yaml_block_texts_and_comments() {
    let node = one("a: |\n  one\n  two\nb: >-\n  one\n  two\nc: x # not this\r\nd: \"a\\tb\"\n");
    assert_eq!(node.get("a").unwrap().text(), Some("one\ntwo\n"));
    assert_eq!(node.get("b").unwrap().text(), Some("one two"));
    assert_eq!(node.get("c").unwrap().text(), Some("x"));
    assert_eq!(node.get("d").unwrap().text(), Some("a\tb"));
}

#[test]
fn c11_yaml_documents_aliases_and_merge_keys() {
    let documents = parsed("a: 1\n---\nb: 2\n---\n[c]\n").unwrap();
    assert_eq!(documents.len(), 3);
    assert!(parsed("").unwrap().is_empty());
    assert!(parsed("# only a comment\n").unwrap().is_empty());

    let node = one(
        "x-a: &a { one: 1, two: 2 }\nx-b: &b\n  two: b\n  three: b\nc:\n  <<: [*a, *b]\n  one: own\nd:\n  <<: *b\ne: *a\n",
    );
    let c = node.get("c").unwrap();
    assert_eq!(keys(c), ["one", "two", "three"]);
    assert_eq!(c.get("one").unwrap().text(), Some("own"));
    assert_eq!(c.get("two").unwrap().text(), Some("2"));
    assert_eq!(c.map().unwrap().entry("three").unwrap().place().line, 4);
    assert_eq!(keys(node.get("d").unwrap()), ["two", "three"]);
    assert_eq!(node.get("e").unwrap().place().line, 1);
    assert_eq!(one("'<<': 1").get("<<").unwrap().text(), Some("1"));
}

#[test]
fn c11_yaml_tags_of_the_file() {
    let node = one("ports: !reset []\ncommand: !override [a]\nx: !!int 1\n");
    assert_eq!(node.get("ports").unwrap().tag(), Some("!reset"));
    assert_eq!(node.get("command").unwrap().tag(), Some("!override"));
    assert_eq!(node.get("x").unwrap().tag(), None);
}

#[test]
fn c11_yaml_errors_have_a_place() {
    let message = |text| parsed(text).unwrap_err();
    assert!(
        message("a: 1\nb: [1, 2\nc: d\n").starts_with("f.yaml:"),
        "{}",
        message("a: 1\nb: [1, 2\nc: d\n")
    );
    assert_eq!(message("a: 1\nb: 2\na: 3\n"), "f.yaml:3: the key `a` is there twice");
    assert_eq!(message("a: 1\n[b]: 2\n"), "f.yaml:2: a key must be a text: use quotes");
    assert_eq!(message("a:\n  <<: 3\n"), "f.yaml:2: `<<` takes a mapping, or a list of mappings");
    assert_eq!(
        message("a: &a\n  b: *a\n"),
        "f.yaml:2: this alias refers to a value that is not complete here"
    );
    assert!(message("a: *b\n").starts_with("f.yaml:1: this is not YAML: "));
}

#[test]
fn c11_yaml_nesting_is_limited() {
    let deep = |open: &str, count| parsed(&open.repeat(count)).unwrap_err();
    assert_eq!(deep("[", 100_000), "f.yaml:1: this is not YAML: recursion limit exceeded");
    assert_eq!(deep("[", 100), "f.yaml:1: lists and mappings are nested more than 64 deep");
    assert_eq!(deep("- ", 100_000), "f.yaml:1: lists and mappings are nested more than 64 deep");
    assert!(deep("{a: ", 100_000).starts_with("f.yaml:1: "));
    assert!(deep("? ", 100_000).starts_with("f.yaml:1: "));
    assert!(deep("a: ", 100_000).starts_with("f.yaml:1: "));
    assert!(parsed(&format!("{}1{}", "[".repeat(60), "]".repeat(60))).is_ok());
    let aliases: String = (1..100).map(|n| format!("a{n}: &a{n} [[*a{}]]\n", n - 1)).collect();
    let message = parsed(&format!("a0: &a0 x\n{aliases}")).unwrap_err();
    assert_eq!(message, "f.yaml:33: lists and mappings are nested more than 64 deep");
}

#[test]
fn c11_yaml_aliases_do_not_expand_without_limit() {
    let too_large = "bytes when its aliases are expanded";
    let nine = |n: usize| vec![format!("*a{}", n - 1); 9].join(", ");
    let lists: String = (1..20).map(|n| format!("a{n}: &a{n} [{}]\n", nine(n))).collect();
    assert!(parsed(&format!("a0: &a0 [lol]\n{lists}")).unwrap_err().contains(too_large));
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(1000));
    assert!(parsed(&long).unwrap_err().contains(too_large));
    let wide: String = (0..10_000).map(|n| format!("k{n}: 1, ")).collect();
    let merged = format!("a: &a {{{wide}}}\nb: {{<<: [{}]}}\n", "*a, ".repeat(10_000));
    assert!(parsed(&merged).unwrap_err().contains(too_large));
    let tags = format!("%TAG !e! {}\n---\n[{}]\n", "x".repeat(1 << 20), "!e!a 1, ".repeat(1000));
    assert!(parsed(&tags).unwrap_err().contains(too_large));
}

#[test]
fn c11_yaml_long_lines_are_shown_in_part() {
    let node = one(&format!("a: {}", "ü".repeat(1000)));
    assert_eq!(node.place().text.chars().count(), node::SHOWN + 1);
}
