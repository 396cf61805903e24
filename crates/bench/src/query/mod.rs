//! `query`: twelve questions over 100 million rows, each asked of perflab, DuckDB and ClickHouse
//! in turn. Engine time with the strings of the result, no HTTP; data warm, results not cached.

mod load;
mod ours;
mod peer;
mod questions;
mod results;
mod rows;
mod stacks;
mod stores;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::clock::Stopwatch;
use crate::machine;
use crate::peers::PeerSettings;
use crate::report::{self, Bar, say};
use crate::server::ServerProcess;
use crate::workplace::{Workplace, WorkplaceSettings};
pub(crate) use load::{keep_hot, send};
use ours::Perflab;
pub(crate) use ours::post_query;
use peer::QueryPeer;
use questions::{Asked, questions};
use results::{Measured, Results};
pub(crate) use rows::{DAY_NS, Names, ROWS_PER_BATCH, START_NS};
use stacks::Stacks;
use stores::Store;

/// Where the rows go.
const ROWS: &str = "bench_rows";
const SAMPLES: &str = "bench_samples";
/// A tenth as many days of rows, each day with as many.
const FEW_ROWS: &str = "bench_few_rows";
/// A question that takes a peer longer than this is asked once, not in every round.
const SLOW_MS: f64 = 3000.0;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// How many million rows of test runs
    #[arg(long, default_value_t = 100)]
    million_rows: usize,
    /// How many million samples of stacks
    #[arg(long, default_value_t = 20)]
    million_samples: usize,
    /// Load the rows into this folder and leave them there, or ask about those that a run before
    /// has left there
    #[arg(long)]
    keep: Option<PathBuf>,
    /// How often each question is asked
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Ask only the questions with this in their names
    #[arg(long, default_value = "")]
    only: String,
    #[command(flatten)]
    workplace: WorkplaceSettings,
    #[command(flatten)]
    peers: PeerSettings,
}

impl Settings {
    fn batches(&self) -> usize {
        (self.million_rows * 1_000_000).div_ceil(ROWS_PER_BATCH)
    }

    fn stack_batches(&self) -> usize {
        (self.million_samples * 1_000_000).div_ceil(ROWS_PER_BATCH)
    }
}

pub(crate) fn run(settings: &Settings) -> Result<Vec<Bar>> {
    let workplace = Workplace::new(&settings.workplace)?;
    let folder = settings.keep.clone().unwrap_or_else(|| workplace.folder().join("query"));
    std::fs::create_dir_all(&folder)?;
    let machine = machine::describe(&folder)?;
    let home = folder.join("perflab");
    let load_s = load_once(settings, &workplace, &home)?;
    let mut peers = start_peers(settings, &workplace, &folder)?;
    let cold_start =
        ours::cold_start(&workplace.perflab, &home, settings.batches() * ROWS_PER_BATCH)?;
    let perflab = Perflab::open(&home)?;
    let mut results = Results::new(machine, cold_start, &perflab, &peers);
    for asked in questions().into_iter().filter(|asked| asked.what.contains(&settings.only)) {
        say(asked.what);
        results.measured.push(measure(&asked, &perflab, &mut peers, settings.rounds)?);
    }
    results.one_hour = perflab.one_hour(settings.rounds)?;
    results.stores = Store::all(&perflab, load_s, &peers)?;
    report::print(&results)?;
    let bars = results.bars();
    bars.iter().try_for_each(|bar| report::print(bar))?;
    Ok(bars)
}

/// Loads the rows unless a run before has; how many seconds it took, if that is known.
fn load_once(settings: &Settings, workplace: &Workplace, home: &Path) -> Result<Option<f64>> {
    let seconds = home.with_extension("seconds");
    if home.exists() {
        let said = std::fs::read_to_string(seconds).ok();
        return Ok(said.and_then(|said| said.trim().parse().ok()));
    }
    // Under its own name only when all is there.
    let unfinished = home.with_extension("unfinished");
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished)?;
    }
    let load_s = load(settings, workplace, &unfinished)?;
    std::fs::rename(&unfinished, home)?;
    std::fs::write(seconds, load_s.to_string())?;
    Ok(Some(load_s))
}

/// Seconds until all rows were acknowledged.
fn load(settings: &Settings, workplace: &Workplace, home: &Path) -> Result<f64> {
    let (names, stacks) = (Names::new(), Stacks::new());
    let (batches, stack_batches) = (settings.batches(), settings.stack_batches());
    let server = ServerProcess::start_perflab(&workplace.perflab, home)?;
    // The rows are years old, and questions are to be about hot ones.
    for dataset in [ROWS, FEW_ROWS, SAMPLES] {
        keep_hot(server.address(), dataset)?;
    }
    say(&format!("perflab: {} rows", batches * ROWS_PER_BATCH));
    let stopwatch = Stopwatch::start();
    send(server.address(), ROWS, batches, &|number| names.batch(number, batches))?;
    let load_s = stopwatch.elapsed().as_secs_f64();
    // The last tenth of the batches is the last tenth of the days.
    let few = batches / 10;
    send(server.address(), FEW_ROWS, few, &|number| names.batch(batches - few + number, batches))?;
    say(&format!("perflab: {} samples", stack_batches * ROWS_PER_BATCH));
    let samples = |number| stacks.batch(number, stack_batches);
    send(server.address(), SAMPLES, stack_batches, &samples)?;
    say("perflab: waiting until all of it is in segments");
    ours::wait_until_current(server.address())?;
    server.stop()?;
    Ok(load_s)
}

fn start_peers(
    settings: &Settings,
    workplace: &Workplace,
    folder: &Path,
) -> Result<Vec<QueryPeer>> {
    if settings.peers.without_peers {
        return Ok(Vec::new());
    }
    let scripts = [("DuckDB", "duckdb_query.py"), ("ClickHouse", "chdb_query.py")];
    let streams = workplace.new_folder()?;
    if scripts.iter().any(|(name, _)| !folder.join(name).exists()) {
        say("streams for the peers");
        let batches = (settings.batches(), settings.stack_batches());
        let (names, stacks) = (Names::new(), Stacks::new());
        load::write_streams(streams.path(), (&names, batches.0), (&stacks, batches.1))?;
    }
    let start = |(name, script): (&'static str, &str)| {
        say(name);
        QueryPeer::start(name, script, &settings.peers, streams.path(), &folder.join(name))
    };
    scripts.into_iter().map(start).collect()
}

/// Asks each in turn, after one round that warms up, checks the answers, and picks the fastest way
/// to ask a peer.
fn measure(
    asked: &Asked,
    perflab: &Perflab,
    peers: &mut [QueryPeer],
    rounds: usize,
) -> Result<Measured> {
    let answer = perflab.ask(&asked.ours)?;
    let mut measured = Measured::new(asked.what, peers.len());
    let mut chosen = Vec::new();
    for (place, peer) in peers.iter_mut().enumerate() {
        let ways = if place == 0 { &asked.duckdb } else { &asked.clickhouse };
        chosen.push(answer.fastest_that_agrees(asked.agreement, peer, ways)?);
    }
    if !chosen.is_empty() && chosen.iter().all(Option::is_none) {
        bail!("no peer answers: {}", asked.what);
    }
    for round in 0..rounds {
        measured.ours.push(perflab.ask(&asked.ours)?.ms);
        for ((peer, way), times) in peers.iter_mut().zip(&chosen).zip(&mut measured.peers) {
            let Some((sql, first_ms)) = way else { continue };
            match (*first_ms > SLOW_MS, round) {
                (true, 0) => times.push(*first_ms),
                (true, _) => {}
                (false, _) => times.push(peer.ask(sql)?.ms),
            }
        }
    }
    Ok(measured)
}
