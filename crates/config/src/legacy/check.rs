//! Checks a version 2 file, with messages about its own keys.

use crate::decode::{DecodeContext, Section, SectionInfo, Spanned};
use crate::diagnostics::Place;
use crate::fields::CoprocessFields;
use crate::json5::Member;
use crate::legacy::fields::{
    BackendFields, LegacyFields, LegacyServiceFields, LegacyTelemetryFields, SensorFields, TaskFields,
};
use crate::legacy::translate::with_dashes;
use crate::limits::SHORTEST_TIME;
use crate::service_name::{is_service_name, service_name_rule};
use crate::validate::ttl_too_short;

/// Checks the decoded fields.
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
        let message = "`postStop` runs after the main program, but there is none";
        let help = "add it on the command line: containerpilot -config FILE PROGRAM ARGS";
        cx.warn(given.key.span, message, help);
    }
}

/// Replaces `onStart`, the old name of `preStart`, which wins.
pub(crate) fn replace_on_start(
    cx: &mut DecodeContext<'_>,
    members: &mut Vec<Member>,
    fields: &mut LegacyFields,
) {
    let Some(given) = fields.on_start.take() else { return };
    let help = "`onStart` is the old name of `preStart`";
    if fields.pre_start.is_some() {
        cx.warn(given.key.span, "`onStart` is ignored, because there is a `preStart`", help);
        return members.retain(|member| member.key != "onStart");
    }
    cx.warn(given.key.span, "`onStart` runs as `preStart`", help);
    fields.pre_start = Some(given);
    members.retain(|member| member.key != "preStart");
    for member in members.iter_mut().filter(|member| member.key == "onStart") {
        "preStart".clone_into(&mut member.key);
    }
}

fn service(cx: &mut DecodeContext<'_>, one: &LegacyServiceFields) {
    let at = At { info: &LegacyServiceFields::INFO, place: one.place };
    at.name(cx, one.name.as_ref(), true);
    at.needs(cx, one.port.is_some(), "port");
    at.time(cx, one.poll.as_ref(), "poll");
    at.time(cx, one.ttl.as_ref(), "ttl");
    if let (Some(ttl), Some(poll)) = (&one.ttl, &one.poll)
        && let Some((message, help)) = ttl_too_short(ttl.value, poll.value, "poll", "checks")
    {
        cx.fault(ttl.place.span, message, help);
    }
}

fn backend(cx: &mut DecodeContext<'_>, one: &BackendFields) {
    let at = At { info: &BackendFields::INFO, place: one.place };
    at.name(cx, one.name.as_ref(), false);
    at.time(cx, one.poll.as_ref(), "poll");
    at.needs(cx, one.on_change.is_some(), "onChange");
    at_least_1ms(cx, one.timeout.as_ref(), "timeout");
}

fn task(cx: &mut DecodeContext<'_>, one: &TaskFields) {
    let at = At { info: &TaskFields::INFO, place: one.place };
    at.needs(cx, one.command.is_some(), "command");
    at.time(cx, one.frequency.as_ref(), "frequency");
    at_least_1ms(cx, one.timeout.as_ref(), "timeout");
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

/// A section and its place.
#[derive(Clone, Copy)]
struct At {
    info: &'static SectionInfo,
    place: Place,
}

impl At {
    /// Reports a missing key, unless an error already mentions it.
    fn needs(self, cx: &mut DecodeContext<'_>, present: bool, key: &str) {
        if !present && !cx.is_reported(self.place, key) {
            let (message, help) = self.info.missing(key);
            cx.error(self.place.first_byte().span, message, help);
        }
    }

    /// Checks a required duration.
    fn time(self, cx: &mut DecodeContext<'_>, given: Option<&Spanned<i64>>, key: &str) {
        self.needs(cx, given.is_some(), key);
        at_least_1ms(cx, given, key);
    }

    /// Checks the name of a service (D9).
    fn name(self, cx: &mut DecodeContext<'_>, given: Option<&Spanned<String>>, is_own: bool) {
        self.needs(cx, given.is_some(), "name");
        let Some(given) = given.filter(|given| !is_service_name(&given.value)) else { return };
        let message = format!("`{}` is not a valid service name", given.value);
        match with_dashes(&given.value).filter(|_| is_own) {
            Some(valid) => {
                let help = format!("it is advertised as `{valid}`; version 2 rejected such a name");
                cx.warn(given.place.span, message, help);
            }
            None => cx.error(given.place.span, message, service_name_rule(&given.value)),
        }
    }
}

/// Checks that a duration is at least 1 ms.
fn at_least_1ms(cx: &mut DecodeContext<'_>, given: Option<&Spanned<i64>>, key: &str) {
    if let Some(given) = given.filter(|given| given.value < SHORTEST_TIME) {
        cx.error(given.place.span, format!("`{key}` must be at least 1ms"), "for example: 5 or \"500ms\"");
    }
}
