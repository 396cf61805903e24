use crate::{assert_none, workspace};
use perflab_rules::Package;
use perflab_rules::versions::{forbidden, twice};

fn package(name: &str, version: &str) -> Package {
    Package {
        id: format!("{name}@{version}"),
        name: name.to_owned(),
        version: version.to_owned(),
        license: Some("MIT".to_owned()),
        manifest_path: "Cargo.toml".into(),
        targets: Vec::new(),
    }
}

#[test]
fn heavy_dependencies_are_there_once() {
    assert_none(&twice(&workspace().packages));
}

#[test]
fn tls_is_rustls_alone() {
    assert_none(&forbidden(&workspace().packages));
}

#[test]
fn a_second_version_is_found() {
    let packages = [
        package("arrow", "59.0.0"),
        package("arrow", "60.1.0"),
        package("syn", "1.0.0"),
        package("syn", "2.0.0"),
    ];
    assert_eq!(twice(&packages), ["`arrow` is there as 59.0.0 and 60.1.0"]);
}

#[test]
fn openssl_is_found() {
    let packages = [package("rustls", "0.23.0"), package("openssl-sys", "0.9.1")];
    assert_eq!(forbidden(&packages), ["`openssl-sys 0.9.1` is forbidden"]);
}
