//! Graphviz' language.

use std::fmt::Write;

use super::web::{Kind, Line, Web};

pub(super) fn text(web: &Web) -> String {
    let mut out = String::from(
        "digraph containerpilot {\n    rankdir=LR;\n    node [fontname=\"sans-serif\"];\n    \
         edge [fontname=\"sans-serif\", fontsize=10];\n",
    );
    for (nth, node) in web.nodes.iter().enumerate() {
        let shape = match node.kind {
            Kind::Job => "shape=box, style=rounded",
            Kind::Coprocess => "shape=box, peripheries=2",
            Kind::Watch => "shape=cylinder",
            Kind::Event => "shape=ellipse",
            Kind::All => "shape=diamond",
            Kind::Missing => "shape=box, style=dashed, color=red",
        };
        let mut label = escaped(if node.kind == Kind::All { "all" } else { &node.name });
        if !node.note.is_empty() {
            let _ = write!(label, "\\n{}", escaped(&node.note));
        }
        let _ = writeln!(out, "    n{nth} [label=\"{label}\", {shape}];");
    }
    for edge in &web.edges {
        let style = match edge.line {
            Line::Once => "",
            Line::Each => ", style=bold",
            Line::Effect => ", style=dashed",
        };
        let _ =
            writeln!(out, "    n{} -> n{} [label=\"{}\"{style}];", edge.from, edge.to, escaped(&edge.label));
    }
    out.push_str("}\n");
    out
}

/// A text inside double quotes. Graphviz reads escapes and entities there.
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
