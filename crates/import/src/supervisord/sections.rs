//! The sections that are no programs.

use crate::document::Document;
use crate::ini::{Ini, Section};

/// The sections that are no programs.
pub(super) fn other_sections(ini: &Ini, document: &mut Document) {
    for section in &ini.sections {
        let place = &section.place;
        let (kind, _) = section.name.split_once(':').unwrap_or((&section.name, ""));
        let known: &[&str] = match kind {
            "program" | "supervisord" => continue,
            "group" => &["programs", "priority"],
            // It was read before.
            "" => continue,
            "DEFAULT" => {
                document.inexact(place, "write these keys into the sections of the programs");
                continue;
            }
            "unix_http_server" | "supervisorctl" | "ctlplugin" => {
                document.not_needed(place, "the commands of containerpilot use its own control socket");
                continue;
            }
            "rpcinterface" => {
                document.not_needed(place, "the control socket is always there");
                continue;
            }
            "inet_http_server" => {
                document.inexact(
                    place,
                    "control is possible through a unix socket only; `telemetry` has a page to look at",
                );
                continue;
            }
            "eventlistener" => {
                document.inexact(place, listener_advice(section));
                continue;
            }
            "fcgi-program" => {
                let why = "supervisord passes it a socket as standard input: run a program that opens the socket itself";
                document.inexact(place, why);
                continue;
            }
            _ => {
                document.inexact(place, "supervisord has no such section");
                continue;
            }
        };
        let unknown = section.options.iter().filter(|(name, _)| !known.contains(&name.as_str()));
        for (_, entry) in unknown {
            document.inexact(&entry.place, "supervisord does not know this key");
        }
    }
}

/// What to do in place of an event listener.
fn listener_advice(section: &Section) -> String {
    let events = section.options.get("events").map(|entry| entry.value.to_uppercase()).unwrap_or_default();
    let advice = if events.contains("PROCESS_STATE") {
        "to stop the container with a program, add `onFailure: \"shutdown\"` to its job; to react to it, add a job at its `exitFailed`"
    } else if events.contains("TICK") {
        "add a job with `when: { interval: … }`"
    } else if events.contains("PROCESS_LOG") || events.contains("PROCESS_COMMUNICATION") {
        "the output of all jobs is in the log"
    } else {
        "programs can read `containerpilot events`"
    };
    format!("jobs get no events on standard input: {advice}")
}
