//! What the server does by itself: drain the spool, remember columns, remove what is too old.

use std::sync::Arc;
use std::time::Duration;

use perflab_store::{Home, chain};
use tokio::time::{MissedTickBehavior, interval};

use crate::state::blocking;

const DRAIN_EVERY: Duration = Duration::from_secs(1);
const RETAIN_EVERY: Duration = Duration::from_secs(60);

/// Never ends by itself.
pub(crate) async fn run(home: Arc<Home>) {
    let drain = every(DRAIN_EVERY, || {
        let home = Arc::clone(&home);
        blocking(move || drain(&home))
    });
    let retain = every(RETAIN_EVERY, || {
        let home = Arc::clone(&home);
        blocking(move || retain(&home))
    });
    tokio::join!(drain, retain);
}

/// The first time at once.
async fn every<T: Future>(period: Duration, mut work: impl FnMut() -> T) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        work().await;
    }
}

fn drain(home: &Home) {
    match home.drain_spool() {
        Ok(report) if report.files == 0 => {}
        Ok(report) => tracing::info!(
            files = report.files,
            records = report.records,
            duplicates = report.duplicates,
            refused = report.refused,
            "drained the spool"
        ),
        Err(error) => tracing::warn!(error = chain(&error), "the spool is not drained"),
    }
    if let Err(error) = home.record_columns() {
        tracing::warn!(error = chain(&error), "new columns are not recorded yet");
    }
}

fn retain(home: &Home) {
    match home.retain() {
        Ok(retained) if retained.records_removed == 0 => {}
        Ok(retained) => tracing::info!(
            records = retained.records_removed,
            bytes = retained.bytes_freed,
            files_removed = retained.files_removed,
            files_rewritten = retained.files_rewritten,
            "removed what is past its retention"
        ),
        Err(error) => tracing::warn!(error = chain(&error), "retention failed"),
    }
}
