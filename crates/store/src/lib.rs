//! What perflab keeps, and how it gets there: the home with its one owner, the catalog, the way
//! of entries into the log and of their rows into segments, retention, and the drain of the spool.
//!
//! Nothing here speaks HTTP or answers queries. All of it blocks, except that the server waits
//! for appends as a future ([`Ticket::settled`]).

mod catalog;
mod datasets;
mod drain;
mod glob;
mod home;
mod ingest;
mod keeper;
mod links;
mod lock;
mod reading;
mod record;
mod retention;
pub mod segment;
mod tables;
mod tokens;

pub use catalog::{
    Catalog, CatalogError, CategorySettings, ColdEntry, DatasetSettings, Digest, Guarantee,
    HOT_SECONDS, Idl, LostRows, SegmentChange, SegmentEntry, SegmentSet, Token, UnknownGuarantee,
};
pub use datasets::{DATASETS_MAX, DatasetError};
pub use drain::{DrainError, DrainReport};
pub use glob::Glob;
pub use home::{
    Home, HomeError, HomeSettings, IDLS_MAX, OpenReport, RegisterError, SPOOL_BYTES_MAX,
    THAWED_BYTES_MAX,
};
pub use ingest::{
    Answer, Busy, Door, IngestStats, Keys, KeysError, Origin, Outcome, PRODUCER_BYTES_MAX,
    REJECTED, REJECTED_BYTES_MAX, REJECTED_MESSAGE_BYTES_MAX, Sequences, Settled, Ticket, chain,
    is_reserved,
};
pub use keeper::{
    ColdStartError, ColdUrl, ColdUrlError, FAULT_POINTS, Fault, PlaceError, SegmentCheck,
    SegmentDamage, ThawError, Unreachable,
};
pub use links::{LINK_BYTES_MAX, LINKS_MAX, LinkError};
pub use reading::{DatasetInfo, Reach, SnapshotError};
pub use record::{RecordDecoder, RecordError};
pub use tables::TableLimits;
pub use tokens::{Access, NewToken, TOKEN_NAME_BYTES_MAX, TOKENS_MAX, TokenError, Tokens};
