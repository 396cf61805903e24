//! Dependencies that may be there once, or not at all.

use crate::Package;
use std::collections::{BTreeMap, BTreeSet};

/// Two versions of one of these would be two sets of types that look alike, or minutes more of
/// compiling.
pub const ONCE: &[&str] =
    &["arrow", "arrow-array", "parquet", "datafusion", "rusqlite", "rustls", "hyper", "tokio"];

/// TLS is rustls, everywhere: no system library to install, one set of certificates.
pub const FORBIDDEN: &[&str] = &["openssl", "openssl-sys", "native-tls"];

/// The packages of [`ONCE`] that are there in more than one version.
pub fn twice<'p>(packages: impl IntoIterator<Item = &'p Package>) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        if ONCE.contains(&package.name.as_str()) {
            let of_package = versions.entry(&package.name).or_default();
            of_package.insert(&package.version);
        }
    }
    versions
        .into_iter()
        .filter(|(_, versions)| versions.len() > 1)
        .map(|(name, versions)| {
            let versions: Vec<_> = versions.into_iter().collect();
            format!("`{name}` is there as {}", versions.join(" and "))
        })
        .collect()
}

/// The packages of [`FORBIDDEN`] that are there.
pub fn forbidden<'p>(packages: impl IntoIterator<Item = &'p Package>) -> Vec<String> {
    packages
        .into_iter()
        .filter(|package| FORBIDDEN.contains(&package.name.as_str()))
        .map(|package| format!("`{} {}` is forbidden", package.name, package.version))
        .collect()
}
