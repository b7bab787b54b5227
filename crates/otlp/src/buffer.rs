//! What waits to be sent: encoded items in batches, within a bound.

use std::collections::VecDeque;

/// Encoded items of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The items, each as a field of its message.
    pub bytes: Vec<u8>,
    /// How many they are.
    pub items: u64,
}

/// A batch is complete when it has this many bytes.
pub(crate) const BATCH_BYTES: usize = 512 << 10;

/// Items that wait. When it is full, new items are dropped and counted.
#[derive(Debug)]
pub struct Buffer {
    complete: VecDeque<Batch>,
    open: Batch,
    bytes: usize,
    limit: usize,
    dropped: u64,
}

impl Buffer {
    /// An empty buffer that takes items until it has this many bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { complete: VecDeque::new(), open: Batch::default(), bytes: 0, limit, dropped: 0 }
    }

    /// Adds an item, which `write` appends. Returns false if the buffer is full.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.bytes >= self.limit {
            self.dropped += 1;
            return false;
        }
        let before = self.open.bytes.len();
        write(&mut self.open.bytes);
        self.bytes += self.open.bytes.len() - before;
        self.open.items += 1;
        if self.open.bytes.len() >= BATCH_BYTES {
            self.complete.push_back(std::mem::take(&mut self.open));
        }
        true
    }

    /// Counts items that were dropped elsewhere.
    pub fn drop_items(&mut self, items: u64) {
        self.dropped += items;
    }

    /// How many items wait.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.complete.iter().map(|batch| batch.items).sum::<u64>() + self.open.items
    }

    /// True if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// True if a batch is complete.
    #[must_use]
    pub fn has_complete(&self) -> bool {
        !self.complete.is_empty()
    }

    /// Takes the oldest batch.
    pub fn take(&mut self) -> Option<Batch> {
        let batch = self.complete.pop_front().or_else(|| {
            let open = std::mem::take(&mut self.open);
            (open.items > 0).then_some(open)
        })?;
        self.bytes = self.bytes.saturating_sub(batch.bytes.len());
        Some(batch)
    }

    /// How many items were dropped since this was asked last.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_full_buffer_drops_new_items_and_counts_them() {
        let mut buffer = Buffer::new(2 * BATCH_BYTES);
        let item = vec![1; BATCH_BYTES / 4];
        let taken = (0..100).filter(|_| buffer.push(|out| out.extend_from_slice(&item))).count();
        assert_eq!((taken, buffer.take_dropped(), buffer.take_dropped()), (8, 92, 0));
        let batches: Vec<Batch> = std::iter::from_fn(|| buffer.take()).collect();
        assert_eq!(batches.iter().map(|batch| batch.items).collect::<Vec<_>>(), [4, 4]);
        assert!(buffer.is_empty() && buffer.push(|out| out.push(1)), "there is room again");
        assert!(!buffer.has_complete());
        assert_eq!(buffer.take(), Some(Batch { bytes: vec![1], items: 1 }));
        assert_eq!(buffer.take(), None);
    }

    #[test]
    fn t6_one_item_beyond_the_bound_is_taken_and_no_more() {
        let mut buffer = Buffer::new(10);
        assert!(buffer.push(|out| out.extend([0; 1000])));
        assert!(!buffer.push(|out| out.push(0)));
        assert_eq!(buffer.take().map(|batch| batch.bytes.len()), Some(1000));
        assert!(buffer.push(|out| out.push(0)));
    }
}
