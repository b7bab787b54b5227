//! `simulate --format svg`: one lane per job, marks for events, and arrows from the cause of a start to the start.

use std::collections::BTreeMap;
use std::fmt::Write;

use containerpilot_core::Time;
use containerpilot_core::event::Code;
use containerpilot_simulation::expect::{Verdict, moment_of};
use containerpilot_simulation::timeline::{Entry, JobPhase, SimulationRun, What};

use crate::cli::svg_text::{escaped, grid_step, width};
use crate::cli::terminal::truncated;

/// The heights of a lane, of its bar, and of the space above the first lane.
const LANE: i64 = 34;
const BAR: i64 = 18;
const TOP: i64 = 74;
/// The widths of the time axis and of a character.
const WIDTH: i64 = 960;
const LETTER: i64 = 8;
/// Free space on the right, for the label of the exit.
const MARGIN: i64 = 72;
/// Longer names are cut.
const MAX_NAME: usize = 28;
/// More arrows would hide the lanes.
const MAX_ARROWS: usize = 60;

/// Without CSS variables, which many image viewers do not know.
const STYLE: &str = "\
text{font:13px ui-sans-serif,system-ui,sans-serif}.small{font-size:11px}.right{text-anchor:end}\
.middle{text-anchor:middle}path{fill:none}.waiting{stroke-dasharray:2 4;stroke-width:1.5}\
.arrow{stroke-width:1.3;opacity:.8}.mark{stroke-dasharray:3 3}.bad{stroke-width:2.5}.good{stroke-width:2}\
path.head{stroke:none}\
text,.ink{fill:#1f2328}.small{fill:#656d76}.paper{fill:#fff}.band{fill:#f6f8fa}.grid{stroke:#d8dee4}\
.waiting{stroke:#afb8c1}.starting{fill:#b6e3ff}.running{fill:#54aeff}.healthy{fill:#4ac26b}\
.unhealthy{fill:#ff8182}.restarting{fill:#eac54f}.stopping{fill:#d4a72c}.arrow{stroke:#8250df}\
path.head{fill:#8250df}.mark{stroke:#656d76}.bad{stroke:#cf222e}.good{stroke:#1a7f37}";
const DARK: &str = "\
text,.ink{fill:#e6edf3}.small{fill:#848d97}.paper{fill:#0d1117}.band{fill:#151b23}.grid{stroke:#30363d}\
.waiting{stroke:#484f58}.starting{fill:#0c4a8a}.running{fill:#1f6feb}.healthy{fill:#2ea043}\
.unhealthy{fill:#b62324}.restarting{fill:#9e6a03}.stopping{fill:#bb8009}.arrow{stroke:#a371f7}\
path.head{fill:#a371f7}.mark{stroke:#848d97}.bad{stroke:#ff7b72}.good{stroke:#3fb950}";

pub(super) fn timeline(run: &SimulationRun, verdicts: &[Verdict]) -> String {
    let picture = Picture::new(run);
    let mut out = picture.frame(verdicts);
    for (nth, name) in run.jobs.iter().enumerate() {
        picture.lane(&mut out, nth, name);
    }
    picture.arrows(&mut out);
    picture.marks(&mut out);
    picture.legend(&mut out);
    picture.results(&mut out, verdicts);
    out.push_str("</svg>\n");
    out
}

struct Picture<'a> {
    run: &'a SimulationRun,
    /// The x coordinate of time zero.
    left: i64,
    end: Time,
    lanes: BTreeMap<&'a str, usize>,
}

impl<'a> Picture<'a> {
    fn new(run: &'a SimulationRun) -> Self {
        let names = run.jobs.iter().map(|name| width(&truncated(name, MAX_NAME))).max().unwrap_or(0);
        let left = (names * LETTER + 28).max(80);
        let last = run.exit.map_or(run.end, |(at, _)| at).max(run.end);
        let end = last.max(Time::from_nanos(1));
        let lanes = run.jobs.iter().enumerate().map(|(nth, name)| (name.as_str(), nth)).collect();
        Self { run, left, end, lanes }
    }

    fn x(&self, at: Time) -> f64 {
        let part = at.min(self.end).as_nanos() as f64 / self.end.as_nanos() as f64;
        self.left as f64 + part * WIDTH as f64
    }

    /// The vertical centre of a lane.
    fn y(lane: usize) -> i64 {
        TOP + i64::try_from(lane).unwrap_or(0) * LANE + LANE / 2
    }

    fn bottom(&self) -> i64 {
        TOP + i64::try_from(self.run.jobs.len()).unwrap_or(0) * LANE
    }

    fn frame(&self, verdicts: &[Verdict]) -> String {
        let width = self.left + WIDTH + MARGIN;
        let lines = i64::try_from(verdicts.len()).unwrap_or(0);
        let height = self.bottom() + 64 + if lines > 0 { lines * 20 + 14 } else { 0 };
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>a simulation in virtual time</title>\n\
             <style>{STYLE}@media(prefers-color-scheme:dark){{{DARK}}}</style>\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" \
             markerWidth=\"7\" markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
             <path class=\"head\" d=\"M0 0 8 4 0 8z\"/></marker></defs>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n"
        );
        for nth in (0..self.run.jobs.len()).step_by(2) {
            let _ = writeln!(
                out,
                "<rect class=\"band\" x=\"0\" y=\"{}\" width=\"{width}\" height=\"{LANE}\"/>",
                Self::y(nth) - LANE / 2
            );
        }
        let (step, bottom) = (grid_step(self.end.as_nanos()), self.bottom());
        let mut at = 0;
        while at <= self.end.as_nanos() {
            let time = Time::from_nanos(at);
            let x = self.x(time);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{x:.1} {} V{bottom}\"/><text class=\"small middle\" x=\"{x:.1}\" y=\"{}\">{}</text>",
                TOP - 6,
                bottom + 16,
                moment_of(time)
            );
            at = at.saturating_add(step);
        }
        out
    }

    fn lane(&self, out: &mut String, nth: usize, name: &str) {
        let y = Self::y(nth);
        let _ = writeln!(
            out,
            "<g><title>{}</title><text class=\"right\" x=\"{}\" y=\"{}\">{}</text>",
            escaped(name),
            self.left - 14,
            y + 5,
            escaped(&truncated(name, MAX_NAME))
        );
        let stretches = self.run.histories.get(name).map(|lane| lane.phases.as_slice()).unwrap_or_default();
        let ends = stretches.iter().skip(1).map(|(at, _)| *at).chain([self.end]);
        // Stretches narrower than half a pixel are drawn once where they overlap.
        let mut drawn = f64::MIN;
        for ((from, phase), to) in stretches.iter().zip(ends) {
            let (left, right) = (self.x(*from), self.x(to));
            if right - left < 0.5 && right <= drawn {
                continue;
            }
            self.stretch(out, y, (left, right), *phase, (*from, to));
            drawn = drawn.max(left.max(right - 1.0));
        }
        out.push_str("</g>\n");
    }

    fn stretch(
        &self,
        out: &mut String,
        y: i64,
        (left, right): (f64, f64),
        phase: JobPhase,
        (from, to): (Time, Time),
    ) {
        let name = phase.name();
        match phase {
            JobPhase::Complete | JobPhase::Stopped | JobPhase::Skipped => {}
            JobPhase::Failed => {
                let _ = writeln!(
                    out,
                    "<path class=\"bad\" d=\"M{:.1} {} l8 8 m0 -8 l-8 8\"/>",
                    left + 5.0,
                    y - 4
                );
            }
            JobPhase::Waiting => {
                let _ = writeln!(out, "<path class=\"waiting\" d=\"M{left:.1} {y} H{right:.1}\"/>");
            }
            _ => {
                let width = (right - left).max(1.5);
                let round = if width > 6.0 { 3 } else { 0 };
                let _ = writeln!(
                    out,
                    "<rect class=\"{name}\" x=\"{left:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"{round}\">\
                     <title>{name} {} – {}</title></rect>",
                    y - BAR / 2,
                    moment_of(from),
                    moment_of(to)
                );
            }
        }
    }

    /// Arrows from the cause of a start to the start.
    fn arrows(&self, out: &mut String) {
        let mut drawn = 0;
        for entry in &self.run.entries {
            let cause = entry.cause.and_then(|place| self.run.entries.get(place));
            let (What::Starts, Some(cause)) = (entry.what, cause) else { continue };
            let (Some(from), Some(to)) = (self.lanes.get(&*cause.source), self.lanes.get(&*entry.source))
            else {
                continue;
            };
            if from == to || drawn >= MAX_ARROWS {
                continue;
            }
            drawn += 1;
            let (x1, x2) = (self.x(cause.at), self.x(entry.at));
            let down = to > from;
            let edge = if down { BAR / 2 } else { -BAR / 2 };
            let (y1, y2) = (Self::y(*from) + edge, Self::y(*to) - edge);
            let middle = i64::midpoint(y1, y2);
            let _ = writeln!(
                out,
                "<path class=\"arrow\" marker-end=\"url(#head)\" d=\"M{x1:.1} {y1} C{x1:.1} {middle} {x2:.1} {middle} \
                 {x2:.1} {y2}\"><title>{} starts {}</title></path>",
                escaped(&cause.name()),
                escaped(&entry.source)
            );
        }
    }

    /// Marks: events of the supervisor above the lanes, failures in their lane.
    fn marks(&self, out: &mut String) {
        let mut taken = [f64::MIN; 3];
        for entry in &self.run.entries {
            let Some(word) = label(entry) else { continue };
            let x = self.x(entry.at);
            let width = (width(&word) * 7 + 10) as f64;
            let Some(row) = taken.iter().position(|until| *until < x) else { continue };
            if let Some(until) = taken.get_mut(row) {
                *until = x + width;
            }
            let y = 18 + i64::try_from(row).unwrap_or(0) * 15;
            let (anchor, shift) =
                if x + width > (self.left + WIDTH + MARGIN) as f64 { (" right", -4.0) } else { ("", 4.0) };
            let _ = writeln!(
                out,
                "<path class=\"mark\" d=\"M{x:.1} {} V{}\"/><text class=\"small{anchor}\" x=\"{:.1}\" y=\"{y}\">{}</text>",
                y - 9,
                self.bottom(),
                x + shift,
                escaped(&word)
            );
        }
        let mut last: BTreeMap<&str, f64> = BTreeMap::new();
        for entry in &self.run.entries {
            let Some(lane) = self.lanes.get(&*entry.source) else { continue };
            let bad = matches!(
                entry.what,
                What::Killed | What::Event(Code::ExitFailed | Code::CrashLoop | Code::TimerExpired)
            );
            let x = self.x(entry.at);
            if !bad || last.get(&*entry.source).is_some_and(|before| x - before < 1.0) {
                continue;
            }
            last.insert(&entry.source, x);
            let y = Self::y(*lane);
            let _ = writeln!(
                out,
                "<path class=\"bad\" d=\"M{x:.1} {} V{}\"><title>{} {} {}</title></path>",
                y - BAR / 2 - 3,
                y + BAR / 2 + 3,
                escaped(&entry.name()),
                escaped(&entry.note),
                moment_of(entry.at)
            );
        }
    }

    fn legend(&self, out: &mut String) {
        let used = |phase: &JobPhase| {
            let mut lanes = self.run.histories.values();
            lanes.any(|lane| lane.phases.iter().any(|(_, known)| known == phase))
        };
        let (mut x, y) = (self.left, self.bottom() + 44);
        for phase in JobPhase::ALL.into_iter().filter(used) {
            if matches!(phase, JobPhase::Complete | JobPhase::Stopped | JobPhase::Skipped) {
                continue;
            }
            let name = phase.name();
            let _ = match phase {
                JobPhase::Waiting => writeln!(out, "<path class=\"waiting\" d=\"M{x} {} h18\"/>", y - 4),
                JobPhase::Failed => {
                    writeln!(out, "<path class=\"bad\" d=\"M{} {} l8 8 m0 -8 l-8 8\"/>", x + 5, y - 8)
                }
                _ => writeln!(
                    out,
                    "<rect class=\"{name}\" x=\"{x}\" y=\"{}\" width=\"18\" height=\"10\" rx=\"2\"/>",
                    y - 9
                ),
            };
            let _ = writeln!(out, "<text class=\"small\" x=\"{}\" y=\"{y}\">{name}</text>", x + 24);
            x += 24 + width(name) * 7 + 18;
        }
    }

    fn results(&self, out: &mut String, verdicts: &[Verdict]) {
        let mut y = self.bottom() + 76;
        for verdict in verdicts {
            let sign = if verdict.holds { ("good", "l3 4 l6 -8") } else { ("bad", "l8 -8 m-8 0 l8 8") };
            let _ = writeln!(
                out,
                "<path class=\"{}\" fill=\"none\" d=\"M{} {} {}\"/><text class=\"small\" x=\"{}\" y=\"{y}\">{}</text>",
                sign.0,
                self.left,
                y - if verdict.holds { 4 } else { 0 },
                sign.1,
                self.left + 18,
                escaped(&format!("{}: {}", verdict.expected, verdict.happened))
            );
            y += 20;
        }
    }
}

/// The label of an event that concerns the whole container.
fn label(entry: &Entry) -> Option<String> {
    match entry.what {
        What::Request => Some(entry.name().replace(" to the supervisor", "")),
        What::Exit(code) => Some(format!("exit {code}")),
        What::CatalogOutage(away) => Some(format!("catalog {}", if away { "away" } else { "back" })),
        What::Reloaded => Some("reloaded".to_owned()),
        What::Event(Code::Shutdown) if entry.cause.is_none() => Some("shutdown".to_owned()),
        What::Event(Code::Healthy | Code::Unhealthy | Code::Changed)
            if entry.source.starts_with("watch.") =>
        {
            Some(entry.name())
        }
        _ => None,
    }
}
