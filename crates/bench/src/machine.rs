//! What the figures were measured on.

use anyhow::Result;
use perflab_model::{Clock, SystemClock};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// How this program was called.
pub(crate) fn command() -> String {
    std::env::args().collect::<Vec<_>>().join(" ")
}

/// One line for the report: CPU, memory, kernel, file system, date, and how busy the machine is.
/// Called before the benchmark makes it busy.
pub(crate) fn describe(folder: &Path) -> Result<String> {
    let cores = thread::available_parallelism()?;
    let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
    let cpu = value_of(&cpuinfo, "model name").unwrap_or("unknown CPU");
    let meminfo = fs::read_to_string("/proc/meminfo")?;
    let memory = value_of(&meminfo, "MemTotal").unwrap_or("unknown");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let disk = file_system(&mounts, &fs::canonicalize(folder)?).unwrap_or("unknown");
    let loadavg = fs::read_to_string("/proc/loadavg")?;
    let load = loadavg.split(' ').next().unwrap_or("unknown");
    let kernel = kernel.trim();
    let date = SystemClock.now();
    Ok(format!(
        "{cores} cores of {cpu}, memory {memory}, Linux {kernel}, {disk}, {date}, \
         load average {load} before the run"
    ))
}

/// The first value of a `name : value` file.
fn value_of<'f>(file: &'f str, name: &str) -> Option<&'f str> {
    file.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

/// The type of the file system that holds `path`.
fn file_system<'m>(mounts: &'m str, path: &Path) -> Option<&'m str> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((PathBuf::from(fields.next()?), fields.next()?))
        })
        .filter(|(mount, _)| path.starts_with(mount))
        // Of two mounts at one place the later one is on top.
        .max_by_key(|(mount, _)| mount.components().count())
        .map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_holds_a_path() {
        let mounts = "/dev/a / ext4 rw 0 0\n/dev/b /data xfs rw 0 0\ntmpfs /data/tmp tmpfs rw 0 0";
        for (path, kind) in [("/data/x", "xfs"), ("/data/tmp/x", "tmpfs"), ("/database", "ext4")] {
            assert_eq!(file_system(mounts, Path::new(path)), Some(kind), "{path}");
        }
    }

    #[test]
    fn this_machine_can_be_described() {
        let line = describe(Path::new("/")).unwrap();
        assert!(line.contains(" cores of ") && line.contains("Linux"), "{line}");
    }
}
