//! Short links: where each leads.

use perflab_model::Nanos;
use rusqlite::OptionalExtension;

use super::{Catalog, CatalogError, READ, WRITE};

impl Catalog {
    /// Keeps a link unless it is there already.
    pub fn add_link(&self, id: &str, target: &str, now: Nanos) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            connection.execute(
                "INSERT OR IGNORE INTO links (id, target, created_ns) VALUES (?1, ?2, ?3)",
                (id, target, now.as_i64()),
            )?;
            Ok(())
        })
    }

    /// Where a link leads.
    pub fn link(&self, id: &str) -> Result<Option<String>, CatalogError> {
        self.with(READ, |connection| {
            let select = "SELECT target FROM links WHERE id = ?1";
            connection.query_row(select, [id], |row| row.get(0)).optional()
        })
    }

    pub fn links_count(&self) -> Result<i64, CatalogError> {
        self.with(READ, |connection| {
            connection.query_row("SELECT COUNT(*) FROM links", (), |row| row.get(0))
        })
    }
}
