//! Calls to where cold segments are kept, which may be another machine: each has a limit of time,
//! and after one that failed there is a pause in which no other is tried.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use perflab_model::{Clock, Nanos};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// What any call may take,
const CALL_TIME: Duration = Duration::from_secs(30);
/// and a second more for so many bytes that it moves.
const SLOWEST_BYTES_PER_SECOND: u64 = 1 << 20;
/// How long nothing is tried after a call that failed; twice as long after the next one,
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// and so on, up to this.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A place for cold segments does not answer, or does not do what it is asked to. Nothing is known
/// about what it holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{place}` can't be used now: {why}")]
pub struct Unreachable {
    pub place: String,
    pub why: String,
}

/// Whose failures are no reason not to try the others: what can't be written to may be read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Call {
    Read,
    Write,
}

#[derive(Debug)]
pub(super) struct Calls {
    place: String,
    clock: Arc<dyn Clock>,
    /// Of its own: callers wait as threads do, also those that are part of another one.
    runtime: Option<Runtime>,
    ending: CancellationToken,
    reads: Mutex<Option<Pause>>,
    writes: Mutex<Option<Pause>>,
}

#[derive(Debug)]
struct Pause {
    until: Nanos,
    length: Duration,
    after: Unreachable,
}

impl Calls {
    pub(super) fn new(place: String, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("cold")
            .enable_all()
            .build()?;
        let (runtime, ending) = (Some(runtime), CancellationToken::new());
        Ok(Self {
            place,
            clock,
            runtime,
            ending,
            reads: Mutex::default(),
            writes: Mutex::default(),
        })
    }

    /// Waits for the answer to a call; `None` when it is about an object that is not there.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        call: Call,
        bytes: u64,
        answer: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<Option<T>, Unreachable> {
        self.check(call)?;
        let limit = CALL_TIME + Duration::from_secs(bytes / SLOWEST_BYTES_PER_SECOND);
        let answered = match self.wait_for(limit, answer) {
            Some(Ok(Ok(answer))) => Ok(Some(answer)),
            Some(Ok(Err(object_store::Error::NotFound { .. }))) => Ok(None),
            Some(Ok(Err(error))) => Err(error.to_string()),
            Some(Err(_elapsed)) => Err(format!("it took longer than {} s", limit.as_secs())),
            None => Err("this process is ending".to_owned()),
        };
        match answered {
            Ok(answer) => {
                *self.pause(call) = None;
                Ok(answer)
            }
            Err(why) => Err(self.failed(call, why)),
        }
    }

    /// `None` when nobody waits for it any more.
    fn wait_for<T: Send + 'static>(
        &self,
        limit: Duration,
        answer: impl Future<Output = T> + Send + 'static,
    ) -> Option<Result<T, tokio::time::error::Elapsed>> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let ending = self.ending.clone();
        self.runtime.as_ref()?.spawn(async move {
            let answer = ending.run_until_cancelled(timeout(limit, answer)).await;
            // Whoever asked waits for it.
            sender.send(answer).unwrap_or_default();
        });
        receiver.recv().ok().flatten()
    }

    /// Notes that something failed, and begins a pause.
    pub(super) fn failed(&self, call: Call, why: String) -> Unreachable {
        let failed = Unreachable { place: self.place.clone(), why };
        let mut pause = self.pause(call);
        let length = pause.as_ref().map_or(PAUSE_FIRST, |last| PAUSE_MAX.min(last.length * 2));
        let until = self.clock.now().saturating_add(length);
        *pause = Some(Pause { until, length, after: failed.clone() });
        failed
    }

    /// Whether a call may be tried; if not, why the last one failed.
    pub(super) fn check(&self, call: Call) -> Result<(), Unreachable> {
        match &*self.pause(call) {
            Some(pause) if self.clock.now() < pause.until => Err(pause.after.clone()),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the last call failed and it is time for another.
    pub(super) fn is_due(&self, call: Call) -> bool {
        self.pause(call).as_ref().is_some_and(|pause| pause.until <= self.clock.now())
    }

    /// Whether the last call of either kind failed.
    pub(super) fn is_failing(&self) -> bool {
        self.pause(Call::Read).is_some() || self.pause(Call::Write).is_some()
    }

    fn pause(&self, call: Call) -> MutexGuard<'_, Option<Pause>> {
        let pause = match call {
            Call::Read => &self.reads,
            Call::Write => &self.writes,
        };
        pause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what is waited for, and everything that comes later.
    pub(super) fn end(&self) {
        self.ending.cancel();
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        // Not by waiting: it may be part of another runtime that drops it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::ManualClock;

    use super::*;

    fn refuse() -> impl Future<Output = object_store::Result<()>> + Send + 'static {
        let source = "refused".into();
        std::future::ready(Err(object_store::Error::Generic { store: "test", source }))
    }

    #[test]
    fn after_a_failure_there_is_a_pause() {
        let clock = Arc::new(ManualClock::new(Nanos(0)));
        let calls = Calls::new("a place".to_owned(), Arc::<ManualClock>::clone(&clock)).unwrap();
        let mut pause = PAUSE_FIRST;
        for _ in 0..10 {
            let error = calls.wait(Call::Write, 0, refuse()).unwrap_err();
            assert_eq!(
                error.to_string(),
                "`a place` can't be used now: Generic test error: refused"
            );
            let tried = calls.wait(Call::Write, 0, std::future::ready(Ok(())));
            assert_eq!(tried, Err(error), "not even tried");
            assert!(calls.is_failing());
            assert_eq!(calls.wait(Call::Read, 0, std::future::ready(Ok(1))), Ok(Some(1)));
            clock.advance(pause);
            pause = PAUSE_MAX.min(pause * 2);
        }
        assert_eq!(pause, PAUSE_MAX);
        assert_eq!(calls.wait(Call::Write, 0, std::future::ready(Ok(2))), Ok(Some(2)));
        assert!(!calls.is_failing());
    }

    #[test]
    fn what_is_not_there_is_no_failure() {
        let calls = Calls::new(String::new(), Arc::new(ManualClock::new(Nanos(0)))).unwrap();
        let (path, source) = (String::new(), "gone".into());
        let answer: object_store::Result<()> = Err(object_store::Error::NotFound { path, source });
        assert_eq!(calls.wait(Call::Read, 0, std::future::ready(answer)), Ok(None));
        assert!(!calls.is_failing());
    }

    #[test]
    fn the_end_ends_waiting() {
        let calls = Calls::new(String::new(), Arc::new(ManualClock::new(Nanos(0)))).unwrap();
        let never = std::future::pending::<object_store::Result<()>>();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| calls.wait(Call::Read, 0, never));
            calls.end();
            assert_eq!(waiting.join().unwrap().unwrap_err().why, "this process is ending");
        });
    }
}
