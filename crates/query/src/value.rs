//! Values of groups.

use std::fmt;

/// A value of a group.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub enum Value {
    Null,
    Int(i64),
    Float(f64),
    String(String),
    List(Vec<String>),
    /// In nanoseconds since the Unix epoch.
    Time(i64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::String(value) => f.pad(value),
            Self::List(items) => f.pad(&items.join(",")),
            Self::Time(time) => perflab_model::Nanos(*time).fmt(f),
        }
    }
}
