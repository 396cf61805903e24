//! Retention: removes old records of each category from sealed files.
//!
//! A file in which nothing is wanted any more is removed. One of which less than half is still
//! wanted is rewritten without the rest, so that a quiet category that is kept for ever does not
//! pin the files of a busy one; until then the unwanted part merely stays longer. Records keep
//! their sequences. Nothing at or after the *held* sequence is touched: no segment has it yet.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::file::{CategorySpan, END_UNKNOWN, FileName, HEADER_BYTES, Header, Summary};
use crate::frame::{FrameBuilder, FrameReader, FrameView, Step};
use crate::group::GroupView;
use crate::shared::{FileInfo, Shared, lock};

/// How much of a category is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    /// Records that arrived longer ago than this may go.
    pub age_ns: Option<i64>,
    /// The oldest records may go while there are more than this many bytes.
    pub bytes: Option<u64>,
}

/// What retention did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Retained {
    pub files_removed: u64,
    pub files_rewritten: u64,
    pub records_removed: u64,
    pub bytes_freed: u64,
}

/// Of one category, records before either of these may go.
#[derive(Debug, Clone, Copy)]
struct Cut {
    before_seq: u64,
    before_ns: i64,
}

impl Cut {
    fn covers(self, group_end_seq: u64, arrival_ns: i64) -> bool {
        group_end_seq <= self.before_seq || arrival_ns < self.before_ns
    }
}

/// Which records may go.
struct Plan {
    cuts: BTreeMap<String, Cut>,
    held_from: u64,
}

impl Plan {
    fn drops(&self, group: &GroupView<'_>) -> bool {
        group.end_seq() <= self.held_from
            && self
                .cuts
                .get(group.category)
                .is_some_and(|cut| cut.covers(group.end_seq(), group.arrival_ns))
    }

    /// How many bytes of a file may go for sure, judging by its summary.
    fn droppable_bytes(&self, summary: &Summary) -> u64 {
        let droppable = |(name, span): (&String, &CategorySpan)| {
            let cut = self.cuts.get(name)?;
            let all = span.last_seq < self.held_from && cut.covers(span.last_seq + 1, span.last_ns);
            all.then_some(span.bytes)
        };
        summary.categories.iter().filter_map(droppable).sum()
    }
}

pub(crate) fn retain(
    shared: &Shared,
    now_ns: i64,
    keep: &dyn Fn(&str) -> Keep,
    held_from: u64,
) -> io::Result<Retained> {
    let _rewriting = lock(&shared.rewriting);
    shared.check_open()?;
    let files = shared.files();
    let plan = Plan { cuts: cuts(&files, now_ns, keep), held_from };
    let (removable, rewritable) = candidates(shared, &files, &plan);
    let mut retained = Retained::default();
    let mut failed = Ok(());
    // Removals first: they need no space, and may make what the rewrites need.
    for info in removable {
        shared.check_open()?;
        failed = failed.and(remove(shared, info, &mut retained));
    }
    for info in rewritable {
        shared.check_open()?;
        failed = failed.and(rewrite(shared, info, &plan, &mut retained));
    }
    failed.map(|()| retained)
}

/// The files of which nothing is wanted any more, and those of which less than half is.
fn candidates<'f>(
    shared: &Shared,
    files: &'f [Arc<FileInfo>],
    plan: &Plan,
) -> (Vec<&'f FileInfo>, Vec<&'f FileInfo>) {
    let (mut removable, mut rewritable) = (Vec::new(), Vec::new());
    // The newest file stays even if it is sealed: its end is where sequences continue.
    let older = files.split_last().map_or(&[][..], |(_, older)| older);
    // Keys that no checkpoint holds must be found in the files at the next start.
    let checkpointed = shared.checkpointed.load(Ordering::Acquire);
    for info in older.iter().filter(|info| info.is_sealed() && info.name.number < checkpointed) {
        let summary = lock(&info.summary);
        let total: u64 = summary.categories.values().map(|span| span.bytes).sum();
        let droppable = plan.droppable_bytes(&summary);
        drop(summary);
        if droppable == total {
            removable.push(&**info);
        } else if droppable * 2 > total {
            rewritable.push(&**info);
        }
    }
    (removable, rewritable)
}

/// For each category with a limit, what may go.
fn cuts(
    files: &[Arc<FileInfo>],
    now_ns: i64,
    keep: &dyn Fn(&str) -> Keep,
) -> BTreeMap<String, Cut> {
    let mut spans: BTreeMap<String, Vec<CategorySpan>> = BTreeMap::new();
    for info in files {
        for (name, span) in &lock(&info.summary).categories {
            spans.entry(name.clone()).or_default().push(*span);
        }
    }
    spans
        .into_iter()
        .map(|(name, spans)| {
            let keep = keep(&name);
            let before_ns = keep.age_ns.map_or(i64::MIN, |age| now_ns.saturating_sub(age));
            let before_seq = keep.bytes.map_or(0, |bytes| seq_beyond(&spans, bytes));
            (name, Cut { before_seq, before_ns })
        })
        .collect()
}

/// The sequence before which a category's records exceed `bytes`. Files count whole: the last
/// one that goes past the limit still stays.
fn seq_beyond(spans: &[CategorySpan], bytes: u64) -> u64 {
    let mut newer = 0;
    for span in spans.iter().rev() {
        newer += span.bytes;
        if newer > bytes {
            return span.first_seq;
        }
    }
    0
}

fn remove(shared: &Shared, info: &FileInfo, retained: &mut Retained) -> io::Result<()> {
    // A file without a seal ends where its successor says: it gets one before that is gone.
    if let Some(before) = shared.file_before(info.name.number) {
        seal(shared, &before)?;
    }
    remove_if_there(shared, &info.path)?;
    shared.forget_file(info.name.number);
    {
        let summary = lock(&info.summary);
        retained.files_removed += 1;
        retained.bytes_freed += summary.end;
        retained.records_removed +=
            summary.categories.values().map(|span| span.records).sum::<u64>();
    }
    shared.disk.sync_dir(&shared.dir)
}

/// Writes a file's seal where that failed before.
fn seal(shared: &Shared, info: &FileInfo) -> io::Result<()> {
    if info.has_seal.load(Ordering::Acquire) {
        return Ok(());
    }
    let file = shared.disk.open(&info.path)?;
    lock(&info.summary).write_seal(file.as_ref(), info.name.id)?;
    info.has_seal.store(true, Ordering::Release);
    Ok(())
}

fn remove_if_there(shared: &Shared, path: &Path) -> io::Result<()> {
    match shared.disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn rewrite(
    shared: &Shared,
    info: &FileInfo,
    plan: &Plan,
    retained: &mut Retained,
) -> io::Result<()> {
    let old = lock(&info.summary).clone();
    let summary = replace_file(shared, info, &old, |group| !plan.drops(group))?;
    let records = |summary: &Summary| summary.categories.values().map(|s| s.records).sum::<u64>();
    retained.files_rewritten += 1;
    retained.bytes_freed += old.end.saturating_sub(summary.end);
    retained.records_removed += records(&old).saturating_sub(records(&summary));
    Ok(())
}

/// Replaces a sealed file by its next generation, which holds the groups that are `wanted` and
/// nothing that is damaged.
pub(crate) fn replace_file(
    shared: &Shared,
    info: &FileInfo,
    old: &Summary,
    wanted: impl Fn(&GroupView<'_>) -> bool,
) -> io::Result<Summary> {
    let name = FileName { generation: info.name.generation + 1, ..info.name };
    let path = name.path(&shared.dir);
    let temporary = path.with_extension("tmp");
    // Left by an attempt that failed, if it is there.
    remove_if_there(shared, &temporary)?;
    let replaced = write_wanted(shared, info, old, &temporary, wanted).and_then(|summary| {
        shared.disk.rename(&temporary, &path)?;
        shared.disk.sync_dir(&shared.dir)?;
        Ok(summary)
    });
    let summary = match replaced {
        Ok(summary) => summary,
        Err(error) => {
            // Gives the space back; if even that fails, the next attempt does.
            let removed = shared.disk.remove(&temporary);
            drop(removed);
            return Err(error);
        }
    };
    shared.publish_file(Arc::new(FileInfo::new(name, &shared.dir, true, summary.clone())));
    // Only now: a crash before this leaves both, and recovery keeps the higher generation.
    remove_if_there(shared, &info.path)?;
    shared.disk.sync_dir(&shared.dir)?;
    Ok(summary)
}

/// Copies a file's wanted groups to a new file and seals that.
fn write_wanted(
    shared: &Shared,
    info: &FileInfo,
    old: &Summary,
    to: &Path,
    wanted: impl Fn(&GroupView<'_>) -> bool,
) -> io::Result<Summary> {
    let id = info.name.id;
    let source = shared.disk.open(&info.path)?;
    let target = shared.disk.create(to)?;
    let header = Header::read(source.as_ref())?.unwrap_or(Header {
        file_id: id,
        first_seq: old.first_seq,
        previous_end: END_UNKNOWN,
    });
    target.write_at(&header.encode(), 0)?;
    let mut summary = Summary::new(header.first_seq);
    let mut builder = FrameBuilder::default();
    let mut frames = FrameReader::new(source, id, HEADER_BYTES, old.end);
    loop {
        match frames.advance()? {
            Step::Frame => {}
            Step::Damage { .. } => continue,
            Step::End => break,
        }
        let frame = frames.frame();
        builder.start(id, frame.first_seq);
        for group in frame.groups().filter(|group| wanted(group)) {
            builder.copy(&group);
        }
        if !builder.is_empty() {
            target.write_at(builder.finish(), summary.end)?;
            summary.add(&FrameView::checked_before(builder.finished(), summary.end));
        }
    }
    summary.end_seq = old.end_seq;
    summary.write_seal(target.as_ref(), id)?;
    Ok(summary)
}
