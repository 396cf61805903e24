//! SQL over the same segments as the algebra, for all that the algebra can't say.
//!
//! The engine is DataFusion; this crate alone compiles it. A dataset is a table
//! ([`execute`]): `time`, `weight`, and a column per name. Conditions on time and on values leave
//! rows and segments unread, strings are views into the segments' dictionaries, and percentiles
//! are those of the algebra's sketch. Queries only read, within [`Limits`].

mod column;
mod columns;
mod error;
mod execute;
mod percentile;
mod prune;
mod scan;
mod table;

pub use error::SqlError;
pub use execute::{Datasets, Limits, Rows, SQL_BYTES_MAX, SQL_WORDS_MAX, execute};
pub use scan::Progress;
