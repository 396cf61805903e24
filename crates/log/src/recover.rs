//! Opens a log after any kind of end.
//!
//! 1. Remove what was never finished: temporary files, files superseded by a later generation.
//! 2. Read each file's seal. A file without one is read frame by frame, up to where its
//!    successor says it ends: bad bytes with a frame after them are damage (kept, counted and
//!    located); bad bytes with none after them are a torn tail (cut).
//! 3. The last file with frames goes on being written; files prepared after it are removed.
//! 4. Load the checkpoint and add the keys of the frames after its place.
//!
//! Nothing that a file contains makes this fail: a file that cannot be read at all is reported
//! and left alone, and sequences continue past what it could hold.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::checkpoint::{self, Checkpoint, Place};
use crate::disk::DiskFile;
use crate::file::{Damage, FileName, HEADER_BYTES, Header, Scan, Summary, scan};
use crate::frame::{FrameBuilder, FrameReader, FrameView, Step};
use crate::shared::{FileInfo, Shared};
use crate::window::Window;
use crate::writer::{Active, FILE_BYTES_MIN, Writer};
use crate::{Settings, group::GroupView};

/// What opening the log found and did.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Stretches of bad bytes with valid frames after them, in the files that were read.
    pub damage: Vec<Damage>,
    /// Bytes cut from torn tails: commits that were never acknowledged.
    pub torn_bytes: u64,
    /// Files that could not be read, and why. They are left as they are.
    pub unreadable: Vec<(PathBuf, io::Error)>,
    /// Bytes that were read to get here.
    pub scanned_bytes: u64,
    /// Whether the window of producers' keys had to be rebuilt without a checkpoint.
    pub window_rebuilt: bool,
}

/// Every record takes as many bytes at least.
const RECORD_BYTES_MIN: u64 = 4;

/// A file found on disk.
struct Found {
    name: FileName,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    header: Option<Header>,
    seal: Option<Summary>,
    /// Whether anything was ever committed to it.
    is_used: bool,
    len: u64,
}

pub(crate) fn recover(shared: &Arc<Shared>, settings: &Settings) -> io::Result<(Writer, Recovery)> {
    let mut report = Recovery::default();
    let (found, next_number) = find_files(shared, &mut report)?;
    let checkpoint = checkpoint::read(shared.disk.as_ref(), &shared.dir, settings.window)
        .inspect_err(|_| report.window_rebuilt = true)
        .unwrap_or_default();
    report.window_rebuilt |= checkpoint.is_none() && found.iter().any(|file| file.is_used);
    let checkpoint = checkpoint.unwrap_or_else(|| Checkpoint {
        place: Place { number: 0, offset: 0 },
        next_seq: 0,
        window: Window::new(settings.window),
    });
    let mut rebuild = Rebuild {
        shared,
        report,
        from: checkpoint.place,
        writer: Writer {
            shared: Arc::clone(shared),
            active: None,
            prepared: None,
            next_number,
            next_seq: checkpoint.next_seq,
            previous_end: 0,
            file_bytes_max: settings.file_bytes_max,
            next_file_bytes: FILE_BYTES_MIN.min(settings.file_bytes_max),
            window: checkpoint.window,
            builder: FrameBuilder::default(),
        },
    };
    // Where each file ends according to its successor.
    let ends: BTreeMap<u64, u64> = found
        .iter()
        .zip(found.iter().skip(1))
        .filter_map(|(file, next)| Some((file.name.number, next.header?.previous_end)))
        .collect();
    let last_used = found.iter().rev().find(|file| file.is_used).map(|file| file.name.number);
    // Sequences that a file which cannot be opened might hold are not given out again.
    let unknown = rebuild.report.unreadable.len() as u64;
    rebuild.writer.next_seq += unknown * (settings.file_bytes_max / RECORD_BYTES_MIN + 1);
    for file in found {
        let said_end = ends.get(&file.name.number).copied();
        let is_last = Some(file.name.number) == last_used;
        if file.is_used {
            rebuild.take_in(file, said_end, is_last);
        } else {
            shared.disk.remove(&file.path)?;
        }
    }
    shared.publish_commit(rebuild.writer.next_seq);
    Ok((rebuild.writer, rebuild.report))
}

/// All files in order, one per number, with the leftovers of unfinished steps removed, and the
/// number for the next file.
fn find_files(shared: &Shared, report: &mut Recovery) -> io::Result<(Vec<Found>, u64)> {
    let mut files: BTreeMap<u64, Found> = BTreeMap::new();
    let mut next_number = 1;
    for entry in shared.disk.list(&shared.dir)? {
        let path = shared.dir.join(&entry);
        if entry.ends_with(".tmp") {
            shared.disk.remove(&path)?;
            continue;
        }
        let Some(name) = FileName::parse(&entry) else {
            continue;
        };
        next_number = next_number.max(name.number + 1);
        let found = match open_file(shared, name, path.clone()) {
            Ok(found) => found,
            Err(error) => {
                report.unreadable.push((path, error));
                continue;
            }
        };
        let superseded = match files.remove(&name.number) {
            Some(other) if other.rank() > found.rank() => {
                files.insert(name.number, other);
                Some(found)
            }
            other => {
                files.insert(name.number, found);
                other
            }
        };
        if let Some(superseded) = superseded {
            shared.disk.remove(&superseded.path)?;
        }
    }
    Ok((files.into_values().collect(), next_number))
}

fn open_file(shared: &Shared, name: FileName, path: PathBuf) -> io::Result<Found> {
    let file = shared.disk.open(&path)?;
    let header = Header::read(file.as_ref())?.filter(|header| header.file_id == name.id);
    let seal = Summary::read_seal(file.as_ref(), name.id)?;
    let len = file.len()?;
    // Without a header a file is most likely all zeros, prepared and not used. But if just the
    // header is damaged, the frames behind it count.
    let is_used = match (&header, &seal) {
        (None, None) => {
            let mut frames = FrameReader::new(Arc::clone(&file), name.id, HEADER_BYTES, len);
            frames.advance()? != Step::End
        }
        _ => true,
    };
    Ok(Found { name, path, file, header, seal, is_used, len })
}

impl Found {
    /// Of two files with one number, the one that counts: a rewritten file only once it is whole.
    fn rank(&self) -> (bool, bool, u32) {
        (self.is_used, self.seal.is_some(), self.name.generation)
    }
}

struct Rebuild<'a> {
    shared: &'a Shared,
    report: Recovery,
    /// Keys of frames from here on are not in the window yet.
    from: Place,
    writer: Writer,
}

impl Rebuild<'_> {
    fn take_in(&mut self, found: Found, said_end: Option<u64>, is_last: bool) {
        let result = match &found.seal {
            Some(seal) => self.replay_keys(&found, seal.end).map(|()| seal.clone()),
            None => self.read_through(&found, said_end, is_last),
        };
        let summary = match result {
            Ok(summary) => summary,
            Err(error) => {
                self.writer.next_seq += found.len / RECORD_BYTES_MIN + 1;
                self.report.unreadable.push((found.path, error));
                return;
            }
        };
        self.writer.next_seq = self.writer.next_seq.max(summary.end_seq);
        self.writer.previous_end = summary.end;
        self.writer.next_file_bytes = (found.len * 2)
            .clamp(FILE_BYTES_MIN.min(self.writer.file_bytes_max), self.writer.file_bytes_max);
        let is_sealed = found.seal.is_some();
        let end = summary.end;
        let info = Arc::new(FileInfo {
            name: found.name,
            path: found.path,
            sealed: AtomicBool::new(!is_last || is_sealed),
            summary: Mutex::new(summary),
        });
        self.shared.publish_file(Arc::clone(&info));
        if is_last && !is_sealed {
            self.writer.active =
                Some(Active { info, file: found.file, offset: end, len: found.len.max(end) });
        }
    }

    /// Adds the keys of a sealed file's frames where the checkpoint does not have them.
    fn replay_keys(&mut self, found: &Found, end: u64) -> io::Result<()> {
        if self.from.number > found.name.number {
            return Ok(());
        }
        self.report.scanned_bytes += end;
        let scan = self.scan(found, end)?;
        self.report.damage.extend(scan.damage);
        Ok(())
    }

    /// Reads a file that has no seal, and repairs its end: the last file is made ready to be
    /// written again, an earlier one is sealed.
    fn read_through(
        &mut self,
        found: &Found,
        said_end: Option<u64>,
        is_last: bool,
    ) -> io::Result<Summary> {
        let limit = said_end.map_or(found.len, |end| end.min(found.len));
        self.report.scanned_bytes += limit;
        let scan = self.scan(found, limit)?;
        self.report.damage.extend(scan.damage);
        let mut summary = scan.summary;
        self.keep_checkpointed(found, &mut summary);
        if !is_last {
            summary.write_seal(found.file.as_ref(), found.name.id)?;
            return Ok(summary);
        }
        let torn = torn_bytes(found.file.as_ref(), summary.end, found.len)?;
        if torn > 0 {
            self.report.torn_bytes += torn;
            found.file.write_zeros(summary.end, summary.end + torn)?;
        }
        // Frames that were written but not yet synced when the process ended are served from now
        // on, so they must be durable from now on.
        found.file.sync_data()?;
        Ok(summary)
    }

    fn scan(&mut self, found: &Found, end: u64) -> io::Result<Scan> {
        let first_seq = found.header.map_or(self.writer.next_seq, |header| header.first_seq);
        let (from, window) = (self.from, &mut self.writer.window);
        let number = found.name.number;
        scan(&found.file, &found.path, found.name, first_seq, end, |frame| {
            if (Place { number, offset: frame.offset }) >= from {
                remember_keys(window, frame);
            }
        })
    }

    /// The checkpoint knows how far the file was committed. Bad bytes before that are damage and
    /// not a torn tail, even with no frame after them.
    fn keep_checkpointed(&mut self, found: &Found, summary: &mut Summary) {
        if self.from.number == found.name.number && summary.end < self.from.offset {
            let missing = self.writer.next_seq.saturating_sub(summary.end_seq);
            self.report.damage.push(Damage {
                path: found.path.clone(),
                offset: summary.end,
                bytes: self.from.offset - summary.end,
                lost: (missing > 0).then_some((summary.end_seq, missing)),
            });
            summary.end = self.from.offset;
            summary.end_seq = summary.end_seq.max(self.writer.next_seq);
        }
    }
}

fn remember_keys(window: &mut Window, frame: &FrameView<'_>) {
    for group in frame.groups().filter(GroupView::is_keyed) {
        for record in group.records() {
            window.insert(
                group.producer,
                record.producer_seq.unwrap_or_default(),
                group.arrival_ns,
            );
        }
    }
}

/// How many bytes after `end` are not zero, up to the last such byte.
fn torn_bytes(file: &dyn DiskFile, end: u64, len: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut torn_end = end;
    let mut offset = end;
    while offset < len {
        let read = file.read_at(&mut buffer, offset)?;
        if read == 0 {
            break;
        }
        if let Some(last) = buffer[..read].iter().rposition(|byte| *byte != 0) {
            torn_end = offset + last as u64 + 1;
        }
        offset += read as u64;
    }
    Ok(torn_end - end)
}
