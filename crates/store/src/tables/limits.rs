//! How large memory tables and segments become.

use std::time::Duration;

/// Rows become an image at the latest when they take this much memory as they came,
pub(crate) const WAITING_BYTES: usize = 32 << 20;
/// or when an image of them could take this much,
pub(crate) const FREEZE_BYTES: usize = 64 << 20;
/// or when they came in this many groups.
pub(crate) const FREEZE_GROUPS: usize = 4096;

/// How much the rows of groups that wait for their commit may take together. Beyond it, groups
/// go without, and the store reads them from the log.
pub(crate) const IN_FLIGHT_BYTES_MAX: usize = 64 << 20;

/// When rows move on.
#[derive(Debug, Clone, Copy)]
pub struct TableLimits {
    /// So many rows become a segment in memory.
    pub freeze_rows: usize,
    /// A memory table goes into a file when it has so many rows,
    pub flush_rows: usize,
    /// or so many bytes,
    pub flush_bytes: usize,
    /// or when its oldest row has waited so long.
    pub flush_after: Duration,
    /// All memory tables together. Beyond it they take nothing more, and the store falls behind
    /// the log until some of them is in files.
    pub memory_bytes: usize,
    /// Small segments are merged into ones of up to so many rows
    pub segment_rows: usize,
    /// and so many bytes.
    pub segment_bytes: usize,
}

impl TableLimits {
    /// 64 Ki rows in memory; 128 Ki rows, 32 MiB or 5 minutes to a file; 128 MiB in all, so that
    /// the server stays within 300 MiB under full load. Segments are merged up to 1 Mi rows and
    /// 128 MiB: the fewer there are, the faster a question is answered.
    pub const DEFAULT: Self = Self {
        freeze_rows: 64 << 10,
        flush_rows: 128 << 10,
        flush_bytes: 32 << 20,
        flush_after: Duration::from_mins(5),
        memory_bytes: 128 << 20,
        segment_rows: 1 << 20,
        segment_bytes: 128 << 20,
    };
}
