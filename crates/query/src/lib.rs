//! What is asked and what is answered: questions over the rows of a dataset, and their answers.
//!
//! A question is data ([`algebra`]); it is answered segment by segment ([`answer`]): a condition
//! becomes a table over the codes of a dictionary, evaluated once per distinct value; groups are
//! places in dense arrays of codes. Strings are looked at again only for the groups that are
//! shown.

mod aggregate;
pub mod algebra;
pub mod compare;
pub mod differs;
mod distinct;
mod engine;
mod error;
pub mod export;
pub mod expression;
mod filter;
mod group;
mod selection;
mod sketch;
mod statistics;
pub mod time;
mod value;
pub mod views;

pub use engine::{Answer, AnswerRow, answer};
pub use error::QueryError;
pub use selection::Selection;
pub use value::Value;
