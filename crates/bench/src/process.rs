//! What a process has used, from `/proc`.

use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// CPU time of all threads, in user and kernel.
pub(crate) fn cpu(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_cpu(&stat, rustix::param::clock_ticks_per_second())
        .with_context(|| format!("/proc/{pid}/stat has no CPU time"))
}

/// Anonymous resident memory in bytes: what the process itself allocated, no file pages.
pub(crate) fn anonymous_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "RssAnon:")
}

/// Resident memory in bytes that belongs to files, and is the system's to take back.
pub(crate) fn mapped_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "RssFile:")
}

fn status_bytes(pid: u32, what: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    parse_bytes(&status, what).with_context(|| format!("/proc/{pid}/status has no {what}"))
}

fn parse_cpu(stat: &str, ticks_per_second: u64) -> Option<Duration> {
    // The program's name, in parentheses, may hold spaces and parentheses of its own.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    let seconds = (user + kernel) as f64 / ticks_per_second as f64;
    Some(Duration::from_secs_f64(seconds))
}

fn parse_bytes(status: &str, what: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(what))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_past_a_strange_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 9 9 20 0 1 0 5 1 1";
        assert_eq!(parse_cpu(stat, 100), Some(Duration::from_secs(3)));
        assert_eq!(parse_cpu("7 (a) S 1", 100), None);
    }

    #[test]
    fn this_process_has_memory_and_time() {
        assert!(anonymous_bytes(std::process::id()).unwrap() > 0);
        cpu(std::process::id()).unwrap();
        let status = "Name:\tx\nVmRSS:\t    9 kB\nRssAnon:\t    1234 kB\n";
        assert_eq!(parse_bytes(status, "RssAnon:"), Some(1234 << 10));
        assert_eq!(parse_bytes(status, "RssFile:"), None);
    }
}
