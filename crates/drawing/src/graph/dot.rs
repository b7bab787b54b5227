//! The DOT language of Graphviz.

use std::fmt::Write;

use super::model::{Graph, Kind, LineStyle};

pub fn text(graph: &Graph) -> String {
    let mut out = String::from(
        "digraph containerpilot {\n    rankdir=LR;\n    node [fontname=\"sans-serif\"];\n    \
         edge [fontname=\"sans-serif\", fontsize=10];\n",
    );
    for (id, node) in graph.nodes.iter().enumerate() {
        let shape = match node.kind {
            Kind::Job => "shape=box, style=rounded",
            Kind::Coprocess => "shape=box, peripheries=2",
            Kind::Watch => "shape=cylinder",
            Kind::Lock => "shape=house",
            Kind::File => "shape=note",
            Kind::Event => "shape=ellipse",
            Kind::All => "shape=diamond",
            Kind::Missing => "shape=box, style=dashed, color=red",
        };
        let mut label = escaped(if node.kind == Kind::All { "all" } else { &node.name });
        if !node.note.is_empty() {
            let _ = write!(label, "\\n{}", escaped(&node.note));
        }
        let _ = writeln!(out, "    n{id} [label=\"{label}\", {shape}];");
    }
    for (nth, (group, nodes)) in graph.clusters().into_iter().enumerate() {
        let nodes: String = nodes.into_iter().map(|id| format!(" n{id};")).collect();
        let label = escaped(group);
        let _ = writeln!(out, "    subgraph cluster_{nth} {{ label=\"@{label}\"; style=rounded;{nodes} }}");
    }
    for edge in &graph.edges {
        let style = match edge.line {
            LineStyle::Once => "",
            LineStyle::Each => ", style=bold",
            LineStyle::Effect => ", style=dashed",
        };
        let _ =
            writeln!(out, "    n{} -> n{} [label=\"{}\"{style}];", edge.from, edge.to, escaped(&edge.label));
    }
    out.push_str("}\n");
    out
}

/// Escapes a text for double quotes, where Graphviz reads escapes and HTML entities.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
