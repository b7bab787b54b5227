//! What a status and an explanation can be about.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    Job,
    Watch,
    Lock,
    File,
}

impl SubjectKind {
    pub const ALL: [Self; 4] = [Self::Job, Self::Watch, Self::Lock, Self::File];

    /// As in messages, and before the name in a source: `watch.db`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Watch => "watch",
            Self::Lock => "lock",
            Self::File => "file",
        }
    }

    /// As in messages and in paths: `/v3/watches/db/explain`.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Job => "jobs",
            Self::Watch => "watches",
            Self::Lock => "locks",
            Self::File => "files",
        }
    }
}
