//! What `ingest` measured, as a table and as bars.

use crate::load::Outcome;
use crate::messages;
use crate::peers::PeerOutcome;
use crate::report::{Bar, Limit, Table, thousands};
use crate::requests::Door;
use crate::{disk, quantile};
use anyhow::Result;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// What the durable rate must be, as a share of the parse limit.
const NDJSON_SHARE_MIN: f64 = 0.5;
const FORM_SHARE_MIN: f64 = 0.25;

/// How much anonymous memory the server may use, in MiB.
const ANONYMOUS_MIB_MAX: f64 = 300.0;

/// The load that the bars are for.
pub(super) const BAR_SHAPE: Shape = Shape::new(1_000, 8);

/// Rows per request, and how many connections send them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) connections: usize,
}

impl Shape {
    pub(super) const fn new(rows: usize, connections: usize) -> Self {
        Self { rows, connections }
    }
}

/// What one row of the table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Perflab,
    /// One fdatasync per request.
    Naive,
}

/// One measured combination.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) subject: Subject,
    pub(super) door: Door,
    pub(super) shape: Shape,
    pub(super) outcome: Outcome,
}

/// Rows per second that one core reaches, each value a median.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) arrow: f64,
    pub(super) ndjson: f64,
    pub(super) form: f64,
}

/// What a durable write costs on this disk: medians, into preallocated space.
#[derive(Debug, Clone, Copy)]
pub(super) struct Syncs {
    small: Duration,
    large: Duration,
}

impl Syncs {
    pub(super) fn measure(folder: &Path) -> Result<Self> {
        Ok(Self {
            small: disk::fdatasync_p50(folder, 4 << 10)?,
            large: disk::fdatasync_p50(folder, 1 << 20)?,
        })
    }
}

/// Everything that one run of the benchmark found.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) command: String,
    pub(super) machine: String,
    pub(super) message_bytes: usize,
    pub(super) syncs: Syncs,
    pub(super) limits: Limits,
    pub(super) cases: Vec<Case>,
    pub(super) peers: Vec<(&'static str, PeerOutcome)>,
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Command: `{}`.", self.command)?;
        writeln!(
            f,
            "Machine: {}. {} different messages of {} bytes and {} fields.",
            self.machine,
            thousands(messages::DISTINCT as f64),
            self.message_bytes,
            messages::FIELDS,
        )?;
        writeln!(
            f,
            "fdatasync into preallocated space, p50: 4 KiB {:.2} ms, 1 MiB {:.2} ms.\n",
            ms(self.syncs.small),
            ms(self.syncs.large),
        )?;
        table(self).fmt(f)
    }
}

impl Results {
    pub(super) fn bars(&self) -> Vec<Bar> {
        let ours = || self.cases.iter().filter(|case| case.subject == Subject::Perflab);
        let share = |door: Door| {
            let case = ours().find(|case| case.door == door && case.shape == BAR_SHAPE);
            case.map_or(f64::NAN, |case| case.outcome.rows_per_s / self.limits.arrow)
        };
        let largest = ours().map(|case| case.outcome.usage.anonymous_bytes_max);
        let bar = |what: &str, measured, limit, unit| Bar {
            what: what.to_owned(),
            measured,
            limit,
            unit,
        };
        let (ndjson, form) = (share(Door::Ndjson), share(Door::Form));
        let memory = largest.max().map_or(f64::NAN, mib);
        vec![
            bar(
                "NDJSON, 8 × 1,000 rows, against the parse limit",
                ndjson,
                Limit::AtLeast(NDJSON_SHARE_MIN),
                "×",
            ),
            bar(
                "form, 8 × 1,000 rows, against the parse limit",
                form,
                Limit::AtLeast(FORM_SHARE_MIN),
                "×",
            ),
            bar(
                "the server's anonymous memory, the largest of all rows",
                memory,
                Limit::AtMost(ANONYMOUS_MIB_MAX),
                " MiB",
            ),
        ]
    }
}

fn table(results: &Results) -> Table {
    let Limits { arrow, ndjson, form } = results.limits;
    let mut table = Table::new(&[
        "what",
        "connections × rows",
        "rows/s",
        "of the parse limit",
        "request p50 ms",
        "p99 ms",
        "CPU µs/row",
        "generator CPU µs/row",
        "RssAnon MiB",
    ]);
    let limits = [
        ("parse limit: serde_json → Arrow builders", arrow),
        ("perflab decoding alone, NDJSON → batch", ndjson),
        ("perflab decoding alone, form → batch", form),
    ];
    let limits = limits.map(|(what, rate)| Line::of_limit(what, rate));
    let cases = results.cases.iter().map(Line::of_case);
    let peers = results.peers.iter().map(|(name, outcome)| Line::of_peer(name, outcome));
    for line in limits.into_iter().chain(cases).chain(peers) {
        table.add(line.cells(arrow));
    }
    table
}

/// A line of the table.
#[derive(Debug)]
struct Line {
    what: String,
    shape: String,
    rows_per_s: f64,
    cpu_us_per_row: f64,
    /// What only a server has.
    served: Option<Served>,
}

#[derive(Debug)]
struct Served {
    p50: Duration,
    p99: Duration,
    generator_us_per_row: f64,
    anonymous_bytes_max: u64,
}

impl Line {
    fn of_limit(what: &str, rows_per_s: f64) -> Self {
        Self {
            what: what.to_owned(),
            shape: "one core".to_owned(),
            rows_per_s,
            cpu_us_per_row: 1e6 / rows_per_s,
            served: None,
        }
    }

    fn of_case(case: &Case) -> Self {
        let Case { subject, door, shape, outcome } = case;
        let per_row = |cpu: Duration| cpu.as_secs_f64() * 1e6 / outcome.rows as f64;
        Self {
            what: match subject {
                Subject::Perflab => format!("perflab serve, durable, {door}"),
                Subject::Naive => format!("one fdatasync per request, {door}"),
            },
            shape: format!("{} × {}", shape.connections, thousands(shape.rows as f64)),
            rows_per_s: outcome.rows_per_s,
            cpu_us_per_row: per_row(outcome.usage.server_cpu),
            served: Some(Served {
                p50: quantile::of_sorted(&outcome.times, 0.5),
                p99: quantile::of_sorted(&outcome.times, 0.99),
                generator_us_per_row: per_row(outcome.usage.generator_cpu),
                anonymous_bytes_max: outcome.usage.anonymous_bytes_max,
            }),
        }
    }

    fn of_peer(name: &str, outcome: &PeerOutcome) -> Self {
        Self {
            what: format!("{name} {}, one INSERT from a JSON file", outcome.version),
            shape: format!("1 × {}", thousands(outcome.rows as f64)),
            rows_per_s: outcome.rows_per_s(),
            cpu_us_per_row: outcome.cpu_us_per_row(),
            served: None,
        }
    }

    fn cells(&self, parse_limit: f64) -> Vec<String> {
        let served = |text: &dyn Fn(&Served) -> String| {
            self.served.as_ref().map_or_else(|| "–".to_owned(), text)
        };
        vec![
            self.what.clone(),
            self.shape.clone(),
            thousands(self.rows_per_s),
            format!("{:.2}×", self.rows_per_s / parse_limit),
            served(&|served| format!("{:.2}", ms(served.p50))),
            served(&|served| format!("{:.2}", ms(served.p99))),
            format!("{:.2}", self.cpu_us_per_row),
            served(&|served| format!("{:.2}", served.generator_us_per_row)),
            served(&|served| format!("{:.0}", mib(served.anonymous_bytes_max))),
        ]
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Usage;

    fn case(door: Door, shape: Shape, rows_per_s: f64) -> Case {
        let usage = Usage {
            server_cpu: Duration::from_secs(1),
            generator_cpu: Duration::from_secs(2),
            anonymous_bytes_max: 200 << 20,
        };
        let times = vec![Duration::from_millis(7)];
        let outcome =
            Outcome { acknowledged: 1_000_000, rows: 1_000_000, rows_per_s, times, usage };
        Case { subject: Subject::Perflab, door, shape, outcome }
    }

    fn results(cases: Vec<Case>) -> Results {
        Results {
            command: "perflab-bench ingest".to_owned(),
            machine: "a machine".to_owned(),
            message_bytes: 900,
            syncs: Syncs { small: Duration::from_millis(1), large: Duration::from_millis(2) },
            limits: Limits { arrow: 600_000.0, ndjson: 700_000.0, form: 300_000.0 },
            cases,
            peers: Vec::new(),
        }
    }

    fn verdicts(results: &Results) -> Vec<bool> {
        results.bars().iter().map(Bar::holds).collect()
    }

    #[test]
    fn bars_are_for_the_large_requests() {
        let small = Shape::new(1, 64);
        let fast = |door| case(door, BAR_SHAPE, 301_000.0);
        let slow = |door| case(door, small, 1_000.0);
        let good = vec![slow(Door::Ndjson), fast(Door::Ndjson), slow(Door::Form), fast(Door::Form)];
        assert_eq!(verdicts(&results(good)), [true, true, true]);
        let bad = vec![case(Door::Ndjson, BAR_SHAPE, 299_000.0), fast(Door::Form)];
        assert_eq!(verdicts(&results(bad)), [false, true, true]);
    }

    #[test]
    fn what_was_not_measured_fails() {
        assert_eq!(verdicts(&results(Vec::new())), [false, false, false]);
    }

    #[test]
    fn the_table_says_what_was_measured() {
        let text = results(vec![case(Door::Form, BAR_SHAPE, 300_000.0)]).to_string();
        let line = text.lines().find(|line| line.contains("durable, form")).unwrap();
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(
            cells[2..10],
            ["8 × 1,000", "300,000", "0.50×", "7.00", "7.00", "1.00", "2.00", "200"]
        );
        assert!(text.starts_with("Command: `perflab-bench ingest`.\nMachine: a machine."));
    }
}
