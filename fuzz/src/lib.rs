//! What is fuzzed: every reader of bytes that come from outside, each as a function that panics if something is wrong.
//!
//! `make fuzz` feeds them with made-up bytes (`fuzz_targets/`, which needs a nightly compiler); `tests/outside.rs` feeds
//! them with the files of `corpus/` at every `make test`. The program is a binary without a library, so its readers
//! are taken from its source, file by file: that is why they stand in rooms without windows.

mod decode;
mod json5;
mod lines;
mod migrate;
mod scenario;
mod template;

/// The rooms of the binary that are needed, as they are; beside each stands what is asked of it.
#[path = "../../src"]
#[expect(dead_code, unused_imports, reason = "only the readers are used")]
mod binary {
    pub(crate) mod users;
    pub(crate) mod cli {
        #[path = "../../fuzz/src/arguments.rs"]
        pub(crate) mod arguments;
        mod flags;
        mod table;
        pub(crate) mod client {
            #[path = "../../../fuzz/src/answers.rs"]
            pub(crate) mod answers;
            mod http;
            mod messages;
        }
    }
    pub(crate) mod control {
        mod bodies;
        #[path = "../../fuzz/src/requests.rs"]
        pub(crate) mod requests;
        mod routes;
    }
    pub(crate) mod discovery {
        #[path = "../../fuzz/src/consul.rs"]
        pub(crate) mod consul;
        mod wire;
    }
    pub(crate) mod net {
        #[path = "../../fuzz/src/heads.rs"]
        pub(crate) mod heads;
        pub(crate) mod http;
    }
    pub(crate) mod probe {
        mod answer;
        #[path = "../../fuzz/src/status.rs"]
        pub(crate) mod status;
    }
    pub(crate) mod resolve {
        mod hosts;
        mod message;
        #[path = "../../fuzz/src/names.rs"]
        pub(crate) mod names;
        mod settings;
    }
    pub(crate) mod telemetry {
        mod exposition;
        mod quantile;
        mod store;
        mod summary;
        #[path = "../../fuzz/src/values.rs"]
        pub(crate) mod values;
    }
    #[path = "../fuzz/src/accounts.rs"]
    pub(crate) mod accounts;
}

/// A target's name, and what it does with any bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 15] = [
    ("accounts", binary::accounts::run),
    ("answers", binary::cli::client::answers::run),
    ("arguments", binary::cli::arguments::run),
    ("consul", binary::discovery::consul::run),
    ("decode", decode::run),
    ("heads", binary::net::heads::run),
    ("json5", json5::run),
    ("lines", lines::run),
    ("migrate", migrate::run),
    ("names", binary::resolve::names::run),
    ("requests", binary::control::requests::run),
    ("scenario", scenario::run),
    ("status", binary::probe::status::run),
    ("template", template::run),
    ("values", binary::telemetry::values::run),
];

/// Runs a target, by its name.
///
/// # Panics
/// If there is something wrong with the reader; or no such target.
pub fn run(name: &str, bytes: &[u8]) {
    match TARGETS.iter().find(|(target, _)| *target == name) {
        Some((_, target)) => target(bytes),
        None => panic!("there is no target `{name}`"),
    }
}
