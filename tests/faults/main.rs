//! Every system call that the supervisor makes is made to fail (P3, L4, E7): it lives and does its work, or ends with a clear
//! message; it never hangs, never panics, leaves no process behind, and loses no line without a word.
//!
//! The calls are found by looking at a run without faults. A few of the first of each are tried here; `FAULTS=all`
//! (`make faults`) tries them all, and `FAULTS=ROLE:CALL:NTH:ERROR` one of them.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod calls;
mod catalog;
#[path = "../support/http_request.rs"]
mod http_request;
mod tracer;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tracer::{Counts, Fault};
use world::{Outcome, live};

/// How many of the first calls of each kind fail, one in a world, when all are tried.
const DEEP: u32 = 12;

/// A fault in a form that can be typed.
fn spelled(fault: &Fault) -> String {
    format!("{}:{}:{}:{:?}", fault.role, fault.call, fault.nth, fault.errno)
}

/// The faults to try, of all calls that a run without faults has made.
fn faults(counts: &Counts, wanted: &str) -> Vec<Fault> {
    let unknown: Vec<_> = counts.keys().filter(|(_, call)| calls::known(call).is_none()).collect();
    assert!(unknown.is_empty(), "there are calls of which calls.rs knows nothing: {unknown:?}");
    let mut faults = Vec::new();
    for (nth_kind, ((role, call), count)) in counts.iter().enumerate() {
        let Some(known) = calls::known(call) else { continue };
        let deep = if wanted.is_empty() { 2 } else { DEEP };
        // The first `brk` is a question.
        for nth in 1 + u32::from(call == "brk")..=(*count).min(deep) {
            let errors = known.errors.iter().enumerate();
            let every = !wanted.is_empty();
            // In a short round, another error for each.
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
        faults.retain(|fault| spelled(fault).starts_with(wanted));
    }
    faults
}

#[test]
fn p3_every_call_may_fail_once() {
    let wanted = std::env::var("FAULTS").unwrap_or_default();
    let began = Instant::now();
    let (found, counts) = live(None);
    assert_eq!(found, Ok(Outcome::Unharmed), "a world without faults");
    let faults = faults(&counts, &wanted);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from) * 2;
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (found, _) = live(Some(fault));
                    if let Err(why) = &found {
                        eprintln!("FAULTS='{}': {why}", spelled(fault));
                    }
                    results.lock().unwrap().push((fault.clone(), found));
                }
            });
        }
    });
    let results = results.into_inner().unwrap();
    println!("{}", table(&counts, &results));
    println!("{} faults in {} s", results.len(), began.elapsed().as_secs());
    let broken: Vec<String> =
        results.iter().filter(|(_, found)| found.is_err()).map(|(fault, _)| spelled(fault)).collect();
    assert!(
        broken.is_empty(),
        "{} of {} faults broke a rule:\n{}",
        broken.len(),
        results.len(),
        broken.join("\n")
    );
}

/// What became of all worlds, by who made which call.
fn table(counts: &Counts, results: &[(Fault, Result<Outcome, String>)]) -> String {
    let mut rows: BTreeMap<(String, String), [usize; 6]> = BTreeMap::new();
    for ((role, call), count) in counts {
        rows.entry((role.clone(), call.clone())).or_default()[0] = *count as usize;
    }
    for (fault, found) in results {
        let row = rows.entry((fault.role.clone(), fault.call.clone())).or_default();
        let column = match found {
            Ok(Outcome::Unharmed) => 1,
            Ok(Outcome::Lived) => 2,
            Ok(Outcome::Ended) => 3,
            Ok(Outcome::Missed) => 4,
            Err(_) => 5,
        };
        row[column] += 1;
    }
    let mut text = format!(
        "{:<12} {:<18} {:>6} {:>9} {:>9} {:>6} {:>7} {:>7}\n",
        "who", "call", "made", "unharmed", "said so", "ended", "not met", "BROKEN"
    );
    let mut sum = [0; 6];
    for ((role, call), row) in &rows {
        let [made, unharmed, lived, ended, missed, broken] = row;
        text += &format!(
            "{role:<12} {call:<18} {made:>6} {unharmed:>9} {lived:>9} {ended:>6} {missed:>7} {broken:>7}\n"
        );
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let [made, unharmed, lived, ended, missed, broken] = sum;
    text + &format!("{:<31} {made:>6} {unharmed:>9} {lived:>9} {ended:>6} {missed:>7} {broken:>7}", "all")
}
