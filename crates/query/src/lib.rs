//! What is asked and what is answered: questions over the rows of a dataset, and their answers.
//!
//! A question is data ([`algebra`]); it is answered segment by segment ([`answer`]): a condition
//! becomes a table over the codes of a dictionary, evaluated once per distinct value; groups are
//! places in dense arrays of codes, or, where these would be too large, rows are sorted by group
//! first. Strings are looked at again only for the groups that are shown.
//!
//! In the order of an answer: `prepare` (with `filter`, `numbering`, `group` and `source`) finds
//! what a question reads of each segment; `dense` or `sparse` go through the rows, with the loops
//! of `kernels` and the aggregates of `local`; `states` puts segments together; `table` finds the
//! groups that are shown.

pub mod algebra;
mod cache;
pub mod compare;
mod dense;
pub mod differs;
mod distinct;
pub mod document;
pub mod drillstate;
mod engine;
mod error;
pub mod export;
pub mod expression;
mod filter;
mod group;
mod kernels;
mod limits;
mod local;
mod moments;
mod nearest;
mod numbering;
mod prepare;
mod selection;
mod sketch;
mod source;
mod sparse;
mod states;
mod statistics;
mod table;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
pub mod time;
mod value;
mod values;
pub mod views;

pub use cache::{CACHE_BYTES_DEFAULT, Cache};
pub use engine::{Answer, AnswerRow, answer, answer_by};
pub use error::QueryError;
pub use limits::{GROUPS_DEFAULT, Limits, MEMORY_BYTES_DEFAULT, Stop, Thresholds};
pub use nearest::{did_you_mean, nearest};
pub use selection::Selection;
pub use sketch::Sketch;
pub use value::Value;
pub use values::column_values;
