//! Load generator and comparisons: how fast perflab takes rows in, and what that is worth beside
//! the limits of the machine and beside others. Results are Markdown on stdout, talk on stderr.

mod arrow_limit;
mod both;
mod clock;
mod decoding;
mod disk;
mod http1;
mod ingest;
mod joined;
mod load;
mod machine;
mod messages;
mod naive;
mod peers;
mod process;
mod quantile;
mod query;
mod random;
mod report;
mod requests;
mod scribe_cat;
mod server;
mod start;
mod workplace;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(about = "Measures perflab on this machine")]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Durable ingest over HTTP, beside the parse limit of one core and other stores
    Ingest(ingest::Settings),
    /// Questions while rows come in
    Both(both::Settings),
    /// Questions over 100 million rows, beside DuckDB and ClickHouse
    Query(query::Settings),
    /// `scribe_cat CATEGORY MESSAGE`, beside `/bin/true` and one fdatasync
    ScribeCat(scribe_cat::Settings),
    /// From the server's start to its first durable write, on a large log
    Start(start::Settings),
    /// The server of the `ingest` row "one fdatasync per request"
    #[command(hide = true)]
    NaiveServer(naive::Settings),
}

fn main() -> ExitCode {
    match run(Arguments::parse().benchmark) {
        Ok(bars) if bars.iter().all(report::Bar::holds) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            report::say(&format!("error: {error:#}"));
            ExitCode::from(3)
        }
    }
}

/// Runs the benchmark and says how its bars did.
fn run(benchmark: Benchmark) -> Result<Vec<report::Bar>> {
    match benchmark {
        Benchmark::Ingest(settings) => ingest::run(&settings),
        Benchmark::Both(settings) => both::run(&settings),
        Benchmark::Query(settings) => query::run(&settings),
        Benchmark::ScribeCat(settings) => scribe_cat::run(&settings),
        Benchmark::Start(settings) => start::run(&settings),
        Benchmark::NaiveServer(settings) => naive::run(&settings).map(|()| Vec::new()),
    }
}
