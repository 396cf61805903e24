//! `perflab query`: asks about the rows of a dataset.

use clap::ValueEnum;
use http::Method;
use perflab_query::document::{
    Compare, Derived, Document, Filter, Fold, Grouping, Metric, Order, View,
};
use perflab_query::text::{TextError, parse_condition, split_list};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{self, Answer, Format};
use crate::cli::Globals;
use crate::client::{Call, Client, LONG_ANSWER_TIMEOUT, refusal};
use crate::commands::ask;
use crate::failure::{Exit, Explain, Failure};
use crate::output;

/// Ask about the rows of a dataset
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Conditions: status=failed, a!=b, latency>=10, test~^nn, test!~slow, 'status in a,b',
  'name contains x', 'name prefix nn_', 'name is null', 'tags all a,b'
Aggregates: count, samples, sum:x, avg:x, min:x, max:x, stddev:x, distinct:x, p99.9:x, rate,
  rate:x, 'sum:errors / count'

Examples:
  perflab query builds --group-by job
  perflab query builds --where status=failed --where 'test~^nn' --agg count,p99:latency
  perflab query builds --since '-30 days' --view series --agg rate
  perflab query builds --group-by job,status --pivot --format csv
  perflab query builds --group-by job --agg avg:latency --compare '1 week'
  perflab query profiles --view tree --column stack --top 50")]
pub(crate) struct Args {
    /// The dataset, or its category
    dataset: String,
    /// Only rows for which this holds; given several times, all of them
    #[arg(long = "where", value_name = "CONDITION", value_parser = parse_condition)]
    conditions: Vec<Filter>,
    /// Columns to group by, `time`, `time:1h` and `bucket(x, 10)`, separated by commas
    #[arg(long, value_name = "COLUMNS", value_parser = parse_list::<Grouping>)]
    group_by: Option<Listed<Grouping>>,
    /// What to compute of each group, separated by commas [default: count]
    #[arg(long, value_name = "AGGREGATES", value_parser = parse_list::<Metric>)]
    agg: Option<Listed<Metric>>,
    /// From this time on: '-7 days', yesterday, 2026-11-01, 1700000000 [default: -7 days]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,
    /// Until just before this time [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Where days start, and what times are shown in [default: UTC]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// A column or an aggregate to order by, the largest first
    #[arg(long, value_name = "BY")]
    order: Option<String>,
    /// The smallest first
    #[arg(long, requires = "order")]
    ascending: bool,
    /// How many rows of the answer [default: 100; of a series all]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Also show all groups together that are not among the first
    #[arg(long)]
    other: bool,
    /// Also show all groups together
    #[arg(long)]
    total: bool,
    /// A column that is computed from others, as in 'ms=latency * 1000'
    #[arg(long, value_name = "NAME=EXPRESSION", value_parser = parse_derived)]
    derive: Vec<Derived>,
    /// Compare with the time before: `previous`, or how long ago, as in '1 week'
    #[arg(long, value_name = "TIME", value_parser = parse_compare)]
    compare: Option<Compare>,
    /// Compare with rows of the same time for which this holds; given several times, all of them
    #[arg(long, value_name = "CONDITION", value_parser = parse_condition, conflicts_with = "compare")]
    against: Vec<Filter>,
    /// Make the values of the last group columns
    #[arg(long, conflicts_with = "view")]
    pivot: bool,
    /// How to look at it
    #[arg(long, value_enum, default_value_t = Shape::Table)]
    view: Shape,
    /// The column of a distribution (numbers), a tree or a graph (vectors)
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// The columns of samples, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// Merge a tree from its leaves
    #[arg(long)]
    from_leaf: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Print a link that shows it in a browser
    #[arg(long, conflicts_with = "format")]
    url: bool,
}

/// Values in one argument.
#[derive(Debug, Clone)]
struct Listed<T>(Vec<T>);

fn parse_list<T: std::str::FromStr<Err = TextError>>(text: &str) -> Result<Listed<T>, TextError> {
    split_list(text).into_iter().map(str::parse).collect::<Result<_, _>>().map(Listed)
}

fn parse_derived(text: &str) -> Result<Derived, String> {
    let (name, expression) = text
        .split_once('=')
        .ok_or_else(|| "a name, `=` and an expression belong here".to_owned())?;
    Ok(Derived { name: name.trim().to_owned(), expression: expression.trim().to_owned() })
}

#[expect(clippy::unnecessary_wraps, reason = "clap wants a result")]
fn parse_compare(text: &str) -> Result<Compare, String> {
    Ok(if text == "previous" { Compare::Previous } else { Compare::Ago(text.to_owned()) })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// One line per group
    Table,
    /// Over time; on a terminal, drawn
    Series,
    /// How often numbers of a column occur; with --group-by time, in each bucket
    Distribution,
    /// Raw rows, newest first
    Samples,
    /// Vectors that begin alike, merged
    Tree,
    /// Which items of vectors follow which
    Graph,
}

impl From<Shape> for View {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Table => Self::Table,
            Shape::Series => Self::Series,
            Shape::Distribution => Self::Distribution,
            Shape::Samples => Self::Samples,
            Shape::Tree => Self::Tree,
            Shape::Graph => Self::Graph,
        }
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<Exit, Failure> {
    let document = document(args);
    if args.url {
        return print_link(globals, &json!({ "query": document }));
    }
    let query = serde_json::to_value(&document).context("failed to write the query")?;
    let mut call = Call::new(Method::POST, "/api/query").json(&query);
    call = call.header("accept", args.format.media_type());
    call.answer_timeout = LONG_ANSWER_TIMEOUT;
    let body = ask(globals, async |client: &mut Client| {
        let (status, body) = client.send_whole(&call).await?;
        if status.is_success() { Ok(body) } else { Err(refusal(status, &body, &client.target())) }
    })?;
    match args.format {
        Format::Csv | Format::Arrow => output::bytes(&body)?,
        Format::Json => {
            output::bytes(&body)?;
            output::bytes(b"\n")?;
        }
        Format::Table => {
            let answer: Answer = serde_json::from_slice(&body)
                .context("the server answered what this version does not know")?;
            match args.view {
                Shape::Series if output::is_terminal() => {
                    answer::print_lines(&answer, document.aggregates.len().max(1))?;
                }
                Shape::Series
                | Shape::Table
                | Shape::Distribution
                | Shape::Samples
                | Shape::Tree
                | Shape::Graph => answer::print_table(&answer)?,
            }
        }
    }
    Ok(Exit::Done)
}

fn document(args: &Args) -> Document {
    let mut document = Document::new(&args.dataset);
    let given = [&args.since, &args.until, &args.timezone];
    let fields = [&mut document.since, &mut document.until, &mut document.timezone];
    for (field, given) in fields.into_iter().zip(given) {
        if let Some(given) = given {
            field.clone_from(given);
        }
    }
    if !args.conditions.is_empty() {
        document.any_of = vec![args.conditions.clone()];
    }
    document.group_by = args.group_by.clone().map_or_else(Vec::new, |Listed(groups)| groups);
    document.aggregates = args.agg.clone().map_or_else(Vec::new, |Listed(metrics)| metrics);
    document.order = args.order.clone().map(|by| Order { by, descending: !args.ascending });
    document.top = args.top;
    document.pivot = args.pivot;
    document.other = args.other;
    document.total = args.total;
    document.derived.clone_from(&args.derive);
    document.compare.clone_from(&args.compare);
    if !args.against.is_empty() {
        document.compare = Some(Compare::Against(vec![args.against.clone()]));
    }
    document.view = args.view.into();
    document.view_column.clone_from(&args.column);
    document.columns.clone_from(&args.columns);
    if args.from_leaf {
        document.fold = Fold::Leaf;
    }
    document
}

/// Makes a short link of a query or a URL, and prints it.
pub(crate) fn print_link(globals: &Globals, wanted: &Value) -> Result<Exit, Failure> {
    #[derive(Deserialize)]
    struct Link {
        url: String,
    }
    let call = Call::new(Method::POST, "/api/links").json(wanted);
    let link: Link = ask(globals, async |client: &mut Client| client.document(&call).await)?;
    output::data(&format!("{}\n", link.url))?;
    Ok(Exit::Done)
}
