//! What must hold in a version 2 file, said in its own words.

use crate::decode::{DecodeContext, Section, SectionInfo, Spanned};
use crate::diagnostics::Place;
use crate::fields::CoprocessFields;
use crate::legacy::fields::{
    BackendFields, LegacyFields, LegacyTelemetryFields, SensorFields, ServiceFields, TaskFields,
};
use crate::legacy::translate::tamed;
use crate::names::{is_service_name, service_name_rule};

/// The shortest time that can be asked for, in nanoseconds.
const SHORTEST: i64 = 1_000_000;

/// Checks what the table has read.
pub(crate) fn check(cx: &mut DecodeContext<'_>, fields: &LegacyFields, has_program: bool) {
    for one in fields.services.iter().flat_map(|given| &given.value) {
        service(cx, one);
    }
    for one in fields.backends.iter().flat_map(|given| &given.value) {
        backend(cx, one);
    }
    for one in fields.tasks.iter().flat_map(|given| &given.value) {
        task(cx, one);
    }
    for one in fields.coprocesses.iter().flat_map(|given| &given.value) {
        let at = At { info: &CoprocessFields::INFO, place: one.place };
        at.needs(cx, one.command.is_some(), "command");
    }
    if let Some(given) = &fields.telemetry {
        telemetry(cx, &given.value);
    }
    if let Some(given) = fields.post_stop.as_ref().filter(|_| !has_program) {
        let message = "`postStop` runs after the main program, and none is named here";
        let help = "name it behind the configuration: containerpilot -config FILE PROGRAM ARGS";
        cx.warn(given.key.span, message, help);
    }
}

fn service(cx: &mut DecodeContext<'_>, one: &ServiceFields) {
    let at = At { info: &ServiceFields::INFO, place: one.place };
    at.name(cx, one.name.as_ref(), true);
    at.needs(cx, one.port.is_some(), "port");
    at.time(cx, one.poll.as_ref(), "poll");
    at.time(cx, one.ttl.as_ref(), "ttl");
    if let (Some(ttl), Some(poll)) = (&one.ttl, &one.poll)
        && ttl.value > 0
        && ttl.value <= poll.value
    {
        let help = "otherwise the catalog takes the service for dead between two checks; two or three times as long \
                    is usual";
        cx.fault(ttl.place.span, "`ttl` must be longer than `poll`", help);
    }
}

fn backend(cx: &mut DecodeContext<'_>, one: &BackendFields) {
    let at = At { info: &BackendFields::INFO, place: one.place };
    at.name(cx, one.name.as_ref(), false);
    at.time(cx, one.poll.as_ref(), "poll");
    at.needs(cx, one.on_change.is_some(), "onChange");
    long_enough(cx, one.timeout.as_ref(), "timeout");
}

fn task(cx: &mut DecodeContext<'_>, one: &TaskFields) {
    let at = At { info: &TaskFields::INFO, place: one.place };
    at.needs(cx, one.command.is_some(), "command");
    at.time(cx, one.frequency.as_ref(), "frequency");
    long_enough(cx, one.timeout.as_ref(), "timeout");
}

fn telemetry(cx: &mut DecodeContext<'_>, fields: &LegacyTelemetryFields) {
    for one in fields.sensors.iter().flat_map(|given| &given.value) {
        let at = At { info: &SensorFields::INFO, place: one.place };
        at.needs(cx, one.name.as_ref().is_some_and(|given| !given.value.is_empty()), "name");
        at.needs(cx, one.kind.is_some(), "type");
        at.time(cx, one.poll.as_ref(), "poll");
        at.needs(cx, one.check.is_some(), "check");
    }
}

/// A section and where it stands.
#[derive(Clone, Copy)]
struct At {
    info: &'static SectionInfo,
    place: Place,
}

impl At {
    /// Says that a key is missing, unless a wrong one has been complained about already.
    fn needs(self, cx: &mut DecodeContext<'_>, there: bool, key: &str) {
        if !there && !cx.is_reported(self.place, key) {
            let (message, help) = self.info.missing(key);
            cx.error(self.place.first_byte().span, message, help);
        }
    }

    /// A time that must be there and long enough.
    fn time(self, cx: &mut DecodeContext<'_>, given: Option<&Spanned<i64>>, key: &str) {
        self.needs(cx, given.is_some(), key);
        long_enough(cx, given, key);
    }

    /// A name that can stand in the catalog (D9).
    fn name(self, cx: &mut DecodeContext<'_>, given: Option<&Spanned<String>>, of_ours: bool) {
        self.needs(cx, given.is_some(), "name");
        let Some(given) = given.filter(|given| !is_service_name(&given.value)) else { return };
        let message = format!("`{}` cannot be the name of a service", given.value);
        match tamed(&given.value).filter(|_| of_ours) {
            Some(tame) => {
                let help = format!("it is advertised as `{tame}`; version 2 refused such a name");
                cx.warn(given.place.span, message, help);
            }
            None => cx.error(given.place.span, message, service_name_rule(&given.value)),
        }
    }
}

/// Whatever comes more often than that would leave no time for anything else.
fn long_enough(cx: &mut DecodeContext<'_>, given: Option<&Spanned<i64>>, key: &str) {
    if let Some(given) = given.filter(|given| given.value < SHORTEST) {
        cx.error(
            given.place.span,
            format!("`{key}` must be at least 1ms"),
            "write for example 5 or \"500ms\"",
        );
    }
}
