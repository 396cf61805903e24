use crate::{assert_none, workspace};
use perflab_rules::edges::{ALLOWED, ENDS, MayUse, violations};
use perflab_rules::graph::Edges;
use perflab_rules::{Graph, Package};
use std::collections::BTreeSet;

fn check(members: &[&str], edges: &[(&str, &str)], expected: &[&str]) {
    let members = members.iter().copied().collect();
    assert_eq!(violations(&members, &Graph::from_edges(edges)), expected);
}

#[test]
fn data_flows_one_way() {
    let metadata = workspace();
    let members: BTreeSet<&str> =
        metadata.members().map(|Package { name, .. }| name.as_str()).collect();
    assert!(members.contains("perflab-rules"), "cargo names our crates: {members:?}");
    assert_none(&violations(&members, &Graph::new(&metadata, Edges::All)));
}

#[test]
fn an_edge_that_points_back_is_found() {
    let members = ["perflab-model", "perflab-wire", "perflab-log", "perflab"];
    check(&members, &[("perflab-wire", "perflab-model"), ("perflab-wire", "perflab-wire")], &[]);
    check(
        &members,
        &[
            ("perflab-wire", "perflab-model"),
            ("perflab-model", "perflab-wire"),
            ("perflab-log", "perflab-model"),
            ("perflab-wire", "perflab"),
        ],
        &[
            "`perflab-log` may not use `perflab-model`",
            "`perflab-model` may not use `perflab-wire`",
            "`perflab-wire` may not use `perflab`",
        ],
    );
}

#[test]
fn nothing_uses_a_program() {
    let members = ["perflab", "perflab-bench", "perflab-rules"];
    check(
        &members,
        &[("perflab", "perflab-bench"), ("perflab-bench", "perflab")],
        &["`perflab` may not use `perflab-bench`", "`perflab-bench` may not use `perflab`"],
    );
}

#[test]
fn a_crate_that_the_table_does_not_name_is_found() {
    check(
        &["perflab-model", "perflab-utils"],
        &[("perflab-utils", "perflab-model"), ("perflab-model", "serde")],
        &["`perflab-utils` is not in the table of allowed edges"],
    );
}

#[test]
fn the_table_itself_has_no_cycle() {
    let edges: Vec<(&str, &str)> = ALLOWED
        .iter()
        .flat_map(|allowed| match allowed.may_use {
            MayUse::Only(names) => names.iter().map(|name| (allowed.name, *name)).collect(),
            MayUse::Everything => Vec::new(),
        })
        .collect();
    let graph = Graph::from_edges(&edges);
    for (source, target) in edges {
        assert!(!graph.reaches(target, source), "{source} -> {target} -> …");
        assert!(!ENDS.contains(&target), "{source} -> {target}");
    }
}

#[test]
fn the_query_algebra_never_compiles_datafusion() {
    let graph = Graph::new(&workspace(), Edges::All);
    assert!(!graph.reaches("perflab-query", "datafusion"));
    let indirect = [("perflab-query", "perflab-store"), ("perflab-store", "datafusion")];
    assert!(Graph::from_edges(&indirect).reaches("perflab-query", "datafusion"));
}
