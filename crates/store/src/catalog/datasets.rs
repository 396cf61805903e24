//! Datasets: their declared schemas, and the columns that rows have brought.

use std::collections::HashMap;

use perflab_model::Kind;
use rusqlite::Row;

use super::segments::dataset_id;
use super::{Catalog, CatalogError, READ, WRITE};

impl Catalog {
    /// Every dataset with the text of its declared schema, if it has one.
    pub fn datasets(&self) -> Result<HashMap<String, Option<String>>, CatalogError> {
        self.with(READ, |connection| {
            let mut select = connection.prepare("SELECT name, schema FROM datasets")?;
            select.query_map((), |row| Ok((row.get("name")?, row.get("schema")?)))?.collect()
        })
    }

    /// Sets or, with `None`, takes back the declared schema of a dataset.
    pub fn set_schema(&self, dataset: &str, schema: Option<&str>) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            connection.execute(
                "INSERT INTO datasets (name, schema) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET schema = excluded.schema",
                (dataset, schema),
            )?;
            Ok(())
        })
    }

    /// The columns that were recorded for a dataset.
    pub fn columns(&self, dataset: &str) -> Result<Vec<(String, Kind)>, CatalogError> {
        self.with(READ, |connection| {
            let mut select = connection.prepare_cached(
                "SELECT columns.name, columns.kind
                 FROM columns JOIN datasets ON columns.dataset = datasets.id
                 WHERE datasets.name = ?1",
            )?;
            let columns = select.query_map([dataset], read_column)?;
            // A kind that this version doesn't know is left out, not fatal.
            columns.filter_map(Result::transpose).collect()
        })
    }

    /// Adds columns, and the dataset itself if it is new.
    pub fn add_columns(
        &self,
        dataset: &str,
        columns: &[(String, Kind)],
    ) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            let transaction = connection.transaction()?;
            let id = dataset_id(&transaction, dataset)?;
            for (name, kind) in columns {
                transaction
                    .prepare_cached("INSERT OR IGNORE INTO columns VALUES (?1, ?2, ?3)")?
                    .execute((id, name, kind.as_str()))?;
            }
            transaction.commit()
        })
    }
}

fn read_column(row: &Row<'_>) -> rusqlite::Result<Option<(String, Kind)>> {
    let kind: String = row.get("kind")?;
    let kind = Kind::ALL.into_iter().find(|known| known.as_str() == kind);
    let name = row.get("name")?;
    Ok(kind.map(|kind| (name, kind)))
}
