//! Compose files beside the original (C11): the programs of the services record what happens to them, once in the containers that
//! `docker-compose` starts and once as the jobs of one container, with the converted file. Both records must agree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::engine::{Container, busybox, folder, new_name, wait_until};
use crate::docker::docker_compose::docker_compose;
use crate::support::deadline::InTime;
use crate::support::program::containerpilot;

/// What every service runs.
const PROGRAM: &str = include_str!("../programs/compose-service.sh");

/// A folder with the program and a Compose file, whose services get their image and volume.
fn project(services: &str) -> PathBuf {
    let folder = folder("compose");
    fs::write(folder.join("run.sh"), PROGRAM).unwrap();
    let services = services.replace("BASE", &format!("image: {}, volumes: ['.:/record']", busybox()));
    fs::write(folder.join("compose.yaml"), format!("services:\n{services}")).unwrap();
    forget(&folder);
    folder
}

/// Removes what the programs have recorded.
fn forget(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("runs-") {
            fs::remove_file(path).unwrap();
        }
    }
    fs::write(folder.join("record"), "").unwrap();
}

fn record(folder: &Path) -> Vec<String> {
    fs::read_to_string(folder.join("record")).unwrap().lines().map(str::to_owned).collect()
}

/// The records of both, each from the start until `lines` lines are recorded and all programs are stopped.
fn both(services: &str, lines: usize) -> (Vec<String>, Vec<String>) {
    let folder = project(services);
    let name = new_name("compose");
    let compose = |words: &[&str]| {
        let mut command = docker_compose();
        command.current_dir(&folder).args(["--project-name", &name, "--file", "compose.yaml"]).args(words);
        let output = command.stdin(Stdio::null()).output_in_time().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docker-compose {}:\n{stderr}", words.join(" "));
    };
    compose(&["up", "--detach"]);
    wait_until("the services have started", || record(&folder).len() >= lines);
    compose(&["stop"]);
    let original = record(&folder);
    compose(&["down"]);

    forget(&folder);
    let mut migrate = Command::new(containerpilot());
    let migrated = migrate
        .args(["migrate", "-from", "compose", "compose.yaml"])
        .current_dir(&folder)
        .output_in_time()
        .unwrap();
    assert_eq!(migrated.status.code(), Some(3), "the images and volumes are left out");
    let config = String::from_utf8(migrated.stdout).unwrap();
    let volume = format!("{}:/record", folder.display());
    let container = Container::start(&config, &["--volume", &volume], busybox());
    wait_until("the jobs have started", || record(&folder).len() >= lines);
    container.stop(30);
    let converted = record(&folder);
    drop(container);
    fs::remove_dir_all(&folder).unwrap();
    (original, converted)
}

#[test]
fn c11_services_start_and_stop_in_the_order_of_docker_compose() {
    let (original, converted) = both(
        r#"
  web:
    { BASE, entrypoint: [sh, /record/run.sh], command: [web],
      depends_on: { db: { condition: service_healthy }, migrate: { condition: service_completed_successfully } } }
  migrate: { BASE, entrypoint: [sh, /record/run.sh, migrate, "0"], depends_on: { db: { condition: service_healthy } } }
  db:
    { BASE, entrypoint: sh /record/run.sh db,
      healthcheck: { test: [CMD, test, -e, /record/runs-db], interval: 1s, retries: 10 } }
"#,
        4,
    );
    let expected = [
        "started db",
        "started migrate",
        "exits migrate 0",
        "started web",
        "stopped web by TERM",
        "stopped db by TERM",
    ];
    assert_eq!(original, expected);
    assert_eq!(converted, expected);
}

#[test]
fn c11_services_are_restarted_as_by_docker_compose() {
    let (original, converted) = both(
        r#"
  limited: { BASE, entrypoint: [sh, /record/run.sh, limited, "1", "1", "1", "1"], restart: "on-failure:2" }
  succeeds: { BASE, entrypoint: [sh, /record/run.sh, succeeds, "1", "0", "0"], restart: on-failure }
  once: { BASE, entrypoint: [sh, /record/run.sh, once, "3", "3"] }
  always: { BASE, entrypoint: [sh, /record/run.sh, always, "0", "3"], restart: always }
"#,
        6 + 4 + 2 + 5,
    );
    let of = |record: &[String], service: &str| -> Vec<String> {
        record.iter().filter(|line| line.contains(service)).cloned().collect()
    };
    for service in ["limited", "succeeds", "once", "always"] {
        assert_eq!(of(&original, service), of(&converted, service), "{service}");
    }
    assert_eq!(original.len(), 6 + 4 + 2 + 6, "{original:?}");
}

#[test]
fn c11_services_get_the_signals_and_times_of_docker_compose() {
    let (original, converted) = both(
        r#"
  first: { BASE, entrypoint: [sh, /record/run.sh, first], stop_signal: SIGINT }
  stubborn:
    { BASE, entrypoint: [sh, -c, "trap '' TERM; echo started stubborn >> /record/record; while :; do sleep 0.1; done"],
      stop_grace_period: 1s, depends_on: [first] }
  last: { BASE, entrypoint: [sh, /record/run.sh, last], depends_on: [stubborn] }
"#,
        3,
    );
    let stops = |record: &[String]| {
        record.iter().filter(|line| line.starts_with("stopped")).cloned().collect::<Vec<_>>()
    };
    let expected = ["stopped last by TERM", "stopped first by INT"];
    assert_eq!(stops(&original), expected);
    assert_eq!(stops(&converted), expected);
}
