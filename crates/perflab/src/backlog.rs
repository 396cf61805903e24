//! Sending what waits in the spool of a server elsewhere: exactly once, a batch at a time.
//!
//! Records go under the key (spool file, place in it), by which the server recognises what it
//! already has, or under the key that their producer gave them. How far a file has been sent is
//! noted beside it, so that a file larger than one batch is not begun anew by every writer.

use std::fs;
use std::path::PathBuf;

use http::StatusCode;
use perflab_log::{Drain, GroupView, Spool};
use perflab_wire::{Codec, EntryCode};

use crate::client::{Client, TOKEN_HINT, refusal};
use crate::delivery::Answer;
use crate::failure::{Exit, Explain, Failure};
use crate::messages::{BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, Entry, entries_call, join_sequences};

/// Messages without a time of their own take the time at which they were spooled; so far may
/// those of one request lie apart.
const ARRIVAL_SPREAD_NS_MAX: i64 = 1_000_000_000;
const STAYS_HINT: &str = "what waits stays in the spool: run `perflab spool flush` again later";
/// Names the file beside a spool file that says how far it has been sent.
const SENT: &str = "sent";

/// What became of the backlog.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Flushed {
    pub(crate) sent: u64,
    /// Kept by the server in `perflab/rejected`.
    pub(crate) refused: u64,
}

/// How much to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    OneBatch,
    Everything,
}

/// Sends what waits in `spool`, and removes what the server has.
pub(crate) async fn flush(
    client: &mut Client,
    spool: &Spool,
    amount: Amount,
) -> Result<Flushed, Failure> {
    let mut flushed = Flushed::default();
    for mut drain in spool.drain()? {
        let mut position = Position::read(&drain);
        let mut reader = BatchReader { drain: &mut drain, next: None };
        while let Some(batch) = reader.read(position.sent)? {
            batch.send(client, &mut flushed).await?;
            position.advance(batch.end)?;
            if amount == Amount::OneBatch {
                return Ok(flushed);
            }
        }
        drain.finish()?;
        position.remove()?;
    }
    Ok(flushed)
}

/// How far a spool file has been sent.
#[derive(Debug)]
struct Position {
    path: PathBuf,
    sent: u64,
}

impl Position {
    /// No note, or an unreadable one, means from the start: the server has the keys.
    fn read(drain: &Drain) -> Self {
        let path = drain.path().with_extension(SENT);
        let noted = fs::read_to_string(&path).ok();
        let sent = noted.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        Self { path, sent }
    }

    fn advance(&mut self, sent: u64) -> Result<(), Failure> {
        self.sent = sent;
        fs::write(&self.path, sent.to_string())
            .context(format!("failed to note in `{}` what was sent", self.path.display()))
    }

    fn remove(&self) -> Result<(), Failure> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Spooled records that go in one request.
#[derive(Debug, Default)]
struct Batch {
    producer: String,
    arrival_ns: i64,
    records: Vec<Record>,
    bytes: usize,
    /// Everything before this place in the file is in this batch or an earlier one.
    end: u64,
}

#[derive(Debug)]
struct Record {
    category: String,
    message: String,
    sequence: u64,
}

/// Collects the appends of a spool file into batches.
#[derive(Debug)]
struct BatchReader<'a> {
    drain: &'a mut Drain,
    /// Read, but did not fit into the batch before.
    next: Option<Batch>,
}

impl BatchReader<'_> {
    fn read(&mut self, sent: u64) -> Result<Option<Batch>, Failure> {
        let mut batch = self.next.take();
        while let Some(append) = self.read_append(sent)? {
            match &mut batch {
                Some(batch) if batch.takes(&append) => batch.extend(append),
                Some(_) => {
                    self.next = Some(append);
                    return Ok(batch);
                }
                None => batch = Some(append),
            }
        }
        Ok(batch)
    }

    fn read_append(&mut self, sent: u64) -> Result<Option<Batch>, Failure> {
        let file = self.drain.producer();
        loop {
            let mut append = Batch::default();
            let is_there = self.drain.next(|group| append.add(&file, group))?;
            if !is_there {
                return Ok(None);
            }
            if append.end > sent && !append.records.is_empty() {
                return Ok(Some(append));
            }
        }
    }
}

impl Batch {
    fn add(&mut self, file: &str, group: GroupView<'_>) {
        let producer = if group.is_keyed() { group.producer } else { file };
        producer.clone_into(&mut self.producer);
        self.arrival_ns = group.arrival_ns;
        self.end = group.end_seq();
        for record in group.records() {
            // Writers spool nothing else, and every frame has a checksum.
            let Ok((Codec::Message, message)) = Codec::split(record.payload) else { continue };
            let Ok(message) = std::str::from_utf8(message) else { continue };
            self.bytes += message.len();
            self.records.push(Record {
                category: group.category.to_owned(),
                message: message.to_owned(),
                sequence: record.producer_seq.unwrap_or(record.seq),
            });
        }
    }

    fn takes(&self, append: &Self) -> bool {
        self.producer == append.producer
            && self.bytes + append.bytes <= BATCH_BYTES_MAX
            && self.records.len() + append.records.len() <= BATCH_MESSAGES_MAX
            && append.arrival_ns.abs_diff(self.arrival_ns) <= ARRIVAL_SPREAD_NS_MAX.unsigned_abs()
    }

    fn extend(&mut self, append: Self) {
        self.bytes += append.bytes;
        self.records.extend(append.records);
        self.end = append.end;
    }

    async fn send(&self, client: &mut Client, flushed: &mut Flushed) -> Result<(), Failure> {
        let entries: Vec<_> = self
            .records
            .iter()
            .map(|record| Entry {
                category: &record.category,
                message: &record.message,
                line_escape: false,
            })
            .collect();
        let sequences = join_sequences(self.records.iter().map(|record| record.sequence));
        let call = entries_call(&entries)
            .header("x-perflab-producer", self.producer.clone())
            .header("x-perflab-sequences", sequences)
            .header("x-perflab-arrival", self.arrival_ns.to_string());
        let (status, body) = client.send_whole(&call).await?;
        let Ok(answer) = serde_json::from_slice::<Answer>(&body) else {
            return Err(refusal(status, &body, &client.target()));
        };
        let taken = count(self.records.len(), status, &answer)?;
        flushed.sent += taken.sent;
        flushed.refused += taken.refused;
        Ok(())
    }
}

/// What became of the `records` of one request.
///
/// They are acknowledged messages, so they leave the spool only when the answer says of each that
/// the server has it or keeps it in `perflab/rejected`. A token that may not write them is a
/// mistake of whoever flushes, and no reason to give them up.
fn count(records: usize, status: StatusCode, answer: &Answer) -> Result<Flushed, Failure> {
    let codes: Option<Vec<&str>> = (0..records).map(|index| answer.given_code(index)).collect();
    let Some(codes) = codes else {
        let message = format!("the answer lacks codes of messages (HTTP status {status})");
        return Err(Failure::new(Exit::Failed, message).with_hint(STAYS_HINT));
    };
    if codes.contains(&EntryCode::TryLater.as_str()) {
        let message = format!("the server takes no more messages now (HTTP status {status})");
        return Err(Failure::new(Exit::Failed, message).with_hint(STAYS_HINT));
    }
    if codes.contains(&EntryCode::Denied.as_str()) {
        return Err(Failure::new(Exit::No, "the token may not write what waits")
            .with_hint(format!("{STAYS_HINT}; {TOKEN_HINT}")));
    }
    let sent = codes.iter().filter(|code| **code == EntryCode::Ok.as_str()).count();
    Ok(Flushed { sent: sent as u64, refused: (records - sent) as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(records: usize, codes: &str) -> Result<Flushed, Failure> {
        let answer = serde_json::from_str(&format!(r#"{{"response_codes":{{{codes}}}}}"#)).unwrap();
        count(records, StatusCode::OK, &answer)
    }

    #[test]
    fn what_the_server_has_or_keeps_as_rejected_is_done() {
        let taken = counted(3, r#""0":"OK","1":"ERROR","2":"TOO_LARGE""#).unwrap();
        assert_eq!(taken, Flushed { sent: 1, refused: 2 });
    }

    #[test]
    fn anything_less_certain_leaves_all_of_it_in_the_spool() {
        let denied = counted(2, r#""0":"OK","1":"DENIED""#).unwrap_err();
        assert_eq!(denied.exit(), Exit::No);
        assert!(denied.to_string().contains("PERFLAB_TOKEN"), "{denied}");
        for codes in [r#""0":"OK""#, r#""1":"OK""#, "", r#""0":"OK","1":"TRY_LATER""#] {
            assert_eq!(counted(2, codes).unwrap_err().exit(), Exit::Failed, "{codes}");
        }
    }
}
