//! Values of groups.

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
