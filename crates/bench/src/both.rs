//! `both`: rows come in while questions are asked. The questions are about days that are over, so
//! that they are the same with load and without; no two are equal, so that none is answered from
//! what is remembered.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::clock::Stopwatch;
use crate::joined::Joined;
use crate::load::{Load, Outcome};
use crate::query::{DAY_NS, Names, ROWS_PER_BATCH, START_NS, keep_hot, post_query, send};
use crate::report::{self, Bar, Limit, Table, say, thousands};
use crate::requests::{CATEGORY, Door, Requests};
use crate::server::ServerProcess;
use crate::workplace::{Workplace, WorkplaceSettings};
use crate::{machine, messages, quantile};

/// As in the first row of `ingest`.
const ROWS: usize = 1000;
const CONNECTIONS: usize = 4;
const WARM_UP: Duration = Duration::from_secs(1);
const QUESTION_EVERY: Duration = Duration::from_secs(1);
/// The part of the highest load at which questions stay quick …
const EASY_LOAD: f64 = 0.25;
/// … up to this factor, …
const SLOWER_MAX: f64 = 3.0;
/// … rows come in as fast as they are sent, but for what is under way at the ends, …
const PACE_MIN: f64 = 0.98;
/// … and what is left of the highest load while questions are asked.
const LEFT_MIN: f64 = 0.7;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// How long each part is measured, in seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// How many million rows questions are about
    #[arg(long, default_value_t = 10)]
    million_rows: usize,
    #[command(flatten)]
    workplace: WorkplaceSettings,
}

/// What one part of the run had.
struct Part {
    what: &'static str,
    ingest: Option<Outcome>,
    /// How long each answer took, sorted.
    answers: Vec<Duration>,
}

impl Part {
    fn rate(&self) -> f64 {
        self.ingest.as_ref().map_or(0.0, |outcome| outcome.rows_per_s)
    }

    fn p99_ms(&self) -> f64 {
        quantile::of_sorted(&self.answers, 0.99).as_secs_f64() * 1e3
    }
}

pub(crate) fn run(settings: &Settings) -> Result<Vec<Bar>> {
    let workplace = Workplace::new(&settings.workplace)?;
    let machine = machine::describe(workplace.folder())?;
    let home = workplace.new_folder()?;
    let server = ServerProcess::start_perflab(&workplace.perflab, home.path())?;
    // What is asked about is years old, and is to be hot.
    keep_hot(server.address(), CATEGORY)?;
    say("rows to ask about");
    let batches = (settings.million_rows * 1_000_000).div_ceil(ROWS_PER_BATCH);
    let names = Names::new();
    send(server.address(), CATEGORY, batches, &|number| names.batch(number, batches))?;
    let run = Run { settings, server: &server, messages: messages::generate(messages::DISTINCT) };
    let alone = run.part("rows alone", Some(None), false)?;
    let idle = run.part("questions alone", None, true)?;
    let easy = run.part("a quarter of the load", Some(Some(alone.rate() * EASY_LOAD)), true)?;
    let full = run.part("full load", Some(None), true)?;
    let bars = bars(&alone, &idle, &easy, &full);
    let rows = batches * ROWS_PER_BATCH;
    let command = machine::command();
    report::print(&format_args!(
        "Command: `{command}`.\nMachine: {machine}. Questions about {rows} rows over HTTP, one a second.\n"
    ))?;
    report::print(&table(&[&alone, &idle, &easy, &full]))?;
    bars.iter().try_for_each(|bar| report::print(bar))?;
    server.stop()?;
    Ok(bars)
}

struct Run<'r> {
    settings: &'r Settings,
    server: &'r ServerProcess,
    messages: Joined,
}

impl Run<'_> {
    /// `load`: whether rows are sent, and how many a second, if not as many as possible.
    fn part(&self, what: &'static str, load: Option<Option<f64>>, asks: bool) -> Result<Part> {
        say(what);
        let measured = Duration::from_secs(self.settings.seconds);
        let requests = Requests::new(Door::Ndjson, &self.messages, ROWS);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let questions = asks.then(|| scope.spawn(|| ask(self.server.address(), &is_over)));
            let ingest = match load {
                Some(rows_per_s) => {
                    let load = Load {
                        address: self.server.address(),
                        pid: self.server.pid(),
                        connections: CONNECTIONS,
                        warm_up: WARM_UP,
                        measured,
                        rows_per_s,
                    };
                    Some(load.run(&requests))
                }
                None => {
                    thread::sleep(measured);
                    None
                }
            };
            is_over.store(true, Ordering::Relaxed);
            let answers = questions.map(|thread| {
                thread.join().map_err(|_panic| anyhow!("the questions ended by a panic"))?
            });
            Ok(Part {
                what,
                ingest: ingest.transpose()?,
                answers: answers.transpose()?.unwrap_or_default(),
            })
        })
    }
}

/// Asks a question a second until it is over; returns how long each took, sorted.
fn ask(address: SocketAddr, is_over: &AtomicBool) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    // The first touches files that nothing has touched before.
    answer(address, 0)?;
    let stopwatch = Stopwatch::start();
    for number in 1_u32.. {
        let due = QUESTION_EVERY * number;
        thread::sleep(due.saturating_sub(stopwatch.elapsed()));
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        times.push(answer(address, number)?);
    }
    times.sort();
    Ok(times)
}

/// Asks about the last seven days that are over; each number makes it another question.
fn answer(address: SocketAddr, number: u32) -> Result<Duration> {
    let end = START_NS + 29 * DAY_NS;
    let above = f64::from(number) / 1000.0;
    let question = json!({
        "dataset": CATEGORY,
        "since": (end - 7 * DAY_NS).to_string(), "until": end.to_string(),
        "any_of": [[{"column": "latency", "op": "gt", "values": [above]}]],
        "group_by": ["job"], "aggregates": ["count", "p99:latency"], "top": 10,
    });
    let stopwatch = Stopwatch::start();
    let body = post_query(address, &question.to_string())?;
    let elapsed = stopwatch.elapsed();
    let answer: Value = serde_json::from_slice(&body)?;
    if answer["stats"]["complete"] != json!(true) {
        bail!("an answer is incomplete: {}", answer["stats"]);
    }
    answer["rows"].as_array().filter(|rows| rows.len() == 10).context("an answer has no rows")?;
    Ok(elapsed)
}

fn bars(alone: &Part, idle: &Part, easy: &Part, full: &Part) -> Vec<Bar> {
    vec![
        Bar {
            what: "p99 of questions at a quarter of the load, against idle".to_owned(),
            measured: easy.p99_ms() / idle.p99_ms(),
            limit: Limit::AtMost(SLOWER_MAX),
            unit: "×",
        },
        Bar {
            what: "rows taken at a quarter of the load, against rows sent".to_owned(),
            measured: easy.rate() / (alone.rate() * EASY_LOAD),
            limit: Limit::AtLeast(PACE_MIN),
            unit: "×",
        },
        Bar {
            what: "rows a second at full load with questions, against without".to_owned(),
            measured: full.rate() / alone.rate(),
            limit: Limit::AtLeast(LEFT_MIN),
            unit: "×",
        },
    ]
}

fn table(parts: &[&Part]) -> Table {
    let mut table = Table::new(&["part", "rows/s", "questions", "p50 ms", "p99 ms", "RssAnon MiB"]);
    for part in parts {
        let time = |at: f64| match part.answers.is_empty() {
            true => "–".to_owned(),
            false => format!("{:.1}", quantile::of_sorted(&part.answers, at).as_secs_f64() * 1e3),
        };
        let memory = part.ingest.as_ref().map(|outcome| outcome.usage.anonymous_bytes_max >> 20);
        table.add(vec![
            part.what.to_owned(),
            thousands(part.rate()),
            part.answers.len().to_string(),
            time(0.5),
            time(0.99),
            memory.map_or_else(|| "–".to_owned(), |mebibytes| mebibytes.to_string()),
        ]);
    }
    table
}
