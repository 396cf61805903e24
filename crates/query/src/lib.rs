//! What is asked and what is answered: questions over the rows of a dataset, and their answers.
//!
//! A question is data ([`algebra`]); it is answered segment by segment ([`answer`]): a condition
//! becomes a table over the codes of a dictionary, evaluated once per distinct value; groups are
//! places in dense arrays of codes. Strings are looked at again only for the groups that are
//! shown.

mod aggregate;
pub mod algebra;
mod distinct;
pub mod document;
pub mod drillstate;
mod engine;
mod error;
mod filter;
mod group;
mod nearest;
mod sketch;
pub mod text;
pub mod time;
mod value;
mod values;

pub use engine::{Answer, AnswerRow, answer};
pub use error::QueryError;
pub use nearest::nearest;
pub use value::Value;
pub use values::column_values;
