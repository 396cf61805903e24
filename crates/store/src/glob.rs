//! Patterns of category names.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A pattern in which `*` stands for any run of characters, `/` included. All else is literal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether it could not be kept as one line of text.
    pub(crate) fn has_line_break(&self) -> bool {
        self.0.contains('\n')
    }

    /// Whether the whole name fits. Takes at most pattern × name steps, whatever they hold.
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        // `split` yields at least one part.
        let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else {
            return false;
        };
        let Some(last) = parts.next_back() else {
            return rest.is_empty();
        };
        // The leftmost match of each part leaves the most for those after it.
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_star_stands_for_any_run() {
        let cases = [
            ("*", "", true),
            ("*", "a/b", true),
            ("", "", true),
            ("", "a", false),
            ("perfpipe_*", "perfpipe_", true),
            ("perfpipe_*", "perfpipe_a/b", true),
            ("perfpipe_*", "xperfpipe_a", false),
            ("a*b", "ab", true),
            ("a*b", "a", false),
            ("ab*ba", "aba", false),
            ("*a*a*", "aa", true),
            ("*a*a*", "a", false),
            ("a?c", "abc", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(Glob::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }

    fn naive(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|skip| naive(rest, &name[skip..])),
            Some((byte, rest)) => name.first() == Some(byte) && naive(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_trying_everything(pattern in "[ab*]{0,8}", name in "[ab]{0,8}") {
            let expected = naive(pattern.as_bytes(), name.as_bytes());
            prop_assert_eq!(Glob::new(pattern).matches(&name), expected);
        }
    }
}
