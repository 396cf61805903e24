//! Segments as Parquet, which is what cold ones are kept as: a fraction of the size, readable by
//! everyone, and not made to be read where they lie. Format: `docs/formats/cold.md`.

mod cool;
mod thaw;

pub use cool::{Cooled, cool};
pub(crate) use thaw::thaw;

use serde::{Deserialize, Serialize};

use super::meta::MetaKind;

/// The version of the format.
const VERSION: u32 = 1;
/// The key of the description in the file's metadata.
const META_KEY: &str = "perflab.cold";

/// What the names and types of Parquet don't say.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    version: u32,
    /// In the order of the file.
    columns: Vec<Described>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Described {
    name: String,
    kind: MetaKind,
}
