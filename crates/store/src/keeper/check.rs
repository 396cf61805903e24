//! Reading everything that is in files, whether or not anyone asks for it.

use super::Keeper;
use super::rebuild::check;
use crate::catalog::{CatalogError, SegmentEntry};
use crate::ingest::chain;

/// What was found when all segments were read.
#[derive(Debug, Default)]
pub struct SegmentCheck {
    pub segments: u64,
    /// Of their files.
    pub bytes: u64,
    pub damage: Vec<SegmentDamage>,
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
            for entry in entries.iter().filter(|entry| entry.cold.is_some()) {
                let damage = self.damage_of(folder, entry);
                let damage = damage.filter(|why| self.take_out_cold(&dataset, entry, why));
                found.add(&dataset, entry, damage);
            }
        }
        Ok(found)
    }

    /// What is wrong with a segment, as its files are now.
    fn damage_of(&self, folder: u64, entry: &SegmentEntry) -> Option<String> {
        match &entry.cold {
            Some(cold) => self.cold.read(folder, entry, cold).err().map(|error| chain(&error)),
            // Opened anew: checksums are compared once for each time a segment is opened.
            None => match self.files.open(folder, entry) {
                Ok(segment) => check(&segment).err().map(|error| chain(&error)),
                Err(error) => Some(chain(&error)),
            },
        }
    }
}
