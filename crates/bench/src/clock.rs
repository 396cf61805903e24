//! The clocks that a benchmark reads: the one place where it does.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::{Duration, Instant};

/// Time that passes, whoever uses the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a benchmark measures the real monotonic clock"
        )]
        let now = Instant::now();
        Self(now)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// CPU time that this thread has used.
pub(crate) fn thread_cpu() -> Duration {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU time that this process has used, in all its threads.
pub(crate) fn process_cpu() -> Duration {
    duration(clock_gettime(ClockId::ProcessCPUTime))
}

fn duration(time: Timespec) -> Duration {
    // CPU clocks start at zero and never go back.
    Duration::try_from(time).unwrap_or_default()
}
