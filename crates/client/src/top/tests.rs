use containerpilot_api::responses::Status;
use containerpilot_config::columns::width;
use serde_json::{Value, json};

use super::app::{Act, App, PaneKind, Prompt, Reaction, log_lines};
use super::draw::draw;
use super::keys::KeyPress;
use super::rows::{Column, CpuUsage, bytes, rows};

fn status(second: u32, jobs: Value) -> Status {
    let now = format!("2026-11-16T08:00:{second:02}.000000000Z");
    serde_json::from_value(json!({ "version": "4", "pid": 1, "now": now, "phase": "running", "jobs": jobs }))
        .unwrap()
}

fn three() -> Value {
    json!([
        { "name": "web", "state": "running", "health": "healthy", "pid": 7, "uptimeSeconds": 5.0, "restarts": 2, "cpuSeconds": 1.0, "memoryBytes": 2_000_000 },
        { "name": "db", "state": "running", "health": "none", "pid": 8, "uptimeSeconds": 9.0, "cpuSeconds": 3.0, "memoryBytes": 500_000_000_u64 },
        { "name": "app", "state": "waiting", "health": "none", "waitsFor": [{ "source": "db", "code": "healthy", "state": "running" }] },
    ])
}

fn app() -> App {
    let mut app = App::default();
    app.update(&status(0, three()));
    app
}

fn names(app: &App) -> Vec<&str> {
    app.visible().iter().map(|row| row.name.as_str()).collect()
}

fn press(app: &mut App, keys: &str) -> Reaction {
    keys.chars().map(|c| app.key(if c == '\n' { KeyPress::Enter } else { KeyPress::Char(c) })).last().unwrap()
}

#[test]
fn x12_cpu_is_that_of_the_last_interval_of_the_same_process() {
    let mut usage = CpuUsage::default();
    let cpu = |rows: &[super::rows::JobRow]| {
        rows.iter().map(|row| row.cell(Column::Cpu).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(cpu(&rows(&status(0, three()), &mut usage)), ["-", "-", "-"]);
    let mut later = three();
    later[0]["cpuSeconds"] = json!(2.5);
    // A lower value does not become negative, and another process starts again.
    later[1]["cpuSeconds"] = json!(2.0);
    assert_eq!(cpu(&rows(&status(2, later.clone()), &mut usage)), ["75.0%", "0.0%", "-"]);
    later[0]["pid"] = json!(9);
    assert_eq!(cpu(&rows(&status(4, later), &mut usage)), ["-", "0.0%", "-"]);
}

#[test]
fn x12_sizes_have_three_digits() {
    let shown = [0, 999, 1000, 1024, 102_400, 12_345_678, 5_000_000_000].map(bytes);
    assert_eq!(shown, ["0", "999", "1.0K", "1.0K", "100K", "11.8M", "4.7G"]);
}

#[test]
fn x12_the_table_is_sorted_and_filtered_and_keeps_its_selection() {
    let mut app = app();
    assert_eq!(names(&app), ["web", "db", "app"]);
    app.key(KeyPress::Down);
    for (column, expected) in [
        (Column::Job, ["app", "db", "web"]),
        (Column::Memory, ["db", "web", "app"]),
        (Column::Restarts, ["web", "db", "app"]),
        (Column::Uptime, ["db", "web", "app"]),
    ] {
        app.sort = column;
        assert_eq!(names(&app), expected, "{column:?}");
    }
    press(&mut app, "o");
    assert_eq!(names(&app), ["app", "web", "db"]);
    assert_eq!(app.select(), 2, "db is still selected");
    press(&mut app, "/WAIT\n");
    assert_eq!((names(&app), app.prompt.as_ref()), (vec!["app"], None));
    app.key(KeyPress::Escape);
    assert_eq!(names(&app).len(), 3);
    press(&mut app, "/nothing\n");
    assert!(draw(&mut app, 80, 10, false).iter().any(|line| line.contains("no job matches the filter")));
    // Nothing is selected, and nothing happens to it.
    assert_eq!(press(&mut app, "r"), Reaction::Nothing);
    assert_eq!(app.prompt, None);
    let all: Vec<Column> =
        std::iter::successors(Some(Column::None), |column| Some(column.next(false))).take(10).collect();
    assert_eq!((all[1], all[8], all[9]), (Column::Job, Column::Memory, Column::None));
    assert_eq!(Column::Job.next(true), Column::None);
}

#[test]
fn x12_a_request_is_made_after_a_question_only() {
    let mut app = app();
    let act = |action, signal: Option<&str>| {
        Reaction::Act(Act { job: "web".to_owned(), action, signal: signal.map(str::to_owned) })
    };
    assert_eq!(press(&mut app, "r"), Reaction::Nothing);
    assert!(draw(&mut app, 80, 10, false).last().unwrap().contains("restart web? y/n"));
    assert_eq!(press(&mut app, "n"), Reaction::Nothing);
    assert_eq!(app.prompt, None);
    assert_eq!(press(&mut app, "ry"), act("restart", None));
    assert_eq!(press(&mut app, "ty"), act("stop", None));
    assert_eq!(press(&mut app, "sY"), act("start", None));
    assert_eq!(press(&mut app, "khup\n"), act("signal", Some("HUP")));
    assert_eq!(press(&mut app, "k\n"), Reaction::Nothing);
    press(&mut app, "kterm");
    assert_eq!(app.prompt, Some(Prompt::Signal("web".to_owned(), "TERM".to_owned())));
    assert_eq!(app.key(KeyPress::Escape), Reaction::Nothing);
    assert_eq!(app.prompt, None);
    assert_eq!(press(&mut app, "q"), Reaction::Quit);
    assert_eq!(app.key(KeyPress::Interrupt), Reaction::Quit);
}

#[test]
fn x12_every_line_fits_every_terminal() {
    let mut jobs = three();
    jobs[0]["name"] = json!("漢字のとても長い名前を持つ仕事です漢字のとても長い名前を持つ仕事です");
    jobs[1]["name"] = json!("\u{1b}[31mred\u{202e}\u{7}\n\t");
    let mut app = App::default();
    app.update(&status(0, jobs));
    for pane in [false, true] {
        if pane {
            app.key(KeyPress::Enter);
            app.pane.as_mut().unwrap().lines =
                log_lines("\u{1b}[32mgreen\u{1b}[0m\ttext\u{7}\n漢字漢字漢字漢字漢字漢字");
        }
        for columns in 1..130 {
            for lines in 1..8 {
                let drawn = draw(&mut app, columns, lines, false);
                assert_eq!(drawn.len(), lines);
                for line in drawn {
                    let text = line.replace("\x1b[7m", "").replace("\x1b[0m", "");
                    assert!(width(&text) <= columns.max(2), "{columns}: {text}");
                    assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
                }
            }
        }
    }
    assert_eq!(log_lines("\u{1b}[1;32mgreen\u{1b}[0m\tx\u{1b}7")[0], "green    x\u{fffd}7");
}

#[test]
fn x12_a_narrow_terminal_keeps_name_and_state() {
    let mut app = app();
    let head = |app: &mut App, columns| {
        draw(app, columns, 8, false)[1].split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(head(&mut app, 120), "JOB STATE HEALTH RESTARTS PID UPTIME CPU MEMORY NOTE");
    assert_eq!(head(&mut app, 56), "JOB STATE HEALTH CPU MEMORY NOTE");
    assert_eq!(head(&mut app, 20), "JOB STATE");
}

#[test]
fn x12_a_log_is_followed_until_the_user_scrolls_back() {
    let mut app = app();
    assert_eq!(app.key(KeyPress::Enter), Reaction::Refresh);
    let pane = app.pane.as_mut().unwrap();
    assert_eq!(pane.kind, PaneKind::Logs("web".to_owned()));
    pane.lines = (0..50).map(|line| format!("line {line}")).collect();
    let drawn = draw(&mut app, 40, 12, false);
    assert_eq!((drawn[0].as_str(), drawn[10].as_str()), ("log of web, following", "line 49"));
    assert_eq!(app.key(KeyPress::PageUp), Reaction::Nothing);
    let drawn = draw(&mut app, 40, 12, false);
    assert_eq!((drawn[1].as_str(), drawn[10].as_str()), ("line 30", "line 39"));
    assert!(drawn[0].contains("not following"), "{drawn:?}");
    app.key(KeyPress::Home);
    assert_eq!(draw(&mut app, 40, 12, false)[1], "line 0");
    assert_eq!(app.key(KeyPress::End), Reaction::Refresh);
    assert_eq!(draw(&mut app, 40, 12, false)[10], "line 49");
    app.key(KeyPress::Char('q'));
    assert!(app.pane.is_none());
}

#[test]
fn x12_a_supervisor_that_is_gone_is_reported_and_the_table_stays() {
    let mut app = app();
    app.trouble = Some("no supervisor answers at /x".to_owned());
    let drawn = draw(&mut app, 80, 10, true);
    assert!(drawn[0].contains("\x1b[31mno supervisor answers at /x; trying again"), "{drawn:?}");
    assert!(drawn.iter().any(|line| line.contains("db")));
    app.update(&status(1, three()));
    assert!(draw(&mut app, 80, 10, true)[0].starts_with("containerpilot 4, pid 1, up "));
}
