//! The columns of a table: which a dataset has, and under what names SQL sees them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use arrow::datatypes::{DataType, Field, TimeUnit};
use perflab_model::Kind;

/// The name of the rows' times.
pub(crate) const TIME: &str = "time";
/// The name of the rows' weights.
pub(crate) const WEIGHT: &str = "weight";

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableColumn {
    pub(crate) field: Field,
    pub(crate) content: Content,
}

/// Where the values of a column come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Time,
    Weight,
    /// The values of a name that are of this kind.
    Kind(String, Kind),
    /// The numbers of a name that holds both integers and floats.
    Number(String),
}

impl TableColumn {
    fn new(name: String, content: Content) -> Self {
        let field = Field::new(name, content.data_type(), content.is_nullable());
        Self { field, content }
    }
}

impl Content {
    pub(crate) fn data_type(&self) -> DataType {
        match self {
            Self::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            Self::Kind(_, Kind::Int) => DataType::Int64,
            Self::Weight | Self::Number(_) | Self::Kind(_, Kind::Float) => DataType::Float64,
            Self::Kind(_, Kind::String) => DataType::Utf8View,
            Self::Kind(_, Kind::Set | Kind::Vector) => DataType::new_list(DataType::Utf8View, true),
        }
    }

    fn is_nullable(&self) -> bool {
        !matches!(self, Self::Time | Self::Weight)
    }
}

/// The columns of a table of rows with these: time, weight, and the others by name.
///
/// A name with several kinds has a column of the plain name, which is its numbers where it has
/// integers and floats and else its first kind, and one for each kind, as in `x:float`.
pub(crate) fn table_columns<'n>(
    known: impl IntoIterator<Item = (&'n str, Kind)>,
) -> Vec<TableColumn> {
    let mut kinds: BTreeMap<&str, BTreeSet<Kind>> = BTreeMap::new();
    for (name, kind) in known {
        kinds.entry(name).or_default().insert(kind);
    }
    let mut columns = vec![
        TableColumn::new(TIME.to_owned(), Content::Time),
        TableColumn::new(WEIGHT.to_owned(), Content::Weight),
    ];
    for (name, kinds) in &kinds {
        let content = plain(name, kinds);
        columns.extend(content.map(|content| TableColumn::new((*name).to_owned(), content)));
    }
    for (name, kinds) in kinds.iter().filter(|(_, kinds)| kinds.len() > 1) {
        for kind in kinds {
            let content = Content::Kind((*name).to_owned(), *kind);
            columns.push(TableColumn::new(format!("{name}:{kind}"), content));
        }
    }
    // A name that was sent comes before one that is made here.
    let mut taken = HashSet::new();
    columns.retain(|column| taken.insert(column.field.name().clone()));
    columns[2..].sort_by(|a, b| a.field.name().cmp(b.field.name()));
    columns
}

fn plain(name: &str, kinds: &BTreeSet<Kind>) -> Option<Content> {
    if kinds.contains(&Kind::Int) && kinds.contains(&Kind::Float) {
        return Some(Content::Number(name.to_owned()));
    }
    kinds.first().map(|kind| Content::Kind(name.to_owned(), *kind))
}
