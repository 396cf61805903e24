//! The memory that bodies may take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes of all bodies that are read or worked on.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    bytes_max: usize,
}

/// Bytes of one body; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    budget: Arc<Budget>,
    bytes: usize,
}

/// There is no room at the moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { used: AtomicUsize::new(0), bytes_max }
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Result<Hold, OverBudget> {
        let mut hold = Hold { budget: Arc::clone(self), bytes: 0 };
        hold.grow(bytes)?;
        Ok(hold)
    }
}

impl Hold {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes more. What one body holds alone may exceed the budget: otherwise a body limit above
    /// it would be a lie.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), OverBudget> {
        let Budget { used, bytes_max } = &*self.budget;
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let is_alone = used == self.bytes;
            let after = used.saturating_add(bytes);
            (is_alone || after <= *bytes_max).then_some(after)
        });
        match taken {
            Ok(_) => {
                self.bytes += bytes;
                Ok(())
            }
            Err(_) => Err(OverBudget),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back() {
        let budget = Arc::new(Budget::new(100));
        let first = budget.hold(60).unwrap();
        assert!(budget.hold(50).is_err());
        assert_eq!(budget.used(), 60);
        drop(first);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_body_alone_may_exceed_the_budget() {
        let budget = Arc::new(Budget::new(100));
        let mut only = budget.hold(80).unwrap();
        only.grow(80).unwrap();
        let second = budget.hold(1);
        assert_eq!(second.unwrap_err(), OverBudget);
        assert_eq!(budget.used(), 160);
    }
}
