//! What every node of a tree weighs, and which of them are shown.
//!
//! All of it is done by edges: nodes one below the other, with nothing ending or branching between
//! them, weigh the same.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use perflab_store::segment::{Edge, Shape, Trie};

use super::stacks::{Names, Sides};
use super::tree::{Node, OTHER};
use crate::QueryError;
use crate::limits::Budget;

/// The place of the edge to the root.
const ROOT: usize = 0;

pub(super) struct Merged<'t> {
    trie: &'t Trie,
    shape: Arc<Shape>,
    /// Of all lists through each edge.
    total: Vec<Sides>,
    /// Of the lists that end with it.
    own: Vec<Sides>,
}

/// An edge of which something is shown.
#[derive(Debug, Clone, Copy)]
struct Kept {
    edge: usize,
    /// How many of its nodes, from the first on.
    nodes: usize,
    /// What is below the last of them and not shown.
    other: Option<Sides>,
}

impl<'t> Merged<'t> {
    /// `loads`: what lists weigh, by their numbers; those beyond weigh nothing.
    pub(super) fn new(
        trie: &'t Trie,
        loads: &[Sides],
        budget: &Budget<'_>,
    ) -> Result<Self, QueryError> {
        let shape = trie.shape();
        budget.check()?;
        budget.take(2 * shape.edges.len() * size_of::<Sides>())?;
        let mut own = vec![Sides::default(); shape.edges.len()];
        // The first number is that of no list.
        for (&edge, &load) in shape.ends.iter().zip(loads).skip(1) {
            own[edge as usize] = load;
        }
        let mut total = own.clone();
        for (at, edge) in shape.edges.iter().enumerate().skip(1).rev() {
            let below = total[at];
            total[edge.parent as usize] += below;
        }
        Ok(Self { trie, shape, total, own })
    }

    fn edge(&self, at: usize) -> &Edge {
        &self.shape.edges[at]
    }

    fn parent(&self, at: usize) -> usize {
        self.edge(at).parent as usize
    }

    /// The name of the first node.
    fn name<'n>(&self, at: usize, names: &'n Names<'_>) -> &'n str {
        names.get(self.trie.item(self.edge(at).nodes.start))
    }

    fn by_size(&self, x: usize, y: usize) -> Ordering {
        self.total[y].size().total_cmp(&self.total[x].size())
    }

    /// How far the nodes of an edge are from the root.
    fn depths(&self, at: usize) -> Range<u32> {
        let Edge { nodes, depth, .. } = self.edge(at);
        *depth..depth + (nodes.end - nodes.start)
    }

    /// The names from the node of an edge that is so deep up to the root.
    fn names_above<'n>(
        &self,
        at: usize,
        depth: u32,
        names: &'n Names<'_>,
    ) -> impl Iterator<Item = &'n str> {
        let Edge { nodes, depth: first, .. } = self.edge(at);
        let above = |at: &usize| (*at != ROOT).then(|| self.parent(*at));
        let edges = std::iter::successors(above(&at), above);
        let nodes = nodes.start..nodes.start + (depth - first) + 1;
        let nodes = nodes.rev().chain(edges.flat_map(|at| self.edge(at).nodes.clone().rev()));
        nodes.map(|node| names.get(self.trie.item(node)))
    }

    /// The largest nodes, by their edges, the root first. What is above a node is at least as large
    /// and nearer to the root, so that it is there too.
    fn kept(&self, nodes_max: usize, names: &Names<'_>) -> Vec<Kept> {
        let has_load = |at: &usize| self.total[*at] != Sides::default();
        let mut edges: Vec<usize> = (1..self.shape.edges.len()).filter(has_load).collect();
        let mut room = nodes_max.saturating_sub(1);
        // No edge is without nodes; those as large as the last that may be shown come along.
        if room < edges.len() {
            let last = *edges.select_nth_unstable_by(room, |&x, &y| self.by_size(x, y)).1;
            edges.retain(|&at| self.by_size(at, last).is_le());
        }
        edges.sort_unstable_by(|&x, &y| self.by_size(x, y));
        let mut kept = vec![Kept { edge: ROOT, nodes: 1, other: None }];
        for equal in edges.chunk_by(|&x, &y| self.by_size(x, y).is_eq()) {
            let nodes: usize = equal.iter().map(|&at| self.edge(at).nodes.len()).sum();
            if nodes > room {
                self.keep_some(equal, room, names, &mut kept);
                break;
            }
            room -= nodes;
            let whole =
                |&edge: &usize| Kept { edge, nodes: self.edge(edge).nodes.len(), other: None };
            kept.extend(equal.iter().map(whole));
        }
        kept
    }

    /// So many nodes of edges that are equally large and have more: those nearest to the root, and
    /// of the equally near by the names of all from there up to the root.
    fn keep_some(&self, edges: &[usize], mut room: usize, names: &Names<'_>, kept: &mut Vec<Kept>) {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for depth in edges.iter().flat_map(|&at| self.depths(at)) {
            *counts.entry(depth).or_default() += 1;
        }
        let mut last = 0;
        for (depth, count) in counts {
            last = depth;
            if count > room {
                break;
            }
            room -= count;
        }
        let mut of_last: Vec<usize> =
            edges.iter().copied().filter(|&at| self.depths(at).contains(&last)).collect();
        if room < of_last.len() {
            of_last.select_nth_unstable_by(room, |&x, &y| {
                self.names_above(x, last, names).cmp(self.names_above(y, last, names))
            });
            of_last.truncate(room);
        }
        of_last.sort_unstable();
        for &edge in edges {
            let nearer = self.depths(edge).filter(|depth| *depth < last).count();
            let nodes = nearer + usize::from(of_last.binary_search(&edge).is_ok());
            if nodes > 0 {
                kept.push(Kept { edge, nodes, other: None });
            }
        }
    }

    /// Finds what is below the edges that are shown and is not shown itself.
    fn find_others(&self, kept: &mut [Kept]) {
        let mut places: Vec<Option<usize>> = vec![None; self.shape.edges.len()];
        for (place, kept) in kept.iter_mut().enumerate() {
            places[kept.edge] = Some(place);
            if kept.nodes < self.edge(kept.edge).nodes.len() {
                kept.other = Some(self.total[kept.edge]);
            }
        }
        for at in 1..self.shape.edges.len() {
            if places[at].is_none()
                && self.total[at] != Sides::default()
                && let Some(above) = places[self.parent(at)]
                && kept[above].nodes == self.edge(kept[above].edge).nodes.len()
            {
                *kept[above].other.get_or_insert_default() += self.total[at];
            }
        }
    }

    /// The largest nodes, each before those below it.
    pub(super) fn shown(&self, names: &Names<'_>, nodes_max: usize) -> Vec<Node> {
        let mut kept = self.kept(nodes_max, names);
        self.find_others(&mut kept);
        // By what they are below; siblings from the smallest to the largest, as the last is taken
        // first.
        kept[1..].sort_by(|x, y| {
            let (x, y) = (x.edge, y.edge);
            let above = self.parent(x).cmp(&self.parent(y));
            let size = |at: usize| self.total[at].size();
            let by_size = || size(x).total_cmp(&size(y));
            above.then_with(by_size).then_with(|| self.name(y, names).cmp(self.name(x, names)))
        });
        let below = |edge: usize| {
            let first = kept[1..].partition_point(|kept| self.parent(kept.edge) < edge);
            let end = kept[1..].partition_point(|kept| self.parent(kept.edge) <= edge);
            &kept[1 + first..1 + end]
        };
        let (mut shown, mut ahead) = (Vec::new(), vec![(&kept[0], None)]);
        while let Some((kept, above)) = ahead.pop() {
            let last = self.show(kept, above, names, &mut shown);
            ahead.extend(below(kept.edge).iter().map(|kept| (kept, Some(last))));
        }
        shown
    }

    /// Shows the nodes of an edge; returns the place of the last of them.
    fn show(
        &self,
        kept: &Kept,
        mut parent: Option<usize>,
        names: &Names<'_>,
        shown: &mut Vec<Node>,
    ) -> usize {
        let (edge, total) = (self.edge(kept.edge), self.total[kept.edge]);
        let (mut depth, mut last) = (edge.depth as usize, shown.len());
        for node in edge.nodes.clone().take(kept.nodes) {
            let is_end = node + 1 == edge.nodes.end;
            let own = if is_end { self.own[kept.edge] } else { Sides::default() };
            let frame = names.get(self.trie.item(node)).to_owned();
            last = shown.len();
            shown.push(Node { frame, parent, depth, total, own, is_other: false });
            (parent, depth) = (Some(last), depth + 1);
        }
        if let Some(total) = kept.other {
            let frame = OTHER.to_owned();
            shown.push(Node { frame, parent, depth, total, own: total, is_other: true });
        }
        last
    }
}
