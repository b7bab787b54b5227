//! The event loop is the first thread of each model.

use loom::thread;

use super::channel::Receiver;

/// Receives as the event loop does, until it has this many messages.
fn receive(receiver: &Receiver<u32>, count: usize) -> Vec<u32> {
    let mut received = Vec::new();
    while received.len() < count {
        receiver.waker().wait();
        received.extend(receiver.take());
    }
    received
}

#[test]
fn e7_no_message_waits_for_the_next_one() {
    loom::model(|| {
        let receiver = Receiver::new().unwrap();
        let senders = [1, 2].map(|message| {
            let sender = receiver.sender();
            thread::spawn(move || assert!(sender.send(message)))
        });
        let mut received = receive(&receiver, 2);
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

#[test]
fn e3_messages_of_a_thread_keep_their_order() {
    loom::model(|| {
        let receiver = Receiver::new().unwrap();
        let sender = receiver.sender();
        let other = thread::spawn(move || (1..=3).all(|message| sender.send(message)));
        assert_eq!(receive(&receiver, 3), [1, 2, 3]);
        assert!(other.join().unwrap());
    });
}
