//! What was measured, and how the bars did.

use std::fmt;
use std::time::Duration;

use super::ours::Perflab;
use super::peer::QueryPeer;
use super::stores::Store;
use crate::machine;
use crate::quantile::median;
use crate::report::{Bar, Limit, Table};

/// Every question is answered so many times faster than by the faster peer …
const RATIO_MIN: f64 = 3.0;
/// … and so many times on the geometric mean …
const MEAN_RATIO_MIN: f64 = 5.0;
/// … except where a peer needs less than this, or groups are sparse: there we are not slower.
const QUICK_MS: f64 = 10.0;
const SPARSE: &str = "test × commit, top 100";
/// So many of all questions are answered within this.
const QUESTIONS: usize = 12;
const INTERACTIVE_MS: f64 = 100.0;
const INTERACTIVE_MIN: f64 = 9.0;
const COLD_START_MAX_S: f64 = 2.0;
/// A question about one hour costs the same however much there is: up to this factor.
const GROWTH_MAX: f64 = 1.5;

/// Milliseconds of one question.
#[derive(Debug)]
pub(crate) struct Measured {
    what: &'static str,
    pub(crate) ours: Vec<f64>,
    pub(crate) peers: Vec<Vec<f64>>,
}

impl Measured {
    pub(crate) fn new(what: &'static str, peers: usize) -> Self {
        Self { what, ours: Vec::new(), peers: vec![Vec::new(); peers] }
    }

    fn ours_ms(&self) -> f64 {
        median(self.ours.clone())
    }

    /// Of the faster peer.
    fn peer_ms(&self) -> f64 {
        let answered = self.peers.iter().filter(|times| !times.is_empty());
        answered.map(|times| median(times.clone())).fold(f64::INFINITY, f64::min)
    }

    fn ratio(&self) -> f64 {
        self.peer_ms() / self.ours_ms()
    }

    fn bar(&self) -> Bar {
        let is_eased = self.what == SPARSE || self.peer_ms() < QUICK_MS;
        Bar {
            what: format!("{}, against the faster peer", self.what),
            measured: self.ratio(),
            limit: Limit::AtLeast(if is_eased { 1.0 } else { RATIO_MIN }),
            unit: "×",
        }
    }
}

/// Everything that is reported.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) measured: Vec<Measured>,
    /// Milliseconds of a question about one hour: of many days, and of few.
    pub(crate) one_hour: (f64, f64),
    machine: String,
    cold_start: Duration,
    rows: usize,
    peers: Vec<String>,
    pub(crate) stores: Vec<Store>,
}

impl Results {
    pub(crate) fn new(
        machine: String,
        cold_start: Duration,
        perflab: &Perflab,
        peers: &[QueryPeer],
    ) -> Self {
        Self {
            measured: Vec::new(),
            one_hour: (0.0, 0.0),
            machine,
            cold_start,
            rows: perflab.rows(),
            peers: peers.iter().map(|peer| format!("{} ms", peer.name)).collect(),
            stores: Vec::new(),
        }
    }

    pub(crate) fn bars(&self) -> Vec<Bar> {
        let mut bars = Vec::new();
        if !self.peers.is_empty() {
            bars.extend(self.measured.iter().map(Measured::bar));
            let logs: f64 = self.measured.iter().map(|measured| measured.ratio().ln()).sum();
            bars.push(Bar {
                what: "geometric mean of the ratios".to_owned(),
                measured: (logs / self.measured.len() as f64).exp(),
                limit: Limit::AtLeast(MEAN_RATIO_MIN),
                unit: "×",
            });
        }
        bars.extend(self.interactive());
        bars.push(Bar {
            what: "start of the server to its first answer".to_owned(),
            measured: self.cold_start.as_secs_f64(),
            limit: Limit::AtMost(COLD_START_MAX_S),
            unit: " s",
        });
        bars.push(Bar {
            what: "one hour of thirty days, against one hour of three".to_owned(),
            measured: self.one_hour.0 / self.one_hour.1,
            limit: Limit::AtMost(GROWTH_MAX),
            unit: "×",
        });
        bars
    }

    /// When all questions were asked.
    fn interactive(&self) -> Option<Bar> {
        let interactive = self.measured.iter().filter(|m| m.ours_ms() < INTERACTIVE_MS).count();
        (self.measured.len() == QUESTIONS).then(|| Bar {
            what: format!("questions answered in less than {INTERACTIVE_MS:.0} ms"),
            measured: interactive as f64,
            limit: Limit::AtLeast(INTERACTIVE_MIN),
            unit: "",
        })
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (command, machine, rows) = (machine::command(), &self.machine, self.rows);
        writeln!(f, "Command: `{command}`.\nMachine: {machine}. {rows} rows.\n")?;
        let mut header = vec!["question", "perflab ms", "ns/row of a core"];
        header.extend(self.peers.iter().map(String::as_str));
        header.push("faster by");
        let mut table = Table::new(&header);
        for measured in &self.measured {
            let ours = measured.ours_ms();
            let cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
            let mut row = vec![
                measured.what.to_owned(),
                format!("{ours:.1}"),
                format!("{:.2}", ours * cores * 1e6 / rows as f64),
            ];
            row.extend(measured.peers.iter().map(|times| match times.is_empty() {
                true => "no answer".to_owned(),
                false => format!("{:.0}", median(times.clone())),
            }));
            row.push(format!("{:.1}×", measured.ratio()));
            table.add(row);
        }
        writeln!(f, "{table}")?;
        let header = ["store", "load s", "bytes per row", "memory MiB", "mapped files MiB"];
        let mut table = Table::new(&header);
        let or_none = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
        };
        let mib = |bytes: u64| (bytes >> 20) as f64;
        for store in &self.stores {
            table.add(vec![
                store.name.clone(),
                or_none(store.load_s, 0),
                or_none(Some(store.bytes_per_row), 1),
                or_none(store.memory.map(|(anonymous, _)| mib(anonymous)), 0),
                or_none(store.memory.map(|(_, mapped)| mib(mapped)), 0),
            ]);
        }
        writeln!(f, "{table}")
    }
}
