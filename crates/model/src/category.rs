//! Category names: how a stream in the log, and the dataset it feeds, are called.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The longest category name, in bytes: what a file name may hold on common file systems.
pub const CATEGORY_NAME_BYTES_MAX: usize = 255;

/// Scribe's convention: category `perfpipe_X` feeds dataset `X`.
const DATASET_PREFIX: &str = "perfpipe_";

/// A name that is safe to use as a path below a directory, in a URL and on a command line.
///
/// Cloning is cheap: requests hold one name for thousands of entries.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CategoryName(Arc<str>);

/// The rule that a category name breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CategoryNameError {
    #[error("category name is empty")]
    Empty,
    #[error("category name has {bytes} bytes, more than {CATEGORY_NAME_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error(
        "category name `{}` holds {found:?} at byte {at}; letters, digits and `_ - . /` are allowed",
        .name.escape_debug()
    )]
    Character { name: String, found: char, at: usize },
    #[error("category name `{name}` has an empty part; single `/` only between parts")]
    EmptyPart { name: String },
    #[error("category name `{name}` has a part `{part}`, which would leave its directory")]
    DotPart { name: String, part: &'static str },
}

impl CategoryName {
    pub fn new(name: &str) -> Result<Self, CategoryNameError> {
        check(name)?;
        Ok(Self(Arc::from(name)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The dataset that this category feeds: its name without `perfpipe_`.
    pub fn dataset(&self) -> &str {
        match self.0.strip_prefix(DATASET_PREFIX) {
            Some(dataset) if !dataset.is_empty() && !dataset.starts_with('/') => dataset,
            _ => &self.0,
        }
    }
}

fn check(name: &str) -> Result<(), CategoryNameError> {
    if name.is_empty() {
        return Err(CategoryNameError::Empty);
    }
    // Before anything that quotes the name: an error text must stay short.
    if name.len() > CATEGORY_NAME_BYTES_MAX {
        return Err(CategoryNameError::TooLong { bytes: name.len() });
    }
    if let Some((at, found)) = name.char_indices().find(|&(_, c)| !is_allowed(c)) {
        return Err(CategoryNameError::Character { name: name.to_owned(), found, at });
    }
    for part in name.split('/') {
        match part {
            "" => {
                return Err(CategoryNameError::EmptyPart { name: name.to_owned() });
            }
            // `a/./b` and `a/b` would be one directory with two names.
            "." => {
                return Err(CategoryNameError::DotPart { name: name.to_owned(), part: "." });
            }
            ".." => {
                return Err(CategoryNameError::DotPart { name: name.to_owned(), part: ".." });
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')
}

impl FromStr for CategoryName {
    type Err = CategoryNameError;

    fn from_str(name: &str) -> Result<Self, CategoryNameError> {
        Self::new(name)
    }
}

impl TryFrom<&str> for CategoryName {
    type Error = CategoryNameError;

    fn try_from(name: &str) -> Result<Self, CategoryNameError> {
        Self::new(name)
    }
}

impl fmt::Display for CategoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for CategoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Borrow<str> for CategoryName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for CategoryName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(name: &str) -> String {
        CategoryName::new(name).unwrap_err().to_string()
    }

    #[test]
    fn names_of_real_clients_are_accepted() {
        for name in ["perfpipe_pytorch_benchmarks", "perflab/rejected", "a.b-c_d/E9", "..a", "a..b"]
        {
            assert_eq!(CategoryName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn each_rule_names_itself_and_the_name() {
        assert_eq!(refused(""), "category name is empty");
        assert_eq!(refused(&"x".repeat(256)), "category name has 256 bytes, more than 255");
        assert_eq!(
            refused("a\nb"),
            "category name `a\\nb` holds '\\n' at byte 1; letters, digits and `_ - . /` are allowed"
        );
        assert_eq!(
            refused("a//b"),
            "category name `a//b` has an empty part; single `/` only between parts"
        );
        for name in ["/a", "a/", "/"] {
            assert!(refused(name).contains("empty part"), "{name}");
        }
        assert_eq!(
            refused("../etc/passwd"),
            "category name `../etc/passwd` has a part `..`, which would leave its directory"
        );
        assert!(refused("a/./b").contains("a part `.`"));
    }

    #[test]
    fn the_dataset_is_the_name_without_the_prefix() {
        let dataset = |name: &str| CategoryName::new(name).unwrap().dataset().to_owned();
        assert_eq!(dataset("perfpipe_x/y"), "x/y");
        assert_eq!(dataset("x_perfpipe_"), "x_perfpipe_");
        assert_eq!(dataset("perfpipe_"), "perfpipe_");
        assert_eq!(dataset("perfpipe_/x"), "perfpipe_/x");
    }

    proptest! {
        #[test]
        fn an_accepted_name_never_leaves_its_directory(name in "[a-zA-Z0-9_./\u{e9}-]{0,300}") {
            if let Ok(category) = CategoryName::new(&name) {
                prop_assert!(category.as_str().split('/').all(|part| !matches!(part, "" | "." | "..")));
                prop_assert!(CategoryName::new(category.dataset()).is_ok());
            }
        }
    }
}
