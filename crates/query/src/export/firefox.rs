//! The processed profile format of the Firefox Profiler:
//! <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>.

use serde_json::{Value, json};

use super::paths::{Names, leaves};
use crate::views::Tree;

/// The version of the format that is written; the profiler upgrades older ones when it loads them.
const VERSION: u32 = 48;
/// The version of the format that Gecko itself writes, which that one goes with.
const GECKO_VERSION: u32 = 29;
/// The one category that all frames are in.
const CATEGORY: u32 = 0;

/// A tree as a profile of one thread: one sample per stack, with its weight in A. Samples have no
/// times in a tree, so they follow each other at one per millisecond.
pub fn firefox(tree: &Tree, name: &str) -> Value {
    let mut functions = Names::default();
    let (mut prefixes, mut frames) = (Vec::new(), Vec::new());
    for node in tree.nodes.iter().skip(1) {
        frames.push(functions.place(&node.frame));
        // Without the root, which has no name.
        prefixes.push(node.parent.and_then(|parent| parent.checked_sub(1)));
    }
    let leaves: Vec<_> = leaves(tree).collect();
    let stacks: Vec<usize> = leaves.iter().map(|(at, _)| at - 1).collect();
    let weights: Vec<f64> = leaves.iter().map(|(_, node)| node.own.a.weight).collect();
    json!({
        "meta": meta(name),
        "libs": [],
        "threads": [thread(name, functions.get(), &prefixes, &frames, &stacks, &weights)],
    })
}

fn meta(name: &str) -> Value {
    json!({
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": VERSION,
        "interval": 1,
        "startTime": 0,
        "processType": 0,
        "product": name,
        "stackwalk": 0,
        "debug": false,
        "symbolicated": true,
        "categories": [{ "name": "Other", "color": "grey", "subcategories": ["Other"] }],
        "markerSchema": [],
    })
}

fn thread(
    name: &str,
    functions: &[&str],
    prefixes: &[Option<usize>],
    frames: &[usize],
    stacks: &[usize],
    weights: &[f64],
) -> Value {
    let same = |value: Value, count: usize| vec![value; count];
    let nulls = |count| same(Value::Null, count);
    let names: Vec<usize> = (0..functions.len()).collect();
    json!({
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": null,
        "registerTime": 0,
        "unregisterTime": null,
        "pausedRanges": [],
        "name": name,
        "isMainThread": true,
        "pid": "0",
        "tid": 0,
        "samples": {
            "length": stacks.len(),
            "stack": stacks,
            "time": (0..stacks.len()).collect::<Vec<_>>(),
            "weight": weights,
            "weightType": "samples",
        },
        "markers": {
            "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [],
            "startTime": [],
        },
        "stackTable": {
            "length": frames.len(),
            "frame": (0..frames.len()).collect::<Vec<_>>(),
            "prefix": prefixes,
            "category": same(json!(CATEGORY), frames.len()),
            "subcategory": same(json!(0), frames.len()),
        },
        "frameTable": {
            "length": frames.len(),
            "address": same(json!(-1), frames.len()),
            "inlineDepth": same(json!(0), frames.len()),
            "category": same(json!(CATEGORY), frames.len()),
            "subcategory": same(json!(0), frames.len()),
            "func": frames,
            "nativeSymbol": nulls(frames.len()),
            "innerWindowID": nulls(frames.len()),
            "implementation": nulls(frames.len()),
            "line": nulls(frames.len()),
            "column": nulls(frames.len()),
        },
        "funcTable": {
            "length": functions.len(),
            "name": names,
            "isJS": same(json!(false), functions.len()),
            "relevantForJS": same(json!(false), functions.len()),
            "resource": same(json!(-1), functions.len()),
            "fileName": nulls(functions.len()),
            "lineNumber": nulls(functions.len()),
            "columnNumber": nulls(functions.len()),
        },
        "resourceTable": { "length": 0, "lib": [], "name": [], "host": [], "type": [] },
        "nativeSymbols": {
            "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [],
        },
        "stringArray": functions,
    })
}
