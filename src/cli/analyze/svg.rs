//! `analyze --format svg`: one lane per job, from its wait to its readiness, with the critical path.

use std::fmt::Write;

use super::path::{Analysis, JobStart};
use super::{headline, precise};
use crate::cli::svg_text::{escaped, grid_step, width};
use crate::cli::terminal::{short_duration, truncated};

const LANE: i64 = 28;
const BAR: i64 = 14;
const TOP: i64 = 56;
const WIDTH: i64 = 760;
const LETTER: i64 = 8;
/// Free space on the right, for the label of the last bar.
const MARGIN: i64 = 150;
const MAX_NAME: usize = 28;

const STYLE: &str = "\
text{font:13px ui-sans-serif,system-ui,sans-serif}.small{font-size:11px}.right{text-anchor:end}.middle{text-anchor:middle}\
.bold{font-weight:600}.halo{paint-order:stroke;stroke-width:4}path{fill:none}.waiting{stroke-dasharray:2 4;stroke-width:1.5}.link{stroke-width:1.6}path.head{stroke:none}\
text{fill:#1f2328}.small{fill:#656d76}.paper{fill:#fff}.halo{stroke:#fff}.band{fill:#f6f8fa}.grid{stroke:#d8dee4}.waiting{stroke:#afb8c1}\
.job{fill:#54aeff}.critical{fill:#fb8f44}.pending{fill:#d8dee4}.link{stroke:#bc4c00}path.head{fill:#bc4c00}";
const DARK: &str = "\
text{fill:#e6edf3}.small{fill:#848d97}.paper{fill:#0d1117}.halo{stroke:#0d1117}.band{fill:#151b23}.grid{stroke:#30363d}.waiting{stroke:#484f58}\
.job{fill:#1f6feb}.critical{fill:#db6d28}.pending{fill:#30363d}.link{stroke:#f0883e}path.head{fill:#f0883e}";

/// What the picture explains below the lanes.
const LEGEND: [(&str, &str); 4] = [
    ("waiting", "waiting"),
    ("job", "from its start until it is ready"),
    ("critical", "the same, on the critical path"),
    ("pending", "not ready yet"),
];

pub(super) fn picture(analysis: &Analysis) -> String {
    let names = analysis.jobs.iter().map(|job| width(&truncated(&job.job, MAX_NAME))).max().unwrap_or(0);
    let left = (names * LETTER + 28).max(80);
    let ends = analysis.jobs.iter().map(|job| job.ready.unwrap_or(job.started));
    let end = ends.fold(0.001, f64::max);
    let lanes = i64::try_from(analysis.jobs.len()).unwrap_or(0);
    let bottom = TOP + lanes * LANE;
    let picture = Picture { analysis, left, end, bottom, width: left + WIDTH + MARGIN };
    let mut out = picture.frame();
    picture.links(&mut out);
    for (nth, job) in analysis.jobs.iter().enumerate() {
        picture.lane(&mut out, nth, job);
    }
    picture.legend(&mut out);
    out.push_str("</svg>\n");
    out
}

struct Picture<'a> {
    analysis: &'a Analysis,
    /// The x coordinate of time zero.
    left: i64,
    /// The time at the right end of the axis.
    end: f64,
    bottom: i64,
    width: i64,
}

impl Picture<'_> {
    fn x(&self, at: f64) -> f64 {
        self.left as f64 + (at / self.end).clamp(0.0, 1.0) * WIDTH as f64
    }

    /// The vertical centre of a lane.
    fn y(lane: usize) -> i64 {
        TOP + i64::try_from(lane).unwrap_or(0) * LANE + LANE / 2
    }

    fn frame(&self) -> String {
        let (width, height) = (self.width, self.bottom + 56);
        let title = escaped(&headline(self.analysis));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
             <title>{title}</title>\n<style>{STYLE}@media(prefers-color-scheme:dark){{{DARK}}}</style>\n\
             <defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
             markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"head\" d=\"M0 0 8 4 0 8z\"/></marker></defs>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n\
             <text class=\"bold\" x=\"14\" y=\"24\">{title}</text>\n"
        );
        for nth in (0..self.analysis.jobs.len()).step_by(2) {
            let y = Self::y(nth) - LANE / 2;
            let _ =
                writeln!(out, "<rect class=\"band\" x=\"0\" y=\"{y}\" width=\"{width}\" height=\"{LANE}\"/>");
        }
        let end = (self.end * 1e9) as u64;
        let step = grid_step(end);
        for line in 0..=end / step {
            let at = (line * step) as f64 / 1e9;
            let x = self.x(at);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{x:.1} {} V{}\"/><text class=\"small middle\" x=\"{x:.1}\" y=\"{}\">{}</text>",
                TOP - 4,
                self.bottom,
                TOP - 9,
                short_duration(at)
            );
        }
        out
    }

    fn lane(&self, out: &mut String, nth: usize, job: &JobStart) {
        let y = Self::y(nth);
        let (from, to) = (self.x(job.started), self.x(job.ready.unwrap_or(self.end)));
        let class = match (job.ready, job.critical) {
            (None, _) => "pending",
            (Some(_), true) => "critical",
            (Some(_), false) => "job",
        };
        let label = match job.ready {
            None => "not ready".to_owned(),
            Some(ready) => format!("{} (+{})", precise(ready), precise(ready - job.started)),
        };
        let bar = (to - from).max(3.0);
        let _ = writeln!(
            out,
            "<g><title>{}</title><text class=\"right\" x=\"{}\" y=\"{}\">{}</text>\
             <path class=\"waiting\" d=\"M{} {y} H{from:.1}\"/>\
             <rect class=\"{class}\" x=\"{from:.1}\" y=\"{}\" width=\"{bar:.1}\" height=\"{BAR}\" rx=\"2\"/>\
             <text class=\"small halo\" x=\"{:.1}\" y=\"{}\">{label}</text></g>",
            escaped(&format!("{}, started when {}", job.job, job.waited_for)),
            self.left - 12,
            y + 5,
            escaped(&truncated(&job.job, MAX_NAME)),
            self.left,
            y - BAR / 2,
            from + bar + 6.0,
            y + 4
        );
    }

    /// Arrows from each job of the path to the next.
    fn links(&self, out: &mut String) {
        let mut jobs: Vec<usize> = Vec::new();
        for step in &self.analysis.path {
            let lane = self.analysis.jobs.iter().position(|job| Some(&job.job) == step.source.as_ref());
            if let Some(lane) = lane.filter(|lane| jobs.last() != Some(lane)) {
                jobs.push(lane);
            }
        }
        for pair in jobs.windows(2) {
            let (Some(from), Some(to)) = (pair.first(), pair.last()) else { continue };
            let lanes = self.analysis.jobs.get(*from).zip(self.analysis.jobs.get(*to));
            let Some((before, after)) = lanes else { continue };
            let (x1, x2) = (self.x(before.ready.unwrap_or(before.started)), self.x(after.started));
            let edge = if to > from { BAR / 2 } else { -BAR / 2 };
            let (y1, y2) = (Self::y(*from) + edge, Self::y(*to) - edge);
            let middle = i64::midpoint(y1, y2);
            let _ = writeln!(
                out,
                "<path class=\"link\" marker-end=\"url(#head)\" d=\"M{x1:.1} {y1} C{x1:.1} {middle} {x2:.1} {middle} {x2:.1} {y2}\"/>"
            );
        }
    }

    fn legend(&self, out: &mut String) {
        let (mut x, y) = (14, self.bottom + 34);
        for (class, text) in LEGEND {
            let _ = match class {
                "waiting" => writeln!(out, "<path class=\"waiting\" d=\"M{x} {} h18\"/>", y - 4),
                _ => writeln!(
                    out,
                    "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"18\" height=\"10\" rx=\"2\"/>",
                    y - 9
                ),
            };
            let _ = writeln!(out, "<text class=\"small\" x=\"{}\" y=\"{y}\">{text}</text>", x + 24);
            x += 24 + width(text) * 6 + 24;
        }
    }
}
