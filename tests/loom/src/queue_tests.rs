//! The event loop is the first thread of each model, the log thread the second.

use std::time::{Duration, Instant, SystemTime};

use containerpilot_core::plan::Level;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

use super::queue::{LogQueue, QueuedEntry, Work};
use crate::process::sys::Waker;

fn entry(level: Level, size: usize) -> QueuedEntry {
    QueuedEntry {
        time: SystemTime::UNIX_EPOCH,
        level,
        job: None,
        message: "x".repeat(size).into(),
        fields: None,
        output_of: None,
        last_lines: None,
        run: None,
    }
}

fn queue() -> Arc<LogQueue> {
    Arc::new(LogQueue::new(Waker::new().unwrap()))
}

fn log_thread<T: 'static>(
    queue: &Arc<LogQueue>,
    run: impl FnOnce(&LogQueue) -> T + 'static,
) -> JoinHandle<T> {
    let queue = Arc::clone(queue);
    thread::spawn(move || run(&queue))
}

/// Takes entries as the log thread does, until it has this many. Returns their levels, and how often work came before them.
fn take(queue: &LogQueue, count: usize) -> Vec<(Level, usize)> {
    let (mut taken, mut work) = (Vec::new(), 0);
    while taken.len() < count {
        queue.waker.wait();
        work += queue.take_work().len();
        while let Some((entry, dropped)) = queue.take_entry(u64::MAX) {
            assert!(dropped.is_none());
            taken.push((entry.level, work));
        }
    }
    taken
}

#[test]
fn l4_no_wake_up_is_lost() {
    loom::model(|| {
        let queue = queue();
        let log_thread = log_thread(&queue, |queue| take(queue, 3));
        queue.push_entry(entry(Level::Info, 1));
        queue.wake();
        // A batch.
        queue.push_entry(entry(Level::Error, 1));
        queue.push_entry(entry(Level::Info, 1));
        queue.wake();
        let levels: Vec<Level> = log_thread.join().unwrap().into_iter().map(|(level, _)| level).collect();
        assert_eq!(levels, [Level::Info, Level::Error, Level::Info]);
    });
}

#[test]
fn p4_entry_about_an_exit_comes_after_the_output() {
    loom::model(|| {
        let queue = queue();
        let log_thread = log_thread(&queue, |queue| take(queue, 2));
        queue.push_entry(entry(Level::Info, 1));
        queue.wake();
        queue.push_work(Work::Exited(7, SystemTime::UNIX_EPOCH, None));
        queue.push_entry(entry(Level::Warn, 1));
        queue.wake();
        let taken = log_thread.join().unwrap();
        assert_eq!(taken.last(), Some(&(Level::Warn, 1)), "the exit was taken first");
    });
}

#[test]
fn l9_event_loop_that_gives_way_is_woken() {
    loom::model(|| {
        let queue = queue();
        queue.set_writing(true);
        // More than the event loop leaves behind.
        queue.push_entry(entry(Level::Info, 2 << 20));
        let log_thread = log_thread(&queue, |queue| take(queue, 1));
        queue.wake();
        queue.give_way(Duration::from_secs(1));
        log_thread.join().unwrap();
    });
}

#[test]
fn l4_event_loop_that_gives_way_is_woken_when_the_output_is_full() {
    loom::model(|| {
        let queue = queue();
        queue.set_writing(true);
        queue.push_entry(entry(Level::Info, 2 << 20));
        let log_thread = log_thread(&queue, |queue| queue.set_writing(false));
        queue.give_way(Duration::from_secs(1));
        log_thread.join().unwrap();
    });
}

#[test]
fn s6_end_of_the_log_is_seen_by_both_threads() {
    loom::model(|| {
        let queue = queue();
        let log_thread = log_thread(&queue, |queue| {
            // It lets work accumulate, and must not miss the end.
            queue.wait_for_more(Duration::from_secs(1));
            assert_eq!(queue.take_work().len(), 1);
            queue.set_finished(true);
        });
        let deadline = Instant::now() + Duration::from_secs(1_000);
        queue.push_work(Work::Finish(deadline, None));
        queue.wake();
        assert_eq!(queue.wait_finished(deadline), Some(true));
        log_thread.join().unwrap();
    });
}
