//! The template language by its rules: C2 (the language) and C5 (errors).
#![cfg(test)]

use containerpilot_template::span::{ByteOrigin, Span};
use containerpilot_template::{Environment, TemplateStage, limits, render};

fn env(pairs: &[(&str, &str)]) -> Environment {
    pairs.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn rendered(source: &str) -> String {
    let rendered = render(source.as_bytes(), &env(&[("A", "a"), ("PORTS", "80,443")])).expect("renders");
    String::from_utf8(rendered.text).expect("valid UTF-8")
}

fn errors(source: &str) -> Vec<(TemplateStage, String, String)> {
    let errors = render(source.as_bytes(), &env(&[("A", "a"), ("PORTS", "80,443")])).expect_err("fails");
    errors
        .into_iter()
        .map(|error| {
            let part = source.as_bytes().get(error.span.range()).expect("a span within the source");
            (error.stage, String::from_utf8_lossy(part).into_owned(), error.message)
        })
        .collect()
}

/// The source ranges of the errors.
fn places(source: &str) -> Vec<String> {
    errors(source).into_iter().map(|(_, part, _)| part).collect()
}

fn helps(source: &str) -> Vec<String> {
    let errors = render(source.as_bytes(), &env(&[("A", "a")])).expect_err("fails");
    errors.into_iter().filter_map(|error| error.help).collect()
}

#[test]
fn c5_literal_text_is_mapped_to_its_own_offset() {
    let source = b"a  {{- .A }}b{{/* x */}}c\n{{ .A -}}  d";
    let rendered = render(source, &env(&[("A", "12")])).expect("renders");
    assert_eq!(rendered.text, b"a12bc\n12d");
    let origins: Vec<ByteOrigin> = (0..9).map(|offset| rendered.map.origin(offset)).collect();
    let (first, second) = (Span::new(3, 12), Span::new(26, 35));
    assert_eq!(
        origins,
        [
            ByteOrigin::Copied(0),
            ByteOrigin::Produced(first),
            ByteOrigin::Produced(first),
            ByteOrigin::Copied(12),
            ByteOrigin::Copied(24),
            ByteOrigin::Copied(25),
            ByteOrigin::Produced(second),
            ByteOrigin::Produced(second),
            ByteOrigin::Copied(37),
        ]
    );
}

#[test]
fn c5_output_of_loops_and_templates_is_mapped_to_the_printing_action() {
    let source = b"{{ define \"t\" }}<{{ . }}>{{ end }}{{ range loop 2 }}{{ template \"t\" . }},{{ end }}";
    let rendered = render(source, &Environment::new()).expect("renders");
    assert_eq!(rendered.text, b"<0>,<1>,");
    for offset in [0, 4] {
        assert_eq!(rendered.map.origin(offset), ByteOrigin::Copied(16));
        assert_eq!(rendered.map.origin(offset + 1), ByteOrigin::Produced(Span::new(17, 24)));
        assert_eq!(rendered.map.origin(offset + 2), ByteOrigin::Copied(24));
        assert_eq!(rendered.map.origin(offset + 3), ByteOrigin::Copied(72));
    }
}

#[test]
fn c2_invalid_utf8_passes_through() {
    let env: Environment = [(b"B".to_vec(), b"\xff\xc3".to_vec())].into();
    let render = |source: &[u8]| render(source, &env).expect("renders").text;
    assert_eq!(render(b"\xfe{{ .B }}"), b"\xfe\xff\xc3");
    assert_eq!(render(b"{{ printf \"%q\" .B }}"), b"\"\\xff\\xc3\"");
    assert_eq!(render(b"{{ len .B }}{{ regexReplaceAll \".\" \"x\" .B }}"), b"2xx");
    // Go 1.19 replaces invalid UTF-8 when it splits into characters, except in the last part.
    assert_eq!(render(b"{{ join \"-\" (split \"\" .B) }}"), b"\xef\xbf\xbd-\xc3");
}

#[test]
fn c2_printf_follows_go() {
    for (call, expected) in [
        (r#"printf "%05s|%-05d|%+.2e" "ab" 7 1.5"#, "000ab|7    |+1.50e+00"),
        (r#"printf "%#v %#v %#v" "a" (split "," "x,y") (loop 2)"#, r#""a" []string{"x", "y"} []int{0, 1}"#),
        (r#"printf "%T %T %T %T" . (index "a" 0) 1.5 nil"#, "template.Environment uint8 float64 <nil>"),
        (r#"printf "%#v %c %s" (index "a" 0) (index "a" 0) (index "a" 0)"#, "0x61 a %!s(uint8=97)"),
        (r#"printf "%w %w" "x" (loop 2)"#, "%!w(string=x) %!w([]int=[0 1])"),
        (r#"printf "%[2]d %d" 1 2"#, "2 %!d(MISSING)"),
        (r#"printf "%[]d|%[x]d|%[1" 1"#, "%!d(BADINDEX)|%!d(BADINDEX)|%!(NOVERB)"),
        (r#"printf "%-*d|" -5 1"#, "1    |"),
        (r#"printf "%.*d" -1 1"#, "%!(BADPREC)1"),
        (r#"printf "%U %#U %q %+q %#q" 233 233 233 233 "a`b""#, "U+00E9 U+00E9 'é' 'é' '\\u00e9' \"a`b\""),
        (r#"printf "%6.2f|%-8.3f|%+g|% d|%x" 3.14159 2.5 1.0 5 -255"#, "  3.14|2.500   |+1| 5|-ff"),
        (r#"printf "%#g %#.3g %#x" 1.0 1.0 255"#, "1.00000 1.00 0xff"),
        (r#"printf "%d" ."#, "map[%!d(string=A):%!d(string=a) %!d(string=PORTS):%!d(string=80,443)]"),
        (r#"printf "%5t|%08.3f|%+d" true -3.14159 5"#, " true|-003.142|+5"),
        (r#"printf "%x %X" "héllo" (split "," "a,b")"#, "68c3a96c6c6f [61 62]"),
        (r#"printf "%5d" "x""#, "%!d(string=    x)"),
        (r#"printf "%." 1 | print (printf "%.")"#, "%!.(MISSING)%!.(int=1)"),
        (r#"printf "%-3." (loop 2)"#, "[%!.(int=0  ) %!.(int=1  )]"),
        (r#"printf "%!" 1"#, "%!!(int=1)"),
        (r#"printf "%é" 1"#, "%!é(int=1)"),
        (r#"printf "%.2v|%.1q" "abc" "abc""#, r#"ab|"a""#),
        (r#"printf "%1000001d|" 1 | len"#, "1000002"),
    ] {
        assert_eq!(rendered(&format!("{{{{ {call} }}}}")), expected, "{call}");
    }
}

#[test]
fn c2_characters_have_the_categories_of_unicode() {
    for (call, expected) in [
        (r#"printf "%q" "\u0378""#, r#""\u0378""#),
        (r#"js "\u0378""#, r"\u0378"),
        (r#"regexReplaceAll `\pL` "x" "a\u0378""#, "x\u{378}"),
        (r#"regexReplaceAll `\p{Mn}` "x" "\u0301" "#, "x"),
        (r#"regexReplaceAll `\p{Mc}|\p{Han}` "x" "\u0903\u6f22""#, "xx"),
        (r#"regexReplaceAll `\p{C}` "x" "\u0378\u00ad""#, "\u{378}x"),
        (r#"regexReplaceAll `\p{Common}` "x" "1a" "#, "xa"),
        (r#"regexReplaceAll `(?i)\x{3c3}` "x" "\u03c2\u03a3""#, "xx"),
    ] {
        assert_eq!(rendered(&format!("{{{{ {call} }}}}")), expected, "{call}");
    }
    for source in ["{{ .\u{378} }}", "{{ $\u{378} := 1 }}"] {
        assert_eq!(errors(source).len(), 1, "{source}");
    }
    assert!(
        errors(r#"{{ regexReplaceAll `\p{Klingon}` "" .A }}"#)
            .iter()
            .all(|error| error.0 == TemplateStage::Exec)
    );
}

#[test]
fn c2_lists_can_be_sliced_up_to_their_capacity() {
    assert_eq!(rendered("{{ slice (loop 3) 0 4 }}"), "[0 1 2 0]");
    assert_eq!(rendered("{{ slice (slice (loop 6) 0 2) 0 4 }}"), "[0 1 2 3]");
    assert_eq!(rendered("{{ slice (slice (loop 6) 1 2) }}"), "[1]");
    assert_eq!(places("{{ slice (slice (loop 6) 0 1 2) 0 3 }}"), ["3"]);
}

#[test]
fn c2_a_template_can_have_the_empty_name() {
    assert_eq!(rendered("{{ define \"\" }}x{{ end }}\n"), "x");
    assert_eq!(errors("{{ define \"\" }}x{{ end }}y").len(), 1);
}

#[test]
fn c2_regular_expressions_follow_re2() {
    let replaced = |pattern: &str, to: &str, subject: &str| {
        let env = env(&[("RE", pattern), ("TO", to), ("S", subject)]);
        render(b"{{ regexReplaceAll .RE .TO .S }}", &env)
            .map(|out| String::from_utf8_lossy(&out.text).into_owned())
    };
    for (pattern, to, subject, expected) in [
        (r"\Qa.b\E+", "x", "a.bb", "x"),
        (r"(?i)straße", "x", "STRAßE", "x"),
        (r"(?i)k", "x", "\u{212a}kK", "xxx"),
        (r"\P{Greek}", "-", "αaβ", "α-β"),
        (r"\p{^Greek}", "-", "αaβ", "α-β"),
        (r"[^\d\s]+", "x", "ab 12 cd", "x 12 x"),
        (r"[[:^alpha:]\d]", "x", "a1-", "axx"),
        (r"(a|ab)(c|bcd)", "$1|$2", "abcd", "a|bcd"),
        (r"(?s)a.b", "x", "a\nb", "x"),
        (r"a.b", "x", "a\nb", "a\nb"),
        (r"a(?i)*b", "x", "aaB", "x"),
        (r"(?:a{0,3}){2}", "x", "aaaaaaa", "xx"),
        (r"(a*)*", "<$1>", "baac", "<>b<aa>c<>"),
        (r"(|a)*", "x", "aa", "xaxax"),
        (r"\B", "x", "aé", "aéx"),
        (r"[a-]", "x", "a-b", "xxb"),
        (r"x{0}y", "z", "xy", "xz"),
        (r"\x{10FFFF}|\x{d800}", "z", "a", "a"),
        (r"\pN|\p{Sc}", "n", "1€", "nn"),
        ("a", "$10x$1", "ba", "b"),
        ("(a)", "${1}x$01", "ba", "bax"),
    ] {
        assert_eq!(replaced(pattern, to, subject).as_deref(), Ok(expected), "{pattern}");
    }
    for pattern in [
        ")",
        "a**",
        "a|*",
        "(*a)",
        "a{2}{3}",
        "a{1001}",
        "a{2,1}",
        "(a{100}){100}",
        "(?:(a{11}|b){100})",
        "[a",
        "[b-a]",
        "(?P<n",
        "(?P=n)",
        r"\",
        r"\1",
        r"\_\k",
        r"[\Q]",
        r"\p",
        r"\p{greek}",
        r"\p{Grek}",
        "[[:foo:]]",
        "(?i-)",
        "(?i",
        r"\x{110000}",
        r"\x4",
        r"\Z",
        "(?i)*",
    ] {
        assert!(replaced(pattern, "x", "a").is_err(), "{pattern}");
    }
}

#[test]
fn c5_every_error_is_reported_and_no_consequence_of_one() {
    assert_eq!(places("{{ foo }}{{ .A }}{{ !.A }}{{ 'ab' }}"), ["foo", "!", "'ab'"]);
    // An invalid block still consumes its `end`.
    assert_eq!(places("{{ if !.A }}x{{ else }}y{{ end }}"), ["!"]);
    assert_eq!(places("{{ range foo }}{{ break }}{{ else if }}{{ end }}"), ["foo", "if"]);
    assert_eq!(places("{{ if .A }}{{ else if ! }}{{ else }}{{ end }}"), ["!"]);
    assert_eq!(places("{{ define foo }}{{ end }}"), ["foo"]);
    assert_eq!(places("{{ block \"x\" }}{{ end }}"), ["}}"]);
    assert_eq!(places("{{ if .A }}{{ define \"x\" }}{{ end }}{{ end }}"), ["define"]);
    // An invalid declaration still declares.
    assert_eq!(places("{{ $x := foo }}{{ $x }}"), ["foo"]);
    assert_eq!(places("{{ range $i, $v := foo }}{{ $i }}{{ $v }}{{ end }}"), ["foo"]);
    // One missing brace is one error.
    assert_eq!(places("a: \"{{ .A\", b: \"{{ .A }}\""), ["{{"]);
    assert_eq!(places("a: \"{{ .A }\", b: \"{{ .A }}\""), ["}"]);
}

#[test]
fn c5_a_missing_end_points_at_its_block() {
    let found = errors("{{ if .A }}{{ range loop 2 }}x{{ end }}");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1, "{{ if .A }}");
    assert_eq!(found[0].2, "`if` has no {{ end }}");
    assert_eq!(places("{{ if .A }}{{ with .A }}"), ["{{ if .A }}", "{{ with .A }}"]);
}

#[test]
fn c5_each_exec_error_is_reported_once() {
    assert_eq!(places("{{ range loop 3 }}{{ .X }}{{ len 5 }}{{ end }}{{ split }}"), [".X", "5", "split"]);
    // Consequences of an error are not reported.
    assert_eq!(places("{{ $x := len 5 }}{{ $x }}{{ print $x }}{{ if $x }}{{ end }}"), ["5"]);
    assert_eq!(
        errors("{{ .A.B }}"),
        [(TemplateStage::Exec, ".B".into(), "`.A` is a string and has no field `B`".into())]
    );
}

#[test]
fn c5_errors_have_help() {
    for (source, place, help) in [
        ("{{ .A | defualt \"x\" }}", "defualt", "did you mean `default`?"),
        ("{{ .A | default 'localhost' }}", "'localhost'", "write \"localhost\""),
        ("{{ .A | default: \"x\" }}", ":", "write `default \"x\"` without the colon"),
        ("{{ “x” }}", "“", "use straight quotes: \"…\""),
        ("{{ !.A }}", "!", "write {{ not .A }}"),
        ("{{ .A ? 1 : 2 }}", "?", "write {{ if .A }}…{{ else }}…{{ end }}"),
        ("{{ .WITH-DASH }}", "-", "write: index . \"WITH-DASH\""),
        ("{{ APP }}", "APP", "write .APP for the environment variable"),
        ("{{ if .A == \"x\" }}{{ end }}", "==", "write it as a function: eq .A …"),
        ("{{ print (len .A }}", "(", "add the missing `)`"),
        ("{{ .A", "{{", "add the missing `}}`"),
        ("{{ range .A }}{{ end }}", ".A", "convert it to a list with `split`"),
        (
            "{{ with .A }}{{ .B }}{{ end }}",
            ".B",
            "inside `range` and `with` the environment is `$`: write $.B",
        ),
        ("{{ eq .A 5 }}", "5", "environment variables are strings: put the number in double quotes"),
    ] {
        assert_eq!(places(source), [place], "{source}");
        assert_eq!(helps(source), [help], "{source}");
    }
}

#[test]
fn c5_the_number_of_errors_is_limited() {
    assert_eq!(errors(&"{{ foo }}".repeat(1000)).len(), limits::ERRORS);
    assert_eq!(errors(&"{{ len 5 }}".repeat(1000)).len(), limits::ERRORS);
    assert_eq!(errors(&"{{ !".repeat(100_000)).len(), limits::ERRORS);
}

/// Runs a test on a thread with a small stack.
fn on_a_small_stack(test: fn()) {
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(test).expect("a thread");
    thread.join().expect("no overflow");
}

#[test]
fn c2_depth_is_limited() {
    on_a_small_stack(|| {
        let parentheses =
            |depth: usize| format!("{{{{ print {}1{} }}}}", "(print ".repeat(depth), ")".repeat(depth));
        assert_eq!(rendered(&parentheses(limits::DEPTH)), "1");
        assert_eq!(places(&parentheses(100_000)), ["("]);
        let blocks = |depth: usize| format!("{}1{}", "{{ if 1 }}".repeat(depth), "{{ end }}".repeat(depth));
        assert_eq!(rendered(&blocks(limits::DEPTH)), "1");
        assert_eq!(places(&blocks(100_000)), ["{{ if 1 }}"]);
        let chain =
            format!("{{{{ if .X }}}}{}{{{{ else }}}}1{{{{ end }}}}", "{{ else if .X }}".repeat(50_000));
        assert_eq!(rendered(&chain), "1");
        let recursion = "{{ define \"t\" }}{{ if . }}{{ template \"t\" (slice . 1) }}{{ end }}{{ end }}";
        assert_eq!(rendered(&format!("{recursion}{{{{ template \"t\" (printf \"%5000d\" 1) }}}}")), "");
        assert_eq!(places("{{ define \"t\" }}{{ template \"t\" }}{{ end }}{{ template \"t\" }}"), ["\"t\""]);
        let groups =
            format!("{{{{ regexReplaceAll \"{}a{}\" \"\" .A }}}}", "(".repeat(150), ")*".repeat(150));
        assert_eq!(rendered(&groups), "");
        let groups = format!("{{{{ regexReplaceAll \"{}\" \"\" .A }}}}", "(".repeat(100_000));
        assert_eq!(errors(&groups).len(), 1);
    });
}

#[test]
fn c2_steps_and_memory_are_limited() {
    for (source, place) in [
        ("{{ loop 0 1000000000 }}", "loop"),
        ("{{ loop -9223372036854775808 9223372036854775807 }}", "loop"),
        ("{{ range loop 5000 }}{{ range loop 5000 }}{{ end }}{{ end }}", "loop"),
        ("{{ $x := \"aaaaaaaa\" }}{{ range loop 100 }}{{ $x = print $x $x }}{{ end }}", "print"),
        (
            "{{ $x := \"aaaaaaaa\" }}{{ range loop 100 }}{{ $x = replaceAll \"a\" \"aa\" $x }}{{ end }}",
            "replaceAll",
        ),
        ("{{ range loop 100 }}{{ printf \"%999999d\" 1 }}{{ end }}", "{{ printf \"%999999d\" 1 }}"),
        ("{{ $s := printf \"%0999999d\" 1 }}{{ range loop 99 }}{{ $x := split \"\" $s }}{{ end }}", "split"),
        (
            "{{ $s := printf \"%0999999d\" 1 }}{{ regexReplaceAll \"(0*)*(0*)*1$\" \"\" $s }}",
            "regexReplaceAll",
        ),
        ("{{ $s := printf \"%099999d\" 1 }}{{ regexReplaceAll \"0.*x|0\" \"\" $s }}", "regexReplaceAll"),
        (
            "{{ regexReplaceAll \"((((\\\\pL{100}){10}|a){1}){1}){1}x{1000}y{1000}\" \"$1\" .A }}{{ len 5 }}",
            "5",
        ),
        ("{{ regexReplaceAll \"(?:(a{0,1000})(b{0,1000})){1}(c{0,1000}){0,1}\" \"$1\" .A }}{{ len 5 }}", "5"),
    ] {
        assert_eq!(places(source), [place], "{source}");
    }
    // Many instructions.
    let pattern = "(?:a{1000})".repeat(100);
    assert_eq!(errors(&format!("{{{{ regexReplaceAll \"{pattern}\" \"\" .A }}}}")).len(), 1);
    // Many operands.
    assert_eq!(errors(&format!("{{{{ print {}}}}}", "1 ".repeat(limits::NODES + 10))).len(), 1);
}

#[test]
fn c2_many_variables_and_definitions_take_linear_time() {
    use std::fmt::Write;
    let mut source = String::new();
    for index in 0..20_000 {
        let _ = write!(
            source,
            "{{{{ $v{index} := {index} }}}}{{{{ define \"t{index}\" }}}}{{{{ $x := 1 }}}}{{{{ end }}}}"
        );
    }
    source.push_str(&"{{ $v0 }}".repeat(20_000));
    assert_eq!(rendered(&source).len(), 20_000);
}

#[test]
fn c2_random_tokens_never_panic_or_exceed_the_limits() {
    const TOKENS: [&str; 72] = [
        "{{",
        "}}",
        "{{-",
        "-}}",
        " ",
        " ",
        " ",
        "\n",
        ".",
        ".A",
        "$",
        "$x",
        ":=",
        "=",
        "|",
        ",",
        "(",
        ")",
        "if",
        "else",
        "end",
        "range",
        "with",
        "define",
        "template",
        "block",
        "break",
        "continue",
        "nil",
        "true",
        "1",
        "-1",
        "0x1p-2",
        "1+2i",
        "9223372036854775808",
        "'a'",
        "'",
        "\"",
        "\"a\"",
        "\"%d %s %[2]*.3q\"",
        "`",
        "`(a|b)*$`",
        "/*",
        "*/",
        "print",
        "printf",
        "len",
        "index",
        "slice",
        "loop",
        "split",
        "join",
        "eq",
        "lt",
        "and",
        "or",
        "not",
        "default",
        "env",
        "replaceAll",
        "regexReplaceAll",
        "html",
        "js",
        "urlquery",
        "call",
        "{{ end }}",
        "{{ if .A }}",
        "{{ range loop 3 }}",
        "é",
        "\u{200b}",
        "\\",
        "\u{fffd}",
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).expect("small")
    };
    let env = env(&[("A", "a,b"), ("B", "")]);
    for round in 0..5_000 {
        let mut source: Vec<u8> = Vec::new();
        for _ in 0..random(30) {
            // Without closed actions, hardly any template would be rendered.
            if round % 2 == 0 && random(3) == 0 {
                source.extend_from_slice(b"{{ ");
                for _ in 0..=random(5) {
                    source.extend_from_slice(TOKENS[8 + random(TOKENS.len() - 8)].as_bytes());
                    source.push(b' ');
                }
                source.extend_from_slice(b"}}");
            }
            source.extend_from_slice(TOKENS[random(TOKENS.len())].as_bytes());
            if random(40) == 0 {
                source.push(u8::try_from(random(256)).expect("a byte"));
            }
        }
        match render(&source, &env) {
            Ok(out) => assert!(out.text.len() <= limits::RENDERED_BYTES),
            Err(errors) => {
                assert!(!errors.is_empty() && errors.len() <= limits::ERRORS);
                for error in errors {
                    assert!(
                        error.span.end as usize <= source.len(),
                        "{error:?} in {:?}",
                        String::from_utf8_lossy(&source)
                    );
                    assert!(!error.message.is_empty());
                }
            }
        }
    }
}

#[test]
fn c2_range_with_an_assignment_sets_the_last_declared_variables() {
    let text =
        "{{ $a := 1 }}{{ $b := 2 }}{{ range $a = loop 2 }}<{{ $a }} {{ $b }}>{{ end }}{{ $a }} {{ $b }}";
    assert_eq!(
        render(text.as_bytes(), &Environment::new()).map(|rendered| rendered.text).ok(),
        Some(b"<[0 1] 0><[0 1] 1>[0 1] 1".to_vec())
    );
}

#[test]
fn c9_required_value_must_not_be_empty() {
    assert_eq!(
        rendered(
            "{{ required \"A\" }} {{ .A | required }} {{ required .A | print }} {{ .PORTS | split \",\" | required | len }}"
        ),
        "a a a 2"
    );
    let exec = |source: &str| {
        let [(stage, part, message)] = <[_; 1]>::try_from(errors(source)).expect("one error");
        assert_eq!(stage, TemplateStage::Exec);
        (part, message)
    };
    let pair = |part: &str, message: &str| (part.to_owned(), message.to_owned());
    assert_eq!(
        exec("x {{ required \"NONE\" }}"),
        pair("\"NONE\"", "the environment variable `NONE` is required, but it is unset or empty")
    );
    assert_eq!(
        exec("x {{ .NONE | required }}"),
        pair(".NONE", "`.NONE` is required, but it is unset or empty")
    );
    assert_eq!(
        exec("{{ env \"NONE\" | required | print }}"),
        pair("env \"NONE\"", "`env \"NONE\"` is required, but it is unset or empty")
    );
    assert_eq!(places("{{ required .X }}{{ .Y | required }}{{ required \"Z\" }}"), [".X", ".Y", "\"Z\""]);
    assert_eq!(errors("{{ required }}").len(), 1);
    assert_eq!(helps("{{ required \"NONE\" }}"), ["set the variable in the environment of the supervisor"]);
}
