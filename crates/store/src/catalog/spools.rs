//! How far each spool file was drained: for good, so that a copy of it that turns up years later
//! is recognised.

use rusqlite::OptionalExtension;

use super::{Catalog, CatalogError, READ, WRITE};

impl Catalog {
    /// The last sequence of a spool file that the log has.
    pub fn spool_position(&self, producer: &str) -> Result<Option<u64>, CatalogError> {
        self.with(READ, |connection| {
            let select = "SELECT last_seq FROM spools WHERE producer = ?1";
            let position = connection.query_row(select, [producer], |row| row.get::<_, i64>(0));
            Ok(position.optional()?.map(i64::cast_unsigned))
        })
    }

    pub fn set_spool_position(&self, producer: &str, last_seq: u64) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            connection.execute(
                "INSERT OR REPLACE INTO spools VALUES (?1, ?2)",
                (producer, last_seq.cast_signed()),
            )?;
            Ok(())
        })
    }
}
