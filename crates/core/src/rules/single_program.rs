//! The program of the command line, as a job (S7).
//!
//! Most containers that use it have nothing else to do, and start a hundred times a day: its job is made here, and not
//! written as a configuration to be read. The configuration's defaults are the law all the same; a test of the program
//! holds this job against the one that a file would give.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::event::{Code, Source};
use crate::plan::{
    AtEnd, Backoff, Catalog, Command, Control, EventPattern, Format, Job, Level, Logging, Output, Plan,
    Process, Repeat, Restarts, Role, Signal, Stop, Trigger, When,
};

impl Job {
    /// The job of the command line's program: it runs once, and with its end everything ends.
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
            backoff: Some(Backoff::USUAL),
            stop: Stop { signal: Signal::TERM, timeout: None, drain: Duration::ZERO },
            on_failure: AtEnd::Shutdown,
            on_success: AtEnd::Shutdown,
            health: None,
            service: None,
            process: Process::default(),
            raw_output: false,
        }
    }
}

impl Plan {
    /// The plan of a program without a configuration: it has our streams for itself, what we have to say stays out of
    /// its output, and every signal goes on to it.
    #[must_use]
    pub fn solo(program: String, arguments: Vec<String>) -> Self {
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
