use crate::{assert_none, workspace};
use perflab_rules::Package;
use perflab_rules::manifests::{has_code, manifest_violations, starts_with_doc};
use std::fs;

/// Runs a rule on every crate of ours and puts the crate's name before what it finds.
fn check_members(rule: impl Fn(&Package) -> Vec<String>) {
    let metadata = workspace();
    let found: Vec<String> = metadata
        .members()
        .flat_map(|package| {
            let name = &package.name;
            let found = rule(package).into_iter();
            found.map(|violation| format!("`{name}` {violation}")).collect::<Vec<_>>()
        })
        .collect();
    assert_none(&found);
}

#[test]
fn manifests_take_lints_and_versions_from_the_workspace() {
    check_members(|package| {
        manifest_violations(&fs::read_to_string(&package.manifest_path).unwrap())
    });
}

#[test]
fn every_crate_says_what_it_is() {
    check_members(|package| {
        let root = package.root_file().map(fs::read_to_string);
        let says = root.is_some_and(|source| starts_with_doc(&source.unwrap()));
        let violation = "does not start with a `//!` comment".to_owned();
        (!says).then_some(violation).into_iter().collect()
    });
}

#[test]
fn no_crate_is_empty() {
    check_members(|package| {
        let folder = package.manifest_path.parent().unwrap();
        let violation = "has no code yet".to_owned();
        let has_code = has_code(folder).unwrap();
        (!has_code).then_some(violation).into_iter().collect()
    });
}

#[test]
fn a_version_or_lint_of_its_own_is_found() {
    let good = "[lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\n\
                rustix = { workspace = true, features = [\"time\"] }\n";
    assert_none(&manifest_violations(good));
    let bad = "[lints.clippy]\nall = \"allow\"\n[dependencies]\nserde = \"1\"\n\
               [dev-dependencies]\ntempfile = { version = \"3\" }\n\
               [target.'cfg(unix)'.dependencies]\nrustix = \"1\"\n";
    assert_eq!(
        manifest_violations(bad),
        [
            "lacks `[lints] workspace = true`",
            "declares `serde` without `workspace = true`",
            "declares `tempfile` without `workspace = true`",
            "declares `rustix` without `workspace = true`",
        ]
    );
}

#[test]
fn a_first_file_without_a_doc_comment_is_found() {
    assert!(starts_with_doc("//! What it is.\nfn main() {}"));
    for silent in ["", "fn main() {}", "//!\n", "// what it is", "\n//! Late."] {
        assert!(!starts_with_doc(silent), "{silent:?}");
    }
}
