//! What is kept for cold segments, compared with what the catalog names.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use object_store::path::Path;

use super::cold::{MISSING, wrong_length};
use super::{KeepError, Keeper};
use crate::catalog::{SegmentEntry, SegmentSet};

impl Keeper {
    /// Removes objects that are of no segment: a crash came before they were in the catalog or after
    /// they were out of it, or removing them failed. Segments whose objects are missing or of
    /// another length are damaged. Done once after a start, and again when removing has failed.
    pub(super) fn tidy_cold(&self) {
        self.cold.look_again();
        if !self.cold_is_untidy.load(Ordering::Relaxed) || !self.cold.is_writable() {
            return;
        }
        match self.try_tidy_cold() {
            Ok(removed) => {
                self.cold_is_untidy.store(false, Ordering::Relaxed);
                if removed > 0 {
                    tracing::info!(removed, "removed what was left over of cold segments");
                }
            }
            Err(error) => self.tell(&error, "it is not known what is left over of cold segments"),
        }
    }

    /// Returns how many there were that are of no segment.
    fn try_tidy_cold(&self) -> Result<usize, KeepError> {
        let sets = self.catalog.segment_sets()?;
        let has_cold = sets.iter().flat_map(|set| &set.segments).any(|entry| entry.cold.is_some());
        if has_cold {
            self.cold.check_place()?;
        } else {
            self.cold.put_sign()?;
        }
        let mut there = self.cold.list()?;
        for set in &sets {
            self.check_lengths(set, &mut there);
        }
        let mut removed = self.cold.remove_staged()?;
        for object in there.into_keys() {
            self.cold.remove_object(object)?;
            removed += 1;
        }
        Ok(removed)
    }

    /// Takes segments out of use that can't be whole, and the objects of all out of what is there.
    fn check_lengths(&self, set: &SegmentSet, there: &mut HashMap<Path, u64>) {
        let is_cold = |entry: &&SegmentEntry| entry.cold.is_some();
        for entry in set.segments.iter().filter(is_cold) {
            for (object, len) in self.cold.lengths(set.folder, entry) {
                let why = match there.remove(&object) {
                    Some(found) if found == len => continue,
                    Some(found) => wrong_length(found, len),
                    None => MISSING.to_owned(),
                };
                self.take_out_cold(&set.dataset, entry, &format!("`{object}`: {why}"));
            }
        }
    }

    /// Removes the objects of a segment that the catalog doesn't name. If that fails, it is tried
    /// again.
    pub(super) fn remove_cold(&self, dataset: &str, id: u64) {
        let folder = self.catalog.dataset_folder(dataset).map_err(KeepError::from);
        if let Err(error) = folder.and_then(|folder| Ok(self.cold.remove(folder, id)?)) {
            self.cold_is_untidy.store(true, Ordering::Relaxed);
            self.tell(&error, "a cold segment could not be removed");
        }
    }
}
