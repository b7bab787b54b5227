//! The graph as SVG.

use std::fmt::Write;

use containerpilot_core::report::layout::{Arrow, Point, Size, Spacing, layout};
use containerpilot_text::screen::truncated;

use super::model::{Edge, Graph, Kind, LineStyle, Node};
use crate::svg_text::{escaped, width as text_width};

/// The width of a character in a box, and in the smaller text of notes and labels.
const LETTER: i64 = 8;
const SMALL: i64 = 7;
/// Longer names are cut; the tooltip of the box has the full name.
const MAX_NAME: usize = 40;
/// The height of the legend.
const LEGEND: i64 = 36;
/// The height of the label of an arrow.
const LABEL: i64 = 18;
pub const SPACING: Spacing = Spacing { row: 16, column: 64, margin: 16 };

const STYLE: &str = "\
text{font-family:ui-sans-serif,system-ui,sans-serif;font-size:14px;fill:#1f2328}\
.note,.label{font-size:11px;fill:#57606a}\
.job{fill:#ddf4ff;stroke:#0969da}.coprocess{fill:#eaeef2;stroke:#57606a}.watch{fill:#dafbe1;stroke:#1a7f37}.file{fill:#fbefff;stroke:#8250df}.lock{fill:#fff1e5;stroke:#bc4c00}\
.event{fill:#fff8c5;stroke:#9a6700}.all{fill:#fff;stroke:#0969da}\
.missing{fill:#ffebe9;stroke:#cf222e;stroke-dasharray:4}\
path{fill:none;stroke:#57606a;stroke-width:1.2}.each{stroke-width:2.4}.effect{stroke-dasharray:5}\
.head{fill:#57606a;stroke:none}";

pub fn text(graph: &Graph) -> String {
    let mut ending = vec![0_i64; graph.nodes.len()];
    for edge in &graph.edges {
        if let Some(count) = ending.get_mut(edge.to) {
            *count += 1;
        }
    }
    let sizes: Vec<Size> =
        graph.nodes.iter().zip(&ending).map(|(node, ending)| size(node, *ending)).collect();
    let arrows: Vec<Arrow> = graph
        .edges
        .iter()
        .map(|edge| Arrow { from: edge.from, to: edge.to, label: label_width(edge) })
        .collect();
    let picture = layout(&sizes, &arrows, SPACING);
    let legend = Legend::of(graph);
    let (width, bottom) = (picture.width.max(legend.width), picture.height.max(1));
    let height = bottom + legend.height();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>jobs, events, watches and locks</title>\n\
         <style>{STYLE}</style>\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" \
         markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
         <path class=\"head\" d=\"M0 0 8 4 0 8z\"/></marker></defs>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (edge, points) in graph.edges.iter().zip(&picture.arrows) {
        arrow(&mut out, edge, points);
    }
    for ((node, size), corner) in graph.nodes.iter().zip(&sizes).zip(&picture.boxes) {
        draw(&mut out, node, *size, *corner);
    }
    legend.draw(&mut out, bottom + LEGEND / 2);
    out.push_str("</svg>\n");
    out
}

/// What boxes and lines mean, of those that the picture has.
struct Legend {
    entries: Vec<(&'static str, &'static str)>,
    width: i64,
}

impl Legend {
    fn of(graph: &Graph) -> Self {
        let kind = |kind: Kind| graph.nodes.iter().any(|node| node.kind == kind);
        let line = |line: LineStyle| graph.edges.iter().any(|edge| edge.line == line);
        let all = [
            (kind(Kind::Job), "job", "job"),
            (kind(Kind::Coprocess), "coprocess", "coprocess"),
            (kind(Kind::Watch), "watch", "watch"),
            (kind(Kind::Lock), "lock", "lock"),
            (kind(Kind::File), "file", "file"),
            (kind(Kind::Event), "event", "event"),
            (kind(Kind::Missing), "missing", "does not exist"),
            (line(LineStyle::Once), "once", "starts once"),
            (line(LineStyle::Each), "each", "starts each time"),
            (line(LineStyle::Effect), "effect", "starts nothing"),
        ];
        let entries: Vec<_> =
            all.into_iter().filter(|(used, ..)| *used).map(|(_, class, text)| (class, text)).collect();
        let width = entries.iter().map(|(_, text)| Self::entry_width(text)).sum::<i64>() + 16;
        Self { entries, width }
    }

    fn entry_width(text: &str) -> i64 {
        28 + text_width(text) * SMALL + 16
    }

    fn height(&self) -> i64 {
        if self.entries.is_empty() { 0 } else { LEGEND }
    }

    fn draw(&self, out: &mut String, y: i64) {
        let mut x = 16;
        for (class, text) in &self.entries {
            let _ = match *class {
                "once" | "each" | "effect" => {
                    writeln!(out, "<path class=\"{class}\" marker-end=\"url(#head)\" d=\"M{x} {y} h22\"/>")
                }
                _ => writeln!(
                    out,
                    "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"20\" height=\"12\" rx=\"2\"/>",
                    y - 6
                ),
            };
            let _ = writeln!(out, "<text class=\"note\" x=\"{}\" y=\"{}\">{text}</text>", x + 28, y + 4);
            x += Self::entry_width(text);
        }
    }
}

/// The note of a node, with its group: the columns of the picture leave no room for clusters.
fn note(node: &Node) -> String {
    let group = node.group.as_ref().map(|group| format!("@{group}"));
    let words = group.into_iter().chain(Some(node.note.clone())).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(", ")
}

fn size(node: &Node, ending: i64) -> Size {
    if node.kind == Kind::All {
        return Size { width: 44, height: ((ending + 1) * LABEL).max(32) };
    }
    let name = text_width(&truncated(&node.name, MAX_NAME)) * LETTER;
    let note = note(node);
    let lines = if note.is_empty() { 36 } else { 50 };
    let note = text_width(&truncated(&note, MAX_NAME)) * SMALL;
    Size { width: name.max(note).max(40) + 24, height: ((ending + 1) * LABEL).max(lines) }
}

fn label_width(edge: &Edge) -> i64 {
    if edge.label.is_empty() { 0 } else { text_width(&edge.label) * SMALL + 10 }
}

fn draw(out: &mut String, node: &Node, size: Size, corner: Point) {
    let (Size { width, height }, Point { x, y }) = (size, corner);
    let (class, round) = match node.kind {
        Kind::Job => ("job", 6),
        Kind::Coprocess => ("coprocess", 0),
        Kind::Watch => ("watch", 14),
        Kind::Lock => ("lock", 3),
        Kind::File => ("file", 2),
        Kind::Event => ("event", 18),
        Kind::All => ("all", 10),
        Kind::Missing => ("missing", 0),
    };
    let name = if node.kind == Kind::All { "all" } else { &node.name };
    let _ = write!(
        out,
        "<g><title>{} {}</title><rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
         rx=\"{round}\"/>",
        match node.kind {
            Kind::Coprocess => "coprocess",
            Kind::Watch => "watch",
            Kind::Lock => "lock",
            Kind::File => "file",
            Kind::Event => "event",
            Kind::All => "when",
            Kind::Job | Kind::Missing => "job",
        },
        escaped(name)
    );
    let middle = x + width / 2;
    let note = note(node);
    let line = y + height / 2 + if note.is_empty() { 5 } else { -2 };
    let _ = write!(
        out,
        "<text x=\"{middle}\" y=\"{line}\" text-anchor=\"middle\">{}</text>",
        escaped(&truncated(name, MAX_NAME))
    );
    if !note.is_empty() {
        let _ = write!(
            out,
            "<text class=\"note\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            line + 16,
            escaped(&truncated(&note, MAX_NAME))
        );
    }
    out.push_str("</g>\n");
}

fn arrow(out: &mut String, edge: &Edge, points: &[Point]) {
    let ([start, rest @ ..], Some(end)) = (points, points.last()) else { return };
    let class = edge.line.name();
    let _ = write!(out, "<path class=\"{class}\" marker-end=\"url(#head)\" d=\"M{} {}", start.x, start.y);
    let label = label_width(edge);
    let mut anchor = "end";
    if edge.from == edge.to {
        let (far, high) = (start.x + 24, end.y - 24);
        let _ = write!(
            out,
            "C{far} {} {far} {high} {} {high}S{} {high} {} {}",
            start.y, start.x, end.x, end.x, end.y
        );
    } else {
        let mut from = *start;
        for (nth, to) in rest.iter().enumerate() {
            // The last piece is straight below the label.
            let straight = if nth + 1 == rest.len() { label.max(12) } else { 0 };
            let bend = if to.x >= from.x { to.x - straight } else { to.x + straight };
            let middle = i64::midpoint(from.x, bend);
            let _ = write!(out, "C{middle} {} {middle} {} {bend} {}", from.y, to.y, to.y);
            if straight > 0 {
                let _ = write!(out, "H{}", to.x);
                anchor = if to.x >= from.x { "end" } else { "start" };
            }
            from = *to;
        }
    }
    out.push_str("\"/>\n");
    if !edge.label.is_empty() {
        let x = if anchor == "end" { end.x - 8 } else { end.x + 8 };
        let _ = writeln!(
            out,
            "<text class=\"label\" x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            end.y - 4,
            escaped(&edge.label)
        );
    }
}
