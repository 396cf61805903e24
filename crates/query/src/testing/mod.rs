//! Random rows and random questions about them, for tests of whatever answers questions.
//!
//! Only with the feature `testing`, which no program has.

mod questions;
mod rows;

pub use questions::question;
pub use rows::{Cell, Row, row, scale, segment_of, segment_with};
