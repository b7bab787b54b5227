//! The plan of a program on the command line (S7).
//!
//! Most containers that use it have nothing else to run and start often, so its job is built here instead of being
//! written as a configuration and parsed. A test of the binary compares this job with the one that a file gives.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::{
    Backoff, Catalog, Command, Control, DEFAULT_STOP_ON, Exec, Format, Job, JobOutput, Level, Logging,
    OnCompletion, Output, Plan, Process, Record, RestartOn, Restarts, Role, Stop, When, Word,
};

impl Job {
    /// The job of the program on the command line: it runs once, and the container ends with it.
    #[must_use]
    pub fn main(program: Word, arguments: Vec<Word>) -> Self {
        Self {
            name: program.text().into_owned(),
            role: Role::Main,
            groups: Vec::new(),
            exec: Exec::Program(Command { program, arguments }),
            when: When::at_startup(),
            requires: Vec::new(),
            stop_after: Vec::new(),
            timeout: None,
            restarts: Restarts::Limited(0),
            restart_on: RestartOn::Exit,
            success_codes: Vec::new(),
            start_limit: None,
            backoff: Some(Backoff::DEFAULT),
            stop: Stop::DEFAULT,
            on_failure: OnCompletion::Shutdown,
            on_success: OnCompletion::Shutdown,
            ready: None,
            health: None,
            service: None,
            process: Process::default(),
            output: JobOutput::default(),
            replica: None,
        }
    }
}

impl Plan {
    /// The plan of a program without a configuration: the program writes to the supervisor's own streams, the log goes
    /// to stderr, and every signal is forwarded.
    #[must_use]
    pub fn single_program(program: Word, arguments: Vec<Word>) -> Self {
        Self {
            jobs: vec![Job { output: JobOutput::Raw, ..Job::main(program, arguments) }],
            replicas: Vec::new(),
            watches: Vec::new(),
            files: Vec::new(),
            locks: Vec::new(),
            catalog: Catalog::Embedded,
            control: Control {
                socket: "/var/run/containerpilot.socket".into(),
                required: false,
                mode: 0o600,
                group: None,
            },
            logging: Logging { level: Level::Warn, format: Format::Default, output: Output::Stderr },
            telemetry: None,
            // No command can ask for a recording.
            record: Record { memory: 0, file: None },
            otlp: None,
            stop_timeout: Duration::from_secs(5),
            process: Process::default(),
            stop_on: DEFAULT_STOP_ON.into(),
            pass_signals: true,
            legacy_maintenance: false,
        }
    }
}
