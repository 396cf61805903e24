//! What is asked and what is answered: questions over the rows of a dataset, and their answers.
//! So far: which time a question is about, and into which buckets that time is cut.

pub mod time;

pub use time::{Bucket, Range, RangeError, TimeError, TooManyBuckets};
