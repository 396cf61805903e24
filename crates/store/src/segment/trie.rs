//! Lists numbered once, as the ends of paths in a tree: lists that begin alike share their
//! beginning. For stacks this tree is the flame graph of everything, of which a question only has
//! to weigh the ends and add up.
//!
//! Beyond where a list leaves those before it, it is mostly alone. So nodes are not linked one by
//! one: what a list adds to the tree is a *run* of nodes that follow each other, and only the
//! beginnings of runs are searched for. Nodes only come, and a node has a larger number than those
//! above it, so that sums over the tree are made in one pass from its last node to its first.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::vocabulary::BYTES_MAX;
use super::{ListTable, NULL_ID, Vocabulary};

/// What a list takes beside its nodes: its end, and what is remembered to find it.
const LIST_BYTES: usize = 96;
/// The node that everything is below, and the edge that leads to it.
const ROOT: u32 = 0;
/// The number that no list has.
pub const NO_LIST: u32 = 0;

/// From which end lists are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Forward,
    Backward,
}

/// Lists of numbers, as paths in a tree.
#[derive(Debug)]
pub struct Trie {
    /// The item of each node, that of the root being null's.
    items: Vec<u32>,
    /// Ascending.
    runs: Vec<Run>,
    /// Runs, by the node that they begin below and their first item.
    branches: HashMap<(u32, u32), u32, RandomState>,
    /// The node that each list ends at, by its number.
    ends: Vec<u32>,
    /// Numbers of lists, by the nodes that they end at.
    lists: HashMap<u32, u32, RandomState>,
    /// As of the last list.
    shape: OnceLock<Arc<Shape>>,
}

/// Nodes that follow each other: up to where the next run begins.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: u32,
    /// The node that its first one is below.
    parent: u32,
}

/// A trie without the nodes at which nothing ends or branches.
#[derive(Debug)]
pub struct Shape {
    /// Each after the one that it is below; the first leads to the root.
    pub edges: Vec<Edge>,
    /// The edge at whose end each list ends, by its number.
    pub ends: Vec<u32>,
}

/// Nodes one below the other, which all have the same lists below them.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Never empty.
    pub nodes: Range<u32>,
    /// The edge that it is below the end of; itself for the first.
    pub parent: u32,
    /// How far its first node is from the root.
    pub depth: u32,
}

impl Default for Trie {
    fn default() -> Self {
        Self {
            items: vec![NULL_ID],
            runs: vec![Run { first: ROOT, parent: ROOT }],
            branches: HashMap::default(),
            ends: vec![ROOT],
            lists: HashMap::default(),
            shape: OnceLock::new(),
        }
    }
}

impl Trie {
    /// The number of a list, which it is given when it has none: from 1 on.
    pub fn number(&mut self, list: &[u32]) -> u32 {
        let node = self.end_of(list);
        *self.lists.entry(node).or_insert_with(|| {
            self.shape = OnceLock::new();
            self.ends.push(node);
            narrow(self.ends.len() - 1)
        })
    }

    /// The node at the end of a path, which is made where there is none.
    fn end_of(&mut self, list: &[u32]) -> u32 {
        let (mut node, mut end) = (ROOT, self.run_end(0));
        for (at, &item) in list.iter().enumerate() {
            if node + 1 < end && self.items[node as usize + 1] == item {
                node += 1;
                continue;
            }
            let Some(&run) = self.branches.get(&(node, item)) else {
                return self.add_run(node, &list[at..]);
            };
            node = self.runs[run as usize].first;
            end = self.run_end(run as usize);
        }
        node
    }

    /// Returns its last node.
    fn add_run(&mut self, parent: u32, items: &[u32]) -> u32 {
        self.branches.insert((parent, items[0]), narrow(self.runs.len()));
        self.runs.push(Run { first: narrow(self.items.len()), parent });
        self.items.extend_from_slice(items);
        narrow(self.items.len() - 1)
    }

    fn run_end(&self, run: usize) -> u32 {
        self.runs.get(run + 1).map_or(narrow(self.items.len()), |next| next.first)
    }

    /// How many nodes there are, the root included.
    pub fn nodes(&self) -> usize {
        self.items.len()
    }

    /// How many numbers lists have, [`NO_LIST`] included.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    pub fn item(&self, node: u32) -> u32 {
        self.items[node as usize]
    }

    /// The list that has a number.
    pub fn list(&self, number: u32, into: &mut Vec<u32>) {
        into.clear();
        let mut node = self.ends[number as usize];
        while node != ROOT {
            let Run { first, parent } = self.runs[self.run_of(node)];
            into.extend(self.items[first as usize..=node as usize].iter().rev());
            node = parent;
        }
        into.reverse();
    }

    fn run_of(&self, node: u32) -> usize {
        self.runs.partition_point(|run| run.first <= node) - 1
    }

    /// Made once for the lists that there are.
    pub fn shape(&self) -> Arc<Shape> {
        Arc::clone(self.shape.get_or_init(|| Arc::new(Shape::new(self))))
    }
}

impl Shape {
    fn new(trie: &Trie) -> Self {
        // Edges end where lists end, and where runs begin below.
        let branches = trie.runs.iter().map(|run| run.parent);
        let mut lasts: Vec<u32> = trie.ends.iter().copied().chain(branches).collect();
        lasts.sort_unstable();
        lasts.dedup();
        let place = |node: u32| narrow(lasts.partition_point(|&last| last < node));
        let mut edges: Vec<Edge> = Vec::with_capacity(lasts.len());
        let mut run = 0;
        for &last in &lasts {
            while trie.runs.get(run + 1).is_some_and(|next| next.first <= last) {
                run += 1;
            }
            let Run { first, parent } = trie.runs[run];
            let before = edges.last().filter(|before| before.nodes.start >= first);
            let (first, parent) = match before {
                Some(before) => (before.nodes.end, narrow(edges.len() - 1)),
                None => (first, place(parent)),
            };
            let depth = |above: &Edge| above.depth + (above.nodes.end - above.nodes.start);
            let depth = edges.get(parent as usize).map_or(0, depth);
            edges.push(Edge { nodes: first..last + 1, parent, depth });
        }
        Self { edges, ends: trie.ends.iter().map(|&node| place(node)).collect() }
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Two hashes of a list, with seeds that nobody knows: no two lists have the same.
type Print = (u64, u64);

/// The lists of one column, numbered for all segments of a dataset, as its strings are. Beyond the
/// limits of vocabularies it is given up, and lists are numbered anew by every question.
#[derive(Debug)]
pub struct SharedTrie {
    trie: RwLock<Trie>,
    /// The numbers of lists by their fingerprints, so that a list is looked for in the trie once,
    /// and not by every segment that has it.
    known: RwLock<HashMap<Print, u32, RandomState>>,
    seeds: (RandomState, RandomState),
    way: Way,
    /// The numbers of items.
    items: Arc<Vocabulary>,
    /// Of all that the dataset has numbered.
    bytes: Arc<AtomicUsize>,
    lists_max: usize,
    is_given_up: AtomicBool,
}

impl SharedTrie {
    pub(super) fn new(
        way: Way,
        items: Arc<Vocabulary>,
        bytes: Arc<AtomicUsize>,
        lists_max: usize,
    ) -> Self {
        Self {
            trie: RwLock::default(),
            known: RwLock::default(),
            seeds: Default::default(),
            way,
            items,
            bytes,
            lists_max,
            is_given_up: AtomicBool::default(),
        }
    }

    pub fn way(&self) -> Way {
        self.way
    }

    /// What the items of its lists are.
    pub fn items(&self) -> &Arc<Vocabulary> {
        &self.items
    }

    /// Whether its column has no numbers any more.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire) || self.items.is_given_up()
    }

    /// The lists so far; no more come while one looks at them.
    pub fn read(&self) -> RwLockReadGuard<'_, Trie> {
        self.trie.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of each of these lists of a table, [`NO_LIST`] for the others, and last for null;
    /// `None` when they are too many to be numbered.
    pub(super) fn numbers(&self, lists: &ListTable, used: &[u32]) -> Option<Arc<[u32]>> {
        if self.is_given_up() {
            return None;
        }
        let items = self.items.ids(lists.items())?;
        let read = |id: u32, list: &mut Vec<u32>| {
            list.clear();
            list.extend(lists.codes(id).map(|code| items[code as usize]));
            if self.way == Way::Backward {
                list.reverse();
            }
        };
        let (mut numbers, mut list) = (vec![NO_LIST; lists.len() + 1], Vec::new());
        let mut new = Vec::new();
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            for &id in used.iter().take_while(|id| (**id as usize) < lists.len()) {
                read(id, &mut list);
                match known.get(&self.print(&list)) {
                    Some(&number) => numbers[id as usize] = number,
                    None => new.push(id),
                }
            }
        }
        if !new.is_empty() {
            let mut trie = self.trie.write().unwrap_or_else(PoisonError::into_inner);
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            for id in new {
                read(id, &mut list);
                let number = self.number(&mut trie, &list)?;
                known.insert(self.print(&list), number);
                numbers[id as usize] = number;
            }
        }
        Some(numbers.into())
    }

    fn print(&self, list: &[u32]) -> Print {
        (self.seeds.0.hash_one(list), self.seeds.1.hash_one(list))
    }

    fn number(&self, trie: &mut Trie, list: &[u32]) -> Option<u32> {
        let (nodes, count) = (trie.nodes(), trie.count());
        let number = trie.number(list);
        if trie.count() > count {
            let bytes = (trie.nodes() - nodes) * size_of::<u32>() + LIST_BYTES;
            let is_too_much = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > BYTES_MAX;
            if is_too_much || trie.count() > self.lists_max {
                self.is_given_up.store(true, Ordering::Release);
                return None;
            }
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_numbers_and_edges_end_where_lists_end_or_part() {
        let mut trie = Trie::default();
        let lists: [&[u32]; 6] = [&[1, 2, 3, 4], &[1, 2, 5], &[], &[1, 2, 3], &[1, 2, 5, 6], &[7]];
        let numbers: Vec<u32> = lists.iter().map(|list| trie.number(list)).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        let again: Vec<u32> = lists.iter().map(|list| trie.number(list)).collect();
        assert_eq!(again, numbers);
        let mut found = Vec::new();
        for (list, &number) in lists.iter().zip(&numbers) {
            trie.list(number, &mut found);
            assert_eq!(found, *list);
        }
        let shape = trie.shape();
        let items = |edge: &Edge| edge.nodes.clone().map(|node| trie.item(node)).collect();
        let edges: Vec<(Vec<u32>, u32, u32)> =
            shape.edges.iter().map(|edge| (items(edge), edge.parent, edge.depth)).collect();
        let expected = [
            (vec![NULL_ID], 0, 0),
            (vec![1, 2], 0, 1),
            (vec![3], 1, 3),
            (vec![4], 2, 4),
            (vec![5], 1, 3),
            (vec![6], 4, 4),
            (vec![7], 0, 1),
        ];
        assert_eq!(edges, expected);
        assert_eq!(shape.ends, [0, 3, 4, 0, 2, 5, 6]);
    }
}
