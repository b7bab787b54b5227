//! Fuzz target: any bytes as a recording, and as the content of a block whose checksum is right. No panic, and no more
//! inputs than so many bytes can stand for. What was read is not played: the core trusts its state.

use containerpilot_core::{Core, Input};

use crate::checksum::crc32;
use crate::format::{BLOCK_TIMES, FOLLOWS, MAGIC};
use crate::reader::{BlockReader, Recording};

/// More inputs than a byte can stand for.
const INPUTS_OF_A_BYTE: usize = 80;

/// Runs the target.
///
/// # Panics
/// If the reader violates one of its guarantees.
pub fn run(bytes: &[u8]) {
    read(bytes);
    let mut body = vec![FOLLOWS];
    body.extend(u32::MAX.to_le_bytes());
    body.extend([0; BLOCK_TIMES]);
    body.extend(bytes);
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
    read(&[MAGIC, &[0, 0], &length, &crc32(&body).to_le_bytes(), &body].concat());
}

fn read(file: &[u8]) {
    match Recording::read(file) {
        Ok(recording) => {
            let read: usize = recording.blocks().map(inputs).sum();
            assert!(read <= file.len() * INPUTS_OF_A_BYTE, "{read} inputs in {} bytes", file.len());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The number of inputs before the first that cannot be read.
fn inputs(mut block: BlockReader<'_>) -> usize {
    let Ok(core) = block.checkpoint::<Core>() else { return 0 };
    let expected = |_: &Input| core.next_deadline().map(|at| at.as_nanos());
    (0..).take_while(|_| matches!(block.input(expected), Ok(Some(_)))).count()
}
