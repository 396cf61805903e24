//! The public face of `perflab-model`.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod batch;
