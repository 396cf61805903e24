//! The server over real connections, on a free port of loopback.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod access;
mod bad_input;
mod bulk;
mod busy;
mod client;
mod disk;
mod ends;
mod explore;
mod idempotence;
mod openapi;
mod operate;
mod origins;
mod rig;
mod scribe;
mod sql;
mod tail;
mod wide;
