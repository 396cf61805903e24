//! Questions as people type them: conditions, metrics and groups, each in a few characters.
//!
//! A condition is a column, an operator and what the column is compared with:
//!
//! | text | holds where |
//! |---|---|
//! | `status=failed`, `status != ok` | it is, or is not, that |
//! | `latency>=10`, `>`, `<`, `<=` | it is larger or smaller |
//! | `test~^nn`, `test !~ slow$` | a regular expression is found in it, or is not |
//! | `status in failed, timeout`, `status not in ok` | it is one of these, or none of them |
//! | `name contains x`, `name icontains X`, `name prefix nn_` | text is in it, in any case, at its start |
//! | `name is null`, `name is not null` | it has no value, or has one |
//! | `tags any a,b`, `tags all a,b`, `tags none a,b`, `tags exact a,b` | a list has one, all, none, exactly these |
//! | `stack item_regex ^aten`, `stack starts_with main,run` | a list has such an item, or begins so |
//!
//! `&&` joins conditions that must all hold, `||` those of which one is enough, and `&&` binds more
//! closely: `status=failed && job=nn || latency>10`.
//!
//! A name or a value that would be misread is put in double quotes, in which `\"` is a quote and
//! `\\` a backslash; every other backslash is itself, so that regular expressions can be quoted
//! as they are: `"job name" = "a, b"`.

mod condition;
mod conditions;
mod list;
mod quoted;

pub(crate) use condition::is_name;
pub use condition::parse_condition;
pub use conditions::{all_of, parse_conditions};
pub use list::split_list;
pub(crate) use quoted::{quoted, take_quoted};

/// Why a text is no condition, metric or group: where, and what belongs there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: {problem}{}", .text.escape_debug(), at(*.position))]
pub struct TextError {
    pub(crate) text: String,
    /// In characters, from 1; `None`: at the end.
    pub(crate) position: Option<usize>,
    pub(crate) problem: String,
}

fn at(position: Option<usize>) -> String {
    match position {
        Some(position) => format!(" (at character {position})"),
        None => " (at the end)".to_owned(),
    }
}

impl TextError {
    /// A problem with `part`, which is a part of `text`.
    pub(crate) fn new(text: &str, part: &str, problem: impl Into<String>) -> Self {
        let before = part.as_ptr().addr() - text.as_ptr().addr();
        let is_at_end = text[before..].trim().is_empty();
        let position = (!is_at_end).then(|| text[..before].chars().count() + 1);
        Self { text: text.to_owned(), position, problem: problem.into() }
    }
}
