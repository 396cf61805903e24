//! Numbers for monitoring, in Prometheus' text form.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use perflab_store::{Answer, Home};
use perflab_wire::EntryCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::budget::Budget;

/// Of the request durations: from 0.25 ms to about 8 s, each twice the one before.
const DURATION_BUCKETS: u16 = 16;
const DURATION_BUCKET_MIN_SECONDS: f64 = 0.000_25;

const CODES: [EntryCode; 5] =
    [EntryCode::Ok, EntryCode::TryLater, EntryCode::Error, EntryCode::Denied, EntryCode::TooLarge];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    door: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DoorLabels {
    door: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndLabels {
    end: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: &'static str,
}

/// How the work on a query ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QueryEnd {
    Answered,
    /// Nobody waited for the answer any more, or the server was ending.
    Canceled,
    TimedOut,
    Refused,
}

/// What is counted here; the rest is asked for when someone looks.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<DoorLabels, Histogram, fn() -> Histogram>,
    /// One per code, so that counting entries takes no lookup.
    entries: [Counter; CODES.len()],
    pub(crate) body_bytes: Counter,
    queries: Family<EndLabels, Counter>,
}

impl Metrics {
    pub(crate) fn new(home: &Arc<Home>, budget: &Arc<Budget>) -> Self {
        let mut registry = Registry::with_prefix("perflab");
        let requests = Family::<RequestLabels, Counter>::default();
        let durations =
            Family::<DoorLabels, Histogram, fn() -> Histogram>::new_with_constructor(|| {
                Histogram::new(exponential_buckets(
                    DURATION_BUCKET_MIN_SECONDS,
                    2.0,
                    DURATION_BUCKETS,
                ))
            });
        let codes = Family::<CodeLabels, Counter>::default();
        let entries =
            CODES.map(|code| codes.get_or_create(&CodeLabels { code: code.as_str() }).clone());
        let body_bytes = Counter::default();
        let queries = Family::<EndLabels, Counter>::default();
        registry.register("requests", "Requests by door and status", requests.clone());
        registry.register("request_seconds", "How long requests took", durations.clone());
        registry.register("entries", "Entries by the code they got", codes);
        registry.register("body_bytes", "Bytes of bodies with entries", body_bytes.clone());
        registry.register("queries", "Queries by how they ended", queries.clone());
        let watched = Watched { home: Arc::clone(home), budget: Arc::clone(budget) };
        registry.register_collector(Box::new(watched));
        Self { registry, requests, durations, entries, body_bytes, queries }
    }

    pub(crate) fn count_request(&self, door: &'static str, status: StatusCode, took: Duration) {
        let labels = RequestLabels { door, status: status.as_u16() };
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&DoorLabels { door }).observe(took.as_secs_f64());
    }

    /// Counts a query whose work has ended, whether or not someone still waits for it.
    pub(crate) fn count_query(&self, end: QueryEnd) {
        let end = match end {
            QueryEnd::Answered => "answered",
            QueryEnd::Canceled => "canceled",
            QueryEnd::TimedOut => "timed_out",
            QueryEnd::Refused => "refused",
        };
        self.queries.get_or_create(&EndLabels { end }).inc();
    }

    /// Counts entries by code; returns how many were refused.
    pub(crate) fn count_entries(&self, answer: &Answer) -> usize {
        let mut refused = 0;
        for (code, counter) in CODES.iter().zip(&self.entries) {
            let count = answer.count(*code);
            counter.inc_by(count as u64);
            refused += if *code == EntryCode::Ok { 0 } else { count };
        }
        refused
    }

    pub(crate) fn to_text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// What the home and the budget know about themselves.
#[derive(Debug)]
struct Watched {
    home: Arc<Home>,
    budget: Arc<Budget>,
}

impl Collector for Watched {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let log = self.home.log().stats();
        let ingest = self.home.ingest_stats();
        let counters = [
            ("log_commits", "Commits to the log", log.commits),
            ("log_records", "Records appended to the log", log.records),
            ("log_bytes", "Bytes appended to the log", log.bytes),
            ("log_failed_commits", "Commits that failed", log.failed_commits),
            ("log_failed_checkpoints", "Checkpoints that failed", log.failed_checkpoints),
            ("duplicates", "Entries that were known by their keys", log.duplicates),
            ("too_old", "Entries older than the deduplication window", log.too_old),
            ("rows", "Rows that fit their schemas", ingest.rows),
            ("fast_lost", "Fast entries acknowledged but not written", ingest.fast_lost),
            ("rejected_lost", "Refused entries that could not be kept", ingest.rejected_lost),
        ];
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value);
            let encoder = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(encoder)?;
        }
        let gauges = [
            ("log_window_keys", "Remembered keys of producers", log.window_keys),
            ("log_queue_bytes", "Bytes that wait to be written", log.queue_bytes as u64),
            ("disk_full", "1 while the disk is full", u64::from(log.disk_full)),
            (
                "cold_failing",
                "1 while cold rows can't be read or written where they are kept",
                u64::from(self.home.is_cold_failing()),
            ),
            ("in_flight_bytes", "Bytes of bodies being worked on", self.budget.used() as u64),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            let encoder = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(encoder)?;
        }
        Ok(())
    }
}
