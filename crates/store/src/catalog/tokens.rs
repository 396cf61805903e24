//! Who may do what: tokens, of which only a hash is kept.

use perflab_model::Nanos;
use rusqlite::{Connection, Row};

use super::{Catalog, CatalogError, READ, WRITE};
use crate::glob::Glob;

/// SHA-256 of a token's text.
pub type Digest = [u8; 32];

/// What a token allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub name: String,
    /// Categories it may write to.
    pub write: Vec<Glob>,
    /// Categories it may read.
    pub read: Vec<Glob>,
    /// Whether it may change settings, tokens and definitions.
    pub admin: bool,
    pub created: Nanos,
    pub expires: Option<Nanos>,
}

impl Token {
    pub fn is_expired(&self, now: Nanos) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl Catalog {
    /// Keeps a new token. From now on the lack of other tokens means nothing: see
    /// [`Catalog::has_lost_tokens`].
    pub fn add_token(&self, digest: &Digest, token: &Token) -> Result<(), CatalogError> {
        let is_new = self.with(WRITE, |connection| {
            let transaction = connection.transaction()?;
            let is_new = insert(&transaction, digest, token)?;
            transaction.execute("DELETE FROM losses", ())?;
            transaction.commit()?;
            Ok(is_new)
        })?;
        if is_new { Ok(()) } else { Err(CatalogError::TokenExists { name: token.name.clone() }) }
    }

    /// Whether there was such a token.
    pub fn remove_token(&self, name: &str) -> Result<bool, CatalogError> {
        self.with(WRITE, |connection| {
            let removed = connection.execute("DELETE FROM tokens WHERE name = ?1", [name])?;
            Ok(removed > 0)
        })
    }

    pub fn tokens(&self) -> Result<Vec<(Digest, Token)>, CatalogError> {
        self.with(READ, |connection| {
            let mut select = connection.prepare(
                "SELECT name, digest, write_globs, read_globs, admin, created_ns, expires_ns
                 FROM tokens ORDER BY name",
            )?;
            select.query_map((), read)?.collect()
        })
    }
}

/// Whether the name was free. A digest that is taken would be a token drawn twice.
fn insert(connection: &Connection, digest: &Digest, token: &Token) -> rusqlite::Result<bool> {
    let inserted = connection.execute(
        "INSERT INTO tokens VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (name) DO NOTHING",
        (
            &token.name,
            digest,
            globs_to_text(&token.write),
            globs_to_text(&token.read),
            token.admin,
            token.created.as_i64(),
            token.expires.map(Nanos::as_i64),
        ),
    )?;
    Ok(inserted > 0)
}

fn read(row: &Row<'_>) -> rusqlite::Result<(Digest, Token)> {
    let token = Token {
        name: row.get("name")?,
        write: globs_from_text(&row.get::<_, String>("write_globs")?),
        read: globs_from_text(&row.get::<_, String>("read_globs")?),
        admin: row.get("admin")?,
        created: Nanos(row.get("created_ns")?),
        expires: row.get::<_, Option<i64>>("expires_ns")?.map(Nanos),
    };
    Ok((row.get("digest")?, token))
}

/// One per line: a pattern with a line break would be two, and is not taken in the first place
/// (see [`TokenError::Pattern`](crate::tokens::TokenError::Pattern)).
fn globs_to_text(globs: &[Glob]) -> String {
    let lines: Vec<String> = globs.iter().map(Glob::to_string).collect();
    lines.join("\n")
}

fn globs_from_text(text: &str) -> Vec<Glob> {
    text.split('\n').filter(|line| !line.is_empty()).map(Glob::new).collect()
}
