//! What became of the entries of one request.

use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;

use perflab_model::CategoryName;
use perflab_wire::EntryCode;

/// What became of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub code: EntryCode,
    /// Why it was refused.
    pub reason: Option<Arc<str>>,
    /// Its producer had sent it before: it is in the log once.
    pub is_duplicate: bool,
    /// Its place in the log, where that is known when the answer is given.
    pub offset: Option<u64>,
}

impl Outcome {
    pub(super) const TAKEN: Self =
        Self { code: EntryCode::Ok, reason: None, is_duplicate: false, offset: None };

    pub(super) fn refused(code: EntryCode, reason: Arc<str>) -> Self {
        Self { code, reason: Some(reason), is_duplicate: false, offset: None }
    }
}

/// Why entries are to be sent again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// More waits to be written than the queue holds.
    QueueFull,
    /// There is no space on the disk.
    DiskFull,
    /// Writing failed; whether the entries reached the disk is not known.
    WriteFailed,
    /// What is known about the dataset can't be read.
    CatalogFailed,
    /// The home is being closed.
    Closing,
}

/// The answer to one request.
#[derive(Debug)]
pub struct Answer {
    /// One per entry, in order.
    pub outcomes: Vec<Outcome>,
    /// The categories whose entries were acknowledged before they are on disk.
    pub fast: Vec<CategoryName>,
    /// Why entries got [`EntryCode::TryLater`], if any did.
    pub busy: Option<Busy>,
}

impl Answer {
    /// How many entries got this code.
    pub fn count(&self, code: EntryCode) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.code == code).count()
    }
}

/// An error and what caused it, as one line.
pub fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a string doesn't fail.
        let written = write!(line, ": {cause}");
        debug_assert!(written.is_ok());
        source = cause.source();
    }
    line
}
