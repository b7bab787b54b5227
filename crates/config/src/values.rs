//! The value types: one decoder for each type in the table of fields.

mod account;
mod address;
mod capabilities;
pub(crate) mod command;
mod cron;
mod env_file;
mod event;
mod http;
mod keyword;
mod list;
mod log_output;
mod mode;
mod number;
mod object;
mod ports;
mod resource_limits;
mod restarts;
mod secrets;
mod signal;
mod size;
mod text;
mod time;

pub use account::Account;
pub use address::{TaggedAddresses, TcpAddress};
pub use capabilities::CapabilityNames;
pub use command::Exec;
pub(crate) use command::{listed_words, variables_in};
pub use cron::{CronText, Schedule};
pub use env_file::EnvFiles;
pub use event::{EVENT_NAMES, Event, EventName, EventOrBool, EventOrFlag};
pub use http::{CollectorUrl, Headers, HttpStatuses, HttpUrl, UrlOr, UrlOrObject};
pub(crate) use http::{collector, parse_url};
pub(crate) use keyword::keyword;
pub use keyword::{Keyword, Maintenance, MetricType, OneOf, Queue, Scheme, UncheckedOneOf, listed};
pub use list::{Interfaces, Numbers, SpannedWords, TextMap, Variables, Words};
pub use log_output::LogOutput;
pub use mode::Mode;
pub use number::{Port, Whole, parse_whole};
pub use object::{
    DurationOrObject, Either, ListOf, Object, ObjectOrBool, ObjectOrManual, ObjectOrText, OneOrMany, Several,
    TextsOrObjects, TimeOr,
};
pub use ports::Ports;
pub use resource_limits::{Limits, RESOURCES};
pub use restarts::RestartLimit;
pub use secrets::Secrets;
pub use signal::{ExitStatuses, SignalName, SignalNames, StopEscalation, StopSignals, nearest_signal};
pub use size::Size;
pub use text::{Flag, Text, TextOrUnset, parse_bool};
pub use time::{
    DurationOrNever, DurationText, DurationWithUnit, Seconds, SecondsOrUnset, TimeLimit, Timestamp,
    to_duration,
};

use crate::decode::Spanned;

/// The value of a field without its place.
pub fn value_of<T: Clone>(given: &Option<Spanned<T>>) -> Option<T> {
    given.as_ref().map(|given| given.value.clone())
}
