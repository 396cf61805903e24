//! The Thrift definitions that were registered, as they were sent.

use perflab_model::Nanos;

use super::{Catalog, CatalogError, READ, WRITE};

/// One registered definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idl {
    pub name: String,
    pub text: String,
    pub registered: Nanos,
}

impl Catalog {
    /// Keeps a definition; replaces the one of the same name.
    pub fn set_idl(&self, idl: &Idl) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            connection.execute(
                "INSERT OR REPLACE INTO idls VALUES (?1, ?2, ?3)",
                (&idl.name, &idl.text, idl.registered.as_i64()),
            )?;
            Ok(())
        })
    }

    /// In the order in which they were registered: a later one overrides.
    pub fn idls(&self) -> Result<Vec<Idl>, CatalogError> {
        self.with(READ, |connection| {
            let mut select = connection.prepare(
                "SELECT name, text, registered_ns FROM idls ORDER BY registered_ns, name",
            )?;
            let idls = select.query_map((), |row| {
                Ok(Idl {
                    name: row.get("name")?,
                    text: row.get("text")?,
                    registered: Nanos(row.get("registered_ns")?),
                })
            })?;
            idls.collect()
        })
    }
}
