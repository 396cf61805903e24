//! Reads every committed frame and says what is wrong; can set damaged bytes aside.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{DiskFile, replace};
use crate::file::{Damage, Scan, scan};
use crate::retain::replace_file;
use crate::shared::{FileInfo, Shared, lock};

/// What a check found.
#[derive(Debug, Default)]
pub struct Check {
    pub files: u64,
    pub bytes: u64,
    pub records: u64,
    /// Bad bytes, where they are, and the records lost with them.
    pub damage: Vec<Damage>,
    /// Files that could not be read, and why.
    pub unreadable: Vec<(PathBuf, io::Error)>,
    /// Where the damaged bytes were put, if that was asked for.
    pub quarantined: Vec<PathBuf>,
}

impl Check {
    /// Whether all that was ever acknowledged is still there and readable.
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty() && self.unreadable.is_empty()
    }
}

/// With `quarantine`, copies damaged bytes into that folder and rewrites the file without them.
/// The file that is being written keeps its damage until it is sealed.
pub(crate) fn check(shared: &Shared, quarantine: Option<&Path>) -> io::Result<Check> {
    let _rewriting = lock(&shared.rewriting);
    let mut report = Check::default();
    for info in shared.files() {
        shared.check_open()?;
        match check_file(shared, &info) {
            Ok((file, found)) => {
                report.files += 1;
                report.bytes += found.summary.end;
                report.records +=
                    found.summary.categories.values().map(|span| span.records).sum::<u64>();
                if let Some(dir) = quarantine.filter(|_| !found.damage.is_empty()) {
                    set_aside(shared, &info, file.as_ref(), &found.damage, dir, &mut report)?;
                }
                report.damage.extend(found.damage);
            }
            Err(error) => report.unreadable.push((info.path.clone(), error)),
        }
    }
    Ok(report)
}

fn check_file(shared: &Shared, info: &FileInfo) -> io::Result<(Arc<dyn DiskFile>, Scan)> {
    let summary = lock(&info.summary).clone();
    let file = shared.disk.open(&info.path)?;
    let sequences = summary.first_seq..u64::MAX;
    let mut found = scan(&file, &info.path, info.name, sequences, summary.end, |_| {})?;
    // Bad bytes at the very end of what was committed are damage too.
    if found.summary.end < summary.end {
        let missing = summary.end_seq.saturating_sub(found.summary.end_seq);
        found.damage.push(Damage {
            path: info.path.clone(),
            offset: found.summary.end,
            bytes: summary.end - found.summary.end,
            lost: (missing > 0).then_some((found.summary.end_seq, missing)),
        });
    }
    Ok((file, found))
}

fn set_aside(
    shared: &Shared,
    info: &FileInfo,
    file: &dyn DiskFile,
    damage: &[Damage],
    dir: &Path,
    report: &mut Check,
) -> io::Result<()> {
    if !info.is_sealed() {
        return Ok(());
    }
    shared.disk.create_dir(dir)?;
    for bad in damage {
        let mut bytes = vec![0; usize::try_from(bad.bytes).map_err(io::Error::other)?];
        let read = file.read_at(&mut bytes, bad.offset)?;
        let stem = info.path.file_stem().unwrap_or_default().to_string_lossy();
        let target = dir.join(format!("{stem}-{}.bad", bad.offset));
        replace(shared.disk.as_ref(), &target, &bytes[..read])?;
        report.quarantined.push(target);
    }
    let old = lock(&info.summary).clone();
    replace_file(shared, info, &old, |_| true)?;
    Ok(())
}
