//! `simulate --format svg`: one lane per job, marks for events, and arrows from the cause of a start to the start.

use std::collections::BTreeMap;
use std::fmt::Write;

use containerpilot_core::Time;
use containerpilot_core::event::Code;
use containerpilot_core::plan::Signal;
use containerpilot_simulation::expect::{Verdict, moment_of};
use containerpilot_simulation::timeline::{Entry, JobPhase, SimulationRun, What};
use containerpilot_text::screen::truncated;

use crate::svg_text::{escaped, grid_step, width};

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
/// How many of the labels that have no room a tooltip names.
const MAX_HIDDEN: usize = 20;
/// Longer results of expectations are cut.
const MAX_RESULT: usize = 160;

/// Without CSS variables, which many image viewers do not know.
const STYLE: &str = "\
text{font:13px ui-sans-serif,system-ui,sans-serif}.small{font-size:11px}.right{text-anchor:end}\
.middle{text-anchor:middle}path{fill:none}.waiting{stroke-dasharray:2 4;stroke-width:1.5}\
.arrow{stroke-width:1.3;opacity:.8}.mark{stroke-dasharray:3 3}.bad{stroke-width:2.5}.good{stroke-width:2}\
path.head{stroke:none}.halo{paint-order:stroke;stroke-width:4}\
text,.ink{fill:#1f2328}.small{fill:#656d76}.paper{fill:#fff}.halo{stroke:#fff}.band{fill:#f6f8fa}.away{fill:#ffebc8;opacity:.75}.grid{stroke:#d8dee4}\
.waiting{stroke:#afb8c1}.starting{fill:#b6e3ff}.running{fill:#54aeff}.healthy{fill:#4ac26b}\
.unhealthy{fill:#ff8182}.restarting{fill:#eac54f}.stopping{fill:#d4a72c}.arrow{stroke:#8250df}\
path.head{fill:#8250df}.mark{stroke:#656d76}.bad{stroke:#cf222e}.good{stroke:#1a7f37}";
const DARK: &str = "\
text,.ink{fill:#e6edf3}.small{fill:#848d97}.paper{fill:#0d1117}.halo{stroke:#0d1117}.band{fill:#151b23}.away{fill:#4d3800;opacity:.75}.grid{stroke:#30363d}\
.waiting{stroke:#484f58}.starting{fill:#0c4a8a}.running{fill:#1f6feb}.healthy{fill:#2ea043}\
.unhealthy{fill:#b62324}.restarting{fill:#9e6a03}.stopping{fill:#bb8009}.arrow{stroke:#a371f7}\
path.head{fill:#a371f7}.mark{stroke:#848d97}.bad{stroke:#ff7b72}.good{stroke:#3fb950}";

pub fn timeline(run: &SimulationRun, verdicts: &[Verdict]) -> String {
    let picture = Picture::new(run);
    let mut out = picture.frame(verdicts);
    picture.bands(&mut out);
    for (nth, name) in run.jobs.iter().enumerate() {
        picture.lane(&mut out, nth, name);
    }
    picture.arrows(&mut out);
    picture.draw_failures(&mut out);
    picture.marks(&mut out);
    picture.legend(&mut out);
    picture.results(&mut out, verdicts);
    out.push_str("</svg>\n");
    out
}

/// The label of an event, with those after it that have no room.
struct Label {
    x: f64,
    row: usize,
    word: String,
    /// Left of its line, because the picture ends.
    at_end: bool,
    hidden: Vec<String>,
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

    /// The starts that an event of another job has caused: cause, start, and their lanes.
    fn starts(&self) -> impl Iterator<Item = (&Entry, &Entry, usize, usize)> {
        self.run.entries.iter().filter_map(|entry| {
            let cause = self.run.entries.get(entry.cause.filter(|_| entry.what == What::Starts)?)?;
            let (from, to) = (*self.lanes.get(&*cause.source)?, *self.lanes.get(&*entry.source)?);
            (from != to).then_some((cause, entry, from, to))
        })
    }

    /// Arrows from the cause of a start to the start.
    fn arrows(&self, out: &mut String) {
        for (cause, entry, from, to) in self.starts().take(MAX_ARROWS) {
            let (x1, x2) = (self.x(cause.at), self.x(entry.at));
            let down = to > from;
            let edge = if down { BAR / 2 } else { -BAR / 2 };
            let (y1, y2) = (Self::y(from) + edge, Self::y(to) - edge);
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

    /// The times in which the catalog is unreachable.
    fn outages(&self) -> Vec<(Time, Time)> {
        let mut outages = Vec::new();
        let mut since = None;
        for entry in &self.run.entries {
            match entry.what {
                What::CatalogOutage(true) => since = since.or(Some(entry.at)),
                What::CatalogOutage(false) => outages.extend(since.take().map(|since| (since, entry.at))),
                _ => {}
            }
        }
        outages.extend(since.map(|since| (since, self.end)));
        outages
    }

    /// A band over all lanes for each outage of the catalog.
    fn bands(&self, out: &mut String) {
        for (from, to) in self.outages() {
            let (left, right) = (self.x(from), self.x(to));
            let _ = writeln!(
                out,
                "<rect class=\"away\" x=\"{left:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\"><title>catalog away {} – {}</title></rect>",
                TOP - 6,
                (right - left).max(1.5),
                self.bottom() - TOP + 6,
                moment_of(from),
                moment_of(to)
            );
        }
    }

    /// Labels above the lanes for events of the supervisor. One that has no room is counted at the label before it.
    fn marks(&self, out: &mut String) {
        let mut labels: Vec<Label> = Vec::new();
        let mut taken = [f64::MIN; 3];
        for entry in &self.run.entries {
            let Some(word) = label(entry) else { continue };
            let x = self.x(entry.at);
            // With room for the number of those that are left out.
            let width = (width(&word) * 7 + 10) as f64 + 28.0;
            let at_end = x + width > (self.left + WIDTH + MARGIN) as f64;
            let left = if at_end { x - width } else { x };
            match taken.iter_mut().enumerate().find(|(_, until)| **until < left) {
                Some((row, until)) => {
                    *until = left + width;
                    labels.push(Label { x, row, word, at_end, hidden: Vec::new() });
                }
                None => {
                    if let Some(last) = labels.last_mut() {
                        last.hidden.push(format!("{word} {}", moment_of(entry.at)));
                    }
                }
            }
        }
        // The texts are above the lines.
        let mut last_line = f64::MIN;
        for Label { x, row, .. } in &labels {
            if x - last_line >= 1.0 {
                let y = Self::label_y(*row) - 9;
                let _ = writeln!(out, "<path class=\"mark\" d=\"M{x:.1} {y} V{}\"/>", self.bottom());
                last_line = *x;
            }
        }
        for Label { x, row, word, at_end, hidden } in labels {
            let y = Self::label_y(row);
            let (anchor, shift) = if at_end { (" right", -4.0) } else { ("", 4.0) };
            let more = if hidden.is_empty() { String::new() } else { format!(" +{}", hidden.len().min(999)) };
            let title = hidden.iter().take(MAX_HIDDEN).cloned().collect::<Vec<_>>().join(", ");
            let title =
                if hidden.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(&title)) };
            let _ = writeln!(
                out,
                "<g>{title}<text class=\"small halo{anchor}\" x=\"{:.1}\" y=\"{y}\">{}{more}</text></g>",
                x + shift,
                escaped(&word)
            );
        }
    }

    fn label_y(row: usize) -> i64 {
        18 + i64::try_from(row).unwrap_or(0) * 15
    }

    /// What went wrong in a lane: kills, failed exits, timeouts. A process that exits on the stop signal that it was
    /// sent has obeyed.
    fn failures(&self) -> Vec<(&Entry, usize)> {
        let mut failures = Vec::new();
        let mut sent: BTreeMap<&str, String> = BTreeMap::new();
        for entry in &self.run.entries {
            let Some(lane) = self.lanes.get(&*entry.source) else { continue };
            match entry.what {
                What::Starts => drop(sent.remove(&*entry.source)),
                What::Sent(signal) => drop(sent.insert(&entry.source, Signal(signal).to_string())),
                What::Event(Code::ExitFailed) if sent.get(&*entry.source) == Some(&entry.note) => {}
                What::Killed | What::Event(Code::ExitFailed | Code::CrashLoop | Code::TimerExpired) => {
                    failures.push((entry, *lane));
                }
                _ => {}
            }
        }
        failures
    }

    fn draw_failures(&self, out: &mut String) {
        let mut last: BTreeMap<usize, f64> = BTreeMap::new();
        for (entry, lane) in self.failures() {
            let x = self.x(entry.at);
            if last.get(&lane).is_some_and(|before| x - before < 1.0) {
                continue;
            }
            last.insert(lane, x);
            let y = Self::y(lane);
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
        let y = self.bottom() + 44;
        let sample = |x: i64, class: &str| {
            format!("<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"18\" height=\"10\" rx=\"2\"/>", y - 9)
        };
        let mut x = self.left;
        let mut add = |draw: &dyn Fn(i64) -> String, name: &str| {
            let _ =
                writeln!(out, "{}<text class=\"small\" x=\"{}\" y=\"{y}\">{name}</text>", draw(x), x + 24);
            x += 24 + width(name) * 6 + 16;
        };
        for phase in JobPhase::ALL.into_iter().filter(used) {
            let name = phase.name();
            match phase {
                JobPhase::Complete | JobPhase::Stopped | JobPhase::Skipped => {}
                JobPhase::Waiting => {
                    add(&|x| format!("<path class=\"waiting\" d=\"M{x} {} h18\"/>", y - 4), name)
                }
                JobPhase::Failed => {
                    add(
                        &|x| format!("<path class=\"bad\" d=\"M{} {} l8 8 m0 -8 l-8 8\"/>", x + 5, y - 8),
                        name,
                    );
                }
                _ => add(&|x| sample(x, name), name),
            }
        }
        if !self.failures().is_empty() {
            add(&|x| format!("<path class=\"bad\" d=\"M{} {} v14\"/>", x + 9, y - 11), "killed or failed");
        }
        if self.starts().next().is_some() {
            let arrow =
                |x| format!("<path class=\"arrow\" marker-end=\"url(#head)\" d=\"M{x} {} h18\"/>", y - 4);
            add(&arrow, "starts");
        }
        if !self.outages().is_empty() {
            add(&|x| sample(x, "away"), "catalog away");
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
                escaped(&truncated(&format!("{}: {}", verdict.expected, verdict.happened), MAX_RESULT))
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
        // Its end is the end of the band.
        What::CatalogOutage(true) => Some("catalog away".to_owned()),
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

#[cfg(test)]
mod tests {
    use containerpilot_config::host::StaticHost;
    use containerpilot_config::{ConfigFile, Options, load};
    use containerpilot_simulation::read::Draft;
    use containerpilot_simulation::{expect, runner};

    use super::*;
    use crate::svg_text::assert_legible;

    fn picture(config: &str, scenario: &str) -> String {
        let input = ConfigFile { name: "test".to_owned(), text: config.as_bytes().to_vec() };
        let plan = load(vec![input], &StaticHost::default(), Options { version: "1" }).plan.unwrap();
        let input = ConfigFile { name: "scenario".to_owned(), text: scenario.as_bytes().to_vec() };
        let scenario = Draft::read(input).scenario(&plan, &BTreeMap::new()).unwrap();
        let run = runner::simulate(&plan, &scenario);
        timeline(&run, &expect::judge(&scenario, &run))
    }

    const SHOP: &str = "{ consul: 'localhost:8500', jobs: [
        { name: 'setup', exec: 'true' },
        { name: 'db', exec: 'true', port: 1, interfaces: 'static:10.0.0.1', restarts: 'unlimited',
          health: { exec: 'true', interval: 1, ttl: 5 }, when: { source: 'setup', once: 'exitSuccess' } },
        { name: 'react', exec: 'true', when: { source: 'watch.cache', each: 'changed' } },
      ], watches: [{ name: 'cache', interval: 1 }] }";

    #[test]
    fn x4_a_process_that_obeys_its_stop_signal_is_not_drawn_as_a_failure() {
        let calm = picture(SHOP, "{ until: '20s', happens: [{ at: '10s', signal: 'SIGTERM' }] }");
        assert!(!calm.contains("class=\"bad\"") && !calm.contains("killed or failed"), "{calm}");
        let crash =
            "{ until: '20s', jobs: [{ name: 'db', runs: [{ lasts: '5s', signal: 'SIGTERM' }, {}] }] }";
        let crash = picture(SHOP, crash);
        assert_eq!(crash.matches("db exitFailed SIGTERM").count(), 1);
        assert!(crash.contains("killed or failed"));
        let stubborn = picture(
            SHOP,
            "{ until: '60s', jobs: [{ name: 'db', runs: { stopsIn: 'never' } }], happens: [{ at: '10s', signal: 'SIGTERM' }] }",
        );
        assert!(stubborn.contains("<title>db killed"), "{stubborn}");
    }

    #[test]
    fn x4_an_outage_of_the_catalog_is_a_band() {
        let drawn = picture(
            SHOP,
            "{ until: '60s', catalog: { away: [{ from: '10s', to: '20s' }, { from: '40s' }] } }",
        );
        let bands: Vec<&str> = drawn.lines().filter(|line| line.contains("<title>catalog away")).collect();
        assert_eq!(bands.len(), 2, "{drawn}");
        assert!(bands[0].contains("catalog away 10s – 20s"), "{bands:?}");
        assert!(drawn.contains(">catalog away</text>") && !drawn.contains("catalog back"));
        assert_legible(&drawn);
        assert!(!picture(SHOP, "{}").contains("away\""));
    }

    #[test]
    fn x4_labels_without_room_are_counted_and_none_is_on_another() {
        let sees: Vec<String> = (0..40)
            .map(|nth| format!("{{ at: '{}ms', instances: {} }}", 20_000 + nth * 100, nth % 3))
            .collect();
        let scenario = format!(
            "{{ until: '1h', watches: [{{ name: 'cache', sees: [{}] }}], happens: [{{ at: '3599s', signal: 'SIGTERM' }}],
               expect: [{{ exit: 0 }}, {{ see: 'db healthy', before: '10s', why: '{}' }}] }}",
            sees.join(", "),
            "long words ".repeat(30)
        );
        let drawn = picture(SHOP, &scenario);
        assert_legible(&drawn);
        let (_, hidden) = drawn.split_once(" +").unwrap();
        let count: usize = hidden.split('<').next().unwrap().parse().unwrap();
        assert!(count > 10, "{drawn}");
        assert!(drawn.contains("<title>watch.cache "), "{drawn}");
        let jobs: Vec<String> = (0..30)
            .map(|nth| {
                format!("{{ name: 'service-with-a-long-name-{nth}', exec: 'true', restarts: 'unlimited' }}")
            })
            .collect();
        let many = picture(
            &format!("{{ jobs: [{}] }}", jobs.join(", ")),
            "{ until: '6h', happens: [{ at: '5h', signal: 'SIGTERM' }] }",
        );
        assert_legible(&many);
        assert!(many.contains(">running</text>") && !many.contains(">starts</text>"));
        assert!(drawn.contains(">starts</text>"));
    }
}
