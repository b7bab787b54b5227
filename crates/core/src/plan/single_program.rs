//! The plan of a program on the command line (S7).
//!
//! Most containers that use it have nothing else to run and start often, so its job is built here instead of being
//! written as a configuration and parsed. A test of the binary compares this job with the one that a file gives.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::{
    Backoff, Catalog, Command, Control, EventPattern, Format, Job, Level, Logging, OnCompletion, Output,
    Plan, Process, Repeat, Restarts, Role, Signal, Stop, Trigger, When,
};
use crate::event::{Code, Source};

impl Job {
    /// The job of the program on the command line: it runs once, and the container ends with it.
    #[must_use]
    pub fn main(program: String, arguments: Vec<String>) -> Self {
        let event = EventPattern { source: Source::Global, code: Code::Startup };
        Self {
            name: program.clone(),
            role: Role::Main,
            exec: Some(Command { program, arguments }),
            when: When { trigger: Trigger::Event { event, repeat: Repeat::Once }, timeout: None },
            timeout: None,
            restarts: Restarts::Limited(0),
            backoff: Some(Backoff::DEFAULT),
            stop: Stop { signal: Signal::TERM, hook_timeout: None, drain: Duration::ZERO },
            on_failure: OnCompletion::Shutdown,
            on_success: OnCompletion::Shutdown,
            health: None,
            service: None,
            process: Process::default(),
            raw_output: false,
        }
    }
}

impl Plan {
    /// The plan of a program without a configuration: the program writes to the supervisor's own streams, the log goes
    /// to stderr, and every signal is forwarded.
    #[must_use]
    pub fn single_program(program: String, arguments: Vec<String>) -> Self {
        Self {
            jobs: vec![Job { raw_output: true, ..Job::main(program, arguments) }],
            watches: Vec::new(),
            catalog: Catalog::Embedded,
            control: Control {
                socket: "/var/run/containerpilot.socket".into(),
                required: false,
                mode: 0o600,
                group: None,
            },
            logging: Logging { level: Level::Warn, format: Format::Default, output: Output::Stderr },
            telemetry: None,
            stop_timeout: Duration::from_secs(5),
            pass_signals: true,
            toggle_maintenance: false,
        }
    }
}
