//! Makes each system call of the supervisor fail once (P3, L4, E7). The supervisor must keep working or exit with a clear
//! message. It must not hang, panic, leave a process behind, or lose a log line without reporting it.
//!
//! A run without faults counts the calls. By default the first calls of each kind are tried; `FAULTS=all` (`make faults`)
//! tries more of them with every error, and `FAULTS=ROLE:CALL:NTH:ERROR` tries one.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod calls;
mod fake_consul;
mod scenario;
#[expect(dead_code, reason = "the other tests use more of it")]
#[path = "../support/mod.rs"]
mod support;
mod tracer;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use scenario::{Outcome, run_scenario};
use tracer::{Counts, Fault};

/// With `FAULTS=all`: how many of the first calls of each kind are made to fail, one per scenario.
const CALLS_PER_KIND: u32 = 12;

/// A fault in the notation of the variable `FAULTS`.
fn notation(fault: &Fault) -> String {
    format!("{}:{}:{}:{:?}", fault.role, fault.call, fault.nth, fault.errno)
}

/// The faults to try, selected from the calls of a run without faults.
fn faults(counts: &Counts, wanted: &str) -> Vec<Fault> {
    let unknown: Vec<_> = counts.keys().filter(|(_, call)| calls::known(call).is_none()).collect();
    assert!(unknown.is_empty(), "calls.rs does not list these calls: {unknown:?}");
    let mut faults = Vec::new();
    for (nth_kind, ((role, call), count)) in counts.iter().enumerate() {
        let Some(known) = calls::known(call) else { continue };
        let limit = if wanted.is_empty() { 2 } else { CALLS_PER_KIND };
        for nth in 1..=(*count).min(limit) {
            let errors = known.errors.iter().enumerate();
            let every = !wanted.is_empty();
            // By default each call gets one error, in rotation.
            let chosen = |at: usize| every || (nth_kind + nth as usize) % known.errors.len() == at;
            faults.extend(errors.filter(|(at, _)| chosen(*at)).map(|(_, errno)| Fault {
                role: role.clone(),
                call: call.clone(),
                nth,
                errno: *errno,
            }));
        }
    }
    if !wanted.is_empty() && wanted != "all" {
        faults.retain(|fault| notation(fault).starts_with(wanted));
    }
    faults
}

#[test]
fn p3_l4_e7_supervisor_survives_the_failure_of_any_system_call() {
    let wanted = std::env::var("FAULTS").unwrap_or_default();
    let began = Instant::now();
    let (found, counts) = run_scenario(None);
    assert_eq!(found, Ok(Outcome::Unharmed), "the scenario without faults failed");
    let faults = faults(&counts, &wanted);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from) * 2;
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (found, _) = run_scenario(Some(fault));
                    if let Err(why) = &found {
                        eprintln!("FAULTS='{}': {why}", notation(fault));
                    }
                    results.lock().unwrap().push((fault.clone(), found));
                }
            });
        }
    });
    let results = results.into_inner().unwrap();
    println!("{}", table(&counts, &results));
    println!("{} faults in {} s", results.len(), began.elapsed().as_secs());
    let failed: Vec<String> =
        results.iter().filter(|(_, found)| found.is_err()).map(|(fault, _)| notation(fault)).collect();
    assert!(
        failed.is_empty(),
        "{} of {} faults violated a rule:\n{}",
        failed.len(),
        results.len(),
        failed.join("\n")
    );
}

/// A table of the outcomes by role and call.
fn table(counts: &Counts, results: &[(Fault, Result<Outcome, String>)]) -> String {
    let mut rows: BTreeMap<(String, String), [usize; 6]> = BTreeMap::new();
    for ((role, call), count) in counts {
        rows.entry((role.clone(), call.clone())).or_default()[0] = *count as usize;
    }
    for (fault, found) in results {
        let row = rows.entry((fault.role.clone(), fault.call.clone())).or_default();
        let column = match found {
            Ok(Outcome::Unharmed) => 1,
            Ok(Outcome::Reported) => 2,
            Ok(Outcome::Exited) => 3,
            Ok(Outcome::NotReached) => 4,
            Err(_) => 5,
        };
        row[column] += 1;
    }
    let mut text = format!(
        "{:<12} {:<18} {:>6} {:>9} {:>9} {:>6} {:>7} {:>7}\n",
        "role", "call", "calls", "unharmed", "reported", "exited", "missed", "FAILED"
    );
    let mut sum = [0; 6];
    for ((role, call), row) in &rows {
        let [calls, unharmed, reported, exited, missed, failed] = row;
        text += &format!(
            "{role:<12} {call:<18} {calls:>6} {unharmed:>9} {reported:>9} {exited:>6} {missed:>7} {failed:>7}\n"
        );
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let [calls, unharmed, reported, exited, missed, failed] = sum;
    text + &format!(
        "{:<31} {calls:>6} {unharmed:>9} {reported:>9} {exited:>6} {missed:>7} {failed:>7}",
        "all"
    )
}
