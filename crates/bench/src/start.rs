//! `start`: how long after its start a server takes writes again, on a large log and after it was
//! killed, beside reading all of that log once. Every row has a key, so that the window of keys has
//! to be brought back too.

use crate::clock::Stopwatch;
use crate::http1::Reader;
use crate::joined::Joined;
use crate::messages;
use crate::report::{self, Bar, Limit, Table, say};
use crate::requests::{CATEGORY, Door, Requests};
use crate::server::ServerProcess;
use crate::workplace::{Workplace, WorkplaceSettings};
use crate::{machine, quantile};
use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// The server takes writes within this.
const START_MAX: Duration = Duration::from_secs(1);

/// Rows per request while the log is filled.
const ROWS: usize = 1000;

/// Who numbers the rows that fill the log.
const PRODUCER: &str = "filler";

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// How large the log is, in MiB
    #[arg(long, default_value_t = 1024)]
    mebibytes: u64,
    /// How often the server is killed and started
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    starts: u16,
    #[command(flatten)]
    workplace: WorkplaceSettings,
}

pub(crate) fn run(settings: &Settings) -> Result<Vec<Bar>> {
    let workplace = Workplace::new(&settings.workplace)?;
    let machine = machine::describe(workplace.folder())?;
    let home = workplace.new_folder()?;
    let messages = messages::generate(20 * ROWS);
    let rows = fill(&workplace, home.path(), &messages, settings.mebibytes << 20)?;
    let mut starts = Vec::new();
    for start in 0..u64::from(settings.starts) {
        let stopwatch = Stopwatch::start();
        let server = ServerProcess::start_perflab(&workplace.perflab, home.path())?;
        post(
            &mut TcpStream::connect(server.address())?,
            &Requests::new(Door::Ndjson, &messages, 1),
            0,
        )?;
        starts.push(stopwatch.elapsed());
        server.check_records(CATEGORY, rows + start + 1)?;
        // Dropped, which kills it: the next start finds no clean end.
    }
    starts.sort();
    let (bytes, reading) = read_all(&home.path().join("log"))?;

    let bar = Bar {
        what: format!("start to first durable write, {} MiB log, slowest", settings.mebibytes),
        measured: quantile::of_sorted(&starts, 1.0).as_secs_f64() * 1e3,
        limit: Limit::AtMost(START_MAX.as_secs_f64() * 1e3),
        unit: " ms",
    };
    let command = machine::command();
    let count = settings.starts;
    report::print(&format_args!(
        "Command: `{command}`.\nMachine: {machine}. {count} starts, each after `kill -9`; {rows} rows, each with a key, in {} MiB of log.\n",
        bytes >> 20
    ))?;
    report::print(&table(&starts, reading))?;
    report::print(&bar)?;
    Ok(vec![bar])
}

/// Writes rows until the log has this many bytes, then kills the server.
fn fill(workplace: &Workplace, home: &Path, messages: &Joined, bytes: u64) -> Result<u64> {
    say(&format!("filling a log of {} MiB", bytes >> 20));
    let server = ServerProcess::start_perflab(&workplace.perflab, home)?;
    let mut stream = TcpStream::connect(server.address())?;
    let requests = Requests::new(Door::Ndjson, messages, ROWS).with_producer(PRODUCER);
    let (mut written, mut index) = (0, 0);
    while written < bytes {
        written += post(&mut stream, &requests, index)?;
        index += 1;
    }
    let rows = (index * ROWS) as u64;
    server.check_records(CATEGORY, rows)?;
    Ok(rows)
}

/// Sends one request, which must be taken whole; returns its size.
fn post(stream: &mut TcpStream, requests: &Requests<'_>, index: usize) -> Result<u64> {
    let mut request = Vec::new();
    requests.write(index, &mut request);
    stream.write_all(&request)?;
    let mut answers = Reader::new(stream);
    let answer = answers.next()?.context("the server closed a connection")?;
    if !answer.head.starts_with("HTTP/1.1 200") {
        bail!("the server answered {}", answer.head);
    }
    Ok(request.len() as u64)
}

/// Reads every byte of a folder's files, as a server without summaries would have to.
fn read_all(dir: &Path) -> Result<(u64, Duration)> {
    let stopwatch = Stopwatch::start();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let mut file = std::fs::File::open(entry?.path())?;
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                read => bytes += read as u64,
            }
        }
    }
    Ok((bytes, stopwatch.elapsed()))
}

fn table(starts: &[Duration], reading: Duration) -> Table {
    let ms = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e3);
    let mut table = Table::new(&["what", "median ms", "slowest ms"]);
    table.add(vec![
        "process start to first durable write, after `kill -9`".to_owned(),
        ms(quantile::of_sorted(starts, 0.5)),
        ms(quantile::of_sorted(starts, 1.0)),
    ]);
    table.add(vec!["reading the whole log once".to_owned(), ms(reading), ms(reading)]);
    table
}
