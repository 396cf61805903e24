//! The rows of a dataset as a table of the SQL engine.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DFSchema;
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use perflab_store::Reach;
use perflab_store::segment::Segment;

use crate::column::damaged;
use crate::columns::{Content, TableColumn, table_columns};
use crate::dataset::{Dataset, Source};
use crate::progress::Progress;
use crate::prune::{Statistics, time_range};
use crate::scan::{Piece, Share, shared};

#[derive(Debug)]
pub(crate) struct Table {
    source: Arc<dyn Source>,
    columns: Vec<TableColumn>,
    schema: SchemaRef,
    progress: Progress,
}

impl Table {
    pub(crate) fn new(dataset: Dataset, progress: Progress) -> Self {
        let known = dataset.columns.iter().map(|(name, kind)| (name.as_str(), *kind));
        let columns = table_columns(known);
        let fields: Vec<_> = columns.iter().map(|column| column.field.clone()).collect();
        let schema = Arc::new(Schema::new(fields));
        Self { source: dataset.source, columns, schema, progress }
    }

    /// The rows that may meet the conditions. All that meet the conditions on time do.
    fn pieces(&self, state: &dyn Session, conditions: &[Expr]) -> Result<Vec<Piece>> {
        let ranges = conditions.iter().filter_map(time_range);
        let both = |a: (i64, i64), b: (i64, i64)| (a.0.max(b.0), a.1.min(b.1));
        let (first, last) = ranges.fold((i64::MIN, i64::MAX), both);
        let segments = self.segments(first, last)?;
        let mut pieces = Vec::new();
        for (segment, is_kept) in segments.iter().zip(self.kept(&segments, state, conditions)?) {
            if !is_kept {
                continue;
            }
            let rows = segment.rows_within(first..=last).map_err(damaged)?;
            pieces.push(Piece { segment: Arc::clone(segment), rows });
        }
        Ok(pieces)
    }

    /// All with rows of these times, and maybe others.
    fn segments(&self, first: i64, last: i64) -> Result<Vec<Arc<Segment>>> {
        let snapshot = self.source.snapshot(Reach::Times(first, last.saturating_add(1)));
        // Shared, because the engine only lends errors.
        let snapshot =
            snapshot.map_err(|error| DataFusionError::External(Box::new(Arc::new(error))))?;
        self.progress.add_missing(&snapshot.missing);
        Ok(snapshot.segments)
    }

    /// For each segment, whether rows of it may meet the conditions.
    fn kept(
        &self,
        segments: &[Arc<Segment>],
        state: &dyn Session,
        conditions: &[Expr],
    ) -> Result<Vec<bool>> {
        let others = conditions.iter().filter(|condition| time_range(condition).is_none());
        let Some(condition) = conjunction(others.cloned()) else {
            return Ok(vec![true; segments.len()]);
        };
        let schema = DFSchema::try_from(Arc::clone(&self.schema))?;
        let condition = state.create_physical_expr(condition, &schema)?;
        let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(&self.schema));
        let statistics = Statistics { segments, columns: &self.columns };
        builder.try_build(condition)?.prune(&statistics)
    }
}

#[async_trait]
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        conditions: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |condition: &&Expr| match time_range(condition) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Inexact,
        };
        Ok(conditions.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        conditions: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wanted = projection.cloned().unwrap_or_else(|| (0..self.columns.len()).collect());
        let contents: Arc<[Content]> =
            wanted.iter().map(|&place| self.columns[place].content.clone()).collect();
        let schema = Arc::new(self.schema.project(&wanted)?);
        let pieces = self.pieces(state, conditions)?;
        let share = |pieces| -> Arc<dyn PartitionStream> {
            Arc::new(Share {
                schema: Arc::clone(&schema),
                contents: Arc::clone(&contents),
                pieces,
                progress: self.progress.clone(),
            })
        };
        let shares = shared(pieces, state.config().target_partitions());
        let shares = shares.into_iter().map(share).collect();
        let is_infinite = false;
        Ok(Arc::new(StreamingTableExec::try_new(
            Arc::clone(&schema),
            shares,
            None,
            [],
            is_infinite,
            limit,
        )?))
    }
}
