//! Locks whose jobs cannot stop in time, and locks that protect nothing (D14).

use containerpilot_core::plan::Plan;
use containerpilot_core::time::fmt_duration;

use crate::diagnostics::{Problem, Severity};
use crate::fields::ConfigFields;
use crate::lower::{lock_of, lock_ttl_place};

/// Checks the locks of a plan.
pub(crate) fn check_locks(fields: &ConfigFields, plan: &Plan, problems: &mut Vec<Problem>) {
    let stop_times = plan.lock_stop_times();
    for fields in fields.locks.iter().flat_map(|given| &given.value) {
        let Some((nth, lock)) = lock_of(fields, &plan.locks) else { continue };
        if !plan.has_shared_locks() {
            let place = fields.name.as_ref().map_or(fields.place.first_byte(), |given| given.place);
            let message = format!("without `consul`, each container has the lock `{}` for itself", lock.name);
            let help = "add consul: \"localhost:8500\" to share it";
            problems.push(Problem::new(Severity::Warning, place, message).help(help));
            continue;
        }
        let stop_time = stop_times.get(nth).copied().unwrap_or_default();
        if stop_time > lock.longest_stop_that_fits() {
            let longest = fmt_duration(lock.longest_stop_that_fits());
            let message = format!(
                "the jobs that require the lock `{}` take up to {} to stop; with this `ttl` they get SIGKILL after {longest}",
                lock.name,
                fmt_duration(stop_time),
            );
            let help = format!(
                "raise `ttl` to {}, or lower `drain`, `killAfter` or `stopTimeout`",
                fmt_duration(lock.ttl_for(stop_time))
            );
            problems.push(Problem::new(Severity::Fault, lock_ttl_place(fields), message).help(help));
        }
    }
}
