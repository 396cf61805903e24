//! What an operator decided about a category.

use std::collections::HashMap;
use std::str::FromStr;

use perflab_model::CategoryName;
use rusqlite::Row;

use super::{Catalog, CatalogError, READ, WRITE};

/// When a row is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Guarantee {
    /// Once it is on disk.
    #[default]
    Durable,
    /// Once it waits to be written: faster, and lost if the power fails in the next moment.
    Fast,
}

/// A word that names no guarantee.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is no guarantee; known are `durable` and `fast`")]
pub struct UnknownGuarantee {
    word: String,
}

impl Guarantee {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Fast => "fast",
        }
    }
}

impl FromStr for Guarantee {
    type Err = UnknownGuarantee;

    fn from_str(word: &str) -> Result<Self, UnknownGuarantee> {
        match word {
            "durable" => Ok(Self::Durable),
            "fast" => Ok(Self::Fast),
            _ => Err(UnknownGuarantee { word: word.to_owned() }),
        }
    }
}

/// How a category is kept. The default: durable, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CategorySettings {
    pub guarantee: Guarantee,
    /// Records that arrived longer ago may be removed.
    pub retain_seconds: Option<u64>,
    /// The oldest records may be removed while there are more bytes.
    pub max_bytes: Option<u64>,
}

impl Catalog {
    pub fn set_category_settings(
        &self,
        category: &CategoryName,
        settings: &CategorySettings,
    ) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            connection.execute(
                "INSERT OR REPLACE INTO categories VALUES (?1, ?2, ?3, ?4)",
                (
                    category.as_str(),
                    settings.guarantee.as_str(),
                    settings.retain_seconds.map(u64::cast_signed),
                    settings.max_bytes.map(u64::cast_signed),
                ),
            )?;
            Ok(())
        })
    }

    /// Of every category that has its own.
    pub fn category_settings(
        &self,
    ) -> Result<HashMap<CategoryName, CategorySettings>, CatalogError> {
        self.with(READ, |connection| {
            let mut select = connection.prepare("SELECT * FROM categories")?;
            select.query_map((), read)?.collect()
        })
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<(CategoryName, CategorySettings)> {
    let settings = CategorySettings {
        guarantee: parsed(row, "guarantee")?,
        retain_seconds: row.get::<_, Option<i64>>("retain_seconds")?.map(i64::cast_unsigned),
        max_bytes: row.get::<_, Option<i64>>("max_bytes")?.map(i64::cast_unsigned),
    };
    Ok((parsed(row, "name")?, settings))
}

/// A column that holds the text form of something.
fn parsed<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let text: String = row.get(column)?;
    text.parse().map_err(|error: T::Err| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}
