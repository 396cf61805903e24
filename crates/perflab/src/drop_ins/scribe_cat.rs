//! `scribe_cat`: one message, the lines of the input, or the input as one message.
//!
//! Uploaders start it once per message, so it does without clap, and without a
//! runtime where it can.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

use perflab_model::{CategoryName, SystemClock};

use crate::backlog::{self, Amount};
use crate::client::ServerUrl;
use crate::delivery::{Outcome, Refused, Route, TRIES_MAX, Writer};
use crate::failure::{Exit, Explain, Failure};
use crate::lines::{LINE_BYTES_MAX, LineStream};
use crate::messages::Messages;
use crate::output;
use crate::settings::Settings;
use crate::spools;

const USAGE: &str = "\
usage: scribe_cat CATEGORY MESSAGE          send one message
       scribe_cat CATEGORY                  send each line of the input
       scribe_cat -h HOST[:PORT] CATEGORY   send the input as one message to that server

The exit status is 0 once the messages are durable (where the category is `fast`: acknowledged), 84
to try later, 1 when one was refused.";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    /// The server of `-h`.
    server: Option<ServerUrl>,
    category: String,
    source: Source,
}

#[derive(Debug, PartialEq, Eq)]
enum Source {
    Argument(Vec<u8>),
    Lines,
    WholeInput,
}

pub(super) fn run(arguments: Vec<OsString>) -> ExitCode {
    let exit = match parse(arguments) {
        Ok(None) => {
            output::help(USAGE);
            Exit::Done
        }
        Ok(Some(request)) => match deliver(request) {
            Ok(outcome) => tell(&outcome),
            Err(failure) => output::failure(&failure),
        },
        Err(failure) => output::failure(&failure),
    };
    ExitCode::from(exit.code())
}

/// `None`: only the usage was asked for.
fn parse(arguments: Vec<OsString>) -> Result<Option<Request>, Failure> {
    let mut arguments: Vec<Vec<u8>> = arguments.into_iter().map(OsString::into_vec).collect();
    if arguments == [b"--help"] {
        return Ok(None);
    }
    let wrong = |message: &str| Failure::new(Exit::Usage, message.to_owned()).with_hint(USAGE);
    let mut server = None;
    if arguments.first().is_some_and(|first| first == b"-h") {
        if arguments.len() != 3 {
            return Err(wrong("-h takes a host and a category"));
        }
        let host = String::from_utf8_lossy(&arguments[1]).into_owned();
        let parsed = ServerUrl::from_host_and_port(&host);
        // Without the address: people put tokens into it.
        server = Some(parsed.exit(Exit::Usage).context("what -h was given is no HOST[:PORT]")?);
        arguments.drain(..2);
    }
    let mut arguments = arguments.into_iter();
    let Some(category) = arguments.next() else {
        return Err(wrong("no category"));
    };
    let source = match (arguments.next(), &server) {
        (Some(message), _) => Source::Argument(message),
        (None, None) => Source::Lines,
        (None, Some(_)) => Source::WholeInput,
    };
    if arguments.next().is_some() {
        return Err(wrong("more than a category and a message; quote a message with spaces"));
    }
    let category = String::from_utf8_lossy(&category).into_owned();
    Ok(Some(Request { server, category, source }))
}

fn deliver(request: Request) -> Result<Outcome, Failure> {
    let settings = Settings::from_environment()?;
    let category = CategoryName::new(&request.category).exit(Exit::No)?;
    let is_stream = request.source == Source::Lines;
    let route = Route {
        settings: &settings,
        server: request.server.or_else(|| settings.server.clone()),
        category: category.as_str(),
        key: None,
        tries: if is_stream { TRIES_MAX } else { 1 },
    };
    if let (Source::Argument(message), None) = (&request.source, &route.server) {
        let mut writer = Writer::new(route, &SystemClock);
        writer.deliver_at_once(message)?;
        return Ok(writer.finish().0);
    }
    deliver_with_runtime(route, request.source)
}

fn deliver_with_runtime(route: Route<'_>, source: Source) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(send(route, source));
    // A name that is still being looked up must not hold up the end.
    runtime.shutdown_background();
    outcome
}

async fn send(route: Route<'_>, source: Source) -> Result<Outcome, Failure> {
    let (settings, server) = (route.settings, route.server.clone());
    let mut writer = Writer::new(route, &SystemClock);
    match source {
        Source::Argument(message) => writer.deliver(Messages::one(&message)).await?,
        Source::WholeInput => match read_whole_input()? {
            Some(message) => writer.deliver(Messages::one(&message)).await?,
            None => writer.outcome_mut().refuse(Refused::too_long(0)),
        },
        Source::Lines => writer.deliver_lines(LineStream::start(io::stdin())?).await?,
    }
    let (outcome, mut client) = writer.finish();
    if let Some(server) = server
        && outcome.durable + outcome.fast > 0
    {
        let backlog = spools::remote(&settings.home, &server);
        if matches!(backlog.is_empty(), Ok(false)) {
            // The caller's message is delivered: what happens to older ones is not its business.
            let flushed = backlog::flush(&mut client, &backlog, Amount::OneBatch).await;
            drop(flushed);
        }
    }
    Ok(outcome)
}

/// `None` when there is too much of it.
fn read_whole_input() -> io::Result<Option<Vec<u8>>> {
    let mut message = Vec::new();
    io::stdin().lock().take(LINE_BYTES_MAX as u64 + 1).read_to_end(&mut message)?;
    Ok((message.len() <= LINE_BYTES_MAX).then_some(message))
}

fn tell(outcome: &Outcome) -> Exit {
    output::refusals(outcome);
    if outcome.maybe_twice > 0 {
        output::note("warning: no answer came, so it is spooled; the server may have it already");
    }
    if outcome.try_later > 0 {
        output::note(&format!("try later: {}", outcome.try_later_reason));
        output::stop(outcome);
    }
    match (outcome.refused, outcome.try_later) {
        (0, 0) => Exit::Done,
        (0, _) => Exit::TryLater,
        _ => Exit::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Option<Request>, Failure> {
        parse(arguments.iter().map(OsString::from).collect())
    }

    fn request(arguments: &[&str]) -> Request {
        parsed(arguments).unwrap().unwrap()
    }

    #[test]
    fn the_three_forms_are_told_apart() {
        assert_eq!(request(&["c", "-h"]).source, Source::Argument(b"-h".to_vec()));
        assert_eq!(request(&["c"]).source, Source::Lines);
        let remote = request(&["-h", "log.example:99", "c"]);
        assert_eq!(remote.source, Source::WholeInput);
        assert_eq!(remote.server.unwrap().to_string(), "http://log.example:99");
        let remote = request(&["-h", "log.example", "c"]);
        assert_eq!(remote.server.unwrap().to_string(), "http://log.example:7117");
    }

    #[test]
    fn anything_else_is_a_usage_error() {
        for arguments in [
            &[][..],
            &["-h"],
            &["-h", "x"],
            &["-h", "x", "c", "m"],
            &["c", "m", "n"],
            &["-h", "x:y", "c"],
        ] {
            assert_eq!(parsed(arguments).unwrap_err().exit(), Exit::Usage, "{arguments:?}");
        }
        assert!(parsed(&["--help"]).unwrap().is_none());
        for host in ["me:plt_x@h", "h:plt_x"] {
            assert!(!parsed(&["-h", host, "c"]).unwrap_err().to_string().contains("plt_x"));
        }
    }
}
