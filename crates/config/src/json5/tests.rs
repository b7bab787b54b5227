use super::*;
use crate::limits;

/// The ranges and messages of the errors in a text, as `range: message`.
fn errors(text: &str) -> Vec<String> {
    let show = |error: SyntaxError| {
        let place = text.get(error.span.range()).unwrap_or("?");
        let place = if place.is_empty() { format!("@{}", error.span.start) } else { place.to_owned() };
        assert!(error.help.is_some(), "{error:?} has no help");
        format!("{place}: {}", error.message)
    };
    parse(text.as_bytes()).errors.into_iter().map(show).collect()
}

fn object(text: &str) -> Vec<Member> {
    let parsed = parse(text.as_bytes());
    assert_eq!(parsed.errors, [], "{text}");
    match parsed.root.unwrap().value {
        Value::Object(members) => members,
        other => panic!("{other:?}"),
    }
}

fn first(text: &str) -> Value {
    object(text).remove(0).value.value
}

#[test]
fn c3_spans_are_exact_and_duplicates_are_kept() {
    let text = "{ 'a': [1, {}], a: 0x10 }";
    let members = object(text);
    let places: Vec<_> = members
        .iter()
        .map(|member| (&text[member.key_span.range()], &text[member.value.span.range()]))
        .collect();
    assert_eq!(places, [("'a'", "[1, {}]"), ("a", "0x10")]);
    assert_eq!(members[1].key, "a");
}

#[test]
fn c3_a_number_keeps_its_literal() {
    let Value::Number(number) = first("{v: 9007199254740993}") else { panic!() };
    assert_eq!((number.value, &*number.text), (9_007_199_254_740_992.0, "9007199254740993"));
}

#[test]
fn c3_hexadecimal_numbers_of_any_size_are_rounded_once() {
    for (text, expected) in [
        ("0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", 2f64.powi(128)),
        ("0x10000000000000000000000000000000000000", 2f64.powi(148)),
        ("0x0000000000000000000000000000000000000000001", 1.0),
        // Halfway between two floats, except for the last digit.
        ("0x2000000000000100000000000000000000000001", 2f64.powi(157) + 2f64.powi(105)),
        ("0x2000000000000100000000000000000000000000", 2f64.powi(157)),
    ] {
        let Value::Number(number) = first(&format!("{{v: {text}}}")) else { panic!() };
        assert_eq!(number.value, expected, "{text}");
    }
    let Value::Number(number) = first(&format!("{{v: -0x{}}}", "F".repeat(300))) else { panic!() };
    assert_eq!(number.value, f64::NEG_INFINITY);
}

#[test]
fn c3_each_invalid_byte_becomes_a_replacement_character() {
    let parsed = parse(b"{a: 'x\xe2\x98y\xff'}");
    let Some(Value::Object(members)) = parsed.root.map(|root| root.value) else { panic!() };
    assert_eq!(members[0].value.value, Value::String("x\u{fffd}\u{fffd}y\u{fffd}".to_owned()));
}

#[test]
fn c5_one_mistake_is_one_error_at_its_place() {
    for (text, expected) in [
        ("{a: 1\n b: 2}", "@5: expected a comma or `}` after this value"),
        ("{a: [1 2]}", "@6: expected a comma or `]` after this value"),
        ("{a 1}", "@2: expected a colon after this key"),
        ("{a = 1}", "=: expected `:`, found `=`"),
        ("{a := 1}", "=: one `=` too many"),
        ("{a: 1; b: 2}", ";: expected a comma, found `;`"),
        ("{a: 1,, b: 2}", ",: missing key and value before this comma"),
        ("{level: INFO}", "INFO: a string needs quotes"),
        ("{consul: localhost:8500, b: 1}", "localhost:8500: a string needs quotes"),
        ("{exec: /bin/app -x \"a, b\" // run\n}", "/bin/app -x \"a, b\": a string needs quotes"),
        ("{i: eth0[1]}", "eth0[1]: a string needs quotes"),
        ("{t: 5s}", "5s: this is not a number; a string needs quotes"),
        ("{n: 010}", "010: a number cannot start with a zero"),
        ("{v: True}", "True: unknown literal `True`"),
        ("{my-key: 1}", "my-key: this key needs quotes"),
        ("{my key: 1}", "my key: a key with a space needs quotes"),
        ("{a:\n b: 2}", "@3: expected a value after the colon"),
        ("{a: \"x,\n b: 2}", "\": unterminated string"),
        ("{a: \"one\n two\",\n b: 2}", "\": unterminated string"),
        ("{a: \"say \"hi\"!\", b: 2}", "@10: the string ends at the quotation mark before this"),
        ("{a: [\"b\"\"c\"]}", "@8: expected a comma or `]` after this value"),
        ("{a: “x”, b: 2}", "“: “ is not a JSON5 quotation mark"),
        ("{a: {{ .X }}}", "{{ .X }}: unexpected `{{`"),
        ("{# c\na: 1}", "#: `#` does not start a comment"),
        ("{a: 1\0}", "\0: unexpected control character 0x00"),
        ("{a: '\\1'}", "\\1: invalid escape: a digit after the backslash"),
        ("{a: 1 /* }", "/*: unterminated comment"),
        ("{a: 1", "{: unclosed `{`"),
        ("{a", "{: unclosed `{`"),
        ("{a: 1} b", "b: unexpected text after the end of the configuration"),
        ("a: 1", "@0: expected `{` here"),
        ("- a: 1\n- b: 2", "- a: 1: this looks like YAML, not JSON5"),
        ("- a", "-: expected `{` here"),
        ("", "@0: the configuration is empty"),
        ("[]", "[: a configuration is an object, not a list"),
    ] {
        assert_eq!(errors(text), [expected], "{text:?}");
    }
}

#[test]
fn c5_mismatched_brackets_are_explained_so_that_the_file_is_balanced() {
    for (text, expected) in [
        ("{a: [1}, b: 2}", "}: `}` cannot close the list"),
        ("{a: [1}", "[: `[` is not closed before the next `}`"),
        ("{a: {b: [1}, c: 2}", "[: `[` is not closed before the next `}`"),
        ("{a: {b: [1}}}", "}: `}` cannot close the list"),
        ("{a: [1]], b: 2}", "]: unmatched `]`"),
        ("{a: [1]]]] ], b: 2}", "]: unmatched `]`"),
        ("{a: [{b: 1}, {c: 2], d: 3}", "{: `{` is not closed before the next `]`"),
        ("{j: [{n: 1\n {n: 2}], c: 3}", "@10: expected a comma or `}` after this value"),
    ] {
        assert_eq!(errors(text), [expected], "{text:?}");
    }
}

#[test]
fn c5_the_indentation_shows_which_bracket_is_unclosed() {
    let text = "{\n  a: {\n    b: {\n      c: 1\n  },\n  d: 2\n}\n";
    let error = &parse(text.as_bytes()).errors[0];
    assert_eq!(error.span, Span::new(16, 17));
}

#[test]
fn c5_all_errors_are_found_and_the_rest_is_parsed() {
    let text = "{\n consul: localhost:8500\n logging: { level: INFO },\n jobs: [\n {name: 'a' exec: 'b'}\n {name: c},\n ],\n}";
    assert_eq!(
        errors(text),
        [
            "localhost:8500: a string needs quotes",
            "INFO: a string needs quotes",
            "@73: expected a comma or `}` after this value",
            "@84: expected a comma or `]` after this value",
            "c: a string needs quotes",
        ]
    );
    let Some(Value::Object(members)) = parse(text.as_bytes()).root.map(|root| root.value) else { panic!() };
    let keys: Vec<_> = members.iter().map(|member| member.key.as_str()).collect();
    assert_eq!(keys, ["consul", "logging", "jobs"]);
    assert!(matches!(&members[2].value.value, Value::List(jobs) if jobs.len() == 2));
}

#[test]
fn c5_depth_and_the_number_of_errors_are_limited() {
    let fits = format!("{{a: {}{}}}", "[".repeat(limits::JSON_DEPTH - 1), "]".repeat(limits::JSON_DEPTH - 1));
    assert_eq!(parse(fits.as_bytes()).errors, []);
    for open in ["[", "{a:", "{a:[", "{", "[{"] {
        let parsed = parse(open.repeat(1_000_000).as_bytes());
        assert!((1..=limits::ERRORS).contains(&parsed.errors.len()));
    }
    let deep = parse("[".repeat(1_000_000).as_bytes());
    assert_eq!(deep.errors[1].message, "brackets are nested more than 500 deep");
    assert!(deep.errors.iter().filter(|error| error.kind == SyntaxKind::Syntax).count() == 1);
    assert_eq!(parse(format!("{{{}}}", "a:b,".repeat(1000)).as_bytes()).errors.len(), limits::ERRORS);
    assert_eq!(parse(format!("{{a:'{}'}}", "\\1".repeat(1000)).as_bytes()).errors.len(), limits::ERRORS);
}

#[test]
fn c5_any_text_is_parsed_in_linear_time() {
    let pieces = [
        "{{", "}}", "# ", "#}", "\"", "'", "`", "“", "/*", "*/", "[", "]", "{", "}", ",", ":", "=", ";", "a",
        "a:", "a ", " ", "\n", "\0", "\\", "/", "$", "${", "x[", "“ ", "{a:b", "a:x'", "]}", "[}", "{]", "é",
        "\u{2028}", "1", "-", "{a:\"", "a\"b", "{a 1", "[1 2", "{a:{{", "b#}",
    ];
    let start = std::time::Instant::now();
    for first in pieces {
        for second in pieces {
            let run = first.to_owned() + second;
            for text in [
                run.repeat(1500),
                format!("{{a:{}", run.repeat(1500)),
                format!("{{a: 1 1 {}", run.repeat(1500)),
            ] {
                drop(parse(text.as_bytes()));
            }
        }
    }
    // About two seconds without optimization; quadratic time on any of these would take minutes.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
