//! The binary, really run: each command's exit code, stdout and stderr, in homes of its own.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

mod categories;
mod category;
mod check;
mod clients;
mod cold;
mod compare;
mod completions;
mod dataset;
mod datasets;
mod export;
mod guide;
mod kill;
mod log;
mod man;
mod pairs;
mod query;
mod schema;
mod scribe_cat;
mod serve;
mod setup;
mod shims;
mod spool;
mod sql;
mod tail;
mod thrift;
mod token;
mod with;
