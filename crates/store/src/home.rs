//! The home: one folder, one owner, everything that perflab keeps.
//!
//! ```text
//! lock             held by the owner; its pid
//! catalog.sqlite   what is known besides the rows
//! log/             the log
//! segments/        the rows, for queries
//! cold/            rows that are old, in less space; unless they are kept elsewhere
//! thawed/          old rows that queries have touched lately; no data
//! spool/           what local writers left while no server ran
//! quarantine/      damaged bytes that were set aside
//! ```

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};

use perflab_log::{Disk, Log, OpenError, RealDisk, Recovery, Spool, create_dir};
use perflab_model::{COLUMNS_MAX, CategoryName, Clock, Nanos, Schema};
use perflab_wire::{IdlError, Registry, Secret};

use crate::catalog::{Catalog, CatalogError, CategorySettings, Idl};
use crate::datasets::{Dataset, DatasetError, Datasets};
use crate::ingest::{Counters, IngestStats, REJECTED, REJECTED_BYTES_MAX, chain};
use crate::keeper::{ColdStartError, ColdUrl, Fault, Keeper, Parts, StartError};
use crate::lock::{Claim, HomeLock};
use crate::tables::{TableLimits, Tables};
use crate::tokens::{NewToken, TokenError, Tokens};

/// How much local writers may leave in the spool.
pub const SPOOL_BYTES_MAX: u64 = 4 << 30;

/// How many bytes of thawed segments there may be where nothing else is said.
pub const THAWED_BYTES_MAX: u64 = 16 << 30;

/// How a home is kept.
#[derive(Debug, Clone)]
pub struct HomeSettings {
    pub log: perflab_log::Settings,
    /// How the files of the log and of segments are written.
    pub disk: Arc<dyn Disk>,
    /// When rows go from memory to files.
    pub tables: TableLimits,
    /// Called at each of [`FAULT_POINTS`](crate::FAULT_POINTS), for tests to end the process
    /// there.
    pub fault: Fault,
    /// How many columns a dataset without a declared schema may have.
    pub columns_max: usize,
    /// How many bytes of thawed segments there may be at a time, and so how much of a dataset's
    /// cold rows one question can be about.
    pub thawed_bytes_max: u64,
    /// Where cold segments are kept from now on, which can't be changed while there are any;
    /// `None`: where they were so far, at first in the home.
    pub cold: Option<ColdUrl>,
}

impl Default for HomeSettings {
    fn default() -> Self {
        Self {
            log: perflab_log::Settings::DEFAULT,
            disk: Arc::new(RealDisk),
            tables: TableLimits::DEFAULT,
            fault: |_| {},
            columns_max: COLUMNS_MAX,
            thawed_bytes_max: THAWED_BYTES_MAX,
            cold: None,
        }
    }
}

/// Why a home could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("the home `{dir}` is in use by {}", Holder(*.pid))]
    Held { dir: PathBuf, pid: Option<u32> },
    #[error("failed to prepare the home `{dir}`")]
    Io {
        dir: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("failed to open the catalog of the home `{dir}`")]
    Catalog {
        dir: PathBuf,
        #[source]
        error: CatalogError,
    },
    #[error("failed to open the home `{dir}`")]
    Cold {
        dir: PathBuf,
        #[source]
        error: ColdStartError,
    },
    #[error(transparent)]
    Log(#[from] OpenError),
}

struct Holder(Option<u32>);

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("another process"),
        }
    }
}

/// Why a definition could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    #[error("failed to read the Thrift definition `{name}`")]
    Idl {
        name: String,
        #[source]
        error: IdlError,
    },
    #[error("there are {IDLS_MAX} Thrift definitions already, which is the limit")]
    TooMany,
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// The most Thrift definitions there can be.
pub const IDLS_MAX: usize = 1000;

/// What opening found amiss and dealt with.
#[derive(Debug)]
pub struct OpenReport {
    pub log: Recovery,
    /// Where a damaged catalog was moved; a new one was begun.
    pub catalog_set_aside: Option<PathBuf>,
    /// Thrift definitions that this version can't read.
    pub unreadable_idls: Vec<(String, IdlError)>,
}

/// An open home. Everything that changes it goes through here.
#[derive(Debug)]
pub struct Home {
    dir: PathBuf,
    settings: HomeSettings,
    clock: Arc<dyn Clock>,
    report: OpenReport,
    log: Log,
    catalog: Arc<Catalog>,
    tokens: Tokens,
    datasets: Arc<Datasets>,
    categories: RwLock<HashMap<CategoryName, CategorySettings>>,
    registry: Arc<RwLock<Arc<Registry>>>,
    keeper: Arc<Keeper>,
    keeper_thread: Mutex<Option<JoinHandle<()>>>,
    rejected: CategoryName,
    pub(crate) counters: Arc<Counters>,
    /// Held while the spool is drained.
    pub(crate) draining: Mutex<()>,
    lock: Mutex<Option<HomeLock>>,
}

impl Home {
    /// Takes the home in `dir`, which is created if need be, and repairs what an unclean end left
    /// behind. What the files hold never makes this fail.
    pub fn open(
        dir: &Path,
        settings: HomeSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, HomeError> {
        let io_failed = |error| HomeError::Io { dir: dir.to_owned(), error };
        create_dir(dir, 0o700).map_err(io_failed)?;
        let lock = match HomeLock::claim(&dir.join("lock")).map_err(io_failed)? {
            Claim::Taken(lock) => lock,
            Claim::Held(pid) => return Err(HomeError::Held { dir: dir.to_owned(), pid }),
        };
        let catalog_failed = |error| HomeError::Catalog { dir: dir.to_owned(), error };
        let (catalog, catalog_set_aside) =
            Catalog::open(&dir.join("catalog.sqlite"), clock.now()).map_err(catalog_failed)?;
        let catalog = Arc::new(catalog);
        let (registry, unreadable_idls) = load_registry(&catalog).map_err(catalog_failed)?;
        let registry = Arc::new(RwLock::new(Arc::new(registry)));
        let datasets = Datasets::load(&catalog, settings.columns_max).map_err(catalog_failed)?;
        let datasets = Arc::new(datasets);
        let now_ns = clock.now().as_i64();
        let (log, recovery) =
            Log::open(Arc::clone(&settings.disk), &dir.join("log"), settings.log, now_ns)?;
        let parts = Parts {
            log: log.clone(),
            catalog: Arc::clone(&catalog),
            datasets: Arc::clone(&datasets),
            registry: Arc::clone(&registry),
            clock: Arc::clone(&clock),
            disk: Arc::clone(&settings.disk),
            limits: settings.tables,
            thawed_bytes_max: settings.thawed_bytes_max,
            cold: settings.cold.clone(),
            fault: settings.fault,
        };
        let keeper = Keeper::open(dir, parts).map_err(|error| match error {
            StartError::Io(error) => io_failed(error),
            StartError::Catalog(error) => catalog_failed(error),
            StartError::Cold(error) => HomeError::Cold { dir: dir.to_owned(), error },
        })?;
        let home = Self {
            dir: dir.to_owned(),
            report: OpenReport { log: recovery, catalog_set_aside, unreadable_idls },
            log,
            tokens: Tokens::load(&catalog).map_err(catalog_failed)?,
            datasets,
            categories: RwLock::new(catalog.category_settings().map_err(catalog_failed)?),
            registry,
            keeper: Arc::new(keeper),
            keeper_thread: Mutex::default(),
            rejected: rejected_category(),
            counters: Arc::default(),
            draining: Mutex::default(),
            lock: Mutex::new(Some(lock)),
            settings,
            clock,
            catalog,
        };
        // First, so that no limit on datasets ever keeps refused entries out.
        home.dataset(REJECTED).map(drop).unwrap_or_default();
        home.tell_report();
        home.warn_if_shared();
        home.start_keeper().map_err(io_failed)?;
        Ok(Arc::new(home))
    }

    fn start_keeper(&self) -> io::Result<()> {
        let keeper = Arc::clone(&self.keeper);
        let thread =
            thread::Builder::new().name("keeper".to_owned()).spawn(move || keeper.run())?;
        *self.keeper_thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Ends the keeper's thread after what it is at. What is then in memory tables only stays in
    /// the log, where the next start reads it.
    fn stop_keeper(&self) {
        self.keeper.stop();
        let thread = self.keeper_thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(_)) = thread.map(JoinHandle::join) {
            tracing::error!("the keeper's thread ended by a defect");
        }
    }

    /// Finishes what was accepted and gives the home back. Further writes are refused.
    pub fn close(&self) {
        self.log.close();
        // A drain ends by itself now, since the log takes nothing any more; it must be done with
        // the catalog and the spool before someone else gets them.
        let draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        drop(draining);
        self.stop_keeper();
        match self.record_columns().and_then(|()| self.catalog.close()) {
            Ok(()) | Err(CatalogError::Closed) => {}
            Err(error) => {
                tracing::warn!(
                    error = chain(&error),
                    "the catalog could not be brought up to date"
                );
            }
        }
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(lock);
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where `check` puts damaged bytes.
    pub fn quarantine_dir(&self) -> PathBuf {
        self.dir.join("quarantine")
    }

    pub fn report(&self) -> &OpenReport {
        &self.report
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Where local writers leave messages while no server runs.
    pub fn spool(&self) -> Spool {
        Spool::new(self.dir.join("spool"), SPOOL_BYTES_MAX)
    }

    pub fn ingest_stats(&self) -> IngestStats {
        self.counters.stats()
    }

    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    pub fn add_token(&self, new: NewToken) -> Result<Secret, TokenError> {
        self.tokens.add(&self.catalog, new, self.now())
    }

    /// Whether there was such a token.
    pub fn remove_token(&self, name: &str) -> Result<bool, CatalogError> {
        self.tokens.remove(&self.catalog, name)
    }

    /// How a category is kept.
    pub fn category_settings(&self, category: &CategoryName) -> CategorySettings {
        let categories = self.categories.read().unwrap_or_else(PoisonError::into_inner);
        categories.get(category).copied().unwrap_or_else(|| default_settings(category))
    }

    /// The categories that were given settings of their own.
    pub fn configured_categories(&self) -> Vec<CategoryName> {
        let categories = self.categories.read().unwrap_or_else(PoisonError::into_inner);
        categories.keys().cloned().collect()
    }

    pub fn set_category_settings(
        &self,
        category: &CategoryName,
        settings: CategorySettings,
    ) -> Result<(), CatalogError> {
        self.catalog.set_category_settings(category, &settings)?;
        let mut categories = self.categories.write().unwrap_or_else(PoisonError::into_inner);
        categories.insert(category.clone(), settings);
        Ok(())
    }

    /// Forgets a dataset that was made for entries none of which it took.
    pub(crate) fn forget_unused_dataset(&self, name: &str) {
        self.datasets.forget_unused(name);
    }

    /// What a dataset accepts.
    pub fn schema(&self, dataset: &str) -> Result<Schema, DatasetError> {
        self.datasets.schema(dataset)
    }

    /// A dataset's declared schema, as it was given.
    pub fn declared_schema(&self, dataset: &str) -> Option<String> {
        self.datasets.schema_text(dataset)
    }

    /// Declares what a dataset accepts (JSON, see [`Schema::declared_from_json`]); `None`:
    /// whatever comes.
    pub fn declare_schema(&self, dataset: &str, json: Option<&str>) -> Result<(), DatasetError> {
        self.datasets.declare(&self.catalog, dataset, json)
    }

    /// Writes columns that rows brought since the last call to the catalog.
    pub fn record_columns(&self) -> Result<(), CatalogError> {
        self.datasets.record(&self.catalog)
    }

    /// The columns of a dataset that were recorded.
    pub fn recorded_columns(
        &self,
        dataset: &str,
    ) -> Result<Vec<(String, perflab_model::Kind)>, CatalogError> {
        self.catalog.columns(dataset)
    }

    /// The Thrift definitions in use.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Learns a Thrift definition for good; returns the loggers it describes.
    pub fn register_idl(&self, name: &str, text: &str) -> Result<Vec<String>, RegisterError> {
        let mut current = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        let idls = self.catalog.idls()?;
        if idls.len() >= IDLS_MAX && idls.iter().all(|idl| idl.name != name) {
            return Err(RegisterError::TooMany);
        }
        // From the texts, as the next start will do: what a replaced text said is forgotten.
        let mut registry = Registry::default();
        for idl in idls.iter().filter(|idl| idl.name != name) {
            // What can't be read was told at the start.
            registry.register(&idl.text).map(drop).unwrap_or_default();
        }
        let loggers = registry
            .register(text)
            .map_err(|error| RegisterError::Idl { name: name.to_owned(), error })?;
        let (name, text) = (name.to_owned(), text.to_owned());
        self.catalog.set_idl(&Idl { name, text, registered: self.now() })?;
        *current = Arc::new(registry);
        Ok(loggers)
    }

    /// The Thrift definitions that were registered.
    pub fn idls(&self) -> Result<Vec<Idl>, CatalogError> {
        self.catalog.idls()
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(crate) fn dataset(&self, name: &str) -> Result<Arc<Dataset>, DatasetError> {
        self.datasets.find(&self.catalog, name)
    }

    pub(crate) fn datasets_in_use(&self) -> &Datasets {
        &self.datasets
    }

    pub(crate) fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    pub(crate) fn tables(&self) -> &Arc<Tables> {
        self.keeper.tables()
    }

    pub(crate) fn rejected_category(&self) -> &CategoryName {
        &self.rejected
    }

    pub(crate) fn queue_bytes_max(&self) -> usize {
        self.settings.log.queue_bytes_max
    }

    /// Not changed, since the folder may have been given: what else is in it is not known.
    fn warn_if_shared(&self) {
        let mode = fs::metadata(&self.dir).map_or(0, |metadata| metadata.permissions().mode());
        if mode & 0o077 != 0 {
            let (dir, mode) = (self.dir.display(), format!("{:o}", mode & 0o777));
            tracing::warn!(%dir, mode, "other users can look into this home");
        }
    }

    fn tell_report(&self) {
        let OpenReport { log, catalog_set_aside, unreadable_idls } = &self.report;
        if let Some(moved_to) = catalog_set_aside {
            let moved_to = moved_to.display();
            tracing::error!(%moved_to, "the catalog was damaged: a new one was begun");
        }
        for (name, error) in unreadable_idls {
            tracing::warn!(name, error = chain(error), "a Thrift definition can't be read");
        }
        for damage in &log.damage {
            let (path, offset, bytes) = (damage.path.display(), damage.offset, damage.bytes);
            tracing::error!(%path, offset, bytes, "the log is damaged");
        }
        for (path, error) in &log.unreadable {
            tracing::error!(path = %path.display(), %error, "a file of the log can't be read");
        }
        if log.torn_bytes > 0 {
            let bytes = log.torn_bytes;
            tracing::info!(bytes, "the log ended in a commit that was never acknowledged: cut");
        }
        if log.window_rebuilt {
            tracing::warn!(
                "the log's checkpoint could not be used: keys of records that are gone are forgotten"
            );
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.close();
    }
}

fn rejected_category() -> CategoryName {
    CategoryName::new(REJECTED).expect("a constant that is a category name")
}

fn default_settings(category: &CategoryName) -> CategorySettings {
    let max_bytes = (category.as_str() == REJECTED).then_some(REJECTED_BYTES_MAX);
    CategorySettings { max_bytes, ..CategorySettings::default() }
}

/// Definitions that can't be read are reported and left out.
fn load_registry(catalog: &Catalog) -> Result<(Registry, Vec<(String, IdlError)>), CatalogError> {
    let mut registry = Registry::default();
    let mut unreadable = Vec::new();
    for idl in catalog.idls()? {
        if let Err(error) = registry.register(&idl.text) {
            unreadable.push((idl.name, error));
        }
    }
    Ok((registry, unreadable))
}
