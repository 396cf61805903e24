//! Who is above whom in lists, whatever is around them: a call graph as data.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_store::segment::{Snapshot, Way};

use super::stacks::{Scans, Sides, Stacks};
use crate::error::GRAPH_EDGES_MAX;
use crate::limits::Budget;
use crate::selection::Selection;
use crate::{Limits, QueryError};

/// The frames of lists, and which of them are next to each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// From the largest to the smallest, the same size by name.
    pub nodes: Vec<GraphNode>,
    /// Between nodes that are shown; from the largest to the smallest.
    pub edges: Vec<Edge>,
    /// How many frames were too small to be shown.
    pub nodes_left_out: usize,
    /// How many edges have an end that is not shown.
    pub edges_left_out: usize,
    /// Of rows that have no list.
    pub without: Sides,
    pub rows_scanned: u64,
}

/// A frame, wherever it is.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphNode {
    pub frame: String,
    /// Of the lists that have it; a list counts once, however often it has it.
    pub total: Sides,
    /// Of the lists that end with it.
    pub own: Sides,
}

/// Two frames of which one follows the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The place in `nodes` of the frame nearer to the root.
    pub parent: usize,
    pub child: usize,
    /// Of the lists that have the pair; a list counts once, however often it has it.
    pub total: Sides,
}

/// The graph of a column of vectors, with its `nodes_max` largest frames.
pub fn graph(
    column: &str,
    nodes_max: usize,
    a: &Selection,
    b: Option<&Selection>,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Graph, QueryError> {
    let budget = Budget::of(limits);
    let scans = Scans::new(a, b, snapshot, &budget)?;
    let stacks = Stacks::of_vectors(column, Way::Forward, &scans, snapshot)?;
    let counted = Counted::new(&stacks, &budget)?;
    let names = stacks.names();
    let is_seen = |frame: &u32| counted.is_seen[*frame as usize];
    let mut order: Vec<u32> =
        (0_u32..).zip(&counted.is_seen).map(|(frame, _)| frame).filter(is_seen).collect();
    let size = |frame: u32| counted.total[frame as usize].size();
    let name = |frame: u32| names.get(frame);
    order.sort_by(|&a, &b| size(b).total_cmp(&size(a)).then(name(a).cmp(name(b))));
    let nodes_left_out = order.len().saturating_sub(nodes_max);
    order.truncate(nodes_max);
    let places: HashMap<u32, usize, RandomState> =
        order.iter().enumerate().map(|(place, &frame)| (frame, place)).collect();
    let node = |&frame: &u32| GraphNode {
        frame: name(frame).to_owned(),
        total: counted.total[frame as usize],
        own: counted.own[frame as usize],
    };
    let edges = counted.edges(&places);
    Ok(Graph {
        nodes: order.iter().map(node).collect(),
        nodes_left_out,
        edges_left_out: counted.edges.len() - edges.len(),
        edges,
        without: stacks.without,
        rows_scanned: stacks.rows_scanned,
    })
}

/// What frames and pairs of them weigh, by the numbers of frames.
struct Counted {
    is_seen: Vec<bool>,
    total: Vec<Sides>,
    own: Vec<Sides>,
    edges: HashMap<(u32, u32), Sides, RandomState>,
}

impl Counted {
    fn new(stacks: &Stacks<'_>, budget: &Budget<'_>) -> Result<Self, QueryError> {
        let count = stacks.names().count();
        budget.take(count * size_of::<(bool, Sides, Sides)>())?;
        let mut counted = Self {
            is_seen: vec![false; count],
            total: vec![Sides::default(); count],
            own: vec![Sides::default(); count],
            edges: HashMap::default(),
        };
        stacks.each(|list, load| {
            budget.check()?;
            let edges = counted.edges.len();
            counted.add(list, load)?;
            budget.take((counted.edges.len() - edges) * size_of::<((u32, u32), Sides)>())
        })?;
        Ok(counted)
    }

    fn add(&mut self, list: &[u32], load: Sides) -> Result<(), QueryError> {
        let mut frames = list.to_vec();
        frames.sort_unstable();
        frames.dedup();
        for frame in frames {
            self.is_seen[frame as usize] = true;
            self.total[frame as usize] += load;
        }
        if let Some(&leaf) = list.last() {
            self.own[leaf as usize] += load;
        }
        let mut pairs: Vec<_> = list.windows(2).map(|pair| (pair[0], pair[1])).collect();
        pairs.sort_unstable();
        pairs.dedup();
        for pair in pairs {
            *self.edges.entry(pair).or_default() += load;
        }
        if self.edges.len() > GRAPH_EDGES_MAX { Err(QueryError::TooManyEdges) } else { Ok(()) }
    }

    /// Those between nodes that are shown.
    fn edges(&self, places: &HashMap<u32, usize, RandomState>) -> Vec<Edge> {
        let place = |frame: u32| places.get(&frame).copied();
        let edge = |(&(parent, child), &total): (&(u32, u32), &Sides)| {
            Some(Edge { parent: place(parent)?, child: place(child)?, total })
        };
        let mut edges: Vec<Edge> = self.edges.iter().filter_map(edge).collect();
        edges.sort_by(|x, y| {
            let by_size = y.total.size().total_cmp(&x.total.size());
            by_size.then((x.parent, x.child).cmp(&(y.parent, y.child)))
        });
        edges
    }
}
