//! Places boxes and arrows in columns, from left to right: the layout of every picture of a graph.
//!
//! This is Sugiyama's method: reverse arrows until there is no cycle, put each box into the column after all its
//! predecessors, give long arrows a lane in each column they cross, order each column so that few arrows cross, and
//! move boxes up or down towards their neighbours. All coordinates are whole pixels and depend only on the order of
//! boxes and arrows, so the same plan gives the same picture.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use crate::sort_by;

/// The height of the lane of an arrow that crosses a column.
const LANE: i64 = 6;
/// Arrows across more columns, and all arrows once there are this many boxes and lanes, are drawn straight. This keeps
/// the work linear.
const MAX_SPAN: usize = 24;
const MAX_LANES: usize = 20_000;
const ROUNDS: usize = 8;

/// The space around boxes.
#[derive(Clone, Copy, Debug)]
pub struct Spacing {
    /// Between two boxes or lanes of a column.
    pub row: i64,
    /// Between two columns, without labels.
    pub column: i64,
    /// Around the picture.
    pub margin: i64,
}

/// The size of a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// From left to right.
    pub width: i64,
    /// From top to bottom.
    pub height: i64,
}

/// An arrow between two boxes, with the width of its label.
#[derive(Clone, Copy, Debug)]
pub struct Arrow {
    /// The box where it starts.
    pub from: usize,
    /// The box where it ends.
    pub to: usize,
    /// The width of its label.
    pub label: i64,
}

/// A point. The position of a box is its upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// From the left.
    pub x: i64,
    /// From the top.
    pub y: i64,
}

/// Where everything is.
#[derive(Debug, Default)]
pub struct Picture {
    /// Each box.
    pub boxes: Vec<Point>,
    /// The points of each arrow from start to end; two for a loop.
    pub arrows: Vec<Vec<Point>>,
    /// The width of the picture.
    pub width: i64,
    /// Its height.
    pub height: i64,
}

/// A box, or the lane of an arrow that crosses a column.
struct Vertex {
    column: usize,
    height: i64,
    /// The upper edge.
    y: i64,
    before: Vec<usize>,
    after: Vec<usize>,
}

impl Vertex {
    fn centre(&self) -> i64 {
        self.y + self.height / 2
    }
}

/// Places boxes of these sizes, and the arrows between them.
#[must_use]
pub fn layout(sizes: &[Size], arrows: &[Arrow], spacing: Spacing) -> Picture {
    // Arrows to boxes that do not exist would be a bug; they are not drawn.
    let known = |arrow: &Arrow| arrow.from < sizes.len() && arrow.to < sizes.len();
    let reversed = reversed(sizes.len(), arrows);
    let forward: Vec<Option<(usize, usize)>> = arrows
        .iter()
        .zip(&reversed)
        .map(|(arrow, reversed)| {
            let ends = if *reversed { (arrow.to, arrow.from) } else { (arrow.from, arrow.to) };
            Some(ends).filter(|(from, to)| from != to && known(arrow))
        })
        .collect();
    let columns = columns(sizes.len(), &forward);
    let mut vertices: Vec<Vertex> = sizes
        .iter()
        .zip(&columns)
        .map(|(size, column)| Vertex {
            column: *column,
            height: size.height,
            y: 0,
            before: Vec::new(),
            after: Vec::new(),
        })
        .collect();
    let routes: Vec<Vec<usize>> = forward.iter().map(|ends| route(&mut vertices, *ends)).collect();
    let mut rows = rows(&vertices);
    for round in 0..ROUNDS {
        order(&vertices, &mut rows, round % 2 == 0);
    }
    stack(&mut vertices, &rows, spacing.row);
    for round in 0..ROUNDS {
        straighten(&mut vertices, &rows, round % 2 == 0, spacing.row);
    }
    let top = vertices.iter().map(|vertex| vertex.y).min().unwrap_or(0);
    for vertex in &mut vertices {
        vertex.y += spacing.margin - top;
    }
    let (lefts, widths) = column_positions(sizes, arrows, &columns, rows.len(), &routes, spacing);
    draw(
        &Placed {
            sizes,
            arrows,
            reversed: &reversed,
            columns: &columns,
            routes: &routes,
            lefts,
            widths,
            spacing,
        },
        &vertices,
    )
}

/// Chooses the arrows to reverse so that there is no cycle. Loops are not reversed.
fn reversed(count: usize, arrows: &[Arrow]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        Open,
        Done,
    }
    let mut out = vec![Vec::new(); count];
    for (nth, arrow) in arrows.iter().enumerate().filter(|(_, arrow)| arrow.from != arrow.to) {
        if let Some(list) = out.get_mut(arrow.from) {
            list.push((nth, arrow.to));
        }
    }
    let mut reversed = vec![false; arrows.len()];
    let mut seen = vec![Seen::Not; count];
    let mut set = |at: usize, to: Seen| seen.get_mut(at).map(|slot| mem::replace(slot, to));
    for root in 0..count {
        if set(root, Seen::Open) != Some(Seen::Not) {
            set(root, Seen::Done);
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some((at, next)) = path.last_mut() {
            let Some((arrow, to)) = out.get(*at).and_then(|list| list.get(*next)).copied() else {
                set(*at, Seen::Done);
                path.pop();
                continue;
            };
            *next += 1;
            match set(to, Seen::Open) {
                Some(Seen::Not) => path.push((to, 0)),
                Some(Seen::Open) => reversed.get_mut(arrow).into_iter().for_each(|reversed| *reversed = true),
                Some(Seen::Done) => drop(set(to, Seen::Done)),
                None => {}
            }
        }
    }
    reversed
}

/// The column of each box: after all its predecessors. A box without predecessors is just before its first successor.
fn columns(count: usize, arrows: &[Option<(usize, usize)>]) -> Vec<usize> {
    let mut out = vec![Vec::new(); count];
    let mut waits = vec![0_usize; count];
    for (from, to) in arrows.iter().flatten() {
        if let (Some(list), Some(waits)) = (out.get_mut(*from), waits.get_mut(*to)) {
            list.push(*to);
            *waits += 1;
        }
    }
    let sources: Vec<usize> = (0..count).filter(|at| waits.get(*at) == Some(&0)).collect();
    let mut ready = sources.clone();
    let mut column = vec![0_usize; count];
    while let Some(at) = ready.pop() {
        let next = column.get(at).map_or(1, |column| column + 1);
        for to in out.get(at).into_iter().flatten() {
            if let (Some(column), Some(waits)) = (column.get_mut(*to), waits.get_mut(*to)) {
                *column = next.max(*column);
                *waits -= 1;
                if *waits == 0 {
                    ready.push(*to);
                }
            }
        }
    }
    for source in sources {
        let nearest = out.get(source).into_iter().flatten().filter_map(|to| column.get(*to)).min().copied();
        if let (Some(nearest), Some(slot)) = (nearest, column.get_mut(source)) {
            *slot = nearest.saturating_sub(1);
        }
    }
    column
}

/// The vertices along an arrow. Adds a lane in each column that it crosses.
fn route(vertices: &mut Vec<Vertex>, ends: Option<(usize, usize)>) -> Vec<usize> {
    let Some((from, to)) = ends else { return Vec::new() };
    let column = |at: usize| vertices.get(at).map_or(0, |vertex| vertex.column);
    let (first, last) = (column(from) + 1, column(to));
    let mut route = vec![from];
    if last.saturating_sub(first) <= MAX_SPAN && vertices.len() < MAX_LANES {
        for column in first..last {
            route.push(vertices.len());
            vertices.push(Vertex { column, height: LANE, y: 0, before: Vec::new(), after: Vec::new() });
        }
    }
    route.push(to);
    for (from, to) in route.iter().zip(route.iter().skip(1)) {
        if let Some(vertex) = vertices.get_mut(*from) {
            vertex.after.push(*to);
        }
        if let Some(vertex) = vertices.get_mut(*to) {
            vertex.before.push(*from);
        }
    }
    route
}

/// The vertices of each column.
fn rows(vertices: &[Vertex]) -> Vec<Vec<usize>> {
    let count = vertices.iter().map(|vertex| vertex.column + 1).max().unwrap_or(0);
    let mut rows = vec![Vec::new(); count];
    for (at, vertex) in vertices.iter().enumerate() {
        if let Some(row) = rows.get_mut(vertex.column) {
            row.push(at);
        }
    }
    rows
}

/// Orders each column by the mean position of its neighbours in the column before or after.
fn order(vertices: &[Vertex], rows: &mut [Vec<usize>], forward: bool) {
    let mut place = vec![0_i64; vertices.len()];
    for row in rows.iter() {
        store_positions(&mut place, row);
    }
    let count = rows.len();
    for nth in 0..count {
        let nth = if forward { nth } else { count - 1 - nth };
        let Some(row) = rows.get_mut(nth) else { continue };
        let middle = |at: &usize| {
            let vertex = vertices.get(*at);
            let others = vertex.map(|vertex| if forward { &vertex.before } else { &vertex.after });
            let places = others.into_iter().flatten().filter_map(|other| place.get(*other));
            // In fractions of a position, so that means that differ by half a position are not equal.
            mean(&mut places.map(|place| place * 1024)).or_else(|| place.get(*at).map(|place| place * 1024))
        };
        let mut keyed: Vec<(Option<i64>, usize)> = row.iter().map(|at| (middle(at), *at)).collect();
        sort_by(&mut keyed, |(one, _), (other, _)| one.cmp(other));
        *row = keyed.into_iter().map(|(_, at)| at).collect();
        store_positions(&mut place, row);
    }
}

/// Stores the position of each vertex within its column.
fn store_positions(place: &mut [i64], row: &[usize]) {
    for (nth, at) in (0..).zip(row) {
        if let Some(slot) = place.get_mut(*at) {
            *slot = nth;
        }
    }
}

fn mean(numbers: &mut dyn Iterator<Item = i64>) -> Option<i64> {
    let (mut sum, mut count) = (0_i64, 0_i64);
    for number in numbers {
        sum += number;
        count += 1;
    }
    sum.checked_div(count)
}

/// Stacks the vertices of each column.
fn stack(vertices: &mut [Vertex], rows: &[Vec<usize>], gap: i64) {
    for row in rows {
        let mut y = 0;
        for at in row {
            if let Some(vertex) = vertices.get_mut(*at) {
                vertex.y = y;
                y += vertex.height + gap;
            }
        }
    }
}

/// Moves vertices towards their neighbours, without changing their order or letting them overlap.
fn straighten(vertices: &mut [Vertex], rows: &[Vec<usize>], forward: bool, gap: i64) {
    let count = rows.len();
    for nth in 0..count {
        let Some(row) = rows.get(if forward { nth } else { count - 1 - nth }) else { continue };
        let wanted: Vec<(i64, i64)> = row
            .iter()
            .filter_map(|at| {
                let vertex = vertices.get(*at)?;
                let others = if forward { &vertex.before } else { &vertex.after };
                let mut centres = others.iter().filter_map(|other| vertices.get(*other)).map(Vertex::centre);
                let target = mean(&mut centres).map_or(vertex.y, |centre| centre - vertex.height / 2);
                Some((target, vertex.height))
            })
            .collect();
        // Resolve overlaps once by moving down only and once by moving up only, and take the mean.
        let mut down = Vec::with_capacity(wanted.len());
        let mut free = i64::MIN;
        for (target, height) in &wanted {
            let y = free.max(*target);
            free = y + height + gap;
            down.push(y);
        }
        let mut up = Vec::with_capacity(wanted.len());
        let mut free = i64::MAX;
        for (target, height) in wanted.iter().rev() {
            let y = (free.saturating_sub(*height)).min(*target);
            free = y - gap;
            up.push(y);
        }
        for (at, (down, up)) in row.iter().zip(down.into_iter().zip(up.into_iter().rev())) {
            if let Some(vertex) = vertices.get_mut(*at) {
                vertex.y = (down + up).div_euclid(2);
            }
        }
    }
}

/// The left edge and the width of each column. The gaps between columns have space for the labels of arrows.
fn column_positions(
    sizes: &[Size],
    arrows: &[Arrow],
    columns: &[usize],
    count: usize,
    routes: &[Vec<usize>],
    spacing: Spacing,
) -> (Vec<i64>, Vec<i64>) {
    let mut widths = vec![0; count];
    let mut gaps = vec![0; count];
    for (size, column) in sizes.iter().zip(columns) {
        if let Some(width) = widths.get_mut(*column) {
            *width = size.width.max(*width);
        }
    }
    for (arrow, route) in arrows.iter().zip(routes) {
        let Some(last) = route.last().and_then(|at| columns.get(*at)) else { continue };
        // The label is before the target box, or after it if the arrow starts at the right.
        let before = if route.last() == Some(&arrow.to) {
            last - 1
        } else {
            columns.get(arrow.to).copied().unwrap_or(0)
        };
        if let Some(gap) = gaps.get_mut(before) {
            *gap = arrow.label.max(*gap);
        }
    }
    let mut lefts = Vec::with_capacity(count);
    let mut x = spacing.margin;
    for (width, gap) in widths.iter().zip(&gaps) {
        lefts.push(x);
        x += width + spacing.column + gap;
    }
    (lefts, widths)
}

struct Placed<'a> {
    sizes: &'a [Size],
    arrows: &'a [Arrow],
    reversed: &'a [bool],
    columns: &'a [usize],
    routes: &'a [Vec<usize>],
    lefts: Vec<i64>,
    widths: Vec<i64>,
    spacing: Spacing,
}

fn draw(placed: &Placed<'_>, vertices: &[Vertex]) -> Picture {
    let left = |column: usize| placed.lefts.get(column).copied().unwrap_or(0);
    let width = |column: usize| placed.widths.get(column).copied().unwrap_or(0);
    let margin = placed.spacing.margin;
    let mut picture = Picture::default();
    for ((size, column), vertex) in placed.sizes.iter().zip(placed.columns).zip(vertices) {
        // Centred, so that arrows have similar lengths.
        let corner = Point { x: left(*column) + (width(*column) - size.width) / 2, y: vertex.y };
        picture.width = picture.width.max(corner.x + size.width + margin);
        picture.height = picture.height.max(corner.y + size.height + margin);
        picture.boxes.push(corner);
    }
    let lowest = vertices.iter().map(|vertex| vertex.y + vertex.height + margin).max();
    picture.height = picture.height.max(lowest.unwrap_or(0));
    let ports = ports(placed, vertices);
    for (nth, arrow) in placed.arrows.iter().enumerate() {
        let edges = |at: usize| {
            let corner = picture.boxes.get(at).copied().unwrap_or_default();
            let size = placed.sizes.get(at).copied().unwrap_or_default();
            (corner, size)
        };
        let route = placed.routes.get(nth).map_or(&[][..], Vec::as_slice);
        let [first, lanes @ .., last] = route else {
            // A loop above the right corner of the box.
            let (corner, size) = edges(arrow.from);
            let right = Point { x: corner.x + size.width, y: corner.y + size.height / 2 };
            picture.arrows.push(vec![right, Point { x: right.x - size.width / 4, y: corner.y }]);
            continue;
        };
        let (start, size) = edges(*first);
        let mut points = vec![Point { x: start.x + size.width, y: start.y + size.height / 2 }];
        for lane in lanes {
            if let Some(vertex) = vertices.get(*lane) {
                let x = left(vertex.column);
                points.push(Point { x, y: vertex.centre() });
                points.push(Point { x: x + width(vertex.column), y: vertex.centre() });
            }
        }
        let (end, size) = edges(*last);
        let port = ports.get(nth).copied().flatten().unwrap_or(size.height / 2);
        points.push(Point { x: end.x, y: end.y + port });
        if placed.reversed.get(nth) == Some(&true) {
            points.reverse();
        }
        picture.arrows.push(points);
    }
    picture
}

/// The distance of the end of each arrow from the upper edge of its box, so that no two arrows end in one point.
fn ports(placed: &Placed<'_>, vertices: &[Vertex]) -> Vec<Option<i64>> {
    let mut ending = vec![Vec::new(); placed.sizes.len()];
    for (nth, route) in placed.routes.iter().enumerate() {
        if let [.., before, last] = route.as_slice()
            && let (Some(list), Some(vertex)) = (ending.get_mut(*last), vertices.get(*before))
        {
            list.push((vertex.centre(), vertex.column, nth));
        }
    }
    let mut ports = vec![None; placed.arrows.len()];
    for (mut list, size) in ending.into_iter().zip(placed.sizes) {
        sort_by(&mut list, |one: &(i64, usize, usize), other| {
            (one.0, other.1, one.2).cmp(&(other.0, one.1, other.2))
        });
        let parts = i64::try_from(list.len()).unwrap_or(i64::MAX - 1) + 1;
        for (part, (_, _, nth)) in (1..).zip(list) {
            if let Some(port) = ports.get_mut(nth) {
                *port = Some(size.height * part / parts);
            }
        }
    }
    ports
}
