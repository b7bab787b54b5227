//! The graph of the page: the places of its nodes and arrows, which are the same for all viewers.
//!
//! Each part, whose nodes are connected by arrows, is placed by itself. The browser puts the parts side by side.

use containerpilot_core::report::graph::{Graph, Node, NodeKind};
use containerpilot_core::report::layout::{Arrow, Size, Spacing, layout};
use containerpilot_core::state::journal::Origin;
use serde::Serialize;

use crate::answers::json;

const BOX: Size = Size { width: 176, height: 50 };
/// A node that joins conditions.
const SMALL: Size = Size { width: 44, height: 32 };
const SPACING: Spacing = Spacing { row: 12, column: 42, margin: 0 };

/// The graph that was placed last, and its text. Placing takes long compared with reading the state, and a graph changes
/// with a reload only.
#[derive(Debug, Default)]
pub struct Picture {
    graph: Graph,
    text: String,
}

/// Nodes that are connected by arrows, or one that is not.
#[derive(Default, Serialize)]
struct Part<'a> {
    width: i64,
    height: i64,
    nodes: Vec<PlacedNode<'a>>,
    arrows: Vec<PlacedArrow<'a>>,
}

#[derive(Serialize)]
struct PlacedNode<'a> {
    kind: &'static str,
    name: &'a str,
    /// The items that it stands for.
    keys: Vec<String>,
    x: i64,
    y: i64,
    width: i64,
    height: i64,
}

#[derive(Serialize)]
struct PlacedArrow<'a> {
    from: usize,
    to: usize,
    label: &'a str,
    line: &'static str,
    /// The coordinates of its points, one after the other.
    points: Vec<i64>,
}

impl Picture {
    /// The JSON of a graph.
    pub(super) fn text(&mut self, graph: &Graph) -> String {
        if self.text.is_empty() || self.graph != *graph {
            self.text = json(&parts(graph));
            self.graph = graph.clone();
        }
        self.text.clone()
    }
}

/// The parts in the order of their first nodes.
fn parts(graph: &Graph) -> Vec<Part<'_>> {
    // The first node of the part of each node. Following it ends at a node that is its own first.
    let mut first: Vec<usize> = (0..graph.nodes.len()).collect();
    for edge in &graph.edges {
        let (one, other) = (root(&mut first, edge.from), root(&mut first, edge.to));
        if let Some(slot) = first.get_mut(one.max(other)) {
            *slot = one.min(other);
        }
    }
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    // The place of each node in its part.
    let mut places = Vec::with_capacity(graph.nodes.len());
    for at in 0..graph.nodes.len() {
        let part = members.get_mut(root(&mut first, at));
        places.push(part.as_ref().map_or(0, |part| part.len()));
        part.into_iter().for_each(|part| part.push(at));
    }
    let mut arrows: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for (nth, edge) in graph.edges.iter().enumerate().filter(|(_, edge)| edge.from != edge.to) {
        if let Some(list) = arrows.get_mut(root(&mut first, edge.from)) {
            list.push(nth);
        }
    }
    let place = |at: usize| places.get(at).copied().unwrap_or_default();
    members.iter().zip(&arrows).filter_map(|(nodes, arrows)| part(graph, nodes, arrows, &place)).collect()
}

fn root(first: &mut [usize], mut at: usize) -> usize {
    while let Some(next) = first.get(at).copied().filter(|next| *next != at) {
        let after = first.get(next).copied().unwrap_or(next);
        if let Some(slot) = first.get_mut(at) {
            *slot = after;
        }
        at = next;
    }
    at
}

/// `None` for a watch, lock or file that no arrow leads to or from: the page lists it elsewhere.
fn part<'a>(
    graph: &'a Graph,
    nodes: &[usize],
    arrows: &[usize],
    place: &dyn Fn(usize) -> usize,
) -> Option<Part<'a>> {
    let nodes: Vec<&Node> = nodes.iter().filter_map(|at| graph.nodes.get(*at)).collect();
    if arrows.is_empty() && !nodes.iter().any(|node| kind(node.kind) == "job") {
        return None;
    }
    let sizes: Vec<Size> =
        nodes.iter().map(|node| if node.kind == NodeKind::All { SMALL } else { BOX }).collect();
    let edges: Vec<_> = arrows.iter().filter_map(|nth| graph.edges.get(*nth)).collect();
    let ends: Vec<Arrow> =
        edges.iter().map(|edge| Arrow { from: place(edge.from), to: place(edge.to), label: 0 }).collect();
    let placed = layout(&sizes, &ends, SPACING);
    let mut part = Part { width: placed.width, height: placed.height, ..Part::default() };
    for ((node, size), corner) in nodes.iter().zip(&sizes).zip(&placed.boxes) {
        part.nodes.push(PlacedNode {
            kind: kind(node.kind),
            name: if node.kind == NodeKind::All { "all" } else { &node.name },
            keys: node.members.iter().filter_map(|member| key(*member)).collect(),
            x: corner.x,
            y: corner.y,
            width: size.width,
            height: size.height,
        });
    }
    for ((edge, ends), points) in edges.iter().zip(&ends).zip(&placed.arrows) {
        let line = if edge.label.starts_with("requires") { "requires" } else { edge.line.name() };
        let points = points.iter().flat_map(|point| [point.x, point.y]).collect();
        part.arrows.push(PlacedArrow { from: ends.from, to: ends.to, label: &edge.label, line, points });
    }
    Some(part)
}

const fn kind(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Job | NodeKind::Coprocess => "job",
        NodeKind::Watch => "watch",
        NodeKind::Lock => "lock",
        NodeKind::File => "file",
        NodeKind::Event => "event",
        NodeKind::All => "all",
        NodeKind::Missing => "missing",
    }
}

/// The key of an item.
fn key(member: Origin) -> Option<String> {
    Some(match member {
        Origin::Job(job) => format!("j{}", job.index()),
        Origin::Watch(watch) => format!("w{}", watch.index()),
        Origin::Lock(lock) => format!("l{}", lock.index()),
        Origin::File(file) => format!("f{}", file.index()),
        Origin::Global | Origin::Signal(_) | Origin::Removed(_) => return None,
    })
}
