//! The engine against a reference that looks at one row after the other.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]
#![expect(clippy::float_cmp, reason = "what must be exact is compared exactly")]

mod agreement;
mod compare;
mod comparison;
mod differs;
mod document;
mod export;
mod expression;
mod limits;
mod pruning;
mod reference;
mod values;
mod view_limits;
mod views;
