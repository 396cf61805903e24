use crate::{assert_none, workspace};
use perflab_rules::Package;
use perflab_rules::licences::{ExpressionError, is_allowed, violations};

#[test]
fn every_dependency_has_a_licence_that_is_allowed() {
    assert_none(&violations(workspace().others()));
}

#[test]
fn our_own_crates_say_their_licence() {
    for package in workspace().members() {
        assert_eq!(package.license.as_deref(), Some("MIT OR Apache-2.0"), "{}", package.name);
    }
}

#[test]
fn expressions_mean_what_spdx_says() {
    for (expression, allowed) in [
        ("MIT", true),
        ("GPL-3.0-only", false),
        ("MIT OR GPL-3.0-only", true),
        ("GPL-3.0-only OR MIT", true),
        ("MIT AND GPL-3.0-only", false),
        ("MIT/Apache-2.0", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(MIT OR Apache-2.0) AND AGPL-3.0-only", false),
        // AND binds more tightly than OR.
        ("AGPL-3.0-only AND MIT OR ISC", true),
        ("ISC OR MIT AND AGPL-3.0-only", true),
        ("AGPL-3.0-only AND (MIT OR ISC)", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("GPL-2.0-only WITH Classpath-exception-2.0", false),
        ("MPL-2.0", false),
    ] {
        assert_eq!(is_allowed(expression), Ok(allowed), "{expression}");
    }
}

#[test]
fn what_is_no_expression_is_refused() {
    let left_over = |word: &str| ExpressionError::LeftOver(word.to_owned());
    let no_licence = |word: &str| ExpressionError::NoLicence(word.to_owned());
    for (expression, error) in [
        ("", ExpressionError::Ended),
        ("MIT OR", ExpressionError::Ended),
        ("MIT ISC", left_over("ISC")),
        ("(MIT", ExpressionError::Open),
        ("MIT)", left_over(")")),
        ("AND MIT", no_licence("AND")),
        (&"(".repeat(100), ExpressionError::TooDeep),
    ] {
        assert_eq!(is_allowed(expression), Err(error), "{expression}");
    }
}

#[test]
fn a_package_without_a_licence_is_found() {
    let package = Package {
        id: "x".to_owned(),
        name: "x".to_owned(),
        version: "1.0.0".to_owned(),
        license: None,
        manifest_path: "Cargo.toml".into(),
        targets: Vec::new(),
    };
    assert_eq!(violations([&package]), ["`x 1.0.0` names no licence"]);
}
