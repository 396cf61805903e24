//! Which segments there are, and how far the log is in them.
//!
//! Every change of a dataset's set of segments is one transaction.

use std::collections::HashMap;
use std::fmt;

use rusqlite::{OptionalExtension, Row, Transaction};

use super::{Catalog, CatalogError, READ, WRITE};

/// How long rows stay hot where nothing else is said: 30 days.
pub const HOT_SECONDS: u64 = 30 * 24 * 60 * 60;

/// A segment that is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentEntry {
    /// Never given to another segment.
    pub id: u64,
    pub rows: u64,
    /// The length of the file of its rows,
    pub row_bytes: u64,
    /// of the file of its lists, where it has one,
    pub list_bytes: Option<u64>,
    /// and of the file of its sparse columns, where it has one.
    pub sparse_bytes: Option<u64>,
    /// The earliest and the latest time of its rows.
    pub min_ns: i64,
    pub max_ns: i64,
    /// It holds the dataset's rows of the log's records from this one to just before the end.
    pub first_seq: u64,
    pub end_seq: u64,
    /// `None` while it is hot.
    pub cold: Option<ColdEntry>,
}

/// What is known of a cold segment besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColdEntry {
    /// CRC32C of the file of its rows,
    pub row_crc: u32,
    /// and of the file of its lists.
    pub list_crc: Option<u32>,
    /// How large its files were while it was hot, which is what it takes when it is thawed.
    pub thawed_bytes: u64,
}

impl SegmentEntry {
    /// The size of its files.
    pub fn bytes(&self) -> u64 {
        self.row_bytes + self.list_bytes.unwrap_or(0) + self.sparse_bytes.unwrap_or(0)
    }
}

/// Rows of a segment that can't be had back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostRows {
    /// How many,
    pub rows: u64,
    /// of how many the segment had.
    pub of_rows: u64,
    /// The times that the segment's rows had.
    pub min_ns: i64,
    pub max_ns: i64,
    /// The records that they came from.
    pub first_seq: u64,
    pub end_seq: u64,
}

impl fmt::Display for LostRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, of_rows, first_seq, end_seq, .. } = self;
        write!(
            f,
            "{rows} of {of_rows} rows are lost: their segment was damaged, and the log no longer \
             has all records from {first_seq} to {end_seq}"
        )
    }
}

/// How the rows of a dataset are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatasetSettings {
    /// Segments whose newest row is older than this may be removed.
    pub retain_seconds: Option<u64>,
    /// The oldest segments may be removed while there are more bytes.
    pub max_bytes: Option<u64>,
    /// Segments whose newest row is older than this become cold.
    pub hot_seconds: Option<u64>,
}

/// Kept for ever, and hot for [`HOT_SECONDS`].
impl Default for DatasetSettings {
    fn default() -> Self {
        Self { retain_seconds: None, max_bytes: None, hot_seconds: Some(HOT_SECONDS) }
    }
}

/// A change of a dataset's set of segments.
#[derive(Debug, Clone, Copy, Default)]
pub struct SegmentChange<'c> {
    pub removed: &'c [u64],
    pub added: Option<&'c SegmentEntry>,
    /// Set when rows went from memory into a file: where reading the log starts from now on.
    pub replay_from: Option<u64>,
    /// Set when not all rows could be kept.
    pub lost: Option<&'c LostRows>,
    /// Set when rows are past their retention: of lost ones too that are not later than this,
    /// nobody needs to know any more.
    pub forget_lost_until: Option<i64>,
}

/// A dataset, as far as its segments are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSet {
    pub dataset: String,
    /// What its folder is called.
    pub folder: u64,
    /// Rows of records before this one are in segments, or were until they were removed.
    pub flushed_end: u64,
    /// In the order of the log.
    pub segments: Vec<SegmentEntry>,
    pub lost: Vec<LostRows>,
}

impl Catalog {
    /// The number of a dataset, which its folder is called by; it becomes known if it was not.
    pub fn dataset_folder(&self, dataset: &str) -> Result<u64, CatalogError> {
        self.with(WRITE, |connection| {
            let transaction = connection.transaction()?;
            let id = dataset_id(&transaction, dataset)?;
            transaction.commit()?;
            Ok(id.cast_unsigned())
        })
    }

    /// The segments of every dataset.
    pub fn segment_sets(&self) -> Result<Vec<SegmentSet>, CatalogError> {
        self.with(READ, |connection| {
            let mut select = connection.prepare("SELECT id, name, flushed_end FROM datasets")?;
            let sets = select.query_map((), read_set)?;
            let mut sets: HashMap<u64, SegmentSet> =
                sets.map(|set| set.map(|set| (set.folder, set))).collect::<Result<_, _>>()?;
            let mut select = connection.prepare("SELECT * FROM segments ORDER BY first_seq")?;
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                if let Some(set) = sets.get_mut(&number(row, "dataset")?) {
                    set.segments.push(read_segment(row)?);
                }
            }
            let mut select = connection.prepare("SELECT * FROM lost_rows ORDER BY first_seq")?;
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                if let Some(set) = sets.get_mut(&number(row, "dataset")?) {
                    set.lost.push(read_lost(row)?);
                }
            }
            Ok(sets.into_values().collect())
        })
    }

    /// The highest number that a segment ever had.
    pub fn last_segment_id(&self) -> Result<u64, CatalogError> {
        self.with(READ, |connection| {
            let select = "SELECT seq FROM sqlite_sequence WHERE name = 'segments'";
            let last = connection.query_row(select, (), |row| number(row, "seq")).optional();
            Ok(last?.unwrap_or(0))
        })
    }

    /// Where the log is to be read from: every row of records before this one is in a segment.
    pub fn replay_from(&self) -> Result<u64, CatalogError> {
        self.with(READ, |connection| {
            let select = "SELECT replay_from FROM progress";
            connection.query_row(select, (), |row| number(row, "replay_from"))
        })
    }

    /// What no other home is called.
    pub fn home_id(&self) -> Result<String, CatalogError> {
        self.with(READ, |connection| {
            connection.query_row("SELECT home_id FROM progress", (), |row| row.get(0))
        })
    }

    /// Where cold segments are kept; `None`: in the home.
    pub fn cold_url(&self) -> Result<Option<String>, CatalogError> {
        self.with(READ, |connection| {
            connection.query_row("SELECT cold_url FROM progress", (), |row| row.get(0))
        })
    }

    pub fn set_cold_url(&self, url: &str) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            connection.execute("UPDATE progress SET cold_url = ?1", [url]).map(drop)
        })
    }

    /// Whether the segments that are there were made under this catalog: what it doesn't name is
    /// left over. Otherwise they are of another one, which is lost.
    pub fn names_segments(&self) -> Result<bool, CatalogError> {
        self.with(READ, |connection| {
            let select = "SELECT names_segments FROM progress";
            connection.query_row(select, (), |row| row.get(0))
        })
    }

    /// Says that there are no segments of another catalog.
    pub fn begin_segments(&self) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            connection.execute("UPDATE progress SET names_segments = TRUE", ()).map(drop)
        })
    }

    /// Forgets which records segments were made of: the log that had them is another one now.
    pub fn forget_sequences(&self) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            let transaction = connection.transaction()?;
            transaction.execute_batch(
                "UPDATE segments SET first_seq = 0, end_seq = 0;
                 UPDATE datasets SET flushed_end = 0;
                 UPDATE progress SET replay_from = 0;",
            )?;
            transaction.commit()
        })
    }

    /// Changes the set of segments of a dataset, all or nothing.
    pub fn change_segments(
        &self,
        dataset: &str,
        change: &SegmentChange<'_>,
    ) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            let transaction = connection.transaction()?;
            let id = dataset_id(&transaction, dataset)?;
            for removed in change.removed {
                let delete = "DELETE FROM segments WHERE id = ?1";
                transaction.prepare_cached(delete)?.execute([removed.cast_signed()])?;
            }
            if let Some(added) = change.added {
                add_segment(&transaction, id, added)?;
            }
            if let Some(replay_from) = change.replay_from {
                let update = "UPDATE progress SET replay_from = ?1";
                transaction.prepare_cached(update)?.execute([replay_from.cast_signed()])?;
            }
            if let Some(lost) = change.lost {
                add_lost(&transaction, id, lost)?;
            }
            if let Some(until_ns) = change.forget_lost_until {
                let delete = "DELETE FROM lost_rows WHERE dataset = ?1 AND max_ns <= ?2";
                transaction.execute(delete, (id, until_ns))?;
            }
            transaction.commit()
        })
    }

    /// Of every dataset that has its own.
    pub fn dataset_settings(&self) -> Result<HashMap<String, DatasetSettings>, CatalogError> {
        self.with(READ, |connection| {
            let mut select = connection.prepare(
                "SELECT name, retain_seconds, max_bytes, hot_seconds FROM datasets
                 WHERE retain_seconds IS NOT NULL OR max_bytes IS NOT NULL
                 OR hot_seconds IS NOT ?1",
            )?;
            let settings = select.query_map([HOT_SECONDS.cast_signed()], |row| {
                let limit = |column| {
                    let limit: Option<i64> = row.get(column)?;
                    Ok::<_, rusqlite::Error>(limit.map(i64::cast_unsigned))
                };
                let settings = DatasetSettings {
                    retain_seconds: limit("retain_seconds")?,
                    max_bytes: limit("max_bytes")?,
                    hot_seconds: limit("hot_seconds")?,
                };
                Ok((row.get("name")?, settings))
            })?;
            settings.collect()
        })
    }

    pub fn set_dataset_settings(
        &self,
        dataset: &str,
        settings: &DatasetSettings,
    ) -> Result<(), CatalogError> {
        self.with(WRITE, |connection| {
            connection.execute(
                "INSERT INTO datasets (name, retain_seconds, max_bytes, hot_seconds)
                 VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE SET
                 retain_seconds = excluded.retain_seconds, max_bytes = excluded.max_bytes,
                 hot_seconds = excluded.hot_seconds",
                (
                    dataset,
                    settings.retain_seconds.map(u64::cast_signed),
                    settings.max_bytes.map(u64::cast_signed),
                    settings.hot_seconds.map(u64::cast_signed),
                ),
            )?;
            Ok(())
        })
    }
}

/// The id of a dataset, which is added if it is new.
pub(super) fn dataset_id(transaction: &Transaction<'_>, dataset: &str) -> rusqlite::Result<i64> {
    let insert = "INSERT OR IGNORE INTO datasets (name) VALUES (?1)";
    transaction.prepare_cached(insert)?.execute([dataset])?;
    let select = "SELECT id FROM datasets WHERE name = ?1";
    transaction.prepare_cached(select)?.query_row([dataset], |row| row.get(0))
}

fn add_segment(
    transaction: &Transaction<'_>,
    dataset: i64,
    segment: &SegmentEntry,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO segments VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute((
            segment.id.cast_signed(),
            dataset,
            segment.rows.cast_signed(),
            segment.row_bytes.cast_signed(),
            segment.list_bytes.map(u64::cast_signed),
            segment.min_ns,
            segment.max_ns,
            segment.first_seq.cast_signed(),
            segment.end_seq.cast_signed(),
            segment.cold.map(|cold| cold.row_crc),
            segment.cold.and_then(|cold| cold.list_crc),
            segment.cold.map(|cold| cold.thawed_bytes.cast_signed()),
            segment.sparse_bytes.map(u64::cast_signed),
        ))?;
    // Where it replaces others it ends no later than they did.
    transaction
        .prepare_cached("UPDATE datasets SET flushed_end = MAX(flushed_end, ?2) WHERE id = ?1")?
        .execute((dataset, segment.end_seq.cast_signed()))?;
    Ok(())
}

fn add_lost(transaction: &Transaction<'_>, dataset: i64, lost: &LostRows) -> rusqlite::Result<()> {
    let insert = "INSERT INTO lost_rows VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let LostRows { rows, of_rows, min_ns, max_ns, first_seq, end_seq } = *lost;
    let numbers = [rows, of_rows, first_seq, end_seq].map(u64::cast_signed);
    let [rows, of_rows, first_seq, end_seq] = numbers;
    let row = (dataset, rows, of_rows, min_ns, max_ns, first_seq, end_seq);
    transaction.execute(insert, row).map(drop)
}

fn read_lost(row: &Row<'_>) -> rusqlite::Result<LostRows> {
    Ok(LostRows {
        rows: number(row, "rows")?,
        of_rows: number(row, "of_rows")?,
        min_ns: row.get("min_ns")?,
        max_ns: row.get("max_ns")?,
        first_seq: number(row, "first_seq")?,
        end_seq: number(row, "end_seq")?,
    })
}

fn read_set(row: &Row<'_>) -> rusqlite::Result<SegmentSet> {
    Ok(SegmentSet {
        dataset: row.get("name")?,
        folder: number(row, "id")?,
        flushed_end: number(row, "flushed_end")?,
        segments: Vec::new(),
        lost: Vec::new(),
    })
}

fn read_segment(row: &Row<'_>) -> rusqlite::Result<SegmentEntry> {
    Ok(SegmentEntry {
        id: number(row, "id")?,
        rows: number(row, "rows")?,
        row_bytes: number(row, "row_bytes")?,
        list_bytes: length(row, "list_bytes")?,
        sparse_bytes: length(row, "sparse_bytes")?,
        min_ns: row.get("min_ns")?,
        max_ns: row.get("max_ns")?,
        first_seq: number(row, "first_seq")?,
        end_seq: number(row, "end_seq")?,
        cold: read_cold(row)?,
    })
}

fn read_cold(row: &Row<'_>) -> rusqlite::Result<Option<ColdEntry>> {
    let Some(row_crc) = row.get("row_crc")? else { return Ok(None) };
    let (list_crc, thawed_bytes) = (row.get("list_crc")?, number(row, "thawed_bytes")?);
    Ok(Some(ColdEntry { row_crc, list_crc, thawed_bytes }))
}

/// Of a file that need not be there.
fn length(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(i64::cast_unsigned))
}

fn number(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}
