use super::*;
use crate::limits;
use crate::span::Origin;

fn env(pairs: &[(&str, &str)]) -> Environment {
    pairs.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn rendered(source: &str) -> String {
    let rendered = render(source.as_bytes(), &env(&[("A", "a"), ("PORTS", "80,443")])).expect("renders");
    String::from_utf8(rendered.text).expect("valid UTF-8")
}

fn errors(source: &str) -> Vec<(Stage, String, String)> {
    let errors = render(source.as_bytes(), &env(&[("A", "a"), ("PORTS", "80,443")])).expect_err("fails");
    errors
        .into_iter()
        .map(|error| {
            let part = source.as_bytes().get(error.span.range()).expect("a span within the source");
            (error.stage, String::from_utf8_lossy(part).into_owned(), error.message)
        })
        .collect()
}

/// The parts of the source that errors point at.
fn places(source: &str) -> Vec<String> {
    errors(source).into_iter().map(|(_, part, _)| part).collect()
}

fn helps(source: &str) -> Vec<String> {
    let errors = render(source.as_bytes(), &env(&[("A", "a")])).expect_err("fails");
    errors.into_iter().filter_map(|error| error.help).collect()
}

#[test]
fn c5_literal_text_is_traced_to_its_own_offset() {
    let source = b"a  {{- .A }}b{{/* x */}}c\n{{ .A -}}  d";
    let rendered = render(source, &env(&[("A", "12")])).expect("renders");
    assert_eq!(rendered.text, b"a12bc\n12d");
    let origins: Vec<Origin> = (0..9).map(|offset| rendered.map.origin(offset)).collect();
    let (first, second) = (Span::new(3, 12), Span::new(26, 35));
    assert_eq!(
        origins,
        [
            Origin::Copied(0),
            Origin::Produced(first),
            Origin::Produced(first),
            Origin::Copied(12),
            Origin::Copied(24),
            Origin::Copied(25),
            Origin::Produced(second),
            Origin::Produced(second),
            Origin::Copied(37),
        ]
    );
}

#[test]
fn c5_loops_and_templates_are_traced_to_the_action_that_prints() {
    let source = b"{{ define \"t\" }}<{{ . }}>{{ end }}{{ range loop 2 }}{{ template \"t\" . }},{{ end }}";
    let rendered = render(source, &Environment::new()).expect("renders");
    assert_eq!(rendered.text, b"<0>,<1>,");
    for turn in [0, 4] {
        assert_eq!(rendered.map.origin(turn), Origin::Copied(16));
        assert_eq!(rendered.map.origin(turn + 1), Origin::Produced(Span::new(17, 24)));
        assert_eq!(rendered.map.origin(turn + 2), Origin::Copied(24));
        assert_eq!(rendered.map.origin(turn + 3), Origin::Copied(72));
    }
}

#[test]
fn c2_bytes_that_are_no_text_pass_through() {
    let env: Environment = [(b"B".to_vec(), b"\xff\xc3".to_vec())].into();
    let render = |source: &[u8]| render(source, &env).expect("renders").text;
    assert_eq!(render(b"\xfe{{ .B }}"), b"\xfe\xff\xc3");
    assert_eq!(render(b"{{ printf \"%q\" .B }}"), b"\"\\xff\\xc3\"");
    assert_eq!(render(b"{{ len .B }}{{ regexReplaceAll \".\" \"x\" .B }}"), b"2xx");
    // Go 1.19 replaces what is no UTF-8 when it splits into characters, but not the last part.
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
fn c2_characters_are_those_of_unicode_13() {
    // Go 1.19 knows no later ones: each of these came or changed with a later version.
    for (call, expected) in [
        (r#"printf "%q %q" "\u061d" "\U0001FAE0""#, r#""\u061d" "\U0001fae0""#),
        (r#"js "\u061d""#, r"\u061D"),
        (r#"regexReplaceAll `\pL` "x" "a\u0870\u9ffd""#, "x\u{870}\u{9ffd}"),
        (r#"regexReplaceAll `\p{Mn}` "x" "\u1734" "#, "x"),
        (r#"regexReplaceAll `\p{Mc}|\p{Han}` "x" "\U0001171E\U00016FE2""#, "\u{1171e}\u{16fe2}"),
        (r#"regexReplaceAll `\p{Common}` "x" "\U00016FE3" "#, "x"),
        (r#"regexReplaceAll `(?i)\x{264}` "x" "\u0264\ua7cb""#, "x\u{a7cb}"),
        (r#"regexReplaceAll `(?i)[\x{a7cb}]` "x" "\u0264\ua7cb""#, "\u{264}x"),
        (r#"regexReplaceAll `(?i)\x{390}|\x{fb06}` "x" "\u1fd3\ufb05\u0390""#, "\u{1fd3}\u{fb05}x"),
    ] {
        assert_eq!(rendered(&format!("{{{{ {call} }}}}")), expected, "{call}");
    }
    for source in ["{{ .\u{870} }}", "{{ $\u{9ffd} := 1 }}"] {
        assert_eq!(errors(source).len(), 1, "{source}");
    }
    assert!(errors(r#"{{ regexReplaceAll `\p{Kawi}` "" .A }}"#).iter().all(|error| error.0 == Stage::Exec));
}

#[test]
fn c2_lists_can_be_cut_up_to_their_capacity() {
    assert_eq!(rendered("{{ slice (loop 3) 0 4 }}"), "[0 1 2 0]");
    assert_eq!(rendered("{{ slice (slice (loop 6) 0 2) 0 4 }}"), "[0 1 2 3]");
    assert_eq!(rendered("{{ slice (slice (loop 6) 1 2) }}"), "[1]");
    assert_eq!(places("{{ slice (slice (loop 6) 0 1 2) 0 3 }}"), ["3"]);
}

#[test]
fn c2_a_template_may_have_the_empty_name() {
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
fn c5_mistakes_are_all_found_and_none_is_made_up() {
    assert_eq!(places("{{ foo }}{{ .A }}{{ !.A }}{{ 'ab' }}"), ["foo", "!", "'ab'"]);
    // A broken block still takes its `end`.
    assert_eq!(places("{{ if !.A }}x{{ else }}y{{ end }}"), ["!"]);
    assert_eq!(places("{{ range foo }}{{ break }}{{ else if }}{{ end }}"), ["foo", "if"]);
    assert_eq!(places("{{ if .A }}{{ else if ! }}{{ else }}{{ end }}"), ["!"]);
    assert_eq!(places("{{ define foo }}{{ end }}"), ["foo"]);
    assert_eq!(places("{{ block \"x\" }}{{ end }}"), ["}}"]);
    assert_eq!(places("{{ if .A }}{{ define \"x\" }}{{ end }}{{ end }}"), ["define"]);
    // A broken declaration declares.
    assert_eq!(places("{{ $x := foo }}{{ $x }}"), ["foo"]);
    assert_eq!(places("{{ range $i, $v := foo }}{{ $i }}{{ $v }}{{ end }}"), ["foo"]);
    // One forgotten brace is one mistake.
    assert_eq!(places("a: \"{{ .A\", b: \"{{ .A }}\""), ["{{"]);
    assert_eq!(places("a: \"{{ .A }\", b: \"{{ .A }}\""), ["{{"]);
}

#[test]
fn c5_a_missing_end_points_at_what_it_should_close() {
    let found = errors("{{ if .A }}{{ range loop 2 }}x{{ end }}");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1, "{{ if .A }}");
    assert_eq!(found[0].2, "this `if` has no {{ end }}");
    assert_eq!(places("{{ if .A }}{{ with .A }}"), ["{{ if .A }}", "{{ with .A }}"]);
}

#[test]
fn c5_errors_of_rendering_are_collected_once_each() {
    assert_eq!(places("{{ range loop 3 }}{{ .X }}{{ len 5 }}{{ end }}{{ split }}"), [".X", "5", "split"]);
    // What follows from a mistake is none.
    assert_eq!(places("{{ $x := len 5 }}{{ $x }}{{ print $x }}{{ if $x }}{{ end }}"), ["5"]);
    assert_eq!(
        errors("{{ .A.B }}"),
        [(Stage::Exec, ".B".into(), "`.A` is text and has no field `B`".into())]
    );
}

#[test]
fn c5_messages_say_what_to_do() {
    for (source, place, help) in [
        ("{{ .A | defualt \"x\" }}", "defualt", "did you mean `default`?"),
        ("{{ .A | default 'localhost' }}", "'localhost'", "write \"localhost\""),
        ("{{ .A | default: \"x\" }}", ":", "write `default \"x\"` without the colon"),
        ("{{ “x” }}", "“", "use straight quotes: \"…\""),
        ("{{ !.A }}", "!", "write `not` in front: {{ not .A }}"),
        ("{{ .A ? 1 : 2 }}", "?", "write {{ if .A }}…{{ else }}…{{ end }}"),
        ("{{ .WITH-DASH }}", "-", "write: index . \"WITH-DASH\""),
        ("{{ APP }}", "APP", "for the variable of the environment write .APP"),
        ("{{ if .A == \"x\" }}{{ end }}", "==", "write the function in front: eq .A …"),
        ("{{ print (len .A }}", "(", "write the missing `)`"),
        ("{{ .A", "{{", "write the missing `}}`"),
        ("{{ range .A }}{{ end }}", ".A", "make a list of it with `split`"),
        (
            "{{ with .A }}{{ .B }}{{ end }}",
            ".B",
            "inside `range` and `with` the environment is `$`: write $.B",
        ),
        ("{{ eq .A 5 }}", "5", "variables of the environment are text: put the number in double quotes"),
    ] {
        assert_eq!(places(source), [place], "{source}");
        assert_eq!(helps(source), [help], "{source}");
    }
}

#[test]
fn c5_no_more_errors_than_a_person_can_read() {
    assert_eq!(errors(&"{{ foo }}".repeat(1000)).len(), limits::ERRORS);
    assert_eq!(errors(&"{{ len 5 }}".repeat(1000)).len(), limits::ERRORS);
    assert_eq!(errors(&"{{ !".repeat(100_000)).len(), limits::ERRORS);
}

/// Runs on a stack as small as a thread's.
fn on_a_small_stack(test: fn()) {
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(test).expect("a thread");
    thread.join().expect("no overflow");
}

#[test]
fn c2_depth_is_bounded() {
    on_a_small_stack(|| {
        let parentheses =
            |depth: usize| format!("{{{{ print {}1{} }}}}", "(print ".repeat(depth), ")".repeat(depth));
        assert_eq!(rendered(&parentheses(limits::TEMPLATE_DEPTH)), "1");
        assert_eq!(places(&parentheses(100_000)), ["("]);
        let blocks = |depth: usize| format!("{}1{}", "{{ if 1 }}".repeat(depth), "{{ end }}".repeat(depth));
        assert_eq!(rendered(&blocks(limits::TEMPLATE_DEPTH)), "1");
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
fn c2_work_and_memory_are_bounded() {
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
    assert_eq!(errors(&format!("{{{{ print {}}}}}", "1 ".repeat(limits::TEMPLATE_NODES + 10))).len(), 1);
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
fn c2_no_soup_of_tokens_does_harm() {
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
            // Most actions are closed, or hardly any would be run.
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
fn c2_range_with_an_assignment_sets_the_last_variables_as_go_1_19_does() {
    let text =
        "{{ $a := 1 }}{{ $b := 2 }}{{ range $a = loop 2 }}<{{ $a }} {{ $b }}>{{ end }}{{ $a }} {{ $b }}";
    assert_eq!(
        render(text.as_bytes(), &Environment::new()).map(|rendered| rendered.text).ok(),
        Some(b"<[0 1] 0><[0 1] 1>[0 1] 1".to_vec())
    );
}
