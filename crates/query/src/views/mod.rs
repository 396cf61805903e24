//! Answers in other shapes than a table: raw rows, series over time, distributions, and for
//! columns of vectors (such as stacks) trees and graphs. Each is data, in an order that does not
//! depend on chance; how it is drawn is decided elsewhere.

mod distribution;
mod graph;
mod merged;
mod rows;
mod samples;
mod series;
mod stacks;
mod tree;

pub(crate) use distribution::bin_weights;
pub use distribution::{BINS_MAX, Bins, Distribution, DistributionQuestion, distribution};
pub use graph::{Edge, Graph, GraphNode, graph};
pub use rows::each_rows;
pub(crate) use samples::all_columns;
pub use samples::{SAMPLES_MAX, Sample, Samples, samples};
pub use series::{Line, Series, series};
pub(crate) use stacks::{ListColumn, Scans, Stacks};
pub use stacks::{Load, Sides};
pub use tree::{Fold, NODES_MAX, Node, OTHER, Tree, TreeQuestion, tree};
