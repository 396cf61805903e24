//! The lock that makes one process the owner of a home.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// A pid has at most this many digits; what is longer is no pid.
const PID_BYTES_MAX: u64 = 20;

/// Held until it is dropped.
#[derive(Debug)]
pub(crate) struct HomeLock {
    file: File,
}

/// What came of asking for the lock.
pub(crate) enum Claim {
    Taken(HomeLock),
    /// Another process has it; its pid, if it could be read.
    Held(Option<u32>),
}

impl HomeLock {
    pub(crate) fn claim(path: &Path) -> io::Result<Claim> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Claim::Held(read_pid(&mut file))),
            Err(error) => return Err(error.into()),
        }
        // The pid is for people: a full disk is no reason to refuse the home.
        let written = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        drop(written);
        Ok(Claim::Taken(Self { file }))
    }
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // While the lock is still held: the next owner must not be taken for this one.
        let cleared = self.file.set_len(0);
        drop(cleared);
        // Closing the file is not enough: a program that is being started at this moment has a
        // copy of it until it runs.
        _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
