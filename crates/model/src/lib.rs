//! What things are: category names, time, typed rows in columns, and schemas. No I/O.

pub mod batch;
pub mod category;
pub mod clock;
pub mod schema;
pub mod time;

pub use batch::{Batch, Kind, ListKind, RowBuilder, RowError, Value};
pub use category::{CATEGORY_NAME_BYTES_MAX, CategoryName, CategoryNameError};
pub use clock::{Clock, ManualClock, SystemClock};
pub use schema::{COLUMNS_MAX, Schema, SchemaError, SchemaFileError, SchemaState};
pub use time::Nanos;
