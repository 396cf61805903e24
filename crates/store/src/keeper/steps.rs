//! The steps of everything that changes the set of segments, by name: tests end the process at
//! each of them.

/// Called at each step with its name.
pub type Fault = fn(&'static str);

/// The steps by which a new segment comes into the set.
#[derive(Debug)]
pub(super) struct Steps {
    /// Its bytes are in a file with a temporary name,
    pub(super) written: &'static str,
    /// on the disk,
    pub(super) synced: &'static str,
    /// under its own name,
    pub(super) renamed: &'static str,
    /// which is on the disk too.
    pub(super) durable: &'static str,
    /// The catalog names it, and no longer what it replaces.
    pub(super) recorded: &'static str,
    /// Queries see it.
    pub(super) swapped: &'static str,
}

pub(super) const FLUSH: Steps = Steps {
    written: "flush.written",
    synced: "flush.synced",
    renamed: "flush.renamed",
    durable: "flush.durable",
    recorded: "flush.recorded",
    swapped: "flush.swapped",
};

pub(super) const COMPACT: Steps = Steps {
    written: "compact.written",
    synced: "compact.synced",
    renamed: "compact.renamed",
    durable: "compact.durable",
    recorded: "compact.recorded",
    swapped: "compact.swapped",
};

pub(super) const REBUILD: Steps = Steps {
    written: "rebuild.written",
    synced: "rebuild.synced",
    renamed: "rebuild.renamed",
    durable: "rebuild.durable",
    recorded: "rebuild.recorded",
    swapped: "rebuild.swapped",
};

/// One of the files that a compaction replaced is gone.
pub(super) const COMPACT_REMOVED: &str = "compact.removed";
/// The bytes of a cold segment's object are where it is kept, under its name,
pub(super) const COOL_WRITTEN: &str = "cool.written";
/// on the disk, where that is one of this machine,
pub(super) const COOL_SYNCED: &str = "cool.synced";
/// as is its name.
pub(super) const COOL_DURABLE: &str = "cool.durable";
/// What was written for a cold segment was read again, and is what its rows are.
pub(super) const COOL_VERIFIED: &str = "cool.verified";
/// The catalog names it, and no longer the segment as it was while it was hot.
pub(super) const COOL_RECORDED: &str = "cool.recorded";
/// Queries thaw it.
pub(super) const COOL_SWAPPED: &str = "cool.swapped";
/// The file of the segment as it was while it was hot is gone.
pub(super) const COOL_REMOVED: &str = "cool.removed";
/// The catalog no longer names what is past its retention.
pub(super) const RETAIN_RECORDED: &str = "retain.recorded";
/// Queries no longer see it.
pub(super) const RETAIN_SWAPPED: &str = "retain.swapped";
/// One of the files is gone.
pub(super) const RETAIN_REMOVED: &str = "retain.removed";

/// Every step of flush, compaction, cooling, retention and rebuilding.
pub const FAULT_POINTS: [&str; 29] = [
    FLUSH.written,
    FLUSH.synced,
    FLUSH.renamed,
    FLUSH.durable,
    FLUSH.recorded,
    FLUSH.swapped,
    COMPACT.written,
    COMPACT.synced,
    COMPACT.renamed,
    COMPACT.durable,
    COMPACT.recorded,
    COMPACT.swapped,
    COMPACT_REMOVED,
    COOL_WRITTEN,
    COOL_SYNCED,
    COOL_DURABLE,
    COOL_VERIFIED,
    COOL_RECORDED,
    COOL_SWAPPED,
    COOL_REMOVED,
    RETAIN_RECORDED,
    RETAIN_SWAPPED,
    RETAIN_REMOVED,
    REBUILD.written,
    REBUILD.synced,
    REBUILD.renamed,
    REBUILD.durable,
    REBUILD.recorded,
    REBUILD.swapped,
];
