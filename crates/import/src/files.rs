//! The files of the original, as an importer sees them.

use crate::error::ImportError;

/// Access to the files of the original.
pub trait Files {
    /// The contents of a file.
    ///
    /// # Errors
    /// What the system says, if the file cannot be read.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;

    /// The names in a directory, sorted; `None` if it is not a directory.
    fn list(&self, directory: &str) -> Option<Vec<String>>;
}

/// The directory of a path, `.` if it names none.
#[must_use]
pub fn directory(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None => ".",
    }
}

/// A path in a directory. An absolute path stays as it is, and `.` is not written.
#[must_use]
pub fn join(directory: &str, path: &str) -> String {
    match directory {
        _ if path.starts_with('/') => path.to_owned(),
        "." | "" => path.to_owned(),
        _ => format!("{}/{path}", directory.trim_end_matches('/')),
    }
}

/// A line of the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, as it was found.
    pub file: String,
    /// The line, starting with 1.
    pub line: usize,
    /// The text of the line, without spaces around it, and without the end of a very long one.
    pub text: String,
}

/// The longest text of a line in a comment.
const MAX_TEXT: usize = 1000;

/// A line without spaces around it, and without the end of a very long one: many keys can come from one line.
#[must_use]
pub fn shortened(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

impl SourceLine {
    /// An error at this line.
    pub(crate) fn error(&self, message: impl Into<String>) -> ImportError {
        ImportError::Invalid { file: self.file.clone(), line: self.line, message: message.into() }
    }
}

impl std::fmt::Display for SourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}  {}", self.file, self.line, self.text)
    }
}

/// A file of the original.
#[derive(Clone, Debug)]
pub struct Text {
    /// The path, as it was found.
    pub path: String,
    /// The contents.
    pub text: String,
    starts: Vec<usize>,
}

impl Text {
    /// Reads a file, which must be UTF-8. A byte order mark is removed.
    ///
    /// # Errors
    /// If the file cannot be read, or is not UTF-8.
    pub fn read(files: &dyn Files, path: &str) -> Result<Self, ImportError> {
        let unreadable = |why: String| ImportError::Unreadable { path: path.to_owned(), why };
        let bytes = files.read(path).map_err(unreadable)?;
        let text = String::from_utf8(bytes).map_err(|error| ImportError::Invalid {
            file: path.to_owned(),
            line: 1 + error
                .as_bytes()
                .iter()
                .take(error.utf8_error().valid_up_to())
                .filter(|b| **b == b'\n')
                .count(),
            message: "this is not UTF-8 text".to_owned(),
        })?;
        Ok(Self::new(path, text.strip_prefix('\u{feff}').unwrap_or(&text)))
    }

    /// A file with this text. Every line ends with a newline then: YAML also ends one at a carriage return, and the numbers of
    /// lines must agree.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { path: path.to_owned(), text, starts }
    }

    /// The lines with their places.
    pub fn lines(&self) -> impl Iterator<Item = (SourceLine, &str)> {
        self.text.lines().enumerate().map(|(index, line)| {
            let place = SourceLine { file: self.path.clone(), line: index + 1, text: shortened(line) };
            (place, line)
        })
    }

    /// The place of a line, starting with 1.
    #[must_use]
    pub fn place(&self, line: usize) -> SourceLine {
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        let text = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        SourceLine { file: self.path.clone(), line, text: shortened(text) }
    }
}
