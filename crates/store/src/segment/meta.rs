//! What a segment says about itself, in its footer: columns, checksums, smallest and largest.

use serde::{Deserialize, Serialize};

/// The version of the format, in the footer's metadata.
pub(super) const VERSION: u32 = 1;
/// The key of the description in the footer's metadata.
pub(super) const META_KEY: &str = "perflab.segment";
/// The key of the description's own checksum.
pub(super) const META_CRC_KEY: &str = "perflab.crc32c";

/// The description of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileMeta {
    pub(super) version: u32,
    pub(super) rows: usize,
    /// CRC32C of the headers of all messages: names, types, and where buffers are.
    pub(super) head_crc: u32,
    /// How many columns are in the file of sparse ones beside it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) sparse: usize,
    pub(super) columns: Vec<ColumnMeta>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "how serde calls it")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The description of one column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ColumnMeta {
    pub(super) name: String,
    pub(super) kind: MetaKind,
    pub(super) nulls: usize,
    /// CRC32C of the column's buffers, its dictionary included.
    pub(super) crc: u32,
    /// Smallest and largest value; not for lists and not when all are null. As text, because
    /// that keeps every float exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) range: Option<(String, String)>,
}

/// What a column of the file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MetaKind {
    Time,
    Weight,
    Int,
    Float,
    String,
    Set,
    Vector,
    /// The items of the table of lists.
    Items,
}

impl MetaKind {
    /// As in descriptions.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Weight => "weight",
            Self::Int => "int",
            Self::Float => "float",
            Self::String => "string",
            Self::Set => "set",
            Self::Vector => "vector",
            Self::Items => "items",
        }
    }
}
