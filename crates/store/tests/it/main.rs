//! The home as its users see it: opened, written to, drained, crashed and opened again.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod behind;
mod catalog;
mod cold;
mod crash;
mod damage;
mod disk;
mod drain;
mod elsewhere;
mod home;
mod ingest;
mod rig;
mod rows;
mod segments;
