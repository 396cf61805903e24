//! Data flows one way: which of our crates may use which.

use crate::Graph;
use std::collections::BTreeSet;

/// A crate of ours and the crates of ours that it may use.
#[derive(Debug)]
pub struct Allowed {
    pub name: &'static str,
    pub may_use: MayUse,
}

#[derive(Debug, PartialEq, Eq)]
pub enum MayUse {
    Only(&'static [&'static str]),
    /// Every crate that others may use at all: see [`ENDS`].
    Everything,
}

/// The one-way edges, the crates of later work included. A crate that isn't here is refused:
/// whoever adds one says in this table what it may use.
pub const ALLOWED: &[Allowed] = &[
    only("perflab-model", &[]),
    only("perflab-wire", &["perflab-model"]),
    only("perflab-import", &["perflab-model"]),
    only("perflab-measure", &["perflab-model", "perflab-import"]),
    only("perflab-profile", &["perflab-model"]),
    only("perflab-log", &[]),
    only("perflab-store", &["perflab-model", "perflab-wire", "perflab-log"]),
    only("perflab-query", &["perflab-model", "perflab-store"]),
    only("perflab-sql", &["perflab-model", "perflab-store", "perflab-query"]),
    only(
        "perflab-server",
        &[
            "perflab-model",
            "perflab-wire",
            "perflab-import",
            "perflab-measure",
            "perflab-profile",
            "perflab-log",
            "perflab-store",
            "perflab-query",
            "perflab-sql",
        ],
    ),
    everything("perflab"),
    everything("perflab-bench"),
    only("perflab-rules", &[]),
];

/// Crates that nothing may use: programs, and the rules themselves.
pub const ENDS: &[&str] = &["perflab", "perflab-bench", "perflab-rules"];

const fn only(name: &'static str, may_use: &'static [&'static str]) -> Allowed {
    Allowed { name, may_use: MayUse::Only(may_use) }
}

const fn everything(name: &'static str) -> Allowed {
    Allowed { name, may_use: MayUse::Everything }
}

/// What in this graph points the wrong way. `members` are our crates: edges to others are no
/// concern of this rule.
pub fn violations(members: &BTreeSet<&str>, graph: &Graph) -> Vec<String> {
    let unknown = members
        .iter()
        .filter(|&&member| rule_of(member).is_none())
        .map(|member| format!("`{member}` is not in the table of allowed edges"));
    let wrong = graph
        .edges()
        .filter(|(source, target)| members.contains(source) && members.contains(target))
        // The tests of a crate may use it with features for tests.
        .filter(|(source, target)| source != target && !is_allowed(source, target))
        .map(|(source, target)| format!("`{source}` may not use `{target}`"));
    unknown.chain(wrong).collect()
}

fn rule_of(name: &str) -> Option<&'static Allowed> {
    ALLOWED.iter().find(|allowed| allowed.name == name)
}

fn is_allowed(source: &str, target: &str) -> bool {
    // A crate that is not in the table is reported as such, once.
    let Some(rule) = rule_of(source) else {
        return true;
    };
    match rule.may_use {
        MayUse::Everything => !ENDS.contains(&target),
        MayUse::Only(names) => names.contains(&target),
    }
}
