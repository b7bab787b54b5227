//! The queue of entries and work items (L4, L9).

use std::time::SystemTime;

use containerpilot_process::sys::Waker;

use super::*;
use crate::logs::loss::Loss;
use crate::logs::queue::{LogQueue, QueuedEntry, Work};

fn entry(level: Level, message: &str) -> QueuedEntry {
    QueuedEntry {
        time: SystemTime::UNIX_EPOCH,
        level,
        job: None,
        message: message.into(),
        fields: None,
        output_of: None,
        last_lines: None,
        run: None,
    }
}

fn queue() -> LogQueue {
    LogQueue::new(Waker::new().unwrap())
}

fn take_all(queue: &LogQueue) -> Vec<(QueuedEntry, Loss)> {
    std::iter::from_fn(|| queue.take_entry(u64::MAX)).collect()
}

#[test]
fn l9_no_entry_of_a_burst_is_dropped() {
    let queue = queue();
    for nth in 0..50_000 {
        queue.push_entry(entry(Level::Info, &format!("job-{nth} started (pid {nth})")));
    }
    let entries = take_all(&queue);
    assert!(entries.iter().all(|(_, dropped)| dropped.is_none()));
    assert_eq!(entries.len(), 50_000);
}

#[test]
fn l4_entries_are_bounded_and_the_lowest_levels_are_dropped_first() {
    let queue = queue();
    let text = "x".repeat(1000);
    queue.push_entry(entry(Level::Error, "first"));
    for _ in 0..100_000 {
        queue.push_entry(entry(Level::Info, &text));
    }
    queue.push_entry(entry(Level::Warn, "last"));
    let entries = take_all(&queue);
    let (first, dropped) = entries.first().unwrap();
    assert_eq!((&*first.message, dropped.lines), ("first", 100_002 - entries.len() as u64));
    assert_eq!(dropped.bytes, dropped.lines * 1000);
    assert_eq!(&*entries.last().unwrap().0.message, "last");
    assert!((10_000..16_778).contains(&entries.len()), "about 16 MiB: {}", entries.len());
    assert!(entries.iter().skip(1).all(|(_, dropped)| dropped.is_none()), "reported once");
    assert!(queue.is_empty() && queue.drop_entries().is_none());
}

#[test]
fn l4_one_entry_is_always_kept() {
    let queue = queue();
    for message in ["small".to_owned(), "x".repeat(20 << 20)] {
        queue.push_entry(entry(Level::Error, &message));
    }
    assert_eq!(take_all(&queue).len(), 1);
}

#[test]
fn l2_work_and_entries_keep_their_order() {
    let queue = queue();
    let exited = |pid| Work::Exited(pid, SystemTime::UNIX_EPOCH, None);
    queue.push_entry(entry(Level::Info, "first"));
    queue.push_work(exited(7));
    queue.push_entry(entry(Level::Error, "second"));
    queue.push_work(exited(8));
    queue.push_entry(entry(Level::Info, "third"));
    let message = |before| queue.take_entry(before).map(|(entry, _)| String::from(entry.message));
    assert_eq!((message(u64::MAX).as_deref(), message(u64::MAX)), (Some("first"), None));
    let work: Vec<u64> = queue.take_work().into_iter().map(|(number, _)| number).collect();
    assert_eq!(message(work[0]), None);
    assert_eq!((message(work[1]).as_deref(), message(work[1])), (Some("second"), None));
    assert_eq!(message(u64::MAX).as_deref(), Some("third"));
}

/// Fills the queue so that the event loop gives way to the log thread.
fn crowded() -> LogQueue {
    let queue = queue();
    let text = "x".repeat(1000);
    for _ in 0..2_000 {
        queue.push_entry(entry(Level::Info, &text));
    }
    queue
}

#[test]
fn l9_event_loop_gives_way_to_a_log_thread_that_writes() {
    let queue = crowded();
    queue.set_writing(true);
    std::thread::scope(|scope| {
        let taking = scope.spawn(|| take_all(&queue).len());
        queue.give_way(PATIENCE);
        assert_eq!(taking.join().unwrap(), 2_000);
    });
    let started = Instant::now();
    queue.give_way(PATIENCE);
    assert!(started.elapsed() < PATIENCE / 2, "an empty queue is not waited for");
}

#[test]
fn l4_event_loop_never_waits_for_an_output_that_accepts_nothing() {
    let queue = crowded();
    let started = Instant::now();
    queue.give_way(PATIENCE);
    queue.set_writing(true);
    queue.give_way(Duration::from_millis(1));
    std::thread::scope(|scope| {
        scope.spawn(|| queue.set_writing(false));
        queue.give_way(PATIENCE);
    });
    assert!(started.elapsed() < PATIENCE / 2);
}
