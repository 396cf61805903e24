//! Where the time comes from: the machine in production, the test in tests.

use crate::Nanos;
use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A source of the current time.
pub trait Clock: Debug + Send + Sync {
    fn now(&self) -> Nanos;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Nanos {
        #[expect(clippy::disallowed_methods, reason = "this is the Clock that others take")]
        let now = SystemTime::now();
        match now.duration_since(UNIX_EPOCH) {
            Ok(since) => Nanos(0).saturating_add(since),
            Err(before) => Nanos(0).saturating_sub(before.duration()),
        }
    }
}

/// A clock that stands still until it is moved: for tests.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn new(now: Nanos) -> Self {
        Self(AtomicI64::new(now.0))
    }

    pub fn set(&self, now: Nanos) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    pub fn advance(&self, duration: Duration) {
        let moved = |now| Some(Nanos(now).saturating_add(duration).0);
        // The closure never declines, so there is no error to look at.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, moved);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = ManualClock::new(Nanos(5));
        assert_eq!(clock.now(), Nanos(5));
        clock.advance(Duration::from_nanos(7));
        assert_eq!(clock.now(), Nanos(12));
        clock.set(Nanos(-1));
        assert_eq!(clock.now(), Nanos(-1));
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Nanos(i64::MAX - 1));
    }

    #[test]
    fn the_system_clock_is_after_this_was_written() {
        assert!(SystemClock.now() > Nanos::from_seconds(1_700_000_000).unwrap());
    }
}
