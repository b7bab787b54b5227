//! The value types: one decoder for each type in the table of fields.

mod address;
mod choice;
mod command;
mod event;
mod list;
mod number;
mod object;
mod process;
mod text;
mod time;

pub use address::{HttpUrl, TcpAddress};
pub use choice::{Choice, LogOutput, MetricType, OneOf, Scheme, listed};
pub use command::Exec;
pub use event::{EVENT_NAMES, Event, EventName, EventOrBool, EventOrFlag};
pub use list::{Interfaces, Numbers, TextMap, Words};
pub use number::{Port, Whole, parse_whole};
pub use object::{Either, ListOf, Object, ObjectOrFalse, ObjectOrText, OneOrMany, Several};
pub use process::{Account, Limits, Mode, RESOURCES, RestartLimit, SignalName};
pub use text::{Flag, Text, TextOrUnset, parse_bool};
pub use time::{
    DurationOrNever, DurationText, DurationWithUnit, Seconds, SecondsOrUnset, TimeLimit, to_duration,
};

use crate::decode::Spanned;

/// The value of a field without its place.
pub fn value_of<T: Clone>(given: &Option<Spanned<T>>) -> Option<T> {
    given.as_ref().map(|given| given.value.clone())
}
