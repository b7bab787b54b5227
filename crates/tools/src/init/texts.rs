//! The texts of the files that `init` writes.

use std::fmt::Write;
use std::time::Duration;

use containerpilot_config::json5::write::{Layout, Row, comment, quoted};
use containerpilot_import::document::{Document, Value};

use super::wanted::{CONFIG, DOCKERFILE, Health, SCENARIO, Times, Wanted};

/// Where the socket is if the supervisor is not root: `/var/run` belongs to root.
const SOCKET: &str = "/tmp/containerpilot.socket";

pub(super) struct Texts {
    pub(super) config: String,
    pub(super) dockerfile: String,
    pub(super) scenario: String,
}

/// The names of the jobs.
struct Names {
    setup: String,
    program: String,
    beside: String,
}

pub(super) fn texts(wanted: &Wanted) -> Texts {
    let mut document = Document::default();
    let setup = document.free_name("setup");
    let program = document.free_name(job_name(&wanted.program));
    let beside = document.free_name(wanted.beside.as_deref().map_or("beside", job_name));
    let names = Names { setup, program, beside };
    Texts {
        config: config(wanted, &names),
        dockerfile: dockerfile(wanted),
        scenario: scenario(wanted, &names),
    }
}

/// The name of a program without its folder and the ending of a script.
fn job_name(words: &[String]) -> &str {
    let program = words.first().map(String::as_str).unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or(program);
    match name.strip_suffix(".sh").unwrap_or(name) {
        "" | "sh" | "bash" | "ash" | "dash" | "env" => "app",
        name => name,
    }
}

fn text(value: &str) -> Layout {
    Layout::Atom(quoted(value))
}

fn time(value: Duration) -> Layout {
    match Value::from(value) {
        Value::Text(written) => text(&written),
        _ => text(""),
    }
}

fn command(words: &[String]) -> Layout {
    Layout::List(words.iter().map(|word| Row::item(text(word))).collect())
}

fn commented(comments: &[String], key: &str, value: Layout) -> Row {
    Row { comments: comments.to_vec(), ..Row::member(key, value) }
}

fn one(comment: &str) -> Vec<String> {
    vec![comment.to_owned()]
}

fn config(wanted: &Wanted, names: &Names) -> String {
    let mut out = format!(
        "// What runs in this container. Made by `containerpilot-tools init`: change it as you like.\n\
         //\n\
         // What is wrong with it, and what it does:  containerpilot check {CONFIG}\n\
         // Every key, with its default:              containerpilot help reference\n"
    );
    let image = wanted.image.as_ref();
    let notes = image.map(|image| image.notes.as_slice()).unwrap_or_default();
    if !notes.is_empty() {
        out.push_str("//\n// Look at this:\n");
    }
    for note in notes {
        let _ = writeln!(out, "// - {}", comment(note));
    }
    let mut top = Vec::new();
    if image.is_some_and(|image| image.unprivileged) {
        let why = [
            "The supervisor is not root, so it cannot write to /var/run, where the socket is by default.",
            "The folder of this path must exist in the image, and the user must be able to write it.",
        ];
        let socket = Layout::Object(vec![Row::member("socket", text(SOCKET))]);
        top.push(commented(&why.map(str::to_owned), "control", socket));
    }
    let mut jobs = Vec::new();
    if let Some(setup) = &wanted.setup {
        let members = vec![
            commented(&one("Runs once, at the start, because it has no `when`."), "name", text(&names.setup)),
            Row::member("exec", command(setup)),
            commented(
                &one("Without the setup nothing can run: the container exits if it fails."),
                "onFailure",
                text("shutdown"),
            ),
        ];
        jobs.push(members);
    }
    jobs.push(program(wanted, names));
    if let Some(beside) = &wanted.beside {
        let mut members = vec![
            commented(
                &one(&format!(
                    "Runs beside the others. With `requires: [{}]` it starts after that job, and stops before it.",
                    quoted(&names.program)
                )),
                "name",
                text(&names.beside),
            ),
            Row::member("exec", command(beside)),
        ];
        members.extend(after_setup(wanted, names));
        members.push(Row::member("restarts", text("unlimited")));
        jobs.push(members);
    }
    let jobs = jobs.into_iter().map(|members| Row::item(Layout::Object(members).broken())).collect();
    top.push(Row::member("jobs", Layout::List(jobs).broken()));
    out + &Layout::file(top)
}

/// The job of the program.
fn program(wanted: &Wanted, names: &Names) -> Vec<Row> {
    let image = wanted.image.as_ref();
    let mut comments = one("The program. Its variables and its folder are those of the image.");
    comments.extend(image.map(|image| image.program_from.clone()).unwrap_or_default());
    let mut members = vec![
        commented(&comments, "name", text(&names.program)),
        Row::member("exec", command(&wanted.program)),
    ];
    members.extend(after_setup(wanted, names));
    if let Some(check) = &wanted.health {
        let mut comments = image.and_then(|image| image.health_from.clone()).into_iter().collect::<Vec<_>>();
        comments.extend(match check {
            Health::Tcp(_) => {
                one("It is healthy if this port accepts a connection. An `http` check says more.")
            }
            Health::Http(..) => one("It is healthy if this responds with status 2xx or 3xx."),
            Health::Exec(..) => {
                one("It is healthy if this exits with 0. `http` and `tcp` checks need no program.")
            }
        });
        members.push(commented(&comments, "health", health(check)));
    }
    if let Some((signal, line)) = image.and_then(|image| image.stop_signal.as_ref()) {
        members.push(commented(&one(line), "stopSignal", text(signal)));
    }
    let why = "It is restarted whenever it exits. Without this line, the container exits with it.";
    members.push(commented(&one(why), "restarts", text("unlimited")));
    members
}

fn after_setup(wanted: &Wanted, names: &Names) -> Option<Row> {
    wanted.setup.as_ref()?;
    let members = vec![Row::member("source", text(&names.setup)), Row::member("once", text("exitSuccess"))];
    Some(Row::member("when", Layout::Object(members)))
}

fn health(check: &Health) -> Layout {
    let default = Times { interval: Some(Duration::from_secs(10)), ..Times::default() };
    let (probe, times) = match check {
        Health::Tcp(port) => (Row::member("tcp", text(&format!("localhost:{port}"))), &default),
        Health::Http(port, path) => {
            (Row::member("http", text(&format!("http://localhost:{port}{path}"))), &default)
        }
        Health::Exec(words, times) if *times == Times::default() => {
            (Row::member("exec", command(words)), &default)
        }
        Health::Exec(words, times) => (Row::member("exec", command(words)), times),
    };
    let mut members = vec![probe];
    let times_of =
        [("interval", times.interval), ("timeout", times.timeout), ("startPeriod", times.start_period)];
    members.extend(times_of.into_iter().filter_map(|(key, value)| Some(Row::member(key, time(value?)))));
    members.extend(times.failures.map(|count| Row::member("failures", Layout::Atom(count.to_string()))));
    Layout::Object(members)
}

fn dockerfile(wanted: &Wanted) -> String {
    let image = wanted.image.as_ref();
    let what = image.map_or("your Dockerfile", |image| image.path.as_str());
    let mut out = format!(
        "# Adds containerpilot to an image. Made by `containerpilot-tools init`. Build it on top of your image,\n\
         # in this folder:\n\
         #\n\
         #   docker build -t app-with-containerpilot --build-arg IMAGE=app -f {DOCKERFILE} .\n\
         #\n\
         # or copy the lines after FROM to the end of {}.\n\
         # `containerpilot help container` says how to build the image `containerpilot`, from which the program is copied.\n\
         ARG IMAGE=app\n\
         FROM ${{IMAGE}}\n\
         COPY --from=containerpilot /bin/containerpilot /bin/containerpilot\n\
         COPY {CONFIG} /etc/containerpilot.json5\n",
        line(what)
    );
    if let Some((user, from)) = image.and_then(|image| image.user.as_ref()) {
        let _ = writeln!(
            out,
            "# {}: containerpilot and its jobs run as this user.\nUSER {}",
            line(from),
            line(user)
        );
    }
    if let Some((_, from)) = image.and_then(|image| image.stop_signal.as_ref()) {
        let _ = writeln!(
            out,
            "# {}: the job gets this signal as its `stopSignal`. containerpilot itself:\nSTOPSIGNAL SIGTERM",
            line(from)
        );
    }
    if wanted.health.is_some() {
        out.push_str(
            "HEALTHCHECK --interval=10s --start-period=30s CMD [\"/bin/containerpilot\", \"health\"]\n",
        );
    }
    out.push_str("ENTRYPOINT [\"/bin/containerpilot\"]\n");
    if image.is_some_and(|image| image.has_cmd) {
        out.push_str("# The words of a CMD would be arguments of containerpilot.\nCMD []\n");
    }
    out
}

/// A text on one line.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn scenario(wanted: &Wanted, names: &Names) -> String {
    let Names { setup, program, .. } = names;
    let mut out = format!(
        "// What may happen to {CONFIG}, and what is expected then. Nothing is started, and no time passes:\n\
         //\n\
         //   containerpilot simulate {CONFIG} {SCENARIO}\n\
         //\n\
         // `containerpilot help scenario` lists every key. Change a line, and see what it changes.\n"
    );
    let row = |members: Vec<(&str, Layout)>| {
        Row::item(Layout::Object(members.into_iter().map(|(key, value)| Row::member(key, value)).collect()))
    };
    let mut jobs = Vec::new();
    if wanted.setup.is_some() {
        let runs = Layout::Object(vec![Row::member("lasts", text("3s"))]);
        jobs.push(Row {
            comments: one("The setup takes a while."),
            ..row(vec![("name", text(setup)), ("runs", runs)])
        });
    }
    let crash = [("lasts", text("20s")), ("exit", Layout::Atom("1".to_owned()))];
    let healthy = wanted.health.as_ref().map(|_| ("healthyAfter", text("2s")));
    let runs = Layout::List(vec![
        row(healthy.clone().into_iter().chain(crash).collect()),
        row(healthy.clone().into_iter().collect()),
    ]);
    jobs.push(Row {
        comments: one("The first run of the program fails after 20 s."),
        ..row(vec![("name", text(program)), ("runs", runs)])
    });
    let happens = vec![Row {
        comments: one("`docker stop`"),
        ..row(vec![("at", text("1m")), ("signal", text("SIGTERM"))])
    }];
    let see = |moment: String| ("see", text(&moment));
    let mut expect = Vec::new();
    if wanted.setup.is_some() {
        let members =
            vec![see(format!("{program} starts")), ("after", text(&format!("{setup} exitSuccess")))];
        expect.push(row(members));
    }
    if wanted.health.is_some() {
        expect.push(row(vec![see(format!("{program} healthy")), ("before", text("15s"))]));
    }
    expect.push(Row {
        comments: one("It is started again."),
        ..row(vec![
            see(format!("{program} starts")),
            ("within", text("5s")),
            ("of", text(&format!("{program} exitFailed"))),
            ("before", text("shutdown")),
        ])
    });
    expect.push(Row {
        comments: one("Docker waits 10 s, then it kills the container."),
        ..row(vec![see("exit".to_owned()), ("within", text("10s")), ("of", text("shutdown"))])
    });
    expect.push(row(vec![("exit", Layout::Atom("0".to_owned()))]));
    let list = |rows| Layout::List(rows).broken();
    out.push_str(&Layout::file(vec![
        Row::member("jobs", list(jobs)),
        Row::member("happens", list(happens)),
        Row::member("expect", list(expect)),
    ]));
    out
}
