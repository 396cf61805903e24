//! Getting messages to where they are durable: the server, or the spool when none answers.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use perflab_log::{Group, GroupError, Spool, SpoolError};
use perflab_model::Clock;
use perflab_wire::{Codec, EntryCode};
use serde::Deserialize;

use crate::client::{Client, ClientError, ServerUrl, once, refusal};
use crate::failure::{Explain, Failure};
use crate::lines::{LINE_BYTES_MAX, LineStream};
use crate::messages::{Message, Messages};
use crate::settings::Settings;
use crate::spools::{self, SpoolsError};

/// How many refusals are told one by one.
const REASONS_MAX: usize = 10;
/// How often messages of an input are sent again when the server says "try later".
pub(crate) const TRIES_MAX: u32 = 6;
const TRY_LATER_WAIT: Duration = Duration::from_secs(1);
/// After it found no server, a writer leaves the network alone for so long.
const NO_SERVER_WAIT: Duration = Duration::from_secs(5);

/// The server's answer to entries.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    response_codes: BTreeMap<usize, String>,
    #[serde(default)]
    errors: BTreeMap<usize, String>,
    #[serde(default)]
    duplicates: Vec<usize>,
    #[serde(default)]
    guarantee: BTreeMap<String, String>,
}

impl Answer {
    pub(crate) fn code(&self, index: usize) -> &str {
        self.given_code(index).unwrap_or(EntryCode::Error.as_str())
    }

    /// `None`: the answer says nothing about this entry.
    pub(crate) fn given_code(&self, index: usize) -> Option<&str> {
        self.response_codes.get(&index).map(String::as_str)
    }

    pub(crate) fn reason(&self, index: usize) -> &str {
        self.errors.get(&index).map_or("the server gave no reason", String::as_str)
    }

    fn is_fast(&self) -> bool {
        self.guarantee.values().any(|guarantee| guarantee == "fast")
    }
}

/// Why a message was refused, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The line of the input, or 0.
    pub(crate) line: u64,
    pub(crate) code: String,
    pub(crate) reason: String,
}

impl Refused {
    pub(crate) fn too_long(line: u64) -> Self {
        let reason = format!("longer than {LINE_BYTES_MAX} bytes");
        Self { line, code: EntryCode::TooLarge.as_str().to_owned(), reason }
    }
}

/// What became of the messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) durable: u64,
    /// Acknowledged before they were on disk.
    pub(crate) fast: u64,
    /// Of the durable ones: were there before.
    pub(crate) duplicates: u64,
    pub(crate) spooled: u64,
    /// Of the spooled ones: may also have reached the server, and have no key to tell.
    pub(crate) maybe_twice: u64,
    pub(crate) refused: u64,
    /// The first few of the refusals.
    pub(crate) reasons: Vec<Refused>,
    /// Nobody took them now; the reason of the last.
    pub(crate) try_later: u64,
    pub(crate) try_later_reason: String,
    /// The line of an input at which sending stopped: of what follows, some may be there.
    pub(crate) first_unsent_line: Option<u64>,
}

impl Outcome {
    pub(crate) fn refuse(&mut self, refused: Refused) {
        self.refused += 1;
        if self.reasons.len() < REASONS_MAX {
            self.reasons.push(refused);
        }
    }

    fn leave(&mut self, messages: &Messages, count: u64) {
        self.try_later += count;
        let lines = messages.iter().map(|message| message.line);
        let first = lines.filter(|line| *line > 0).min();
        self.first_unsent_line = self.first_unsent_line.or(first);
    }
}

/// Whose numbers the messages carry.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) producer: String,
    pub(crate) next_sequence: u64,
}

/// Where and how to write.
#[derive(Debug)]
pub(crate) struct Route<'a> {
    pub(crate) settings: &'a Settings,
    /// A server elsewhere; otherwise the server on the home.
    pub(crate) server: Option<ServerUrl>,
    pub(crate) category: &'a str,
    pub(crate) key: Option<Key>,
    /// How often a message is tried in all.
    pub(crate) tries: u32,
}

/// A writer of one category.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    route: Route<'a>,
    clock: &'a dyn Clock,
    client: Client,
    /// No server was found just now: until then, go to the spool.
    away_until: Option<tokio::time::Instant>,
    outcome: Outcome,
}

/// How one request ended.
enum Sent {
    Answered(Answer),
    TryLater(String),
    Refused {
        code: EntryCode,
        reason: String,
    },
    /// Nobody took them, or nobody knows.
    Unknown {
        may_be_stored: bool,
    },
}

impl<'a> Writer<'a> {
    pub(crate) fn new(route: Route<'a>, clock: &'a dyn Clock) -> Self {
        let client = match &route.server {
            Some(server) => {
                Client::of_server(server.clone(), route.settings.token_for(server).cloned())
            }
            None => Client::of_home(route.settings.home.clone()),
        };
        Self { route, clock, client, away_until: None, outcome: Outcome::default() }
    }

    pub(crate) fn outcome_mut(&mut self) -> &mut Outcome {
        &mut self.outcome
    }

    /// What became of all messages so far, and the client, to go on with.
    pub(crate) fn finish(self) -> (Outcome, Client) {
        (self.outcome, self.client)
    }

    /// Sends messages, or spools them. An error means that they are nowhere.
    pub(crate) async fn deliver(&mut self, mut messages: Messages) -> Result<(), Failure> {
        if let Some(key) = &mut self.route.key {
            key.next_sequence = messages.number_from(key.next_sequence);
        }
        for batch in messages.into_batches() {
            self.deliver_batch(batch).await?;
            if self.outcome.try_later > 0 {
                break;
            }
        }
        Ok(())
    }

    /// Sends the lines of an input as they come.
    pub(crate) async fn deliver_lines(&mut self, mut input: LineStream) -> Result<(), Failure> {
        while let Some(lines) = input.next().await.context("failed to read the input")? {
            for line in lines.too_long {
                self.outcome.refuse(Refused::too_long(line));
            }
            if !lines.messages.is_empty() {
                self.deliver(lines.messages).await?;
            }
            if self.outcome.try_later > 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn deliver_batch(&mut self, mut batch: Messages) -> Result<(), Failure> {
        for tries_left in (0..self.route.tries).rev() {
            let sent = self.send(&batch).await?;
            let later = self.settle(batch, sent)?;
            if later.is_empty() {
                return Ok(());
            }
            if tries_left == 0 {
                self.outcome.leave(&later, later.len() as u64);
                return Ok(());
            }
            batch = later;
            tokio::time::sleep(TRY_LATER_WAIT).await;
        }
        Ok(())
    }

    /// Sends one message to the home's server, or spools it, once and without a runtime.
    pub(crate) fn deliver_at_once(&mut self, message: &[u8]) -> Result<(), Failure> {
        let batch = Messages::one(message);
        let sent = match batch.call(self.route.category) {
            Some(call) => {
                let home = &self.route.settings.home;
                read_sent(once::exchange(home, &call), &self.client.target())?
            }
            None => refused_text(),
        };
        let later = self.settle(batch, sent)?;
        self.outcome.leave(&later, later.len() as u64);
        Ok(())
    }

    /// Deals with how a request ended; returns what to send again.
    fn settle(&mut self, batch: Messages, sent: Sent) -> Result<Messages, Failure> {
        match sent {
            Sent::Answered(answer) => return Ok(self.count(&batch, &answer)),
            Sent::TryLater(reason) => {
                self.outcome.try_later_reason = reason;
                return Ok(batch);
            }
            Sent::Refused { code, reason } => self.refuse_all(&batch, code, &reason),
            Sent::Unknown { may_be_stored } => self.spool(&batch, may_be_stored)?,
        }
        Ok(Messages::default())
    }

    async fn send(&mut self, batch: &Messages) -> Result<Sent, Failure> {
        if self.away_until.is_some_and(|until| tokio::time::Instant::now() < until) {
            return Ok(Sent::Unknown { may_be_stored: false });
        }
        let Some(mut call) = batch.call(self.route.category) else { return Ok(refused_text()) };
        if let Some(key) = &self.route.key {
            call.headers.extend(batch.key_headers(&key.producer));
        }
        let sent = self.client.send_whole(&call).await;
        if let Err(ClientError::NoServer { .. }) = &sent {
            self.away_until = Some(tokio::time::Instant::now() + NO_SERVER_WAIT);
        }
        read_sent(sent, &self.client.target())
    }

    /// Counts what was taken and what was refused; returns what to send again.
    fn count(&mut self, batch: &Messages, answer: &Answer) -> Messages {
        let (ok, later) = (EntryCode::Ok.as_str(), EntryCode::TryLater.as_str());
        let is_fast = answer.is_fast();
        for (index, message) in batch.iter().enumerate() {
            match answer.code(index) {
                code if code == ok && is_fast => self.outcome.fast += 1,
                code if code == ok => self.outcome.durable += 1,
                code if code == later => {
                    self.outcome.try_later_reason = answer.reason(index).to_owned();
                }
                code => self.outcome.refuse(Refused {
                    line: message.line,
                    code: code.to_owned(),
                    reason: answer.reason(index).to_owned(),
                }),
            }
        }
        self.outcome.duplicates += answer.duplicates.len() as u64;
        batch.select(|index| answer.code(index) == later)
    }

    fn refuse_all(&mut self, batch: &Messages, code: EntryCode, reason: &str) {
        for message in batch.iter() {
            self.outcome.refuse(Refused {
                line: message.line,
                code: code.as_str().to_owned(),
                reason: reason.to_owned(),
            });
        }
    }

    fn spool(&mut self, batch: &Messages, may_be_stored: bool) -> Result<(), Failure> {
        let mut group = self.group()?;
        for message in batch.iter() {
            match unfit_for_the_spool(message) {
                Some((code, reason)) => self.outcome.refuse(Refused {
                    line: message.line,
                    code: code.as_str().to_owned(),
                    reason,
                }),
                None => {
                    group.push(message.sequence, &[&[Codec::Message.byte()], message.bytes])?;
                }
            }
        }
        if group.is_empty() {
            return Ok(());
        }
        let count = u64::from(group.len());
        match self.spool_of_route()?.append(&group) {
            Ok(()) => {
                self.outcome.spooled += count;
                let is_keyed = self.route.key.is_some();
                self.outcome.maybe_twice += if may_be_stored && !is_keyed { count } else { 0 };
                Ok(())
            }
            Err(error @ SpoolError::Full { .. }) => {
                self.outcome.leave(batch, count);
                self.outcome.try_later_reason = error.to_string();
                Ok(())
            }
            Err(error @ SpoolError::Io { .. }) => {
                Err(error).context("no server answers, and the messages could not be spooled")
            }
        }
    }

    fn group(&self) -> Result<Group, GroupError> {
        let now = self.clock.now().as_i64();
        match &self.route.key {
            Some(key) => Group::with_producer(self.route.category, &key.producer, now),
            None => Group::new(self.route.category, now),
        }
    }

    fn spool_of_route(&self) -> Result<Spool, SpoolsError> {
        let home = &self.route.settings.home;
        match &self.route.server {
            Some(server) => spools::create_remote(home, server),
            None => Ok(spools::local(home)),
        }
    }
}

fn refused_text() -> Sent {
    let reason = "the message is not UTF-8".to_owned();
    Sent::Refused { code: EntryCode::Error, reason }
}

/// What no record holds and no server takes is not worth an acknowledgement now. Servers differ in
/// how large a message may be (`--max-message`), so that only the largest record is a limit here.
fn unfit_for_the_spool(message: Message<'_>) -> Option<(EntryCode, String)> {
    let bytes = message.bytes.len();
    if bytes > LINE_BYTES_MAX {
        let reason = format!("the message has {bytes} bytes; a record holds {LINE_BYTES_MAX}");
        return Some((EntryCode::TooLarge, reason));
    }
    if message.bytes.trim_ascii().is_empty() {
        return Some((EntryCode::Error, "the message is empty".to_owned()));
    }
    match std::str::from_utf8(message.bytes) {
        Ok(_) => None,
        Err(error) => {
            let reason = format!("the message is not UTF-8 at byte {}", error.valid_up_to());
            Some((EntryCode::Error, reason))
        }
    }
}

fn read_sent(
    sent: Result<(StatusCode, Bytes), ClientError>,
    target: &str,
) -> Result<Sent, Failure> {
    match sent {
        Ok((status, body)) => Ok(read_answer(status, &body, target)),
        Err(ClientError::NoServer { .. }) => Ok(Sent::Unknown { may_be_stored: false }),
        Err(ClientError::Lost { .. } | ClientError::Timeout { .. }) => {
            Ok(Sent::Unknown { may_be_stored: true })
        }
        Err(error @ (ClientError::TooLarge { .. } | ClientError::Request { .. })) => {
            Err(error.into())
        }
    }
}

fn read_answer(status: StatusCode, body: &[u8], target: &str) -> Sent {
    if let Ok(answer) = serde_json::from_slice::<Answer>(body) {
        return Sent::Answered(answer);
    }
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Sent::TryLater(last_words(status, body, target))
        }
        // A proxy that finds no server behind it, or a server that is no server of ours.
        status if status.is_server_error() => Sent::Unknown { may_be_stored: true },
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Sent::Refused { code: EntryCode::Denied, reason: last_words(status, body, target) }
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            Sent::Refused { code: EntryCode::TooLarge, reason: last_words(status, body, target) }
        }
        _ => Sent::Refused { code: EntryCode::Error, reason: last_words(status, body, target) },
    }
}

fn last_words(status: StatusCode, body: &[u8], target: &str) -> String {
    refusal(status, body, target).root_cause()
}
