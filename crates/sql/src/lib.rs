//! SQL over the same segments as the algebra, for all that the algebra can't say.
//!
//! The engine is DataFusion; this crate alone compiles it. A query is read ([`Query`]), and
//! answered ([`execute`]) from its datasets, each a table: `time`, `weight`, and a column per name. Conditions on time and on values leave
//! rows and segments unread, strings are views into the segments' dictionaries, and percentiles
//! are those of the algebra's sketch. Queries only read, within [`Limits`].

mod column;
mod columns;
mod dataset;
mod error;
mod execute;
mod percentile;
mod progress;
mod prune;
mod query;
mod scan;
mod table;

pub use dataset::{Dataset, Source};
pub use error::SqlError;
pub use execute::{Limits, Rows, execute};
pub use progress::Progress;
pub use query::{Query, SQL_BYTES_MAX, SQL_WORDS_MAX};
