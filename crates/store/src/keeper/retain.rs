//! Retention of datasets: segments that nobody asks to keep any longer.

use std::sync::Arc;
use std::time::Duration;

use perflab_model::Nanos;

use super::steps::{RETAIN_RECORDED, RETAIN_REMOVED, RETAIN_SWAPPED};
use super::{KeepError, Keeper};
use crate::catalog::{DatasetSettings, SegmentChange, SegmentEntry};

impl Keeper {
    /// Removes segments that their datasets' settings no longer ask for.
    pub(super) fn retain_datasets(&self) {
        for dataset in self.tables.datasets() {
            let entries = self.tables.entries(&dataset);
            let expired = expired(&entries, &self.settings(&dataset), self.clock.now());
            if expired.is_empty() || self.tables.is_stopping() {
                continue;
            }
            match self.remove_segments(&dataset, &expired) {
                Ok(()) => {
                    let segments = expired.len();
                    tracing::info!(%dataset, segments, "removed what is past its retention");
                }
                Err(error) => self.tell(&error, "retention of a dataset failed"),
            }
        }
    }

    fn remove_segments(
        &self,
        dataset: &Arc<str>,
        expired: &[&SegmentEntry],
    ) -> Result<(), KeepError> {
        let ids: Vec<u64> = expired.iter().map(|entry| entry.id).collect();
        let until_ns = expired.iter().map(|entry| entry.max_ns).max().unwrap_or(i64::MIN);
        let change = SegmentChange {
            removed: &ids,
            forget_lost_until: Some(until_ns),
            ..SegmentChange::default()
        };
        self.record(dataset, &change, RETAIN_RECORDED)?;
        self.tables.remove(dataset, &ids, until_ns);
        (self.fault)(RETAIN_SWAPPED);
        for entry in expired {
            self.remove_segment(dataset, entry);
            (self.fault)(RETAIN_REMOVED);
        }
        Ok(())
    }
}

/// The segments whose newest row is too old, and the oldest while there are too many bytes.
fn expired<'e>(
    entries: &'e [SegmentEntry],
    settings: &DatasetSettings,
    now: Nanos,
) -> Vec<&'e SegmentEntry> {
    let age = settings.retain_seconds.map(Duration::from_secs);
    let oldest = age.map_or(i64::MIN, |age| now.saturating_sub(age).as_i64());
    let bytes_max = settings.max_bytes.unwrap_or(u64::MAX);
    let mut newer = 0_u64;
    let mut expired = Vec::new();
    for entry in entries.iter().rev() {
        newer = newer.saturating_add(entry.bytes());
        if entry.max_ns < oldest || newer > bytes_max {
            expired.push(entry);
        }
    }
    expired
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn expired_of(settings: DatasetSettings) -> Vec<u64> {
        let entry = |id: u64, max_s: i64| SegmentEntry {
            id,
            rows: 1,
            row_bytes: 50,
            list_bytes: Some(30),
            sparse_bytes: Some(20),
            min_ns: 0,
            max_ns: max_s * SECOND,
            first_seq: id,
            end_seq: id + 1,
            cold: None,
        };
        let entries = [entry(1, 10), entry(2, 40), entry(3, 20)];
        let expired = expired(&entries, &settings, Nanos(50 * SECOND));
        expired.iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn what_is_too_old_goes_whenever_it_came() {
        let of = |seconds| DatasetSettings {
            retain_seconds: Some(seconds),
            ..DatasetSettings::default()
        };
        assert_eq!(expired_of(DatasetSettings::default()), [0; 0]);
        assert_eq!(expired_of(of(40)), [0; 0]);
        assert_eq!(expired_of(of(39)), [1]);
        assert_eq!(expired_of(of(20)), [3, 1]);
        assert_eq!(expired_of(of(u64::MAX)), [0; 0]);
    }

    #[test]
    fn what_is_too_much_goes_oldest_first() {
        let of = |bytes| DatasetSettings { max_bytes: Some(bytes), ..DatasetSettings::default() };
        assert_eq!(expired_of(of(300)), [0; 0]);
        assert_eq!(expired_of(of(299)), [1]);
        assert_eq!(expired_of(of(100)), [2, 1]);
        assert_eq!(expired_of(of(99)), [3, 2, 1]);
    }
}
