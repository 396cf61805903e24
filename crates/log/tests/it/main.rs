//! The log through its public face, on a real file system.

#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

mod readers;
mod retention;
mod spool;
mod start;

use std::path::Path;
use std::sync::Arc;

use perflab_log::{Group, Log, RealDisk, Settings, WindowLimits};

const SECOND: i64 = 1_000_000_000;

/// Files so small that a test fills several.
const SMALL: Settings =
    Settings { file_bytes_max: 64 << 10, queue_bytes_max: 8 << 20, window: WindowLimits::DEFAULT };

fn open(dir: &Path) -> Log {
    Log::open(Arc::new(RealDisk), &dir.join("log"), SMALL, 0).unwrap().0
}

fn message(category: &str, arrival_ns: i64, payload: &[u8]) -> Group {
    let mut group = Group::new(category, arrival_ns).unwrap();
    group.push(0, &[payload]).unwrap();
    group
}
