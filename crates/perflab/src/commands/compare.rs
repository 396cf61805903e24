//! `perflab compare`: says whether stored benchmarks became slower.

use clap::ValueEnum;
use http::Method;
use perflab_query::compare;
use perflab_query::document::{Comparison, MEASUREMENTS};
use serde_json::json;

use crate::answer::{self, Answer};
use crate::cli::{Globals, Printed};
use crate::client::{Call, Client, LONG_ANSWER_TIMEOUT, refusal};
use crate::commands::ask;
use crate::failure::{Exit, Explain, Failure};
use crate::output::{self, Format};
use crate::selection::{AnyOf, Times, all_of, parse_any_of};

/// Say whether benchmarks became slower
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perflab compare main my-branch
  perflab compare 1f3a9c 77b0de --fail-on slower
  perflab compare 'branch=main && machine=a' 'branch=fix && machine=a' --value mean
  perflab compare main fix --dataset pytorch_benchmarks --series benchmark_name

Exit status: 0 compared, 1 something is slower and --fail-on says so, 2 it can't be compared, 3 it
could not be done.")]
pub(crate) struct Args {
    /// What to judge against: a commit, a branch, a run, or conditions as of `perflab query`
    before: String,
    /// What to judge
    after: String,
    /// Where the measurements are
    #[arg(long, value_name = "NAME", default_value = MEASUREMENTS)]
    dataset: String,
    /// Only rows for which this holds; given several times, all of them
    #[arg(long = "where", value_name = "CONDITIONS", value_parser = parse_any_of)]
    conditions: Vec<AnyOf>,
    #[command(flatten)]
    times: Times,
    /// The column with the numbers [default: value, median or mean]
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// The columns that tell one series from another, separated by commas [default: those of
    /// benchmark, parameters, metric, unit and machine that are there]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    series: Vec<String>,
    /// Which numbers are better [default: what the column `better` says, else lower]
    #[arg(long, value_enum)]
    better: Option<Better>,
    /// Changes up to so many percent are the same [default: 2]
    #[arg(long, value_name = "PERCENT")]
    threshold: Option<f64>,
    /// Exit with 1 when a benchmark is this
    #[arg(long, value_enum)]
    fail_on: Option<FailOn>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Better {
    /// Times, instructions, bytes
    Lower,
    /// Rates
    Higher,
}

impl From<Better> for compare::Better {
    fn from(better: Better) -> Self {
        match better {
            Better::Lower => Self::Lower,
            Better::Higher => Self::Higher,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailOn {
    /// Slower for certain; what is unknown is not
    Slower,
}

impl FailOn {
    fn verdict(self) -> compare::Verdict {
        match self {
            Self::Slower => compare::Verdict::Slower,
        }
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<Exit, Failure> {
    let comparison = json!(comparison(args)?);
    let mut call = Call::new(Method::POST, "/api/compare").json(&comparison);
    call.answer_timeout = LONG_ANSWER_TIMEOUT;
    let body = ask(globals, async |client: &mut Client| {
        let (status, body) = client.send_whole(&call).await?;
        if status.is_success() { Ok(body) } else { Err(refusal(status, &body, &client.target())) }
    })
    .map_err(not_a_verdict)?;
    let answer: Answer = serde_json::from_slice(&body)
        .context("the server answered what this version does not know")?;
    match args.printed.format {
        Format::Json => {
            output::bytes(&body)?;
            output::bytes(b"\n")?;
        }
        Format::Csv => answer::print_csv(&answer)?,
        Format::Table => {
            answer::print_table(&answer)?;
            output::note(&summary(&answer));
        }
    }
    let is_failed = args.fail_on.is_some_and(|fail_on| count(&answer, fail_on.verdict()) > 0);
    Ok(if is_failed { Exit::No } else { Exit::Done })
}

/// To a gate, 1 is "slower": what can't be compared must not look like it.
fn not_a_verdict(failure: Failure) -> Failure {
    if failure.exit() == Exit::No { failure.with_exit(Exit::Usage) } else { failure }
}

fn comparison(args: &Args) -> Result<Comparison, Failure> {
    let mut comparison = Comparison::new(&args.before, &args.after);
    comparison.dataset.clone_from(&args.dataset);
    args.times.set(&mut comparison.since, &mut comparison.until, &mut comparison.timezone);
    comparison.any_of = all_of(&args.conditions)?;
    comparison.value.clone_from(&args.value);
    comparison.series.clone_from(&args.series);
    comparison.better = args.better.map(Into::into);
    comparison.threshold_percent = args.threshold;
    Ok(comparison)
}

fn count(answer: &Answer, verdict: compare::Verdict) -> usize {
    answer.texts("verdict").filter(|text| *text == verdict.as_str()).count()
}

fn summary(answer: &Answer) -> String {
    use compare::Verdict::{Faster, Same, Slower, Unknown};
    let counts = [Slower, Faster, Same, Unknown]
        .map(|verdict| format!("{} {}", count(answer, verdict), verdict.as_str()));
    counts.join(", ")
}
