//! The page for people (T5): its documents, and the states that it shows. The live page gets them from a supervisor,
//! that of a recording has all of them in its document.

mod board;
mod items;
mod picture;

pub use board::{Board, Change};
pub use items::{Shown, record};
pub use picture::Picture;

/// The document of the live page, compressed with gzip.
pub const LIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/live.html.gz"));

/// The policy of the live page. It names the style and the script by their hashes: nothing else is applied or executed,
/// and no text can be turned into markup by mistake (`require-trusted-types-for`).
pub const LIVE_POLICY: &str = include_str!(concat!(env!("OUT_DIR"), "/live.policy"));

/// The document of the page of a recording, with [`STATES`] in place of its states. It has its policy in itself, which
/// allows no connection. PID 1 does not have it.
pub const RECORDED: &str = include_str!(concat!(env!("OUT_DIR"), "/recorded.html"));

/// What stands in [`RECORDED`] for the states: a JSON array of [`Change`]s, compressed with gzip, in base64.
pub const STATES: &str = "{{states}}";
