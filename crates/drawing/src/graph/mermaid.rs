//! Mermaid, which many Markdown viewers draw.

use std::fmt::Write;

use super::model::{Graph, Kind, LineStyle};

pub fn text(graph: &Graph) -> String {
    let mut out = String::from("flowchart LR\n");
    for (id, node) in graph.nodes.iter().enumerate() {
        let mut label = escaped(&node.name);
        if !node.note.is_empty() {
            let _ = write!(label, "<br/><small>{}</small>", escaped(&node.note));
        }
        let (open, close, class) = match node.kind {
            Kind::Job => ("[", "]", "job"),
            Kind::Coprocess => ("[[", "]]", "coprocess"),
            Kind::Watch => ("[(", ")]", "watch"),
            Kind::Lock => ("{{", "}}", "lock"),
            Kind::File => ("[[", "]]", "file"),
            Kind::Event => ("([", "])", "event"),
            Kind::All => ("{", "}", "all"),
            Kind::Missing => ("[", "]", "missing"),
        };
        if node.kind == Kind::All {
            "all".clone_into(&mut label);
        }
        let _ = writeln!(out, "    n{id}{open}\"{label}\"{close}:::{class}");
    }
    for (nth, (group, nodes)) in graph.clusters().into_iter().enumerate() {
        let _ = writeln!(out, "    subgraph g{nth}[\"@{}\"]", escaped(group));
        for id in nodes {
            let _ = writeln!(out, "        n{id}");
        }
        out.push_str("    end\n");
    }
    for edge in &graph.edges {
        let arrow = match edge.line {
            LineStyle::Once => "-->",
            LineStyle::Each => "==>",
            LineStyle::Effect => "-.->",
        };
        let label =
            if edge.label.is_empty() { String::new() } else { format!("|\"{}\"|", escaped(&edge.label)) };
        let _ = writeln!(out, "    n{} {arrow}{label} n{}", edge.from, edge.to);
    }
    out.push_str("    classDef missing stroke:#c00,stroke-dasharray:4\n");
    out
}

/// Escapes a text for double quotes, where Mermaid reads entities (`#34;`) and some HTML.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' | '|' => drop(write!(out, "#{};", u32::from(c))),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
