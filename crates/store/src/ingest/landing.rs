//! Where the outcomes of a request's appends come together.
//!
//! Appends end on the committer's thread, while a server task waits as a future and a drain by
//! blocking. Both are offered; neither needs a runtime.

use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use perflab_log::{CommitError, Committed};

/// What became of one append; `None` when the log ended without saying.
pub(super) type Landed = Option<Result<Committed, CommitError>>;

#[derive(Debug, Default)]
struct State {
    /// Appends that have not ended.
    waiting: usize,
    /// One per append, in the order in which they were made.
    landed: Vec<Landed>,
    waker: Option<Waker>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    one_landed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All appends of one request.
#[derive(Debug, Default)]
pub(super) struct Landing {
    shared: Arc<Shared>,
}

/// Tells the landing how one append ended. Dropped unused, it says that nobody knows.
#[derive(Debug)]
pub(super) struct Arrival {
    shared: Arc<Shared>,
    place: usize,
}

impl Landing {
    /// Announces an append.
    pub(super) fn announce(&self) -> Arrival {
        let mut state = self.shared.lock();
        state.waiting += 1;
        state.landed.push(None);
        Arrival { shared: Arc::clone(&self.shared), place: state.landed.len() - 1 }
    }

    /// Blocks until one more append has ended; false when none is under way.
    pub(super) fn wait_for_one(&self) -> bool {
        let mut state = self.shared.lock();
        let before = state.waiting;
        while state.waiting == before && before > 0 {
            state = self.shared.one_landed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        before > 0
    }

    /// Blocks until all appends have ended.
    pub(super) fn wait_for_all(self) -> Vec<Landed> {
        while self.wait_for_one() {}
        std::mem::take(&mut self.shared.lock().landed)
    }
}

/// Ready when all appends have ended.
impl Future for Landing {
    type Output = Vec<Landed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Vec<Landed>> {
        let mut state = self.shared.lock();
        if state.waiting == 0 {
            return Poll::Ready(std::mem::take(&mut state.landed));
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Arrival {
    pub(super) fn land(self, landed: Result<Committed, CommitError>) {
        self.shared.lock().landed[self.place] = Some(landed);
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.waiting -= 1;
        let waker = if state.waiting == 0 { state.waker.take() } else { None };
        drop(state);
        self.shared.one_landed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
