//! What all formats need of a tree: stacks that end somewhere, and each name once.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::views::{Node, Tree};

/// The nodes where lists end in A, which is what samples are in formats that have no tree. The
/// root is not among them: a list without frames has no stack to show.
pub(super) fn leaves(tree: &Tree) -> impl Iterator<Item = (usize, &Node)> {
    let nodes = tree.nodes.iter().enumerate().skip(1);
    nodes.filter(|(_, node)| node.own.a.weight > 0.0 || node.own.a.samples > 0.0)
}

/// The nodes from below the root to this one.
pub(super) fn path(tree: &Tree, at: usize) -> Vec<usize> {
    let above = |at: &usize| tree.nodes[*at].parent.filter(|parent| *parent != 0);
    let mut path: Vec<usize> = std::iter::successors(Some(at), above).collect();
    path.reverse();
    path
}

/// Names in the order in which they were first asked for.
#[derive(Debug, Default)]
pub(super) struct Names<'t> {
    places: HashMap<&'t str, usize, RandomState>,
    names: Vec<&'t str>,
}

impl<'t> Names<'t> {
    pub(super) fn place(&mut self, name: &'t str) -> usize {
        *self.places.entry(name).or_insert_with(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    pub(super) fn get(&self) -> &[&'t str] {
        &self.names
    }
}
