//! SQL over real segments.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod agreement;
mod answers;
mod limits;
mod rig;
mod translation;
