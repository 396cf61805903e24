//! Lists that begin alike, merged: a flame graph as data.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_store::segment::Snapshot;

use super::stacks::{Sides, Stacks};
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
    /// How many nodes are shown; the smaller ones are merged into one [`OTHER`] below each node.
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
    let stacks = Stacks::of_vectors(&question.column, a, b, snapshot, &budget)?;
    let mut merged = Merged::new();
    let focus = match &question.fold {
        Fold::FromRoot | Fold::FromLeaf => None,
        Fold::Callees(frame) | Fold::Callers(frame) => stacks.frame(frame),
    };
    let mut path = Vec::new();
    stacks.each(|list, load| {
        budget.check()?;
        if !question.fold.path(list, focus, &mut path) {
            return Ok(());
        }
        let nodes = merged.nodes.len();
        merged.add(&path, load)?;
        budget.take((merged.nodes.len() - nodes) * size_of::<MergedNode>())
    })?;
    merged.add_up();
    Ok(Tree {
        nodes: merged.shown(&stacks.frames, question.nodes_max),
        without: stacks.without,
        is_diff: b.is_some(),
        rows_scanned: stacks.rows_scanned,
    })
}

impl Fold {
    /// The frames of a list from the top of the tree on; false when the list is not in it.
    fn path(&self, list: &[u32], focus: Option<u32>, into: &mut Vec<u32>) -> bool {
        into.clear();
        let place = || list.iter().position(|&frame| Some(frame) == focus);
        match self {
            Self::FromRoot => into.extend(list),
            Self::FromLeaf => into.extend(list.iter().rev()),
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

/// A tree while lists are added to it; the root has number 0.
struct Merged {
    nodes: Vec<MergedNode>,
    /// Nodes by their parent and frame.
    places: HashMap<(u32, u32), u32, RandomState>,
}

struct MergedNode {
    parent: u32,
    frame: u32,
    total: Sides,
    own: Sides,
}

impl Merged {
    fn new() -> Self {
        let (total, own) = (Sides::default(), Sides::default());
        Self {
            nodes: vec![MergedNode { parent: 0, frame: u32::MAX, total, own }],
            places: HashMap::default(),
        }
    }

    fn add(&mut self, path: &[u32], load: Sides) -> Result<(), QueryError> {
        let mut at = 0;
        for &frame in path {
            let nodes = &mut self.nodes;
            at = *self.places.entry((at, frame)).or_insert_with(|| {
                let (total, own) = (Sides::default(), Sides::default());
                nodes.push(MergedNode { parent: at, frame, total, own });
                u32::try_from(nodes.len() - 1).unwrap_or(u32::MAX)
            });
        }
        self.nodes[at as usize].own += load;
        if self.nodes.len() > TREE_NODES_MAX { Err(QueryError::TooManyNodes) } else { Ok(()) }
    }

    /// Totals from what ends at each node: parents come before their children.
    fn add_up(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let node = &mut self.nodes[at];
            node.total += node.own;
            let (parent, total) = (node.parent as usize, node.total);
            if at > 0 {
                self.nodes[parent].total += total;
            }
        }
    }

    /// The largest nodes, whose parents are at least as large.
    fn kept(&self, nodes_max: usize) -> Vec<bool> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        let size = |at: usize| self.nodes[at].total.size();
        order.sort_by(|&a, &b| size(b).total_cmp(&size(a)).then(a.cmp(&b)));
        let mut kept = vec![false; self.nodes.len()];
        // The root is always shown.
        kept[0] = true;
        for at in order.into_iter().take(nodes_max) {
            kept[at] = kept[self.nodes[at].parent as usize];
        }
        kept
    }

    fn shown(&self, frames: &[&str], nodes_max: usize) -> Vec<Node> {
        let kept = self.kept(nodes_max);
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut others: HashMap<usize, Sides, RandomState> = HashMap::default();
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            match (kept[at], kept[node.parent as usize]) {
                (true, _) => children[node.parent as usize].push(at),
                (false, true) => *others.entry(node.parent as usize).or_default() += node.total,
                (false, false) => {}
            }
        }
        let name = |at: usize| frames.get(self.nodes[at].frame as usize).copied().unwrap_or("");
        let size = |at: usize| self.nodes[at].total.size();
        let mut shown = Vec::new();
        let mut ahead = vec![(0, None, 0)];
        while let Some((at, parent, depth)) = ahead.pop() {
            let (frame, MergedNode { total, own, .. }) = (name(at).to_owned(), &self.nodes[at]);
            let (total, own) = (*total, *own);
            shown.push(Node { frame, parent, depth, total, own, is_other: false });
            let place = Some(shown.len() - 1);
            let below = &mut children[at];
            // The last is taken first.
            below.sort_by(|&a, &b| size(a).total_cmp(&size(b)).then(name(b).cmp(name(a))));
            ahead.extend(below.iter().map(|&child| (child, place, depth + 1)));
            if let Some(&total) = others.get(&at) {
                let frame = OTHER.to_owned();
                let (own, depth) = (total, depth + 1);
                shown.push(Node { frame, parent: place, depth, total, own, is_other: true });
            }
        }
        shown
    }
}
