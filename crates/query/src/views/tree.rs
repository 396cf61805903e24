//! Lists that begin alike, merged: a flame graph as data.

use perflab_store::segment::{Snapshot, Trie, Way};

use super::merged::Merged;
use super::stacks::{Known, Scans, Sides, Stacks};
use crate::error::TREE_NODES_MAX;
use crate::limits::Budget;
use crate::selection::Selection;
use crate::{Limits, QueryError};

/// How many nodes of a tree are shown where nobody says otherwise.
pub const NODES_MAX: usize = 10_000;
/// What the nodes that are too small to be shown are called together.
pub const OTHER: &str = "(other)";

/// Which way lists are merged. Vectors are stored from the root (such as `main`) to the leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fold {
    FromRoot,
    FromLeaf,
    /// What is below a frame, whose node is then the only one at the top: from its occurrence
    /// nearest to the root, so that no row counts twice where it calls itself.
    Callees(String),
    /// What is above that same occurrence of a frame, nearest first.
    Callers(String),
}

/// What a tree is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeQuestion {
    /// A column of vectors.
    pub column: String,
    pub fold: Fold,
    /// How many nodes are shown: the largest, of the same size those nearest to the root, and of
    /// these by their names. The others are merged into one [`OTHER`] below each node.
    pub nodes_max: usize,
}

/// A merged tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// Each node before those below it; the first is the root, which has no name and everything
    /// in it. Siblings from the largest to the smallest, the same size by name.
    pub nodes: Vec<Node>,
    /// Of rows that have no list, and so are in no node.
    pub without: Sides,
    /// Whether there is a B to compare with.
    pub is_diff: bool,
    pub rows_scanned: u64,
}

/// A frame in the place that it has in the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub frame: String,
    /// `None` for the root.
    pub parent: Option<usize>,
    /// 0 for the root.
    pub depth: usize,
    /// Of all lists through here.
    pub total: Sides,
    /// Of the lists that end here.
    pub own: Sides,
    /// Whether this is what was too small to be shown.
    pub is_other: bool,
}

/// Merges the lists of selection A, and those of B beside them.
pub fn tree(
    question: &TreeQuestion,
    a: &Selection,
    b: Option<&Selection>,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Tree, QueryError> {
    let budget = Budget::of(limits);
    let scans = Scans::new(a, b, snapshot, &budget)?;
    let way = match question.fold {
        Fold::FromLeaf => Way::Backward,
        Fold::FromRoot | Fold::Callees(_) | Fold::Callers(_) => Way::Forward,
    };
    let stacks = Stacks::of_vectors(&question.column, way, &scans, snapshot)?;
    let nodes = match (&question.fold, stacks.known()) {
        (Fold::FromRoot | Fold::FromLeaf, Some(Known { trie, loads })) => {
            let trie = trie.read();
            Merged::new(&trie, loads, &budget)?.shown(&stacks.names(), question.nodes_max)
        }
        (fold, _) => {
            let (trie, loads) = folded(fold, &stacks, &budget)?;
            Merged::new(&trie, &loads, &budget)?.shown(&stacks.names(), question.nodes_max)
        }
    };
    let Stacks { without, rows_scanned, .. } = stacks;
    Ok(Tree { nodes, without, is_diff: b.is_some(), rows_scanned })
}

/// Lists that are in no trie of the dataset, in one of their own.
fn folded(
    fold: &Fold,
    stacks: &Stacks<'_>,
    budget: &Budget<'_>,
) -> Result<(Trie, Vec<Sides>), QueryError> {
    let focus = match fold {
        Fold::FromRoot | Fold::FromLeaf => None,
        Fold::Callees(frame) | Fold::Callers(frame) => stacks.names().find(frame),
    };
    let (mut trie, mut loads) = (Trie::default(), vec![Sides::default()]);
    let mut path = Vec::new();
    stacks.each(|list, load| {
        budget.check()?;
        if !fold.path(list, focus, &mut path) {
            return Ok(());
        }
        let nodes = trie.nodes();
        let number = trie.number(&path) as usize;
        if number == loads.len() {
            budget.take((trie.nodes() - nodes) * size_of::<u32>() + size_of::<Sides>())?;
            loads.push(Sides::default());
        }
        loads[number] += load;
        if trie.nodes() > TREE_NODES_MAX { Err(QueryError::TooManyNodes) } else { Ok(()) }
    })?;
    Ok((trie, loads))
}

impl Fold {
    /// The frames of a list, as it was read, from the top of the tree on; false when the list is
    /// not in it.
    fn path(&self, list: &[u32], focus: Option<u32>, into: &mut Vec<u32>) -> bool {
        into.clear();
        let place = || list.iter().position(|&frame| Some(frame) == focus);
        match self {
            Self::FromRoot | Self::FromLeaf => into.extend(list),
            Self::Callees(_) => match place() {
                Some(place) => into.extend(&list[place..]),
                None => return false,
            },
            Self::Callers(_) => match place() {
                Some(place) => into.extend(list[..=place].iter().rev()),
                None => return false,
            },
        }
        true
    }
}
