//! The rules of this workspace as functions over `cargo metadata` and the manifests: each gives
//! the list of what breaks it, in words. The tests run them on the workspace itself, and on
//! made-up input that must be found wrong.

pub mod edges;
pub mod graph;
pub mod licences;
pub mod manifests;
pub mod metadata;
pub mod versions;

pub use graph::Graph;
pub use metadata::{Metadata, MetadataError, Package};
