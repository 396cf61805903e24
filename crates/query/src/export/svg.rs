//! A flame graph as one SVG without scripts: it can be mailed, printed, and shown by anything.

use std::fmt::Write as _;

use crate::views::{Node, Tree};

const WIDTH: f64 = 1200.0;
const ROW_HEIGHT: usize = 17;
const TITLE_HEIGHT: usize = 30;
/// About how wide a character is at the size of the text.
const CHARACTER_WIDTH: f64 = 7.0;
/// What is narrower can't be seen, and is not drawn.
const NARROWEST: f64 = 0.1;

/// A tree as a flame graph with the root at the top. The width of a node is its weight, in a diff
/// the weight of both sides; what a node is exactly is said where the pointer rests on it.
///
/// In a diff a node is red where its share of A is larger than its share of B, blue where it is
/// smaller, and the paler the closer they are.
pub fn svg(tree: &Tree, title: &str) -> String {
    let places = places(tree);
    let depth = tree.nodes.iter().map(|node| node.depth).max().unwrap_or(0);
    let height = TITLE_HEIGHT + (depth + 1) * ROW_HEIGHT;
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{}\" y=\"20\" text-anchor=\"middle\" font-size=\"16\">{}</text>",
        WIDTH / 2.0,
        escaped(title),
    );
    for (node, (left, width)) in tree.nodes.iter().zip(places) {
        if width >= NARROWEST {
            add_node(&mut svg, tree, node, left, width);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Where each node begins, and how wide it is: children fill their parent from the left.
fn places(tree: &Tree) -> Vec<(f64, f64)> {
    let whole = tree.nodes.first().map_or(0.0, |root| root.total.size());
    let mut places = Vec::with_capacity(tree.nodes.len());
    // Where the next child of each node begins.
    let mut next = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let left = node.parent.map_or(0.0, |parent| next[parent]);
        let width = if whole > 0.0 { WIDTH * node.total.size() / whole } else { 0.0 };
        if let Some(parent) = node.parent {
            next[parent] += width;
        }
        next.push(left);
        places.push((left, width));
    }
    places
}

fn add_node(svg: &mut String, tree: &Tree, node: &Node, left: f64, width: f64) {
    let top = TITLE_HEIGHT + node.depth * ROW_HEIGHT;
    let name = if node.parent.is_none() { "all" } else { &node.frame };
    let _ = writeln!(
        svg,
        "<g><title>{}</title>\
         <rect x=\"{left:.2}\" y=\"{top}\" width=\"{width:.2}\" height=\"{}\" fill=\"{}\" rx=\"1\"/>\
         <text x=\"{:.2}\" y=\"{}\">{}</text></g>",
        escaped(&format!("{name}\n{}", described(tree, node))),
        ROW_HEIGHT - 1,
        color(tree, node),
        left + 3.0,
        top + 12,
        escaped(&fitting(name, width)),
    );
}

fn described(tree: &Tree, node: &Node) -> String {
    let (total, own, root) = (node.total, node.own, tree.nodes[0].total);
    let a = format!(
        "weight {} ({:.2} %), self {}, samples {}",
        total.a.weight,
        100.0 * share(total.a.weight, root.a.weight),
        own.a.weight,
        total.a.samples
    );
    if !tree.is_diff {
        return a;
    }
    format!(
        "A: {a}\nB: weight {} ({:.2} %), self {}, samples {}\nA − B: {:+}",
        total.b.weight,
        100.0 * share(total.b.weight, root.b.weight),
        own.b.weight,
        total.b.samples,
        total.delta()
    )
}

/// 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// As much of a name as fits.
fn fitting(name: &str, width: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
    let room = ((width - 6.0) / CHARACTER_WIDTH).max(0.0) as usize;
    match (name.chars().count() <= room, room) {
        (true, _) => name.to_owned(),
        (false, 0..=2) => String::new(),
        (false, _) => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// The same for the same frame in every picture; of a diff, the direction and size of the change.
fn color(tree: &Tree, node: &Node) -> String {
    if !tree.is_diff {
        let hash = name_hash(node.frame.as_bytes());
        return format!("hsl({}, 75%, {}%)", 15 + hash % 40, 62 + hash / 64 % 12);
    }
    let root = tree.nodes[0].total;
    let a = share(node.total.a.weight, root.a.weight);
    let b = share(node.total.b.weight, root.b.weight);
    // From −1, only in B, to 1, only in A.
    let change = share(a - b, a.max(b));
    let hue = if change < 0.0 { 220 } else { 5 };
    format!("hsl({hue}, 80%, {:.0}%)", 95.0 - 40.0 * change.abs())
}

/// FNV-1a (Fowler, Noll and Vo): what colours need of a hash is that it never changes.
fn name_hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// What XML can't have, such as control characters, is shown as `�`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other if other.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
