//! The catalog: what perflab knows besides the rows, in one SQLite file.
//!
//! Limits: one connection, used by one thread at a time; nothing on the path of a row waits for
//! it. Format: `user_version` counts the steps of [`MIGRATIONS`] that were applied. Durability:
//! WAL with `synchronous = FULL`, so a change that was answered survives a power cut. Recovery: a
//! file that SQLite can't read is moved aside and a new catalog begun; what the log holds can be
//! derived again, but tokens can't, so the loss is noted (see [`Catalog::has_lost_tokens`]).

mod categories;
mod datasets;
mod idls;
mod links;
mod segments;
mod spools;
mod tokens;

pub use categories::{CategorySettings, Guarantee, UnknownGuarantee};
pub use idls::Idl;
pub use segments::{
    ColdEntry, DatasetSettings, HOT_SECONDS, LostRows, SegmentChange, SegmentEntry, SegmentSet,
};
pub use tokens::{Digest, Token};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use perflab_log::{Disk as _, RealDisk};
use perflab_model::Nanos;
use rusqlite::{Connection, ErrorCode};

/// Each step brings the catalog from the version before it to the next. Never edited, only added
/// to.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE tokens (
        name TEXT PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        write_globs TEXT NOT NULL,
        read_globs TEXT NOT NULL,
        admin INTEGER NOT NULL,
        created_ns INTEGER NOT NULL,
        expires_ns INTEGER
    ) STRICT;
    CREATE TABLE categories (
        name TEXT PRIMARY KEY,
        guarantee TEXT NOT NULL,
        retain_seconds INTEGER,
        max_bytes INTEGER
    ) STRICT;
    CREATE TABLE datasets (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        schema TEXT
    ) STRICT;
    CREATE TABLE columns (
        dataset INTEGER NOT NULL REFERENCES datasets (id),
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        PRIMARY KEY (dataset, name, kind)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE idls (
        name TEXT PRIMARY KEY,
        text TEXT NOT NULL,
        registered_ns INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE spools (
        producer TEXT PRIMARY KEY,
        last_seq INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE losses (
        moved_to TEXT NOT NULL,
        noted_ns INTEGER NOT NULL
    ) STRICT;
",
    "
    ALTER TABLE datasets ADD COLUMN retain_seconds INTEGER;
    ALTER TABLE datasets ADD COLUMN max_bytes INTEGER;
    ALTER TABLE datasets ADD COLUMN flushed_end INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE segments (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        dataset INTEGER NOT NULL REFERENCES datasets (id),
        rows INTEGER NOT NULL,
        row_bytes INTEGER NOT NULL,
        list_bytes INTEGER,
        min_ns INTEGER NOT NULL,
        max_ns INTEGER NOT NULL,
        first_seq INTEGER NOT NULL,
        end_seq INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE progress (
        replay_from INTEGER NOT NULL,
        names_segments INTEGER NOT NULL
    ) STRICT;
    INSERT INTO progress VALUES (0, FALSE);
",
    "
    CREATE TABLE links (
        id TEXT PRIMARY KEY,
        target TEXT NOT NULL,
        created_ns INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
",
    // Those that there are become cold as new ones do: after 30 days.
    "
    ALTER TABLE datasets ADD COLUMN hot_seconds INTEGER DEFAULT 2592000;
    ALTER TABLE segments ADD COLUMN row_crc INTEGER;
    ALTER TABLE segments ADD COLUMN list_crc INTEGER;
    ALTER TABLE segments ADD COLUMN thawed_bytes INTEGER;
",
    "
    ALTER TABLE progress ADD COLUMN cold_url TEXT;
    ALTER TABLE progress ADD COLUMN home_id TEXT NOT NULL DEFAULT '';
    UPDATE progress SET home_id = lower(hex(randomblob(16)));
",
    "
    CREATE TABLE lost_rows (
        dataset INTEGER NOT NULL REFERENCES datasets (id),
        rows INTEGER NOT NULL,
        of_rows INTEGER NOT NULL,
        min_ns INTEGER NOT NULL,
        max_ns INTEGER NOT NULL,
        first_seq INTEGER NOT NULL,
        end_seq INTEGER NOT NULL
    ) STRICT;
",
    "
    ALTER TABLE segments ADD COLUMN sparse_bytes INTEGER;
",
];

/// Why something could not be kept in, or read from, the catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("failed to {doing} the catalog")]
    Sqlite {
        doing: &'static str,
        #[source]
        error: rusqlite::Error,
    },
    #[error("the catalog is damaged: {found}")]
    Damaged { found: String },
    #[error(
        "the catalog was written by a newer perflab (version {found}, this one knows {known}): \
         use that one"
    )]
    Newer { found: u32, known: u32 },
    #[error("failed to move the damaged catalog `{path}` aside")]
    SetAside {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("there is a token named `{name}` already")]
    TokenExists { name: String },
    #[error("the catalog is closed")]
    Closed,
}

/// Gives an SQLite error its context.
fn failed(doing: &'static str) -> impl Fn(rusqlite::Error) -> CatalogError {
    move |error| CatalogError::Sqlite { doing, error }
}

const READ: &str = "read";
const WRITE: &str = "write to";

impl CatalogError {
    /// Whether the file's content is at fault, not the machine.
    fn is_damage(&self) -> bool {
        let Self::Sqlite { error, .. } = self else {
            return matches!(self, Self::Damaged { .. });
        };
        !matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::CannotOpen
                    | ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::DiskFull
                    | ErrorCode::OutOfMemory
                    | ErrorCode::PermissionDenied
                    | ErrorCode::ReadOnly
                    | ErrorCode::SystemIoFailure
            )
        )
    }
}

/// The open catalog.
#[derive(Debug)]
pub struct Catalog {
    /// `None` once it is closed.
    connection: Mutex<Option<Connection>>,
}

impl Catalog {
    /// Opens or creates the catalog; says where a damaged one was moved.
    pub fn open(path: &Path, now: Nanos) -> Result<(Self, Option<PathBuf>), CatalogError> {
        let failed = |error| CatalogError::SetAside { path: path.to_owned(), error };
        let moved_to = match find_set_aside(path).map_err(failed)? {
            // The last start came no further than this: the new catalog is not there yet.
            Some(moved_to) => moved_to,
            None => match Self::open_sound(path) {
                Err(error) if error.is_damage() => beside(path, &damaged_suffix(now)),
                opened => return Ok((opened?, None)),
            },
        };
        set_aside(path, &damaged_suffix(now)).map_err(failed)?;
        Self::begin_anew(path, &moved_to, now)?;
        Ok((Self::open_sound(path)?, Some(moved_to)))
    }

    /// Makes a catalog that knows of the loss, then puts it in its place: one that does not know
    /// must not be found there, whenever the power fails.
    fn begin_anew(path: &Path, moved_to: &Path, now: Nanos) -> Result<(), CatalogError> {
        let failed = |error| CatalogError::SetAside { path: path.to_owned(), error };
        let new = beside(path, ".new");
        for tail in TAILS {
            remove_if_there(&beside(&new, tail)).map_err(failed)?;
        }
        let catalog = Self::open_sound(&new)?;
        catalog.note_loss(moved_to, now)?;
        catalog.close()?;
        fs::rename(&new, path).and_then(|()| RealDisk.sync_dir(dir_of(path))).map_err(failed)
    }

    fn open_sound(path: &Path) -> Result<Self, CatalogError> {
        let mut connection = Connection::open(path).map_err(failed("open"))?;
        // Exclusive: the home has one owner, and without the shared index a catalog on a full
        // disk can still be opened.
        for (pragma, value) in
            [("locking_mode", "EXCLUSIVE"), ("journal_mode", "WAL"), ("synchronous", "FULL")]
        {
            connection.pragma_update(None, pragma, value).map_err(failed("set up"))?;
        }
        check_whole(&connection)?;
        migrate(&mut connection)?;
        let catalog = Self { connection: Mutex::new(Some(connection)) };
        catalog.read_everything()?;
        Ok(catalog)
    }

    /// Shows at once, not at some later request, whether what is there can be understood.
    fn read_everything(&self) -> Result<(), CatalogError> {
        self.tokens()?;
        self.category_settings()?;
        self.datasets()?;
        self.idls()?;
        self.spool_position("")?;
        self.segment_sets()?;
        self.dataset_settings()?;
        self.replay_from()?;
        self.cold_url()?;
        self.home_id()?;
        self.link("")?;
        Ok(())
    }

    /// Does something with the connection; `doing` says what, should it fail.
    fn with<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, CatalogError> {
        // A panic in between leaves at most a transaction open, which SQLite rolls back.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = connection.as_mut().ok_or(CatalogError::Closed)?;
        work(connection).map_err(failed(doing))
    }

    fn note_loss(&self, moved_to: &Path, now: Nanos) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            connection.execute(
                "INSERT INTO losses (moved_to, noted_ns) VALUES (?1, ?2)",
                (moved_to.to_string_lossy(), now.as_i64()),
            )?;
            Ok(())
        })
    }

    /// Whether a damaged catalog, which may have held tokens, was replaced and no token was added
    /// since. Until then "there is no token" doesn't mean that everyone may do everything.
    pub fn has_lost_tokens(&self) -> Result<bool, CatalogError> {
        self.with(READ, |connection| {
            connection.query_row("SELECT EXISTS (SELECT 1 FROM losses)", (), |row| row.get(0))
        })
    }

    /// Brings everything into the main file and lets go of it.
    pub fn close(&self) -> Result<(), CatalogError> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        match connection.take().map(Connection::close) {
            Some(Err((_, error))) => Err(failed("close")(error)),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

fn check_whole(connection: &Connection) -> Result<(), CatalogError> {
    let found: String = connection
        .query_row("PRAGMA quick_check(1)", (), |row| row.get(0))
        .map_err(failed("check"))?;
    if found == "ok" { Ok(()) } else { Err(CatalogError::Damaged { found }) }
}

fn migrate(connection: &mut Connection) -> Result<(), CatalogError> {
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let found: u32 = connection
        .query_row("PRAGMA user_version", (), |row| row.get(0))
        .map_err(failed("read the version of"))?;
    if found > known {
        return Err(CatalogError::Newer { found, known });
    }
    for (version, step) in (1_u32..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        let transaction = connection.transaction().map_err(failed("upgrade"))?;
        transaction.execute_batch(step).map_err(failed("upgrade"))?;
        transaction.pragma_update(None, "user_version", version).map_err(failed("upgrade"))?;
        transaction.commit().map_err(failed("upgrade"))?;
    }
    Ok(())
}

/// What the files of a catalog end in, the main one first.
const TAILS: [&str; 3] = ["", "-wal", "-shm"];

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn damaged_suffix(now: Nanos) -> String {
    format!("{DAMAGED}{}", now.as_i64())
}

/// What the name of a catalog that was moved aside goes on with.
const DAMAGED: &str = ".damaged-";

/// Where the catalog was moved, if there is none in its place.
fn find_set_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    if path.try_exists()? {
        return Ok(None);
    }
    let start = beside(path, DAMAGED);
    let start = start.file_name().unwrap_or_default().to_string_lossy();
    for entry in fs::read_dir(dir_of(path))? {
        let name = entry?.file_name();
        let when = name.to_str().and_then(|name| name.strip_prefix(&*start));
        if when.is_some_and(|when| when.parse::<i64>().is_ok()) {
            return Ok(Some(path.with_file_name(name)));
        }
    }
    Ok(None)
}

fn dir_of(path: &Path) -> &Path {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    dir.unwrap_or_else(|| Path::new("."))
}

/// Renames the catalog and what belongs to it, as far as that is there. The main file first: what
/// is left of it without its log could look whole, and lack the newest tokens.
fn set_aside(path: &Path, suffix: &str) -> io::Result<()> {
    let aside = beside(path, suffix);
    for tail in TAILS {
        match fs::rename(beside(path, tail), beside(&aside, tail)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    RealDisk.sync_dir(dir_of(path))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
