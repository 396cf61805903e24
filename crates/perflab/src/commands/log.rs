//! `perflab log`: sends messages.

use std::io;

use perflab_model::{CategoryName, SystemClock};

use crate::backlog::{self, Amount};
use crate::cli::Globals;
use crate::commands::run_on;
use crate::delivery::{Key, Outcome, Route, TRIES_MAX, Writer};
use crate::failure::{Exit, Failure};
use crate::lines::LineStream;
use crate::messages::Messages;
use crate::output::{self, count, note};
use crate::settings::Settings;
use crate::spools;

/// Send messages to a category
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Send messages to a category.\n\n\
        It ends once the messages are durable: on the server's disk, or in this machine's spool \
        when no server answers, from where each is sent once. A message whose answer was lost on \
        the way is spooled too; the server keeps it once if it has a --producer, else maybe \
        twice. Where a category is `fast`, the server acknowledges before its disk has them.",
    after_help = "\
Examples:
  perflab log builds 'took 93 s'
  perflab log perfpipe_builds '{\"int\": {\"time\": 1700000000, \"seconds\": 93}}'
  pytest -v | perflab log test_output
  perflab log builds --producer ci-17 --sequence 1 'sent again, kept once'"
)]
pub(crate) struct Args {
    /// The category: letters, digits, `_ - . /`
    category: CategoryName,
    /// The message; without it, or with -, each line of the input is one
    message: Option<String>,
    /// Who numbers these messages, so that one sent twice is kept once
    #[arg(long, requires = "sequence", value_name = "NAME")]
    producer: Option<String>,
    /// The producer's number for the first of them
    #[arg(long, requires = "producer", value_name = "N")]
    sequence: Option<u64>,
}

pub(crate) fn run(args: Args, globals: &Globals) -> Result<Exit, Failure> {
    let settings = globals.settings()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = run_on(runtime, send(args, &settings))?;
    Ok(tell(&outcome, &settings))
}

async fn send(args: Args, settings: &Settings) -> Result<Outcome, Failure> {
    let key = args.producer.zip(args.sequence);
    let route = Route {
        settings,
        server: settings.server.clone(),
        category: args.category.as_str(),
        key: key.map(|(producer, next_sequence)| Key { producer, next_sequence }),
        tries: TRIES_MAX,
    };
    let mut writer = Writer::new(route, &SystemClock);
    match args.message.filter(|message| message != "-") {
        Some(message) => writer.deliver(Messages::one(message.as_bytes())).await?,
        None => writer.deliver_lines(LineStream::start(io::stdin())?).await?,
    }
    let (outcome, mut client) = writer.finish();
    if let Some(server) = &settings.server
        && outcome.durable + outcome.fast > 0
    {
        let backlog = spools::remote(&settings.home, server);
        if let Err(failure) = backlog::flush(&mut client, &backlog, Amount::Everything).await {
            note(&format!("older messages stay in the spool: {}", failure.root_cause()));
        }
    }
    Ok(outcome)
}

fn tell(outcome: &Outcome, settings: &Settings) -> Exit {
    if outcome.durable > 0 {
        let before = match outcome.duplicates {
            0 => String::new(),
            duplicates => format!(" ({duplicates} of them had been sent before)"),
        };
        note(&format!("{} durable{before}", count(outcome.durable, "message")));
    }
    if outcome.fast > 0 {
        note(&format!(
            "{} acknowledged before being on disk: the category is `fast`",
            count(outcome.fast, "message")
        ));
    }
    if outcome.spooled > 0 {
        note(&spooled(outcome, settings));
    }
    if *outcome == Outcome::default() {
        note("no messages: the input was empty");
    }
    output::refusals(outcome);
    if outcome.try_later > 0 {
        note(&not_sent(outcome));
        output::stop(outcome);
    }
    match (outcome.refused, outcome.try_later) {
        (0, 0) => Exit::Done,
        (0, _) => Exit::Failed,
        _ => Exit::No,
    }
}

/// How many lines of an input are left, nobody knows: they have not been read.
fn not_sent(outcome: &Outcome) -> String {
    let messages = match outcome.first_unsent_line {
        None => count(outcome.try_later, "message"),
        Some(_) => "messages".to_owned(),
    };
    format!("error: {messages} not sent, try later: {}", outcome.try_later_reason)
}

fn spooled(outcome: &Outcome, settings: &Settings) -> String {
    let messages = count(outcome.spooled, "message");
    let when = match &settings.server {
        Some(server) => {
            format!("{server} can be reached and another message or `perflab spool flush` is sent")
        }
        None => format!("a server starts on `{}`", settings.home.display()),
    };
    let twice = if outcome.maybe_twice > 0 {
        "; the server may have had them already, and without --producer can't tell"
    } else {
        ""
    };
    format!("no server answers: {messages} spooled, will be sent when {when}{twice}")
}
