//! Which columns a dataset may have, and which it has.
//!
//! A batch asks only when a row brings a column that the batch doesn't have yet, so rows of a
//! known shape never pay for the check.

use crate::batch::Kind;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{PoisonError, RwLock};

/// How many columns an open dataset may have, unless configured otherwise.
pub const COLUMNS_MAX: usize = 4096;

/// What a dataset accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    /// Columns appear as rows bring them, up to a limit.
    Open { columns_max: usize },
    /// Only these columns. A string equal to `null_string` means null.
    Declared { columns: BTreeMap<String, Kind>, null_string: Option<String> },
}

impl Default for Schema {
    fn default() -> Self {
        Self::Open { columns_max: COLUMNS_MAX }
    }
}

/// Why a row doesn't fit its dataset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error(
        "field `{column}` is not currently used, be intentional about adding new fields \
         (the declared schema does not name it)"
    )]
    Undeclared { column: String },
    #[error("field `{column}` is declared as {declared}, not {found}")]
    Kind { column: String, declared: Kind, found: Kind },
    #[error("field `{column}` would be column {}, the limit is {columns_max}", .columns_max + 1)]
    TooManyColumns { column: String, columns_max: usize },
}

/// Why a schema file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaFileError {
    #[error("the schema is not JSON of the form {{\"int\":[…],\"normal\":[…],\"float\":[…]}}")]
    Json(#[source] serde_json::Error),
    #[error("the schema declares field `{column}` twice")]
    Twice { column: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaFile {
    #[serde(default)]
    int: Vec<String>,
    #[serde(default, alias = "double")]
    float: Vec<String>,
    #[serde(default)]
    normal: Vec<String>,
    #[serde(default)]
    denorm: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    normvector: Vec<String>,
    null: Option<String>,
}

impl Schema {
    /// Reads a declared schema: the sections of a message with lists of names, and `null`, the
    /// string that means null.
    pub fn declared_from_json(json: &str) -> Result<Self, SchemaFileError> {
        let file: SchemaFile = serde_json::from_str(json).map_err(SchemaFileError::Json)?;
        let sections = [
            (file.int, Kind::Int),
            (file.float, Kind::Float),
            (file.normal, Kind::String),
            (file.denorm, Kind::String),
            (file.tags, Kind::Set),
            (file.normvector, Kind::Vector),
        ];
        let mut columns = BTreeMap::new();
        for (names, kind) in sections {
            for column in names {
                if columns.contains_key(&column) {
                    return Err(SchemaFileError::Twice { column });
                }
                columns.insert(column, kind);
            }
        }
        Ok(Self::Declared { columns, null_string: file.null })
    }

    pub fn null_string(&self) -> Option<&str> {
        match self {
            Self::Open { .. } => None,
            Self::Declared { null_string, .. } => null_string.as_deref(),
        }
    }

    /// The kind that the schema gives this column; `None` when it doesn't say.
    pub fn declared_kind(&self, column: &str) -> Option<Kind> {
        match self {
            Self::Open { .. } => None,
            Self::Declared { columns, .. } => columns.get(column).copied(),
        }
    }
}

/// A dataset's schema and the columns it has so far, shared by everything that decodes rows for
/// it.
#[derive(Debug)]
pub struct SchemaState {
    schema: Schema,
    known: RwLock<KnownColumns>,
}

#[derive(Debug, Default)]
struct KnownColumns {
    kinds: HashMap<Box<str>, Vec<Kind>>,
    count: usize,
}

impl KnownColumns {
    fn contains(&self, name: &str, kind: Kind) -> bool {
        self.kinds.get(name).is_some_and(|kinds| kinds.contains(&kind))
    }

    fn insert(&mut self, name: &str, kind: Kind) {
        if !self.contains(name, kind) {
            self.kinds.entry(name.into()).or_default().push(kind);
            self.count += 1;
        }
    }
}

impl SchemaState {
    /// A dataset that has no columns yet.
    pub fn new(schema: Schema) -> Self {
        Self::with_columns(schema, [])
    }

    /// A dataset that has these columns already, even when they are past the limit.
    pub fn with_columns<'a>(
        schema: Schema,
        columns: impl IntoIterator<Item = (&'a str, Kind)>,
    ) -> Self {
        let mut known = KnownColumns::default();
        for (name, kind) in columns {
            known.insert(name, kind);
        }
        Self { schema, known: RwLock::new(known) }
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The columns that rows have brought so far, sorted by name.
    pub fn columns(&self) -> Vec<(String, Kind)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut columns: Vec<_> = known
            .kinds
            .iter()
            .flat_map(|(name, kinds)| kinds.iter().map(|&kind| (name.to_string(), kind)))
            .collect();
        columns.sort();
        columns
    }

    /// How many columns rows have brought so far.
    pub fn columns_known(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Whether a field of this name and kind could be in a row.
    pub(crate) fn check_kind(&self, name: &str, kind: Kind) -> Result<(), SchemaError> {
        match &self.schema {
            Schema::Open { .. } => Ok(()),
            Schema::Declared { columns, .. } => {
                check_declared(columns, std::iter::once((name, kind)))
            }
        }
    }

    /// Whether a row that brought `added` new columns could bring this one too. Whether there is
    /// room for all of them is up to [`Self::admit`].
    pub(crate) fn check_new(
        &self,
        name: &str,
        kind: Kind,
        added: usize,
    ) -> Result<(), SchemaError> {
        self.check_kind(name, kind)?;
        let Schema::Open { columns_max } = self.schema else { return Ok(()) };
        if added < columns_max {
            return Ok(());
        }
        // A dataset that is past its limit keeps what it has.
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if added < known.count {
            return Ok(());
        }
        Err(SchemaError::TooManyColumns { column: name.to_owned(), columns_max })
    }

    /// Adds the columns of one row, all or none: two requests that race for the last free
    /// column can't both have it.
    pub fn admit<'a>(
        &self,
        columns: impl Iterator<Item = (&'a str, Kind)> + Clone,
    ) -> Result<(), SchemaError> {
        let is_known = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            columns.clone().all(|(name, kind)| known.contains(name, kind))
        };
        if is_known {
            return Ok(());
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match &self.schema {
            Schema::Open { columns_max } => {
                check_room(&known, *columns_max, columns.clone())?;
            }
            Schema::Declared { columns: declared, .. } => {
                check_declared(declared, columns.clone())?;
            }
        }
        for (name, kind) in columns {
            known.insert(name, kind);
        }
        Ok(())
    }
}

fn check_room<'a>(
    known: &KnownColumns,
    columns_max: usize,
    columns: impl Iterator<Item = (&'a str, Kind)>,
) -> Result<(), SchemaError> {
    let room = columns_max.saturating_sub(known.count);
    match columns.filter(|&(name, kind)| !known.contains(name, kind)).nth(room) {
        None => Ok(()),
        Some((column, _)) => {
            Err(SchemaError::TooManyColumns { column: column.to_owned(), columns_max })
        }
    }
}

fn check_declared<'a>(
    declared: &BTreeMap<String, Kind>,
    columns: impl Iterator<Item = (&'a str, Kind)>,
) -> Result<(), SchemaError> {
    for (name, found) in columns {
        let column = || name.to_owned();
        match declared.get(name) {
            None => return Err(SchemaError::Undeclared { column: column() }),
            Some(&declared) if declared != found => {
                return Err(SchemaError::Kind { column: column(), declared, found });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(state: &SchemaState, columns: &[(&str, Kind)]) -> Result<(), String> {
        state.admit(columns.iter().copied()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_open_schema_takes_columns_up_to_its_limit() {
        let state = SchemaState::new(Schema::Open { columns_max: 2 });
        admit(&state, &[("a", Kind::Int)]).unwrap();
        assert_eq!(
            admit(&state, &[("a", Kind::Int), ("b", Kind::Int), ("c", Kind::Int)]),
            Err("field `c` would be column 3, the limit is 2".to_owned())
        );
        assert_eq!(state.columns(), [("a".to_owned(), Kind::Int)], "all or none");
        admit(&state, &[("a", Kind::Float)]).unwrap();
        admit(&state, &[("a", Kind::Int), ("a", Kind::Float)]).unwrap();
        assert!(admit(&state, &[("b", Kind::Int)]).is_err());
    }

    #[test]
    fn a_dataset_past_its_limit_keeps_what_it_has() {
        let columns = [("a", Kind::Int), ("b", Kind::Int)];
        let state = SchemaState::with_columns(Schema::Open { columns_max: 1 }, columns);
        admit(&state, &columns).unwrap();
        assert!(admit(&state, &[("c", Kind::Int)]).is_err());
    }

    #[test]
    fn a_declared_schema_refuses_what_it_does_not_name() {
        let schema = Schema::declared_from_json(
            r#"{"int":["time","rounds"],"normal":["branch"],"float":["mean"],"null":"None"}"#,
        )
        .unwrap();
        assert_eq!(schema.null_string(), Some("None"));
        let state = SchemaState::new(schema);
        admit(&state, &[("rounds", Kind::Int), ("mean", Kind::Float)]).unwrap();
        let refused = admit(&state, &[("rouns", Kind::Int)]).unwrap_err();
        assert!(refused.starts_with(
            "field `rouns` is not currently used, be intentional about adding new fields"
        ));
        assert_eq!(
            admit(&state, &[("branch", Kind::Int)]),
            Err("field `branch` is declared as string, not int".to_owned())
        );
    }

    #[test]
    fn schema_files_with_mistakes_say_which() {
        let twice = Schema::declared_from_json(r#"{"int":["a"],"float":["a"]}"#).unwrap_err();
        assert_eq!(twice.to_string(), "the schema declares field `a` twice");
        for bad in [r#"{"ints":["a"]}"#, "[]", "{", r#"{"int":"a"}"#] {
            assert!(matches!(Schema::declared_from_json(bad), Err(SchemaFileError::Json(_))));
        }
    }
}
