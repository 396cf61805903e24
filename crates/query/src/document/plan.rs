//! From a document to what the engine is asked, and what is done with its answer.

use std::collections::BTreeMap;

use jiff::tz::{TimeZone, db};
use perflab_model::{Kind, Nanos};

use super::grouping::TIME;
use super::lines;
use super::table::{Layout, PerSecond, Shown, Sort, unused};
use super::{
    ColumnKind, Document, DocumentError, FILTERS_MAX, Filter, Grouping, METRICS_MAX, Metric, Order,
    Simple, TOP, TOP_MAX, TableColumn, View,
};
use crate::algebra::{self, Aggregate, Condition, Dimension, Question};
use crate::nearest::nearest;
use crate::time::{Bucket, Range};

/// The columns of a dataset with the kinds they were sent in.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    kinds: BTreeMap<String, Vec<Kind>>,
}

impl FromIterator<(String, Kind)> for Columns {
    fn from_iter<I: IntoIterator<Item = (String, Kind)>>(columns: I) -> Self {
        let mut kinds: BTreeMap<String, Vec<Kind>> = BTreeMap::new();
        for (name, kind) in columns {
            let of_name = kinds.entry(name).or_default();
            if !of_name.contains(&kind) {
                of_name.push(kind);
            }
        }
        Self { kinds }
    }
}

impl Columns {
    pub(super) fn add_unless_there(&mut self, column: &str, kind: Kind) {
        self.kinds.entry(column.to_owned()).or_insert_with(|| vec![kind]);
    }

    pub(super) fn has(&self, column: &str) -> bool {
        self.kinds.contains_key(column)
    }

    /// What is shown of a column.
    pub(super) fn kind_of(&self, column: &str) -> ColumnKind {
        self.kinds.get(column).map_or(ColumnKind::Mixed, |kinds| ColumnKind::of(kinds))
    }

    /// The kinds of a column. One that is not there is an error that names the nearest.
    pub fn kinds(&self, dataset: &str, column: &str) -> Result<&[Kind], DocumentError> {
        match self.kinds.get(column) {
            Some(kinds) => Ok(kinds),
            None if column == TIME => Err(DocumentError::TimeAsColumn),
            None => {
                let names = self.kinds.keys().map(String::as_str);
                let nearest = nearest(column, names).map(str::to_owned);
                let (column, dataset) = (column.to_owned(), dataset.to_owned());
                Err(DocumentError::Column { column, dataset, nearest })
            }
        }
    }
}

/// The times of a document, fixed at one moment.
#[derive(Debug, Clone)]
pub struct Times {
    pub range: Range,
    pub zone: TimeZone,
}

impl Times {
    /// `now` is what all times of the document count from.
    pub fn new(document: &Document, now: Nanos) -> Result<Self, DocumentError> {
        Self::parse(&document.since, &document.until, &document.timezone, now)
    }

    pub(super) fn parse(
        since: &str,
        until: &str,
        timezone: &str,
        now: Nanos,
    ) -> Result<Self, DocumentError> {
        let zone = zone(timezone)?;
        Ok(Self { range: Range::parse(since, until, now, &zone)?, zone })
    }
}

/// A document, ready to be answered: its times are fixed and its columns are there.
#[derive(Debug)]
pub struct Plan {
    /// What the engine is asked.
    pub question: Question,
    pub(super) layout: Layout,
}

impl Plan {
    pub fn new(
        document: &Document,
        columns: &Columns,
        times: &Times,
    ) -> Result<Self, DocumentError> {
        let range = times.range;
        let groupings = groupings(document);
        let mut building = Building { document, columns, groupings, times, engine: Vec::new() };
        let any_of = conditions(&document.any_of, &document.dataset, columns)?;
        let group_by = building.group_by()?;
        let layout = building.layout(&group_by)?;
        let top = layout.engine_top();
        if document.other && top.is_none() && !lines::are_asked_for(document) {
            return Err(DocumentError::Other);
        }
        let question = Question {
            range: Some((range.start.as_i64(), range.end.as_i64())),
            any_of,
            group_by,
            aggregates: building.engine,
            top,
            with_other: document.other,
            with_total: document.total,
        };
        Ok(Self { question, layout })
    }

    /// The place of time among the groups, and where its buckets start; `None` if it is not
    /// grouped by time.
    pub(super) fn time(&self) -> Option<(usize, &[i64])> {
        let groups = self.question.group_by.iter().enumerate();
        groups.into_iter().find_map(|(place, dimension)| match dimension {
            Dimension::Time(starts) => Some((place, &starts[..])),
            Dimension::Column(_) => None,
        })
    }
}

/// The conditions of a dataset as the engine takes them.
pub(super) fn conditions(
    any_of: &[Vec<Filter>],
    dataset: &str,
    columns: &Columns,
) -> Result<Vec<Vec<Condition>>, DocumentError> {
    at_most("conditions", any_of.iter().map(Vec::len).sum(), FILTERS_MAX)?;
    let condition = |filter: &Filter| {
        columns.kinds(dataset, &filter.column)?;
        filter.condition()
    };
    let all_of = |filters: &Vec<Filter>| filters.iter().map(condition).collect();
    any_of.iter().map(all_of).collect()
}

/// The zone of this name.
fn zone(name: &str) -> Result<TimeZone, DocumentError> {
    TimeZone::get(name).map_err(|_unknown| {
        let names: Vec<String> = db().available().map(|name| name.to_string()).collect();
        let nearest = nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
        DocumentError::Zone { zone: name.to_owned(), nearest }
    })
}

/// What rows are grouped by: a series is one over time, whether the document says so or not.
fn groupings(document: &Document) -> Vec<Grouping> {
    let has_time = document.group_by.iter().any(|one| matches!(one, Grouping::Time(_)));
    let is_series = document.view == View::Series && !has_time;
    let time = is_series.then_some(Grouping::Time(None));
    time.into_iter().chain(document.group_by.iter().cloned()).collect()
}

struct Building<'d> {
    document: &'d Document,
    columns: &'d Columns,
    groupings: Vec<Grouping>,
    times: &'d Times,
    /// What the engine computes, each once.
    engine: Vec<Aggregate>,
}

impl Building<'_> {
    fn group_by(&self) -> Result<Vec<Dimension>, DocumentError> {
        let mut dimensions = Vec::new();
        for (place, grouping) in self.groupings.iter().enumerate() {
            if self.groupings[..place].contains(grouping) {
                return Err(DocumentError::Twice(grouping.to_string()));
            }
            dimensions.push(match grouping {
                Grouping::Column(column) => {
                    self.columns.kinds(&self.document.dataset, column)?;
                    Dimension::Column(column.clone())
                }
                Grouping::Time(width) => Dimension::Time(self.buckets(width.as_deref())?),
                // Computed under this name before the engine is asked.
                Grouping::Bucket { column, .. } => {
                    self.columns.kinds(&self.document.dataset, column)?;
                    Dimension::Column(grouping.to_string())
                }
            });
        }
        Ok(dimensions)
    }

    fn buckets(&self, width: Option<&str>) -> Result<Vec<i64>, DocumentError> {
        let bucket = match width {
            None => Bucket::automatic(self.times.range, &self.times.zone),
            Some(width) => Bucket::parse(width, &self.times.zone)
                .map_err(|error| DocumentError::Width { width: width.to_owned(), error })?,
        };
        Ok(bucket.starts(self.times.range)?.into_iter().map(Nanos::as_i64).collect())
    }

    fn layout(&mut self, group_by: &[Dimension]) -> Result<Layout, DocumentError> {
        let count = [Metric::Of(Simple::Count)];
        let asked = &self.document.aggregates[..];
        let metrics = if asked.is_empty() { &count } else { asked };
        at_most("aggregates", metrics.len(), METRICS_MAX)?;
        let per_second = PerSecond::new(group_by, self.times.range);
        let mut shown = Vec::new();
        for (place, metric) in metrics.iter().enumerate() {
            if metrics[..place].contains(metric) {
                return Err(DocumentError::Twice(metric.to_string()));
            }
            shown.push(self.shown(metric)?);
        }
        let has_time = self.groupings.iter().any(|one| matches!(one, Grouping::Time(_)));
        let sort = match &self.document.order {
            None if has_time && !lines::are_asked_for(self.document) => Sort::groups(),
            None => Sort::Metric(shown[0], algebra::Order::Descending),
            Some(order) => self.sort(order)?,
        };
        let top = self.document.top.unwrap_or(if has_time { TOP_MAX } else { TOP });
        at_most("rows of `top`", top, TOP_MAX)?;
        if self.document.pivot && group_by.is_empty() {
            return Err(DocumentError::PivotOfNothing);
        }
        let pivot = self.document.pivot;
        Ok(Layout { columns: self.names(metrics)?, shown, per_second, sort, top, pivot })
    }

    /// How a metric comes from what the engine computes.
    fn shown(&mut self, metric: &Metric) -> Result<Shown, DocumentError> {
        for column in metric.columns() {
            self.columns.kinds(&self.document.dataset, column)?;
        }
        Ok(match metric {
            Metric::Of(simple) => Shown::Value(self.place_of(simple.aggregate())),
            Metric::Rate(None) => Shown::PerSecond(self.place_of(Aggregate::Count)),
            Metric::Rate(Some(column)) => {
                Shown::PerSecond(self.place_of(Aggregate::Sum(column.clone())))
            }
            Metric::Ratio(above, below) => {
                let above = self.place_of(above.aggregate());
                Shown::Ratio(above, self.place_of(below.aggregate()))
            }
        })
    }

    fn place_of(&mut self, aggregate: Aggregate) -> usize {
        self.engine.iter().position(|known| *known == aggregate).unwrap_or_else(|| {
            self.engine.push(aggregate);
            self.engine.len() - 1
        })
    }

    fn sort(&mut self, order: &Order) -> Result<Sort, DocumentError> {
        let direction = match order.descending {
            true => algebra::Order::Descending,
            false => algebra::Order::Ascending,
        };
        let mut groups = self.groupings.iter();
        if let Some(place) = groups.position(|group| group.to_string() == order.by) {
            return Ok(Sort::Groups { first: place, direction });
        }
        let metric: Metric = order
            .by
            .parse()
            .map_err(|error| DocumentError::Order { by: order.by.clone(), error })?;
        Ok(Sort::Metric(self.shown(&metric)?, direction))
    }

    /// The columns of the answer. A metric that is named like a group gets a number, so that a
    /// row can be an object.
    fn names(&self, metrics: &[Metric]) -> Result<Vec<TableColumn>, DocumentError> {
        let mut columns = Vec::new();
        for grouping in &self.groupings {
            columns.push(match grouping {
                Grouping::Time(_) => TableColumn::new(TIME, ColumnKind::Time),
                Grouping::Column(column) => {
                    let kinds = self.columns.kinds(&self.document.dataset, column)?;
                    TableColumn::new(column, ColumnKind::of(kinds))
                }
                Grouping::Bucket { .. } => {
                    TableColumn::new(grouping.to_string(), ColumnKind::Float)
                }
            });
        }
        for metric in metrics {
            let name = unused(&columns, metric.to_string());
            columns.push(TableColumn::new(name, ColumnKind::Float));
        }
        Ok(columns)
    }
}

/// Refuses more of something than there may be.
pub(crate) fn at_most(what: &'static str, given: usize, limit: usize) -> Result<(), DocumentError> {
    if given > limit {
        return Err(DocumentError::TooMany { what, given, limit });
    }
    Ok(())
}
