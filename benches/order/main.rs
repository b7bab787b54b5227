//! Finds out which functions and constants are used together, and writes them down for the linker: `make order`.
//!
//! The release binary is run step by step, instruction by instruction, through what it does in most containers: a program
//! started and ended, signals passed on, services started, checked, restarted and stopped, their lines written in each
//! form, a question of a health check answered. What is used last before everything rests comes first in `link-order.txt`
//! (functions) and `link-order.ld` (constants), then what passes a signal on, then what else is used once everything has been
//! started, then what only a start needs. Each lies together in the binary then, see `build.rs`. It takes a few minutes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "it stops at what it does not expect, like a benchmark"
)]

mod map;
mod stepper;
mod touched;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::map::{HOT, Map, Things};
use crate::stepper::{Phase, Scene, Seen, Step, Used};

/// For the linker: the functions, one in a line, and a script that puts constants together.
const ORDER: &str = "link-order.txt";
const CONSTANTS: &str = "link-order.ld";

/// What passes a signal on is fetched together, as it lies behind this function (`src/sys/urgent.rs`): without those that are so
/// large that most of what would be fetched were not needed.
const FIRST: &str = "3sys11read_signal";
const LARGE: u64 = 4096;

fn main() {
    // `cargo bench` and `cargo test` call every such program; this one is for whoever asks for it by name.
    // And it must be told the binary: the one that is built for it has other names, because more is built with it.
    let mut words = std::env::args().skip_while(|word| word != "write");
    let (Some(_), Some(binary)) = (words.next(), words.next()) else {
        println!("order: nothing is done without `write BINARY`");
        return;
    };
    touched::check();
    let binary = Path::new(&binary);
    let map = Map::read(binary);
    let folder = tempfile();
    let mut seen = Seen::default();
    for scene in scenes(&folder, binary) {
        eprintln!("order: {}", scene.words.join(" "));
        stepper::run(binary, &scene, &map, &mut seen);
    }
    std::fs::remove_dir_all(&folder).unwrap();

    let functions = ordered("functions", &seen.functions, &map.functions);
    write(ORDER, &(functions.join("\n") + "\n"));
    let constants = ordered("constants", &seen.constants, &map.constants);
    // Words have no sections of their own; they are wanted as often as the rest, and lie together anyway.
    let words = [".rodata.str1.1"];
    let lines: String = constants.iter().chain(&words).map(|name| format!("    *({name})\n")).collect();
    write(CONSTANTS, &format!("SECTIONS {{\n  {HOT} : {{\n{lines}  }}\n}}\nINSERT AFTER .rela.dyn;\n"));
    eprintln!("order: now build again");
}

/// What was used, by its names: first what is used at rest, last what only a start needs. What is large comes behind what passes
/// a signal on, and so does not stand between.
fn ordered<'a>(what: &str, used: &Used, things: &'a Things) -> Vec<&'a str> {
    let (mut names, mut large) = (Vec::new(), Vec::new());
    let mut known = HashSet::new();
    for phase in [Phase::Resting, Phase::Urgent, Phase::Waiting, Phase::Lasting, Phase::Starting] {
        let mut of_phase: Vec<&str> =
            used.names(things, phase).into_iter().filter(|name| known.insert(*name)).collect();
        if matches!(phase, Phase::Resting | Phase::Urgent) {
            large.extend(of_phase.extract_if(.., |name| things.brought(name) > LARGE));
            of_phase.sort_by_key(|name| !name.contains(FIRST));
        }
        let size: u64 = of_phase.iter().map(|name| things.size(name)).sum();
        eprintln!("order: {phase:?}: {} {what}, {} KiB", of_phase.len(), size / 1024);
        names.extend(of_phase);
        if phase == Phase::Urgent {
            let large_size: u64 = large.iter().map(|name| things.size(name)).sum();
            eprintln!("order: and {} that are large, {} KiB", large.len(), large_size / 1024);
            names.append(&mut large);
        }
    }
    names
}

fn write(name: &str, text: &str) {
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(name), text).unwrap();
}

fn tempfile() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("containerpilot-order-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// What is run, and what happens to it.
fn scenes(folder: &Path, binary: &Path) -> Vec<Scene> {
    let program = |words: &[&str]| -> Vec<String> {
        ["--"].iter().chain(words).map(|word| (*word).to_owned()).collect()
    };
    let file = |name: &str, logging: &str, jobs: &str| -> Vec<String> {
        let path = folder.join(format!("{name}.json5"));
        let socket = folder.join(format!("{name}.socket")).display().to_string();
        let text =
            format!("{{ control: {{ socket: '{socket}' }}, logging: {{ {logging} }}, jobs: [{jobs}] }}");
        std::fs::write(&path, text).unwrap();
        vec!["-config".to_owned(), path.display().to_string()]
    };
    let term = Step { quiet: 1, signal: Signal::SIGTERM };
    let served = "{ name: 'app', exec: ['sleep', '1000'], health: { exec: 'true', interval: 3, ttl: 9 } },
        { name: 'again', exec: ['sh', '-c', 'echo one; echo two >&2; exit 1'], restarts: 3 },
        { name: 'then', exec: 'true', when: { source: 'app', once: 'healthy' } },
        { name: 'now and then', exec: ['echo', 'a line'], when: { interval: '4s' } }";
    let socket = folder.join("asked.socket").display().to_string();
    let asked = format!(
        "{{ name: 'app', exec: ['sleep', '1000'] }}, {{ name: 'asks', exec: ['{}', 'health', '-socket', '{socket}'], \
         when: {{ interval: '4s' }}, logging: {{ raw: true }} }}",
        binary.display()
    );
    let later = Step { quiet: 8, signal: Signal::SIGTERM };
    let much_later = Step { quiet: 40, signal: Signal::SIGTERM };
    let scene = |words, steps: &[Step], calm| Scene { words, steps: steps.to_vec(), calm };
    vec![
        scene(program(&["sleep", "1000"]), &[term], true),
        scene(program(&["true"]), &[], true),
        scene(file("one", "", "{ name: 'app', exec: ['sleep', '1000'] }"), &[term], true),
        scene(file("some", "", served), &[later], false),
        scene(file("json", "format: 'json'", served), &[later], false),
        scene(file("asked", "", &asked), &[much_later], false),
    ]
}

/// How long nothing may happen before that counts as quiet.
const QUIET: Duration = Duration::from_millis(300);
/// How long that is waited for: on a busy machine there is always something.
const PATIENCE: Duration = Duration::from_secs(20);
