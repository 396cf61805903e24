//! Running a query: what it may do, what it may cost, and where it runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as EngineResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures::StreamExt;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::dataset::Dataset;
use crate::error::SqlError;
use crate::percentile::percentile;
use crate::progress::Progress;
use crate::query::{NAMES_ARE_NORMALIZED, Query};
use crate::scan::BATCH_ROWS;
use crate::table::Table;

/// The stack of the threads that plan and compute: enough for [`SQL_WORDS_MAX`](crate::SQL_WORDS_MAX) in each other.
/// What is not used takes no memory.
const STACK_BYTES: usize = 1 << 25;
/// How many batches of an answer wait for who takes them.
const BATCHES_WAITING_MAX: usize = 2;

/// What a query may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The memory of groups, sorts and joins; there is no way around it over the disk.
    pub memory_bytes: usize,
    /// From the question,
    pub started: Instant,
    /// to the last batch.
    pub time: Duration,
}

/// An answer as it is made. The work stops when it is dropped.
#[derive(Debug)]
pub struct Rows {
    schema: SchemaRef,
    batches: mpsc::Receiver<Result<RecordBatch, SqlError>>,
    progress: Progress,
}

impl Rows {
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// `None` after the last batch. An error is the last.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        self.batches.recv().await
    }
}

/// Asks in SQL about datasets, by the names that the query calls them. Returns when it is clear
/// which columns the answer has, and what is missing in it.
///
/// The work is done by threads of its own, one per core: it computes for long, which those that
/// wait for connections must not. `held` is let go of when the work is over, which is a little
/// later than when nobody waits for it any more.
pub async fn execute(
    query: Query,
    datasets: HashMap<String, Dataset>,
    limits: Limits,
    held: impl Send + 'static,
) -> Result<Rows, SqlError> {
    let (schema, schema_known) = oneshot::channel();
    let (sender, mut batches) = mpsc::channel(BATCHES_WAITING_MAX);
    let progress = Progress::default();
    let work = Work {
        query,
        datasets,
        limits,
        cores: thread::available_parallelism().map_or(1, usize::from),
        progress: progress.clone(),
        schema,
        batches: sender,
    };
    let thread = thread::Builder::new().name("sql".to_owned());
    let work = move || {
        let _held = held;
        work.run();
    };
    thread.spawn(work).map_err(SqlError::Threads)?;
    match schema_known.await {
        Ok(schema) => Ok(Rows { schema, batches, progress }),
        Err(_failed) => match batches.recv().await {
            Some(Err(error)) => Err(error),
            _ => Err(SqlError::Defect),
        },
    }
}

/// A query, and who waits for its answer.
struct Work {
    query: Query,
    datasets: HashMap<String, Dataset>,
    limits: Limits,
    cores: usize,
    progress: Progress,
    schema: oneshot::Sender<SchemaRef>,
    batches: mpsc::Sender<Result<RecordBatch, SqlError>>,
}

impl Work {
    fn run(self) {
        match runtimes(self.cores) {
            Ok((watcher, workers)) => watcher.block_on(self.watched(&workers)),
            // Nobody listening is as good as somebody told.
            Err(error) => drop(self.batches.blocking_send(Err(SqlError::Threads(error)))),
        }
    }

    /// Works until done, out of time, or nobody is there to take the answer.
    async fn watched(self, workers: &Runtime) {
        let (limits, batches) = (self.limits, self.batches.clone());
        let mut work = workers.spawn(self.answer());
        let failed = tokio::select! {
            done = &mut work => match done {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error),
                Err(_panicked) => Some(SqlError::Defect),
            },
            () = sleep_until(limits.started + limits.time) => {
                Some(SqlError::Time { limit: limits.time })
            }
            () = batches.closed() => None,
        };
        work.abort();
        if let Some(error) = failed {
            drop(batches.send(Err(error)).await);
        }
    }

    async fn answer(self) -> Result<(), SqlError> {
        let limits = self.limits;
        let engine = |error| SqlError::of(error, limits);
        let context = context(limits, self.cores).map_err(engine)?;
        for (name, dataset) in self.datasets {
            let table = Table::new(dataset, self.progress.clone());
            let reference = TableReference::bare(name);
            context.register_table(reference, Arc::new(table)).map_err(engine)?;
        }
        let plan = context.state().statement_to_plan(self.query.statement).await;
        let plan = plan.map_err(engine)?;
        check(&plan)?;
        let mut rows = start(&context, plan).await.map_err(engine)?;
        if self.schema.send(rows.schema()).is_err() {
            return Ok(());
        }
        while let Some(batch) = rows.next().await {
            if self.batches.send(Ok(batch.map_err(engine)?)).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// What watches over the work, and what does it: the time must be looked at also while all of
/// those that work are busy.
fn runtimes(cores: usize) -> io::Result<(Runtime, Runtime)> {
    let watcher = Builder::new_current_thread().enable_time().build()?;
    let workers = Builder::new_multi_thread()
        .worker_threads(cores)
        .thread_name("sql")
        .thread_stack_size(STACK_BYTES)
        .build()?;
    Ok((watcher, workers))
}

fn context(limits: Limits, cores: usize) -> EngineResult<SessionContext> {
    let no_disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(limits.memory_bytes)))
        .with_disk_manager_builder(no_disk)
        .build_arc()?;
    let mut config = SessionConfig::new().with_target_partitions(cores).with_batch_size(BATCH_ROWS);
    config.options_mut().sql_parser.enable_ident_normalization = NAMES_ARE_NORMALIZED;
    let context = SessionContext::new_with_config_rt(config, runtime);
    context.register_udaf(percentile());
    Ok(context)
}

/// Refuses what does more than read inside a statement that asks.
fn check(plan: &LogicalPlan) -> Result<(), SqlError> {
    let read_only =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    read_only.verify_plan(plan).map_err(|_refused| SqlError::NotReadOnly)
}

async fn start(
    context: &SessionContext,
    plan: LogicalPlan,
) -> EngineResult<SendableRecordBatchStream> {
    let plan = context.state().create_physical_plan(&plan).await?;
    execute_stream(stoppable(plan)?, context.task_ctx())
}

/// Lets every step of a plan pause. By itself only reading does, and a join that makes billions
/// of rows of a few could not be stopped.
fn stoppable(plan: Arc<dyn ExecutionPlan>) -> EngineResult<Arc<dyn ExecutionPlan>> {
    let pausing = |step: Arc<dyn ExecutionPlan>| -> EngineResult<_> {
        if step.children().is_empty() {
            return Ok(Transformed::no(step));
        }
        Ok(Transformed::yes(Arc::new(CooperativeExec::new(step)) as Arc<dyn ExecutionPlan>))
    };
    plan.transform_up(pausing).data()
}
