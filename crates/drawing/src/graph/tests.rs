use std::time::Instant;

use containerpilot_config::diagnostics::Style;
use containerpilot_config::host::StaticHost;
use containerpilot_config::{ConfigFile, Options, load};
use containerpilot_core::plan::Plan;
use containerpilot_core::report::layout::{Arrow, Size, layout};

use super::model::{Graph, Kind, LineStyle};
use super::{dot, mermaid, svg};
use crate::svg_text::assert_legible;

fn plan(text: &str) -> Plan {
    let input = ConfigFile { name: "test".to_owned(), text: text.as_bytes().to_vec() };
    let loaded = load(vec![input], &StaticHost::default(), Options { version: "1" });
    let report = loaded.report;
    loaded
        .plan
        .unwrap_or_else(|| panic!("{}", report.display(Style { faults_are_errors: false, colour: false })))
}

const EXAMPLE: &str = r#"{
    jobs: [
        { name: "setup", exec: "true", onFailure: "shutdown" },
        { name: "db", exec: "x", port: 5432, interfaces: "static:10.0.0.1", restarts: "unlimited",
          health: { exec: "x", interval: 1, ttl: 5 }, when: { source: "setup", once: "exitSuccess" } },
        { name: "app", exec: "x", when: { all: [{ source: "setup", event: "exitSuccess" },
                                               { source: "watch.db", event: "healthy" }] } },
        { name: "reload", exec: "x", when: { source: "watch.db", each: "changed" } },
        { name: "tick", exec: "x", when: { interval: "10s" } },
        { name: "hup", exec: "x", when: { source: "SIGHUP" } },
        { name: "last", exec: "x", when: { source: "app", once: "stopped" } },
        { name: "lost", exec: "x", when: { source: "ghost", once: "healthy" } },
    ],
    watches: [{ name: "db", interval: 5 }],
    coprocesses: [{ command: "y", name: "side" }],
}"#;

#[test]
fn x4_the_graph_has_every_job_watch_and_source_and_what_starts_what() {
    let graph = Graph::of(&plan(EXAMPLE));
    let name = |at: usize| match (graph.nodes[at].kind, graph.nodes[at].name.as_str()) {
        (Kind::All, _) => "(all)".to_owned(),
        (Kind::Missing, name) => format!("?{name}"),
        (_, name) => name.to_owned(),
    };
    let edges: Vec<String> = graph
        .edges
        .iter()
        .map(|edge| {
            let line = match edge.line {
                LineStyle::Once => "->",
                LineStyle::Each => "=>",
                LineStyle::Effect => "~>",
            };
            format!("{} {line} {} {}", name(edge.from), name(edge.to), edge.label).trim().to_owned()
        })
        .collect();
    assert_eq!(
        edges,
        [
            "startup -> side",
            "startup -> setup",
            "setup ~> shutdown fails",
            "setup -> db exitSuccess",
            "db ~> watch.db advertised",
            "setup -> (all) exitSuccess",
            "watch.db -> (all) healthy",
            "(all) -> app",
            "watch.db => reload each changed",
            "startup => tick every 10s",
            "SIGHUP => hup",
            "app -> last stopped",
            "?ghost -> lost healthy",
        ]
    );
    assert_eq!(graph.nodes[2].note, "restarted without limit, port 5432");
}

#[test]
fn x4_mermaid_and_dot_have_the_same_nodes_and_edges() {
    let plan = plan(
        r#"{ jobs: [{ name: "a", exec: "x" }, { name: "b", exec: "x", when: { source: "a", each: "exitFailed" } }] }"#,
    );
    let graph = Graph::of(&plan);
    assert_eq!(
        mermaid::text(&graph),
        "flowchart LR\n    n0[\"a\"]:::job\n    n1[\"b\"]:::job\n    n2([\"startup\"]):::event\n    n2 --> n0\n    \
         n0 ==>|\"each exitFailed\"| n1\n    classDef missing stroke:#c00,stroke-dasharray:4\n"
    );
    let dot = dot::text(&graph);
    for line in [
        "n0 [label=\"a\", shape=box, style=rounded];",
        "n2 [label=\"startup\", shape=ellipse];",
        "n2 -> n0 [label=\"\"];",
        "n0 -> n1 [label=\"each exitFailed\", style=bold];",
    ] {
        assert!(dot.contains(line), "{dot}");
    }
}

#[test]
fn x4_names_are_escaped_in_every_format() {
    let odd = r#"{ jobs: [{ name: "a\"]<b>&amp;#|`\\\n\u0001\uffff", exec: "x" }] }"#;
    let graph = Graph::of(&plan(odd));
    let drawn = svg::text(&graph);
    assert!(drawn.contains("a&quot;]&lt;b&gt;&amp;amp;#|`\\\u{fffd}\u{fffd}\u{fffd}"), "{drawn}");
    let drawn = mermaid::text(&graph);
    assert!(drawn.contains("\"a#34;]#60;b#62;#38;amp;#35;#124;#96;#92;\u{fffd}"), "{drawn}");
    let drawn = dot::text(&graph);
    assert!(drawn.contains(r#""a\"]<b>&amp;amp;#|`\\"#), "{drawn}");
}

/// Asserts that no boxes overlap and that everything is inside the picture.
fn assert_tidy(sizes: &[Size], arrows: &[Arrow]) {
    let picture = layout(sizes, arrows, svg::SPACING);
    let boxes: Vec<_> = picture.boxes.iter().zip(sizes).collect();
    for (nth, (at, size)) in boxes.iter().enumerate() {
        assert!(at.x >= 0 && at.y >= 0);
        assert!(at.x + size.width <= picture.width && at.y + size.height <= picture.height);
        for (other, other_size) in &boxes[..nth] {
            let apart = at.x >= other.x + other_size.width
                || other.x >= at.x + size.width
                || at.y >= other.y + other_size.height
                || other.y >= at.y + size.height;
            assert!(apart, "{at:?} {other:?}");
        }
    }
    assert_eq!(picture.arrows.len(), arrows.len());
    for (points, arrow) in picture.arrows.iter().zip(arrows) {
        assert!(points.len() >= 2);
        let (end, size) = (picture.boxes[arrow.to], sizes[arrow.to]);
        let last = points[points.len() - 1];
        assert!((end.x..=end.x + size.width).contains(&last.x), "{points:?}");
        assert!((end.y..=end.y + size.height).contains(&last.y), "{points:?}");
    }
}

#[test]
fn x4_boxes_never_overlap() {
    // Random graphs with cycles and loops.
    let mut seed = 1_u64;
    let mut next = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % most
    };
    for _ in 0..200 {
        let count = 1 + next(30);
        let sizes: Vec<Size> = (0..count)
            .map(|_| Size {
                width: 40 + i64::try_from(next(100)).unwrap(),
                height: 30 + i64::try_from(next(60)).unwrap(),
            })
            .collect();
        let arrows: Vec<Arrow> =
            (0..next(60)).map(|_| Arrow { from: next(count), to: next(count), label: 50 }).collect();
        assert_tidy(&sizes, &arrows);
    }
    assert_tidy(&[], &[]);
}

#[test]
fn x4_the_same_plan_gives_the_same_picture() {
    let plan = plan(EXAMPLE);
    assert_eq!(svg::text(&Graph::of(&plan)), svg::text(&Graph::of(&plan)));
}

#[test]
fn x4_drawing_a_thousand_jobs_takes_linear_time() {
    let mut chain = String::from("{ jobs: [");
    let mut fan = chain.clone();
    for nth in 0..1000 {
        let when = if nth == 0 {
            String::new()
        } else {
            format!(", when: {{ source: 'j{}', once: 'exitSuccess' }}", nth - 1)
        };
        chain += &format!("{{ name: 'j{nth}', exec: 'x'{when}, onFailure: 'shutdown' }},");
        let when = if nth < 10 {
            String::new()
        } else {
            format!(", when: {{ source: 'j{}', each: 'exitSuccess' }}", nth % 10)
        };
        fan += &format!("{{ name: 'j{nth}', exec: 'x'{when} }},");
    }
    for text in [chain, fan] {
        let plan = plan(&(text + "] }"));
        let started = Instant::now();
        let graph = Graph::of(&plan);
        let length = [mermaid::text, dot::text, svg::text].map(|text| text(&graph).len());
        assert!(length.iter().all(|length| *length > 40_000));
        // A few hundred milliseconds without optimisation; quadratic work would take longer.
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
        println!("{:?} for {length:?} bytes", started.elapsed());
    }
}

#[test]
fn w18_s10_the_graph_has_requirements_and_the_order_of_stops() {
    let text = r#"{ jobs: [
        { name: "db", exec: "x", restarts: "unlimited" },
        { name: "app", exec: "x", requires: ["db"] },
        { name: "web", exec: "x", requires: [{ source: "app", bind: true }], stopAfter: ["db"] },
    ] }"#;
    let text = mermaid::text(&Graph::of(&plan(text)));
    assert!(text.contains(r#"-->|"requires"|"#), "{text}");
    assert!(text.contains(r#"==>|"requires, bound"|"#), "{text}");
    assert!(text.contains(r#"-.->|"stops first"|"#), "{text}");
}

#[test]
fn w20_replicas_are_one_node_with_the_edges_of_all_of_them() {
    let graph = Graph::of(&plan(
        r#"{ jobs: [
            { name: "web", exec: "x", replicas: 3, port: "8000-8003", interfaces: "static:10.0.0.1",
              health: { exec: "x", interval: 1, ttl: 5 } },
            { name: "proxy", exec: "x", when: { source: "web", once: "healthy" } },
            { name: "second", exec: "x", when: { source: "web-2", once: "healthy" }, requires: ["web"] },
        ] }"#,
    ));
    let nodes: Vec<(&str, &str)> =
        graph.nodes.iter().map(|node| (node.name.as_str(), node.note.as_str())).collect();
    assert_eq!(
        nodes,
        [("web", "3 replicas, ports 8000 to 8003"), ("proxy", ""), ("second", ""), ("startup", "")]
    );
    let name = |at: usize| graph.nodes[at].name.as_str();
    let edges: Vec<String> = graph
        .edges
        .iter()
        .map(|edge| format!("{} {} {}", name(edge.from), name(edge.to), edge.label).trim().to_owned())
        .collect();
    assert_eq!(
        edges,
        ["startup web", "web proxy healthy", "web second web-2: healthy", "web second requires"]
    );
}

#[test]
fn w22_groups_are_clusters_and_replicas_are_one_node_of_theirs() {
    let graph = Graph::of(&plan(
        r#"{ jobs: [
            { name: "db", exec: "x", groups: ["back"] },
            { name: "web", exec: "x", replicas: 2, groups: ["front", "all"] },
            { name: "proxy", exec: "x", groups: ["front"] },
            { name: "alone", exec: "x" },
        ] }"#,
    ));
    assert_eq!(graph.nodes[1].note, "2 replicas, @all", "a node can be in one cluster only");
    let drawn = dot::text(&graph);
    for cluster in [
        r#"subgraph cluster_0 { label="@back"; style=rounded; n0; }"#,
        r#"subgraph cluster_1 { label="@front"; style=rounded; n1; n2; }"#,
    ] {
        assert!(drawn.contains(cluster), "{drawn}");
    }
    let drawn = mermaid::text(&graph);
    assert!(
        drawn.contains("subgraph g1[\"@front\"]\n        n1\n        n2\n    end\n") && !drawn.contains("g2"),
        "{drawn}"
    );
    let drawn = svg::text(&graph);
    assert!(drawn.contains(">@front, 2 replicas, @all</text>") && drawn.contains(">@back</text>"), "{drawn}");
}

#[test]
fn x4_the_picture_of_a_graph_has_a_legend_and_no_text_is_on_another() {
    let drawn = svg::text(&Graph::of(&plan(EXAMPLE)));
    assert_legible(&drawn);
    for word in [
        "job",
        "coprocess",
        "watch",
        "event",
        "does not exist",
        "starts once",
        "starts each time",
        "starts nothing",
    ] {
        assert!(drawn.contains(&format!(">{word}</text>")), "{word}");
    }
    let small = svg::text(&Graph::of(&plan("{ jobs: [{ name: 'a', exec: 'x' }] }")));
    assert_legible(&small);
    assert!(small.contains(">starts once</text>") && !small.contains(">watch</text>"), "{small}");
    let job = |nth: usize| {
        let source = nth
            .checked_sub(3)
            .map(|before| format!(", when: {{ source: 'service-{before}', once: 'healthy' }}"));
        format!(
            "{{ name: 'service-{nth}', exec: 'x', restarts: 'unlimited', health: {{ exec: 'x', interval: 1, ttl: 5 }}{} }}",
            source.unwrap_or_default()
        )
    };
    let many: Vec<String> = (0..30).map(job).collect();
    assert_legible(&svg::text(&Graph::of(&plan(&format!("{{ jobs: [{}] }}", many.join(", "))))));
}

#[test]
fn x4_d7_only_a_watch_that_sees_the_service_has_an_arrow_from_its_job() {
    let advertised = |watch: &str| {
        let graph = Graph::of(&plan(&format!(
            r#"{{ consul: "localhost", watches: [{{ name: "web", interval: 1, {watch} }}], jobs: [
                {{ name: "web", exec: "x", port: 80, interfaces: "static:10.0.0.1", tags: ["blue"],
                  health: {{ exec: "x", interval: 1, ttl: 5 }} }} ] }}"#
        )));
        graph.edges.iter().filter(|edge| edge.label == "advertised").count()
    };
    assert_eq!(advertised(""), 1);
    assert_eq!(advertised(r#"tag: "blue""#), 1);
    assert_eq!(advertised(r#"tag: "green""#), 0, "instances of other containers may have the tag");
    assert_eq!(advertised(r#"tcp: "web:80""#), 0, "the catalog does not answer this watch");
}

#[test]
fn x4_w21_queued_events_are_labelled_as_each() {
    let graph = Graph::of(&plan(
        r#"{ watches: [{ name: "db", tcp: "db:80", interval: 1 }],
             jobs: [{ name: "a", exec: "x", when: { source: "watch.db", each: "healthy", queue: "all" } }] }"#,
    ));
    let edges: Vec<_> = graph.edges.iter().map(|edge| (edge.label.as_str(), edge.line)).collect();
    assert_eq!(edges, [("each healthy", LineStyle::Each)]);
}
