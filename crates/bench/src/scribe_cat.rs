//! `scribe-cat`: how long a program waits for `scribe_cat CATEGORY MESSAGE`, from its start to
//! its end with the message on disk, beside a program that does nothing and one durable write.

use crate::clock::Stopwatch;
use crate::disk::Preallocated;
use crate::messages;
use crate::report::{self, Bar, Limit, Table, say};
use crate::requests::CATEGORY;
use crate::server::ServerProcess;
use crate::workplace::{Workplace, WorkplaceSettings};
use crate::{machine, quantile};
use anyhow::{Result, bail};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What `scribe_cat` may take beyond one fdatasync.
const BEYOND_FDATASYNC_MAX: Duration = Duration::from_millis(3);

/// Runs before the measured ones, so that files are in memory and the category exists.
const WARM_UP_RUNS: usize = 10;

/// More runs than this tell nothing new.
const RUNS_MAX: usize = 100_000;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// How often each of the three is run
    #[arg(long, default_value_t = 200, value_parser = parse_runs)]
    runs: usize,
    #[command(flatten)]
    workplace: WorkplaceSettings,
}

fn parse_runs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(runs @ 1..=RUNS_MAX) => Ok(runs),
        _ => Err(format!("not a number from 1 to {RUNS_MAX}")),
    }
}

/// What was measured, each sorted.
#[derive(Debug, Default)]
struct Times {
    scribe_cat: Vec<Duration>,
    nothing: Vec<Duration>,
    fdatasync: Vec<Duration>,
}

pub(crate) fn run(settings: &Settings) -> Result<Vec<Bar>> {
    let workplace = Workplace::new(&settings.workplace)?;
    let folder = workplace.folder();
    let machine = machine::describe(folder)?;
    let home = workplace.new_folder()?;
    let server = ServerProcess::start_perflab(&workplace.perflab, home.path())?;
    let scribe_cat = folder.join("scribe_cat");
    symlink(std::fs::canonicalize(&workplace.perflab)?, &scribe_cat)?;
    let times = measure(settings.runs, &scribe_cat, home.path(), folder)?;
    server.check_records(CATEGORY, (WARM_UP_RUNS + settings.runs) as u64)?;
    server.stop()?;

    let bar = bar(&times);
    let command = machine::command();
    let runs = settings.runs;
    report::print(&format_args!(
        "Command: `{command}`.\nMachine: {machine}. {runs} runs each, in turn.\n"
    ))?;
    report::print(&table(&times))?;
    report::print(&bar)?;
    Ok(vec![bar])
}

/// Runs the three in turn, so that whatever else the machine does hits all of them alike.
fn measure(runs: usize, scribe_cat: &Path, home: &Path, folder: &Path) -> Result<Times> {
    say(&format!("running scribe_cat {runs} times"));
    let messages = messages::generate(WARM_UP_RUNS + runs);
    let mut file = Preallocated::create(&folder.join("same-size"), 8)?;
    let mut times = Times::default();
    for (index, message) in messages.iter().enumerate() {
        let mut command = Command::new(scribe_cat);
        command
            .args([CATEGORY, &String::from_utf8_lossy(message)])
            .env("PERFLAB_HOME", home)
            .env_remove("PERFLAB_SERVER")
            .env_remove("PERFLAB_TOKEN");
        let logged = time_command(&mut command)?;
        let nothing = time_command(&mut Command::new("/bin/true"))?;
        let written = file.write_durably(message)?;
        if index >= WARM_UP_RUNS {
            times.scribe_cat.push(logged);
            times.nothing.push(nothing);
            times.fdatasync.push(written);
        }
    }
    times.scribe_cat.sort();
    times.nothing.sort();
    times.fdatasync.sort();
    Ok(times)
}

fn time_command(command: &mut Command) -> Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let stopwatch = Stopwatch::start();
    let status = command.status()?;
    let elapsed = stopwatch.elapsed();
    if !status.success() {
        bail!("{} ended with {status}", command.get_program().display());
    }
    Ok(elapsed)
}

fn bar(times: &Times) -> Bar {
    let median = |times: &[Duration]| quantile::of_sorted(times, 0.5).as_secs_f64() * 1e3;
    let limit_ms = median(&times.fdatasync) + BEYOND_FDATASYNC_MAX.as_secs_f64() * 1e3;
    Bar {
        what: "`scribe_cat CATEGORY MESSAGE`, median, against one fdatasync + 3 ms".to_owned(),
        measured: median(&times.scribe_cat),
        limit: Limit::AtMost(limit_ms),
        unit: " ms",
    }
}

fn table(times: &Times) -> Table {
    let mut table = Table::new(&["what", "median ms", "p90 ms"]);
    for (what, times) in [
        ("`scribe_cat CATEGORY MESSAGE`, durable", &times.scribe_cat),
        ("`/bin/true`", &times.nothing),
        ("write + fdatasync of the same bytes", &times.fdatasync),
    ] {
        let [median, p90] = [0.5, 0.9].map(|quantile| {
            let time = quantile::of_sorted(times, quantile);
            format!("{:.2}", time.as_secs_f64() * 1e3)
        });
        table.add(vec![what.to_owned(), median, p90]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_moves_with_the_disk() {
        let ms = |ms| vec![Duration::from_millis(ms)];
        let times = |scribe_cat, fdatasync| Times {
            scribe_cat: ms(scribe_cat),
            nothing: ms(1),
            fdatasync: ms(fdatasync),
        };
        assert!(bar(&times(5, 2)).holds());
        assert!(!bar(&times(6, 2)).holds());
        assert!(bar(&times(9, 7)).holds());
        assert!(table(&times(5, 2)).to_string().contains(" 5.00 |"));
    }

    #[test]
    fn a_program_that_fails_is_not_a_time() {
        assert!(time_command(&mut Command::new("/bin/false")).is_err());
        assert!(time_command(&mut Command::new("/bin/true")).is_ok());
    }
}
