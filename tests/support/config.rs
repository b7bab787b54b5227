//! Builds configurations whose parts depend on the test. One that is always the same is clearer as a string.

use std::fmt::Display;
use std::ops::Deref;

/// A configuration. Keys are written as in a file, without the braces around them: `Config::new().job("a", "exec: 'x'")`
/// is the text `{ jobs: [{ name: 'a', exec: 'x' }] }`.
#[derive(Clone, Default)]
pub(crate) struct Config {
    keys: String,
    jobs: String,
    text: String,
}

impl Config {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds keys other than `jobs`.
    pub(crate) fn keys(mut self, keys: impl Display) -> Self {
        self.keys += &format!("{keys}, ");
        self.complete()
    }

    /// Adds the address of a Consul agent.
    pub(crate) fn consul(self, address: impl Display) -> Self {
        self.keys(format!("consul: '{address}'"))
    }

    /// Adds a job with keys other than `name`.
    pub(crate) fn job(mut self, name: impl Display, keys: impl Display) -> Self {
        self.jobs += &format!("{{ name: '{name}', {keys} }}, ");
        self.complete()
    }

    /// Adds jobs with the same keys.
    pub(crate) fn jobs(self, names: impl IntoIterator<Item: Display>, keys: impl Display) -> Self {
        names.into_iter().fold(self, |config, name| config.job(name, &keys))
    }

    fn complete(mut self) -> Self {
        self.text = format!("{{ {}jobs: [{}] }}", self.keys, self.jobs);
        self
    }
}

impl Deref for Config {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}
