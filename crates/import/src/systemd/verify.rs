//! What systemd refuses.

use super::exec;
use super::unit::{Unit, UnitSetting};
use super::unit_graph::UnitGraph;
use super::words::is_true;
use crate::document::Document;
use crate::error::ImportError;

const COMMANDS: [&str; 7] =
    ["ExecStart", "ExecStartPre", "ExecStartPost", "ExecStop", "ExecStopPost", "ExecReload", "ExecCondition"];

impl UnitGraph {
    /// Refuses the units that systemd refuses. A command that it ignores is removed, and listed.
    pub(super) fn verify(&mut self, document: &mut Document) -> Result<(), ImportError> {
        for unit in self.units.values_mut() {
            match unit.name.rsplit_once('.') {
                Some((_, "service")) => {
                    commands(unit, document)?;
                    service(unit)?;
                }
                Some((_, "timer")) => timer(unit)?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn commands(unit: &mut Unit, document: &mut Document) -> Result<(), ImportError> {
    let wrong = |entry: &UnitSetting| {
        let command = entry.section == "Service" && COMMANDS.contains(&entry.key.as_str());
        exec::lines(&entry.value).err().filter(|_| command && !entry.value.is_empty())
    };
    for entry in &unit.entries {
        match wrong(entry) {
            Some(why) if exec::ignores_failure(&entry.value) => {
                document.inexact(&entry.place, format!("{why}; systemd ignores the line"));
            }
            Some(why) => {
                return Err(entry.place.error(format!("{why}; systemd refuses the unit")));
            }
            None => {}
        }
    }
    unit.entries.retain(|entry| wrong(entry).is_none());
    Ok(())
}

fn service(unit: &Unit) -> Result<(), ImportError> {
    let last = |key| unit.last("Service", key).map(|entry| (entry, entry.value.as_str()));
    let starts = unit.all("Service", "ExecStart");
    let succeeds = unit.last("Unit", "SuccessAction").is_some_and(|entry| entry.value != "none");
    let oneshot = last("Type").is_none_or(|(_, kind)| kind == "oneshot");
    let remains = last("RemainAfterExit").is_some_and(|(_, value)| is_true(value));
    let stops = remains && !unit.all("Service", "ExecStop").is_empty();
    if starts.is_empty() && !(oneshot && (succeeds || stops)) {
        let known = ["Unit", "Service", "Install"];
        let elsewhere = unit.entries.iter().find(|entry| {
            entry.key == "ExecStart" && !entry.section.starts_with("X-") && entry.section != "Service"
        });
        let unknown = unit.entries.iter().find(|entry| !known.contains(&entry.section.as_str()));
        return Err(match elsewhere.or(unknown) {
            Some(entry) => entry.place.error(format!(
                "`{}` has no `ExecStart=` in `[Service]`, and systemd refuses it: this line is in `[{}]`, correct the section",
                unit.name, entry.section
            )),
            None => unit.top.error(format!(
                "`{}` has no `ExecStart=`, and systemd refuses it: add one, or remove the file",
                unit.name
            )),
        });
    }
    let several = starts.iter().find_map(|entry| {
        let commands = exec::lines(&entry.value).map_or(0, |lines| lines.len());
        (commands > 1).then_some(*entry)
    });
    match (last("Type"), starts.get(1).copied().or(several), last("Restart")) {
        (Some((_, "oneshot")), _, Some((entry, policy @ ("always" | "on-success")))) => {
            let why = format!("systemd refuses `Restart={policy}` with `Type=oneshot`: use `on-failure`");
            Err(entry.place.error(why))
        }
        (Some((_, "oneshot")), _, _) | (_, None, _) => Ok(()),
        (_, Some(entry), _) => Err(entry.place.error(
            "systemd refuses more than one command in `ExecStart=` without `Type=oneshot`: remove the others, or use \
             `ExecStartPre=`",
        )),
    }
}

fn timer(unit: &Unit) -> Result<(), ImportError> {
    let is_time = |entry: &UnitSetting| {
        entry.section == "Timer" && entry.key.starts_with("On") && !entry.value.is_empty()
    };
    match unit.entries.iter().any(is_time) {
        true => Ok(()),
        false => Err(unit.top.error(format!(
            "`{}` has no time, and systemd refuses it: add `OnCalendar=`, or remove the file",
            unit.name
        ))),
    }
}
