//! Folded stacks: one line per stack, frames joined by `;`, then its weight. Of a diff, the weight
//! in B and then in A, as `difffolded.pl` and `flamegraph.pl` have before and after.

use std::fmt::Write as _;

use super::paths::path;
use crate::views::Tree;

/// A tree as folded stacks, sorted.
///
/// A `;` in a frame would begin another frame, and a line break another stack: they are shown as
/// `:` and space.
pub fn folded(tree: &Tree) -> String {
    let mut lines = Vec::new();
    for (at, node) in tree.nodes.iter().enumerate().skip(1) {
        let (a, b) = (node.own.a.weight, node.own.b.weight);
        if a <= 0.0 && b <= 0.0 {
            continue;
        }
        let frames: Vec<String> =
            path(tree, at).into_iter().map(|at| plain(&tree.nodes[at].frame)).collect();
        let stack = frames.join(";");
        lines.push(if tree.is_diff { format!("{stack} {b} {a}") } else { format!("{stack} {a}") });
    }
    lines.sort_unstable();
    lines.into_iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

fn plain(frame: &str) -> String {
    frame.replace(';', ":").replace(['\n', '\r'], " ")
}
