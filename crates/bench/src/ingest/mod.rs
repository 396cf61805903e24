//! `ingest`: rows per second that are on disk before they are acknowledged, beside the parse
//! limit of one core, a server without group commit, DuckDB and chDB.

mod results;

use crate::joined::Joined;
use crate::load::{Load, Outcome};
use crate::messages;
use crate::peers::{PEERS, PeerOutcome, PeerSettings};
use crate::report::{self, Bar, say};
use crate::requests::{CATEGORY, Door, Requests, form_entries};
use crate::server::ServerProcess;
use crate::workplace::{Workplace, WorkplaceSettings};
use crate::{arrow_limit, decoding, machine, quantile};
use anyhow::{Context, Result};
use results::{BAR_SHAPE, Case, Limits, Results, Shape, Subject, Syncs};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How often each limit of one core is measured, before the load and again after it.
const LIMIT_ROUNDS: usize = 3;

/// How often the peers' file goes over the different messages.
const PEER_CYCLES: usize = 5;

/// What the server is given before the measured part, so that it has its columns and files.
const WARM_UP: Duration = Duration::from_secs(1);

/// What is measured with each door.
const SHAPES: [Shape; 4] = [BAR_SHAPE, Shape::new(100, 16), Shape::new(10, 64), Shape::new(1, 64)];

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// How long each row of the table is measured, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    #[command(flatten)]
    workplace: WorkplaceSettings,
    #[command(flatten)]
    peers: PeerSettings,
}

/// What is sent, encoded.
struct Input {
    messages: Joined,
    form: Joined,
}

impl Input {
    fn new() -> Self {
        let messages = messages::generate(messages::DISTINCT);
        let form = form_entries(&messages);
        Self { messages, form }
    }

    fn requests(&self, door: Door, rows: usize) -> Requests<'_> {
        let entries = match door {
            Door::Form => &self.form,
            Door::Ndjson => &self.messages,
        };
        Requests::new(door, entries, rows)
    }
}

pub(crate) fn run(settings: &Settings) -> Result<Vec<Bar>> {
    let workplace = Workplace::new(&settings.workplace)?;
    let machine = machine::describe(workplace.folder())?;
    say("making the messages");
    let input = Input::new();
    let syncs = Syncs::measure(workplace.folder())?;
    let mut limits = LimitRounds::default();
    limits.measure(&input)?;
    let cases = measure_cases(settings, &workplace, &input)?;
    limits.measure(&input)?;
    let results = Results {
        command: machine::command(),
        machine,
        message_bytes: input.messages.all().len() / input.messages.len(),
        syncs,
        limits: limits.medians(),
        cases,
        peers: measure_peers(settings, &workplace, &input)?,
    };
    let bars = results.bars();
    report::print(&results)?;
    for bar in &bars {
        report::print(bar)?;
    }
    Ok(bars)
}

#[derive(Debug, Default)]
struct LimitRounds {
    arrow: Vec<f64>,
    ndjson: Vec<f64>,
    form: Vec<f64>,
}

impl LimitRounds {
    fn measure(&mut self, input: &Input) -> Result<()> {
        say("measuring the limits of one core");
        let rows = BAR_SHAPE.rows;
        for _ in 0..LIMIT_ROUNDS {
            self.arrow.push(arrow_limit::rows_per_s(&input.messages, rows)?);
            for (door, rates) in [(Door::Ndjson, &mut self.ndjson), (Door::Form, &mut self.form)] {
                rates.push(decoding::rows_per_s(door, &input.requests(door, rows))?);
            }
        }
        Ok(())
    }

    fn medians(self) -> Limits {
        Limits {
            arrow: quantile::median(self.arrow),
            ndjson: quantile::median(self.ndjson),
            form: quantile::median(self.form),
        }
    }
}

fn measure_cases(settings: &Settings, workplace: &Workplace, input: &Input) -> Result<Vec<Case>> {
    let subjects = [
        (Subject::Perflab, Door::Ndjson),
        (Subject::Perflab, Door::Form),
        (Subject::Naive, Door::Ndjson),
    ];
    let mut cases = Vec::new();
    for (subject, door) in subjects {
        for shape in SHAPES {
            let Shape { rows, connections } = shape;
            say(&format!("{subject:?}: {door}, {connections} × {rows} rows"));
            let outcome = measure_case(settings, workplace, input, (subject, door, shape))
                .with_context(|| format!("{subject:?}, {door}, {rows} rows per request"))?;
            cases.push(Case { subject, door, shape, outcome });
        }
    }
    Ok(cases)
}

/// Loads a new server with an empty home, and checks that it has what it acknowledged.
fn measure_case(
    settings: &Settings,
    workplace: &Workplace,
    input: &Input,
    (subject, door, shape): (Subject, Door, Shape),
) -> Result<Outcome> {
    let home = workplace.new_folder()?;
    let server = match subject {
        Subject::Perflab => ServerProcess::start_perflab(&workplace.perflab, home.path())?,
        Subject::Naive => start_naive(home.path())?,
    };
    let load = Load {
        address: server.address(),
        pid: server.pid(),
        connections: shape.connections,
        warm_up: WARM_UP,
        measured: Duration::from_secs(settings.seconds),
        rows_per_s: None,
    };
    let outcome = load.run(&input.requests(door, shape.rows))?;
    match subject {
        Subject::Perflab => {
            server.check_records(CATEGORY, outcome.acknowledged)?;
            server.stop()?;
        }
        // It has no way to end but being ended.
        Subject::Naive => drop(server),
    }
    Ok(outcome)
}

fn start_naive(folder: &Path) -> Result<ServerProcess> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["naive-server", "--dir"]).arg(folder);
    ServerProcess::start(&mut command)
}

fn measure_peers(
    settings: &Settings,
    workplace: &Workplace,
    input: &Input,
) -> Result<Vec<(&'static str, PeerOutcome)>> {
    if settings.peers.without_peers {
        return Ok(Vec::new());
    }
    let ndjson = workplace.folder().join("messages.ndjson");
    write_ndjson(&ndjson, &input.messages)?;
    let rows = (PEER_CYCLES * input.messages.len()) as u64;
    PEERS
        .into_iter()
        .map(|peer| {
            say(&format!("{}: {rows} rows", peer.name));
            let folder = workplace.new_folder()?;
            let outcome = peer.insert(&settings.peers, &ndjson, folder.path(), rows)?;
            Ok((peer.name, outcome))
        })
        .collect()
}

fn write_ndjson(path: &Path, messages: &Joined) -> Result<()> {
    let mut file = BufWriter::new(File::create_new(path)?);
    for _ in 0..PEER_CYCLES {
        file.write_all(messages.all())?;
        file.write_all(b"\n")?;
    }
    file.into_inner()?.sync_all()?;
    Ok(())
}
