//! What all requests share.

use std::num::NonZero;
use std::sync::{Arc, Mutex};

use perflab_query::{CACHE_BYTES_DEFAULT, Cache};
use perflab_store::Home;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::budget::Budget;
use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::settings::ServerSettings;

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) home: Arc<Home>,
    pub(crate) settings: ServerSettings,
    pub(crate) metrics: Metrics,
    pub(crate) budget: Arc<Budget>,
    /// Large bodies that may be decoded at once: one per core. More threads would take turns on
    /// the same cores, each with a body's worth of memory of its own.
    pub(crate) decoders: Semaphore,
    /// Queries that may run at once; the others wait for their turn.
    pub(crate) queries: Arc<Semaphore>,
    /// What segments had to say to queries before.
    pub(crate) cache: Arc<Cache>,
    /// Held while a category's settings are read, changed and written: of two changes at once none
    /// is lost.
    pub(crate) changing_settings: Mutex<()>,
    /// The sequence after the last committed record.
    pub(crate) commits: watch::Receiver<u64>,
    /// Cancelled when the server is about to end: answers without an end of their own end then.
    pub(crate) ending: CancellationToken,
}

impl Server {
    pub(crate) fn new(home: Arc<Home>, settings: ServerSettings) -> Arc<Self> {
        let (commit, commits) = watch::channel(home.log().end());
        home.log().on_commit(move |end| {
            commit.send_replace(end);
        });
        let budget = Arc::new(Budget::new(settings.limits.in_flight_bytes_max));
        let metrics = Metrics::new(&home, &budget);
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let decoders = Semaphore::new(cores);
        let queries = Arc::new(Semaphore::new(settings.limits.queries_max));
        let cache = Arc::new(Cache::new(CACHE_BYTES_DEFAULT));
        let ending = CancellationToken::new();
        let changing_settings = Mutex::default();
        Arc::new(Self {
            home,
            settings,
            metrics,
            budget,
            decoders,
            queries,
            cache,
            changing_settings,
            commits,
            ending,
        })
    }
}

/// Runs what may block away from the async workers.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_panic| {
        ApiError::internal("the request could not be worked on: this is a bug of perflab")
    })
}
