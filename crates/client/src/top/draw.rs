//! Draws what `top` shows as lines of a terminal.

use std::fmt::Write;

use containerpilot_config::columns::{split, width};
use containerpilot_text::screen::{Screen, Tone, truncated};

use super::app::{App, Pane, PaneKind, Prompt};
use super::rows::{Column, JobRow};

/// The widest name that is shown completely beside the other columns.
const MAX_NAME: usize = 40;
/// A name is at least this wide, or a column is left out.
const MIN_NAME: usize = 12;
/// The note is at least this wide, or a column is left out.
const MIN_NOTE: usize = 16;
/// The columns that are left out on a narrow terminal, in this order.
const EXPENDABLE: [Column; 8] = [
    Column::Restarts,
    Column::Pid,
    Column::Uptime,
    Column::Memory,
    Column::Cpu,
    Column::Note,
    Column::Health,
    Column::State,
];

/// The lines of a screen of this size, each with its escape sequences for colours only.
pub(super) fn draw(app: &mut App, columns: usize, lines: usize, colour: bool) -> Vec<String> {
    let screen = Screen { colour, width: Some(columns) };
    let body = lines.saturating_sub(2);
    let mut out = vec![head(app, screen, columns)];
    if app.pane.is_some() {
        out.extend(pane(app, columns, body));
    } else {
        out.extend(table(app, screen, columns, body));
    }
    out.resize(lines.saturating_sub(1).max(1), String::new());
    out.push(foot(app, screen, columns));
    // Of a terminal with one line, the last one tells most.
    out.split_off(out.len().saturating_sub(lines.max(1)))
}

fn head(app: &App, screen: Screen, columns: usize) -> String {
    if let Some(trouble) = &app.trouble {
        return screen.paint(Tone::Bad, &truncated(&format!("{trouble}; trying again"), columns));
    }
    let title = match &app.pane {
        Some(Pane { kind: PaneKind::Logs(job), follow, .. }) => {
            format!(
                "log of {job}, {}",
                if *follow { "following" } else { "not following (f or End follows)" }
            )
        }
        Some(Pane { kind: PaneKind::Explain(job), .. }) => format!("why {job} is in its state"),
        Some(Pane { kind: PaneKind::Help, .. }) => "keys".to_owned(),
        None => {
            let (all, shown) = (app.rows.len(), app.visible().len());
            let jobs = if all == 1 { "1 job".to_owned() } else { format!("{all} jobs") };
            let filtered = if app.filter.is_empty() {
                String::new()
            } else {
                format!(", {shown} with `{}`", app.filter)
            };
            format!("{}, {jobs}{filtered}", app.summary)
        }
    };
    truncated(&title, columns)
}

fn foot(app: &App, screen: Screen, columns: usize) -> String {
    let (tone, text) = match (&app.prompt, &app.message) {
        (Some(Prompt::Filter), _) => (Tone::Plain, format!("filter: {}_", app.filter)),
        (Some(Prompt::Confirm(act)), _) => (Tone::Waiting, format!("{} {}? y/n", act.action, act.job)),
        (Some(Prompt::Signal(job, text)), _) => {
            (Tone::Waiting, format!("signal for {job} (HUP, TERM …), Escape for none: {text}_"))
        }
        (None, Some(Ok(message))) => (Tone::Good, message.clone()),
        (None, Some(Err(message))) => (Tone::Bad, message.clone()),
        (None, None) if app.pane.is_some() => (Tone::Faint, "arrows scroll  f follow  q back".to_owned()),
        (None, None) => {
            let keys =
                "q quit  / filter  < > sort  l log  e explain  s start  t stop  r restart  k signal  ? help";
            (Tone::Faint, keys.to_owned())
        }
    };
    screen.paint(tone, &truncated(&text, columns))
}

fn pane(app: &mut App, columns: usize, lines: usize) -> Vec<String> {
    let Some(pane) = &mut app.pane else { return Vec::new() };
    let wrapped: Vec<&str> = pane.lines.iter().flat_map(|line| split(line, columns)).collect();
    let last = wrapped.len().saturating_sub(lines);
    (app.page, app.wrapped) = (lines, wrapped.len());
    pane.top = if pane.follow { last } else { pane.top.min(last) };
    wrapped.into_iter().skip(pane.top).take(lines).map(str::to_owned).collect()
}

fn table(app: &mut App, screen: Screen, columns: usize, lines: usize) -> Vec<String> {
    let selected = app.select();
    let rows_shown = lines.saturating_sub(1);
    app.page = rows_shown;
    let most = app.visible().len().saturating_sub(rows_shown);
    app.first = app.first.min(most).min(selected).max((selected + 1).saturating_sub(rows_shown.max(1)));
    let visible = app.visible();
    let widths = widths(&visible, columns);
    let mut out = vec![header(app, screen, &widths)];
    for (place, row) in visible.iter().enumerate().skip(app.first).take(rows_shown) {
        let mut line = String::new();
        for (column, width) in &widths {
            let nth = Column::ALL.iter().position(|other| other == column).unwrap_or(0);
            let tone = row.cells.get(nth).map_or(Tone::Plain, |(tone, _)| *tone);
            let text = fit(row.cell(*column), *width, column.is_number());
            // Colours inside would end the marking of the selected row.
            line += &if place == selected { text } else { screen.paint(tone, &text) };
            line += "  ";
        }
        let line = line.trim_end();
        out.push(if place == selected {
            format!("\x1b[7m{}\x1b[0m", fit(line, columns, false))
        } else {
            line.to_owned()
        });
    }
    if app.rows.is_empty() && app.trouble.is_none() {
        out.push(truncated("there are no jobs", columns));
    } else if visible.is_empty() && !app.rows.is_empty() {
        out.push(truncated("no job matches the filter; Escape removes it", columns));
    }
    out.truncate(lines);
    out
}

fn header(app: &App, screen: Screen, widths: &[(Column, usize)]) -> String {
    let mut line = String::new();
    for (column, width) in widths {
        let mark = match (app.sort == *column, app.reversed) {
            (false, _) => "",
            (true, false) => "*",
            (true, true) => "^",
        };
        let _ = write!(line, "{}  ", fit(&format!("{}{mark}", column.head()), *width, column.is_number()));
    }
    screen.paint(Tone::Faint, line.trim_end())
}

/// The columns that fit, with their widths.
fn widths(rows: &[&JobRow], columns: usize) -> Vec<(Column, usize)> {
    let natural = |column: &Column| {
        let widest = rows.iter().map(|row| width(row.cell(*column))).max().unwrap_or(0);
        // With a mark for the column that the table is sorted by.
        let width = widest.max(column.head().len() + 1);
        (*column, if *column == Column::Job { width.min(MAX_NAME) } else { width })
    };
    let mut widths: Vec<(Column, usize)> = Column::ALL.iter().map(natural).collect();
    let needed = |widths: &[(Column, usize)]| {
        let used = |(column, width): &(Column, usize)| match column {
            Column::Note => MIN_NOTE.min(*width),
            Column::Job => MIN_NAME.min(*width),
            _ => *width,
        };
        widths.iter().map(|width| used(width) + 2).sum::<usize>().saturating_sub(2)
    };
    for column in EXPENDABLE {
        if needed(&widths) > columns {
            widths.retain(|(other, _)| *other != column);
        }
    }
    // The name gives way to the others, and the note takes what remains.
    let excess = total(&widths, MIN_NOTE).saturating_sub(columns);
    if let Some((_, width)) = widths.first_mut() {
        *width = width.saturating_sub(excess).max(1);
    }
    let others = total(&widths, 0);
    if let Some((_, width)) = widths.iter_mut().find(|(column, _)| *column == Column::Note) {
        *width = columns.saturating_sub(others);
    }
    widths
}

/// The columns that all take, with at most `note` for the note.
fn total(widths: &[(Column, usize)], note: usize) -> usize {
    let used =
        |(column, width): &(Column, usize)| if *column == Column::Note { note.min(*width) } else { *width };
    widths.iter().map(|width| used(width) + 2).sum::<usize>().saturating_sub(2)
}

/// A text of exactly this many columns.
fn fit(text: &str, columns: usize, right: bool) -> String {
    let text = truncated(text, columns);
    let blanks = " ".repeat(columns.saturating_sub(width(&text)));
    if right { blanks + &text } else { text + &blanks }
}
