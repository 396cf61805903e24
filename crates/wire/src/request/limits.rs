//! How much one request may bring.

/// The limits of one request; configurable by the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The longest message, in bytes.
    pub message_bytes_max: usize,
    /// The most entries.
    pub entries_max: usize,
    /// The most bytes that a compressed part of a body (`base64_bz2_logs`) may become, and Arrow
    /// batches apart.
    pub decompressed_bytes_max: usize,
}

impl Limits {
    pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
    pub const ENTRIES_MAX: usize = 250_000;
    pub const DECOMPRESSED_BYTES_MAX: usize = 100 << 20;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: Self::MESSAGE_BYTES_MAX,
            entries_max: Self::ENTRIES_MAX,
            decompressed_bytes_max: Self::DECOMPRESSED_BYTES_MAX,
        }
    }
}
