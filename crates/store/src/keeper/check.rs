//! Reading everything that is in files, whether or not anyone asks for it.

use std::collections::BTreeMap;

use super::Keeper;
use super::cold::ColdError;
use crate::catalog::{CatalogError, SegmentEntry};
use crate::ingest::chain;

/// What was found when all segments were read.
#[derive(Debug, Default)]
pub struct SegmentCheck {
    pub segments: u64,
    /// Of their files.
    pub bytes: u64,
    pub damage: Vec<SegmentDamage>,
    /// Cold rows that could not be read, by why: nothing is known about them.
    pub unread: BTreeMap<String, u64>,
}

/// A segment that can't be used. It was set aside, and is made again from the log.
#[derive(Debug)]
pub struct SegmentDamage {
    pub dataset: String,
    /// How many it had.
    pub rows: u64,
    pub why: String,
}

impl SegmentCheck {
    fn add(&mut self, dataset: &str, entry: &SegmentEntry, damage: Option<String>) {
        self.segments += 1;
        self.bytes += entry.bytes();
        let (dataset, rows) = (dataset.to_owned(), entry.rows);
        self.damage.extend(damage.map(|why| SegmentDamage { dataset, rows, why }));
    }
}

impl Keeper {
    /// Reads all segments, hot and cold. What is damaged is taken out of use; what was removed
    /// meanwhile is none of that.
    pub(crate) fn check_segments(&self) -> Result<SegmentCheck, CatalogError> {
        let mut found = SegmentCheck::default();
        for (dataset, files) in self.tables.files() {
            let folder = self.catalog.dataset_folder(&dataset)?;
            for file in files.iter() {
                let damage = self.damage_of(folder, &file.entry);
                let damage = damage.filter(|why| self.take_out(&dataset, &file.segment, why));
                found.add(&dataset, &file.entry, damage);
            }
            let entries = self.tables.entries(&dataset);
            for entry in &entries {
                let Some(cold) = &entry.cold else { continue };
                let damage = match self.cold.read(folder, entry, cold) {
                    Ok(_) => None,
                    Err(ColdError::Unreachable(error)) => {
                        *found.unread.entry(error.to_string()).or_default() += entry.rows;
                        continue;
                    }
                    Err(error @ ColdError::Damaged { .. }) => Some(error.to_string()),
                };
                let damage = damage.filter(|why| self.take_out_cold(&dataset, entry, why));
                found.add(&dataset, entry, damage);
            }
        }
        Ok(found)
    }

    /// What is wrong with a hot segment, as its files are now.
    fn damage_of(&self, folder: u64, entry: &SegmentEntry) -> Option<String> {
        // Opened anew: checksums are compared once for each time a segment is opened.
        match self.files.open(folder, entry) {
            Ok(segment) => segment.check().err().map(|error| chain(&error)),
            Err(error) => Some(chain(&error)),
        }
    }
}
