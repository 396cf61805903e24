//! What is asked and what is answered: questions over the rows of a dataset, and their answers.
//! So far: which time a question is about.

pub mod time;

pub use time::{Range, RangeError, TimeError};
