//! perflab's side: a home opened in this process, and questions of it.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use perflab_model::SystemClock;
use perflab_query::algebra::{Aggregate, Question};
use perflab_query::views::{Fold, TreeQuestion, tree};
use perflab_query::{Answer, Limits, Selection, Value, answer};
use perflab_store::segment::{Segment, Snapshot, cool};
use perflab_store::{Home, HomeSettings};
use serde_json::{Value as Json, json};

use super::peer::QueryPeer;
use super::questions::{Agreement, Ours};
use super::rows::{DAY_NS, DAYS, START_NS};
use super::{FEW_ROWS, ROWS, SAMPLES};
use crate::clock::Stopwatch;
use crate::http1::Reader;
use crate::quantile;
use crate::report::say;
use crate::server::ServerProcess;

/// How long the store may take to catch up with the log.
const CATCH_UP: Duration = Duration::from_secs(600);
/// How far answers may differ: by the rounding of floats, by what our sketch promises, and by what
/// weights change in percentiles.
const ROUNDING: f64 = 1e-9;
const SKETCH_ERROR: f64 = 1.0 / 128.0;
const WEIGHTED_ERROR: f64 = 0.1;
/// One in so many segments is made cold, to see how small it gets.
const COLD_STEP: usize = 20;
/// How many nodes of a tree are shown.
const NODES_MAX: usize = 10_000;

/// The rows that are asked about.
#[derive(Debug)]
pub(crate) struct Perflab {
    rows: Snapshot,
    few_rows: Snapshot,
    samples: Snapshot,
    _home: Arc<Home>,
}

/// What came out of a question.
#[derive(Debug)]
pub(crate) struct OurAnswer {
    pub(crate) ms: f64,
    /// The number of each row, and its group as text.
    rows: Vec<(Vec<String>, f64)>,
}

impl Perflab {
    pub(crate) fn open(home: &Path) -> Result<Self> {
        let home = Home::open(home, HomeSettings::default(), Arc::new(SystemClock))?;
        Ok(Self {
            rows: whole(&home, ROWS)?,
            few_rows: whole(&home, FEW_ROWS)?,
            samples: whole(&home, SAMPLES)?,
            _home: home,
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.segments.iter().map(|segment| segment.rows()).sum()
    }

    /// The segments of the rows and of the samples.
    fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.rows.segments.iter().chain(&self.samples.segments).map(|segment| &**segment)
    }

    pub(crate) fn rows_and_samples(&self) -> usize {
        self.segments().map(Segment::rows).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.segments().map(Segment::bytes).sum()
    }

    /// What segments would take if they were cold: of some of them, spread over all.
    pub(crate) fn cold_bytes_per_row(&self) -> Result<f64> {
        let (mut rows, mut bytes) = (0, 0);
        for segment in self.segments().step_by(COLD_STEP) {
            let cooled = cool(segment)?;
            rows += segment.rows();
            bytes += cooled.rows.len() + cooled.lists.map_or(0, |lists| lists.len());
        }
        Ok(bytes as f64 / rows as f64)
    }

    pub(crate) fn ask(&self, ours: &Ours) -> Result<OurAnswer> {
        match ours {
            Ours::Question(question) => ask(question, &self.rows),
            Ours::Tree(any_of) => {
                let selection = Selection { range: None, any_of: any_of.clone() };
                let question = TreeQuestion {
                    column: "stack".to_owned(),
                    fold: Fold::FromRoot,
                    nodes_max: NODES_MAX,
                };
                let stopwatch = Stopwatch::start();
                let tree = tree(&question, &selection, None, &self.samples, &Limits::default())?;
                let ms = stopwatch.elapsed().as_secs_f64() * 1e3;
                Ok(OurAnswer { ms, rows: vec![(Vec::new(), tree.nodes[0].total.a.weight)] })
            }
        }
    }

    /// Milliseconds of a question about the last hour of many days, and of few.
    pub(crate) fn one_hour(&self, rounds: usize) -> Result<(f64, f64)> {
        let end = START_NS + DAYS * DAY_NS;
        let question = Question {
            range: Some((end - DAY_NS / 24, end)),
            group_by: vec![perflab_query::algebra::Dimension::Column("test".to_owned())],
            aggregates: vec![Aggregate::Count],
            ..Question::default()
        };
        let (mut many, mut few) = (Vec::new(), Vec::new());
        for _ in 0..=rounds {
            many.push(ask(&question, &self.rows)?.ms);
            few.push(ask(&question, &self.few_rows)?.ms);
        }
        Ok((quantile::median(many.split_off(1)), quantile::median(few.split_off(1))))
    }
}

fn ask(question: &Question, snapshot: &Snapshot) -> Result<OurAnswer> {
    let stopwatch = Stopwatch::start();
    let answer = answer(question, snapshot, &Limits::default())?;
    let ms = stopwatch.elapsed().as_secs_f64() * 1e3;
    Ok(OurAnswer { ms, rows: rows_of(answer) })
}

fn rows_of(answer: Answer) -> Vec<(Vec<String>, f64)> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "null".to_owned(),
        // Buckets of time are compared by their numbers alone.
        Value::Time(_) => "time".to_owned(),
        Value::Int(_) | Value::Float(_) | Value::List(_) => format!("{value:?}"),
    };
    let rows = answer.rows.into_iter();
    rows.map(|row| (row.group.iter().map(text).collect(), row.values[0].unwrap_or(f64::NAN)))
        .collect()
}

/// A snapshot of everything: the store reads what is in no segment yet from the log.
fn whole(home: &Home, dataset: &str) -> Result<Snapshot> {
    let stopwatch = Stopwatch::start();
    loop {
        let snapshot = home.snapshot(dataset)?;
        if snapshot.missing.is_empty() {
            return Ok(snapshot);
        }
        if stopwatch.elapsed() > CATCH_UP {
            bail!("{dataset}: {}", snapshot.missing.join("; "));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl OurAnswer {
    /// The fastest of a peer's ways to ask whose answer is ours, and how long it took; `None` when
    /// the peer can't answer, as for lack of memory or disk.
    pub(crate) fn fastest_that_agrees<'w>(
        &self,
        agreement: Agreement,
        peer: &mut QueryPeer,
        ways: &[&'w str],
    ) -> Result<Option<(&'w str, f64)>> {
        let exact = match (agreement, ways.last()) {
            (Agreement::Percentile, Some(sql)) => Some(peer.ask(sql)?.numbers()),
            _ => None,
        };
        let mut fastest: Option<(&str, f64)> = None;
        for &sql in ways {
            // Once to warm up: the first touch of a column reads it from the disk.
            let answer = match peer.ask(sql) {
                Ok(answer) => answer,
                Err(error) => {
                    say(&format!("{}: not counted: {error:#}", peer.name));
                    continue;
                }
            };
            let checked = self.check(agreement, answer.numbers()).and_then(|()| match &exact {
                Some(exact) => check_close(exact, &answer.numbers(), SKETCH_ERROR),
                None => Ok(()),
            });
            if let Err(error) = checked {
                say(&format!("{}: not counted: {error:#}: {sql}", peer.name));
                continue;
            }
            let ms = if answer.ms > super::SLOW_MS { answer.ms } else { peer.ask(sql)?.ms };
            if fastest.is_none_or(|(_, fastest)| ms < fastest) {
                fastest = Some((sql, ms));
            }
        }
        Ok(fastest)
    }

    fn check(&self, agreement: Agreement, mut theirs: Vec<f64>) -> Result<()> {
        let mut ours: Vec<f64> = self.rows.iter().map(|(_, number)| *number).collect();
        ours.sort_by(f64::total_cmp);
        let tolerance = match agreement {
            Agreement::Exact => ROUNDING,
            Agreement::Percentile => WEIGHTED_ERROR,
            Agreement::Total => {
                theirs = vec![theirs.iter().sum()];
                ROUNDING
            }
        };
        check_close(&ours, &theirs, tolerance)
    }
}

/// Whether sorted numbers are about the same.
fn check_close(ours: &[f64], theirs: &[f64], tolerance: f64) -> Result<()> {
    if theirs.len() != ours.len() {
        bail!("{} rows, not {}", theirs.len(), ours.len());
    }
    for (ours, theirs) in ours.iter().zip(theirs) {
        if (ours - theirs).abs() > tolerance * ours.abs() {
            bail!("{theirs}, not {ours}");
        }
    }
    Ok(())
}

/// From the start of the server to its first answer about all rows.
pub(crate) fn cold_start(perflab: &Path, home: &Path, rows: usize) -> Result<Duration> {
    let question = json!({
        "dataset": ROWS, "since": START_NS.to_string(), "group_by": ["status"],
    });
    let stopwatch = Stopwatch::start();
    let server = ServerProcess::start_perflab(perflab, home)?;
    let body = post_query(server.address(), &question.to_string())?;
    let elapsed = stopwatch.elapsed();
    let stats = &serde_json::from_slice::<Json>(&body)?["stats"];
    if stats["rows_scanned"] != json!(rows) || stats["complete"] != json!(true) {
        bail!("the first answer is not about all {rows} rows: {stats}");
    }
    server.stop()?;
    Ok(elapsed)
}

/// Waits until a server's answers are about all rows that it has taken.
pub(crate) fn wait_until_current(address: SocketAddr) -> Result<()> {
    let stopwatch = Stopwatch::start();
    for dataset in [ROWS, FEW_ROWS, SAMPLES] {
        let question = json!({"dataset": dataset, "since": START_NS.to_string()}).to_string();
        loop {
            let answer: Json = serde_json::from_slice(&post_query(address, &question)?)?;
            if answer["stats"]["complete"] == json!(true) {
                break;
            }
            if stopwatch.elapsed() > CATCH_UP {
                bail!("{dataset}: {}", answer["stats"]["missing"]);
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    Ok(())
}

/// Asks a server, and returns the body of its answer.
pub(crate) fn post_query(address: SocketAddr, question: &str) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    let length = question.len();
    write!(
        stream,
        "POST /api/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{question}"
    )?;
    let mut answers = Reader::new(&stream);
    let answer = answers.next()?.context("the server closed a connection")?;
    if !answer.head.starts_with("HTTP/1.1 200") {
        bail!("the server answered {}{}", answer.head, String::from_utf8_lossy(answer.body));
    }
    Ok(answer.body.to_vec())
}
