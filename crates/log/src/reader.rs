//! Reads committed records in order, from any place, while the log is being written.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::file::{Damage, HEADER_BYTES};
use crate::frame::{FrameReader, FrameView, Step};
use crate::group::{GroupView, RecordView};
use crate::shared::{FileInfo, Shared, lock};

/// Where reading starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// At the oldest record that is still there.
    Oldest,
    /// At this sequence, or the first one after it that is still there.
    Seq(u64),
    /// At the first record that arrived at or after this unix time in nanoseconds.
    Time(i64),
}

/// Why reading failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to read log file `{path}`")]
pub struct ReadError {
    pub path: PathBuf,
    #[source]
    pub error: io::Error,
}

/// What a reader came to.
#[derive(Debug)]
pub enum ReadItem<'a> {
    /// One commit's worth of records.
    Frame(Records<'a>),
    /// Bytes that are no record although records follow, or were there.
    Damage(Damage),
}

/// The records of one commit that the reader asked for.
#[derive(Debug)]
pub struct Records<'a> {
    frame: FrameView<'a>,
    filter: &'a Filter,
}

impl<'a> Records<'a> {
    /// Each record with the group it was appended in.
    pub fn iter(&self) -> impl Iterator<Item = (GroupView<'a>, RecordView<'a>)> + use<'a, '_> {
        self.frame
            .groups()
            .filter(|group| self.filter.wants(group))
            .flat_map(|group| group.records().map(move |record| (group, record)))
            .filter(|(_, record)| record.seq >= self.filter.from_seq)
    }
}

#[derive(Debug)]
struct Filter {
    categories: Option<HashSet<String>>,
    from_seq: u64,
    from_ns: i64,
}

impl Filter {
    fn wants(&self, group: &GroupView<'_>) -> bool {
        group.arrival_ns >= self.from_ns
            && group.end_seq() > self.from_seq
            && self.categories.as_ref().is_none_or(|names| names.contains(group.category))
    }
}

/// Goes through the log in order; at its end it can be asked again later.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    filter: Filter,
    next_number: u64,
    current: Option<(Arc<FileInfo>, FrameReader)>,
    /// The sequence after the last frame that was read.
    position: u64,
}

impl Reader {
    pub(crate) fn new(
        shared: Arc<Shared>,
        categories: Option<HashSet<String>>,
        from: ReadFrom,
    ) -> Self {
        let (from_seq, from_ns) = match from {
            ReadFrom::Oldest => (0, i64::MIN),
            ReadFrom::Seq(seq) => (seq, i64::MIN),
            ReadFrom::Time(ns) => (0, ns),
        };
        let filter = Filter { categories, from_seq, from_ns };
        Self { shared, filter, next_number: 0, current: None, position: from_seq }
    }

    /// The sequence after the last frame that was read: where another reader would continue.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next commit, or `None` when the reader has seen all there are. A commit may hold no
    /// record that was asked for.
    pub fn next_item(&mut self) -> Result<Option<ReadItem<'_>>, ReadError> {
        let Some(step) = self.advance()? else {
            return Ok(None);
        };
        let Some((info, frames)) = &self.current else {
            return Ok(None);
        };
        Ok(match step {
            Step::Frame => {
                let frame = frames.frame();
                self.position = frame.groups().last().map_or(self.position, |g| g.end_seq());
                Some(ReadItem::Frame(Records { frame, filter: &self.filter }))
            }
            Step::Damage { offset, end } => Some(ReadItem::Damage(Damage {
                path: info.path.clone(),
                offset,
                bytes: end - offset,
                lost: None,
            })),
            Step::End => None,
        })
    }

    fn advance(&mut self) -> Result<Option<Step>, ReadError> {
        loop {
            if self.current.is_none() && !self.open_next()? {
                return Ok(None);
            }
            let Some((info, frames)) = &mut self.current else {
                return Ok(None);
            };
            // Asked before the end is: a file that is sealed by now has no frame after that end.
            let is_sealed = info.is_sealed();
            let end = lock(&info.summary).end;
            frames.extend(end);
            let step =
                frames.advance().map_err(|error| ReadError { path: info.path.clone(), error })?;
            match step {
                Step::End if is_sealed => match frames.skip_to_end() {
                    None => self.current = None,
                    damage => return Ok(damage),
                },
                Step::End => return Ok(None),
                Step::Frame | Step::Damage { .. } => return Ok(Some(step)),
            }
        }
    }

    /// Opens the next file that can hold what is asked for; false when there is none.
    fn open_next(&mut self) -> Result<bool, ReadError> {
        while let Some(info) = self.shared.file_from(self.next_number) {
            let start = self.start_in(&info);
            let Some(offset) = start else {
                self.next_number = info.name.number + 1;
                continue;
            };
            match self.shared.disk.open(&info.path) {
                Ok(file) => {
                    self.next_number = info.name.number + 1;
                    let frames = FrameReader::new(file, info.name.id, offset, offset);
                    self.current = Some((info, frames));
                    return Ok(true);
                }
                // Retention replaced or removed it since: ask for the list again.
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_gone(&info) => {}
                Err(error) => {
                    return Err(ReadError { path: info.path.clone(), error });
                }
            }
        }
        Ok(false)
    }

    fn is_gone(&self, info: &Arc<FileInfo>) -> bool {
        let now = self.shared.file_from(info.name.number);
        now.is_none_or(|now| !Arc::ptr_eq(&now, info))
    }

    /// Where to start reading a file; `None` when it holds nothing that is asked for. The file
    /// that is being written is never skipped: it may come to hold it.
    fn start_in(&self, info: &FileInfo) -> Option<u64> {
        let is_sealed = info.is_sealed();
        let summary = lock(&info.summary);
        let Filter { categories, from_seq, from_ns } = &self.filter;
        let has_category = categories
            .as_ref()
            .is_none_or(|names| names.iter().any(|name| summary.categories.contains_key(name)));
        let may_match =
            has_category && summary.end_seq > *from_seq && summary.latest_ns >= *from_ns;
        if is_sealed && !may_match {
            return None;
        }
        let offset = summary.offset_of_seq(*from_seq).max(summary.offset_of_time(*from_ns));
        Some(offset.max(HEADER_BYTES))
    }
}
