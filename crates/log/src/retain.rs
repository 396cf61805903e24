//! Retention: removes old records of each category from sealed files.
//!
//! A file in which nothing is wanted any more is removed. One of which less than half is still
//! wanted is rewritten without the rest, so that a quiet category that is kept for ever does not
//! pin the files of a busy one; until then the unwanted part merely stays longer. Records keep
//! their sequences. Nothing at or after the *held* sequence is touched: no segment has it yet.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::file::{CategorySpan, FileName, HEADER_BYTES, Header, Summary};
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

/// Of one category, records before both of these may go.
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
    let files = shared.files();
    let plan = Plan { cuts: cuts(&files, now_ns, keep), held_from };
    let mut retained = Retained::default();
    // The newest file stays even if it is sealed: its end is where sequences continue.
    let older = files.split_last().map_or(&[][..], |(_, older)| older);
    for info in older.iter().filter(|info| info.is_sealed()) {
        let (droppable, total) = {
            let summary = lock(&info.summary);
            let total: u64 = summary.categories.values().map(|span| span.bytes).sum();
            (plan.droppable_bytes(&summary), total)
        };
        if droppable == total {
            remove(shared, info, &mut retained)?;
        } else if droppable * 2 > total {
            rewrite(shared, info, &plan, &mut retained)?;
        }
    }
    Ok(retained)
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
    shared.disk.remove(&info.path)?;
    shared.disk.sync_dir(&shared.dir)?;
    shared.forget_file(info.name.number);
    let summary = lock(&info.summary);
    retained.files_removed += 1;
    retained.bytes_freed += summary.end;
    retained.records_removed += summary.categories.values().map(|span| span.records).sum::<u64>();
    Ok(())
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
    let source = shared.disk.open(&info.path)?;
    let target = shared.disk.create(&temporary)?;
    let header = Header::read(source.as_ref())?.unwrap_or(Header {
        file_id: name.id,
        first_seq: old.first_seq,
        previous_end: u64::MAX,
    });
    target.write_at(&header.encode(), 0)?;
    let mut summary = Summary::new(header.first_seq);
    let mut builder = FrameBuilder::default();
    let mut frames = FrameReader::new(source, name.id, HEADER_BYTES, old.end);
    loop {
        match frames.advance()? {
            Step::Frame => {}
            Step::Damage { .. } => continue,
            Step::End => break,
        }
        let frame = frames.frame();
        builder.start(name.id, frame.first_seq);
        for group in frame.groups().filter(|group| wanted(group)) {
            builder.copy(&group);
        }
        if !builder.is_empty() {
            target.write_at(builder.finish(), summary.end)?;
            summary.add(&FrameView::checked_before(builder.finished(), summary.end));
        }
    }
    summary.end_seq = old.end_seq;
    summary.write_seal(target.as_ref(), name.id)?;
    shared.disk.rename(&temporary, &path)?;
    shared.disk.sync_dir(&shared.dir)?;
    shared.publish_file(Arc::new(FileInfo {
        name,
        path,
        sealed: AtomicBool::new(true),
        summary: Mutex::new(summary.clone()),
    }));
    // Only now: a crash before this leaves both, and recovery keeps the higher generation.
    shared.disk.remove(&info.path)?;
    shared.disk.sync_dir(&shared.dir)?;
    Ok(summary)
}
