//! The words of a command.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// A program or an argument: UTF-8 in a configuration, any bytes on the command line (S7).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Word(#[serde(serialize_with = "crate::recorded::word")] Vec<u8>);

impl Word {
    /// The bytes that the program gets.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text for names and messages; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<Vec<u8>> for Word {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_owned())
    }
}

impl PartialEq<str> for Word {
    fn eq(&self, text: &str) -> bool {
        self.0 == text.as_bytes()
    }
}

impl PartialEq<&str> for Word {
    fn eq(&self, text: &&str) -> bool {
        self == *text
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), out)
    }
}
