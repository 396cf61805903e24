//! The file format of speedscope: <https://www.speedscope.app/file-format-schema.json>.

use serde_json::{Value, json};

use super::paths::{Names, leaves, path};
use crate::views::Tree;

/// A tree as speedscope's JSON: one sample per stack, with its weight in A.
pub fn speedscope(tree: &Tree, name: &str) -> Value {
    let mut names = Names::default();
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    for (at, node) in leaves(tree) {
        let stack = path(tree, at).into_iter().map(|at| names.place(&tree.nodes[at].frame));
        samples.push(stack.collect::<Vec<_>>());
        weights.push(node.own.a.weight);
    }
    let frames: Vec<Value> = names.get().iter().map(|name| json!({ "name": name })).collect();
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "perflab",
        "name": name,
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": [{
            "type": "sampled",
            "name": name,
            "unit": "none",
            "startValue": 0,
            "endValue": weights.iter().sum::<f64>(),
            "samples": samples,
            "weights": weights,
        }],
    })
}
