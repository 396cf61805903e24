//! Running a query: what it may do, what it may cost, and where it runs.

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
use datafusion::sql::parser::{ExplainStatement, Statement};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use futures::StreamExt;
use perflab_store::segment::Snapshot;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

use crate::error::{SqlError, nearest};
use crate::percentile::percentile;
use crate::scan::{BATCH_ROWS, Progress};
use crate::table::Table;

/// The longest query, in bytes.
pub const SQL_BYTES_MAX: usize = 1 << 16;
/// The most names, words and signs of a query; values and commas do not count. Planning takes the
/// square of the depth of expressions, can't be stopped, and must not end the stack.
pub const SQL_WORDS_MAX: usize = 1 << 11;
/// The stack of the threads that plan and compute: enough for [`SQL_WORDS_MAX`] in each other.
/// What is not used takes no memory.
const STACK_BYTES: usize = 1 << 25;
/// How many batches of an answer wait for who takes them.
const BATCHES_WAITING_MAX: usize = 2;

/// What a query may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The memory of groups, sorts and joins; there is no way around it over the disk.
    pub memory_bytes: usize,
    /// From the question to the last batch.
    pub time: Duration,
}

/// The datasets that can be asked about.
pub trait Datasets: Send + 'static {
    fn snapshot(&self, name: &str) -> Option<Snapshot>;
    /// All of them, to find what was meant by a name that is none.
    fn names(&self) -> Vec<String>;
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

/// Asks in SQL. Returns when it is clear which columns the answer has.
///
/// The work is done by threads of its own, one per core: it computes for long, which those that
/// wait for connections must not.
pub async fn execute(sql: &str, datasets: impl Datasets, limits: Limits) -> Result<Rows, SqlError> {
    if sql.len() > SQL_BYTES_MAX {
        return Err(SqlError::TooLong { bytes: sql.len() });
    }
    let words = words(sql);
    if words > SQL_WORDS_MAX {
        return Err(SqlError::TooManyWords { words });
    }
    let (schema, schema_known) = oneshot::channel();
    let (sender, mut batches) = mpsc::channel(BATCHES_WAITING_MAX);
    let progress = Progress::default();
    let work = Work {
        sql: sql.to_owned(),
        datasets,
        limits,
        cores: thread::available_parallelism().map_or(1, usize::from),
        progress: progress.clone(),
        schema,
        batches: sender,
    };
    let thread = thread::Builder::new().name("sql".to_owned());
    thread.spawn(move || work.run()).map_err(SqlError::Threads)?;
    match schema_known.await {
        Ok(schema) => Ok(Rows { schema, batches, progress }),
        Err(_failed) => match batches.recv().await {
            Some(Err(error)) => Err(error),
            _ => Err(SqlError::Defect),
        },
    }
}

/// A query, and who waits for its answer.
struct Work<D> {
    sql: String,
    datasets: D,
    limits: Limits,
    cores: usize,
    progress: Progress,
    schema: oneshot::Sender<SchemaRef>,
    batches: mpsc::Sender<Result<RecordBatch, SqlError>>,
}

impl<D: Datasets> Work<D> {
    fn run(self) {
        match runtimes(self.cores) {
            Ok((watcher, workers)) => watcher.block_on(self.watched(&workers)),
            // Nobody listening is as good as somebody told.
            Err(error) => drop(self.batches.blocking_send(Err(SqlError::Threads(error)))),
        }
    }

    /// Works until done, out of time, or nobody is there to take the answer.
    async fn watched(self, workers: &Runtime) {
        let (limit, batches) = (self.limits.time, self.batches.clone());
        let mut work = workers.spawn(self.answer());
        let failed = tokio::select! {
            done = &mut work => match done {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error),
                Err(_panicked) => Some(SqlError::Defect),
            },
            () = tokio::time::sleep(limit) => Some(SqlError::Time { limit }),
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
        let statement = parse(&self.sql, &context).map_err(engine)?;
        if !reads(&statement) {
            return Err(SqlError::NotReadOnly);
        }
        let references = context.state().resolve_table_references(&statement).map_err(engine)?;
        for reference in references {
            let table = Table::new(find(&reference, &self.datasets)?, self.progress.clone());
            context.register_table(reference, Arc::new(table)).map_err(engine)?;
        }
        let plan = context.state().statement_to_plan(statement).await.map_err(engine)?;
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
    // Names of columns and datasets are as they were sent, capital letters included.
    config.options_mut().sql_parser.enable_ident_normalization = false;
    let context = SessionContext::new_with_config_rt(config, runtime);
    context.register_udaf(percentile());
    Ok(context)
}

fn words(sql: &str) -> usize {
    let is_word = |token: &Token| {
        let is_value = matches!(token, Token::Number(..) | Token::SingleQuotedString(_));
        !is_value && !matches!(token, Token::Comma | Token::Whitespace(_))
    };
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize();
    // What is wrong with others, the parser says.
    tokens.map_or(0, |tokens| tokens.iter().filter(|token| is_word(token)).count())
}

fn parse(sql: &str, context: &SessionContext) -> EngineResult<Statement> {
    let state = context.state();
    let dialect = state.config_options().sql_parser.dialect;
    state.sql_to_statement(sql, &dialect)
}

/// Whether it is of the statements that ask for something.
fn reads(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(statement) => {
            matches!(**statement, ast::Statement::Query(_) | ast::Statement::ExplainTable { .. })
        }
        Statement::Explain(ExplainStatement { statement, .. }) => reads(statement),
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => false,
    }
}

/// Refuses what does more than read inside a statement that asks.
fn check(plan: &LogicalPlan) -> Result<(), SqlError> {
    let read_only =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    read_only.verify_plan(plan).map_err(|_refused| SqlError::NotReadOnly)
}

fn find(reference: &TableReference, datasets: &impl Datasets) -> Result<Snapshot, SqlError> {
    let found = match reference {
        TableReference::Bare { table } => datasets.snapshot(table),
        TableReference::Partial { .. } | TableReference::Full { .. } => None,
    };
    found.ok_or_else(|| {
        let (name, names) = (reference.to_string(), datasets.names());
        let nearest = nearest(&name, names.iter().map(String::as_str));
        SqlError::UnknownDataset { name, nearest }
    })
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
