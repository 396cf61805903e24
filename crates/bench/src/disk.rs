//! What a durable write costs on this disk.

use crate::clock::Stopwatch;
use crate::quantile;
use anyhow::Result;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// How many writes give a median.
const WRITES: usize = 100;

/// A file whose blocks are allocated and written, so that a sync writes data and no metadata.
#[derive(Debug)]
pub(crate) struct Preallocated {
    file: File,
    bytes: u64,
    at: u64,
}

impl Preallocated {
    pub(crate) fn create(path: &Path, mib: u64) -> Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let zeros = vec![0; 1 << 20];
        for index in 0..mib {
            file.write_all_at(&zeros, index * MIB)?;
        }
        file.sync_all()?;
        Ok(Self { file, bytes: mib * MIB, at: 0 })
    }

    /// Writes after what was written before, and waits until it is on disk.
    pub(crate) fn write_durably(&mut self, data: &[u8]) -> Result<Duration> {
        let length = data.len() as u64;
        if self.at + length > self.bytes {
            self.at = 0;
        }
        let stopwatch = Stopwatch::start();
        self.file.write_all_at(data, self.at)?;
        self.file.sync_data()?;
        let elapsed = stopwatch.elapsed();
        self.at += length;
        Ok(elapsed)
    }
}

/// The median time of a write of `bytes` and an fdatasync, in `folder`.
pub(crate) fn fdatasync_p50(folder: &Path, bytes: usize) -> Result<Duration> {
    let path = folder.join("fdatasync");
    let mib = (WRITES * bytes).div_ceil(1 << 20) as u64;
    let mut file = Preallocated::create(&path, mib)?;
    let data = vec![0xa5; bytes];
    let mut times = (0..WRITES).map(|_| file.write_durably(&data)).collect::<Result<Vec<_>>>()?;
    std::fs::remove_file(&path)?;
    times.sort();
    Ok(quantile::of_sorted(&times, 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_stay_inside_what_is_allocated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = Preallocated::create(&path, 1).unwrap();
        for _ in 0..3 {
            file.write_durably(&[1; 700 << 10]).unwrap();
        }
        assert_eq!(path.metadata().unwrap().len(), 1 << 20);
        assert!(fdatasync_p50(folder.path(), 4096).unwrap() > Duration::ZERO);
    }
}
