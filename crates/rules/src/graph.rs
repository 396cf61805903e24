//! Who depends on whom, by package name.

use crate::Metadata;
use std::collections::{BTreeMap, BTreeSet};

/// Edges from a package to the packages it uses.
#[derive(Debug, Default)]
pub struct Graph {
    edges: BTreeMap<String, BTreeSet<String>>,
}

/// Which dependencies are edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edges {
    /// Also those of tests, benchmarks and build scripts.
    All,
    /// Only what ends up in the program.
    Normal,
}

impl Graph {
    pub fn new(metadata: &Metadata, wanted: Edges) -> Self {
        let names: BTreeMap<&str, &str> = metadata
            .packages
            .iter()
            .map(|package| (package.id.as_str(), package.name.as_str()))
            .collect();
        let name = |id: &str| names.get(id).copied().unwrap_or_default().to_owned();
        let mut graph = Self::default();
        for node in &metadata.resolve.nodes {
            for dependency in &node.deps {
                let is_normal = dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
                if wanted == Edges::All || is_normal {
                    graph.add(&name(&node.id), &name(&dependency.pkg));
                }
            }
        }
        graph
    }

    pub fn from_edges(edges: &[(&str, &str)]) -> Self {
        let mut graph = Self::default();
        for (source, target) in edges {
            graph.add(source, target);
        }
        graph
    }

    fn add(&mut self, source: &str, target: &str) {
        let targets = self.edges.entry(source.to_owned()).or_default();
        targets.insert(target.to_owned());
    }

    /// Every edge, as (source, target).
    pub fn edges(&self) -> impl Iterator<Item = (&str, &str)> {
        self.edges.iter().flat_map(|(source, targets)| {
            targets.iter().map(move |target| (source.as_str(), target.as_str()))
        })
    }

    /// Whether `source` uses `target`, directly or through others.
    pub fn reaches(&self, source: &str, target: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![source];
        while let Some(at) = open.pop() {
            if at == target {
                return true;
            }
            if seen.insert(at) {
                let next = self.edges.get(at).into_iter().flatten();
                open.extend(next.map(String::as_str));
            }
        }
        false
    }
}
