//! `GET /api/tail`: records of the log as lines of JSON, from any place, now or as they come.
//!
//! Reading blocks, so it is done in steps on the blocking threads, each ending after
//! [`CHUNK_BYTES`] of output or [`STEP_FRAMES_MAX`] commits; between two steps the reader goes
//! back to its task, which costs no thread while it waits for a slow client or the next commit.

mod from;
mod line;

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::body::Frame;
use perflab_log::{ReadFrom, ReadItem, Reader};
use perflab_model::CategoryName;
use perflab_store::{Access, Home, RecordDecoder, chain};
use serde_json::json;
use tokio::sync::mpsc;

use crate::access::Known;
use crate::endpoint::{Endpoint, Operation};
use crate::error::ApiError;
use crate::state::{Server, blocking};
use from::parse_from;
use line::{Line, Lines};

/// The media type of lines of JSON.
pub(crate) const NDJSON: &str = "application/x-ndjson";
/// A chunk of the answer is sent when it has this many bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// The most commits that are read in one step.
const STEP_FRAMES_MAX: usize = 64;
/// Chunks that wait for a slow client.
const CHUNKS_MAX: usize = 2;
/// The most categories that can be asked for at once.
const CATEGORIES_MAX: usize = 100;
/// The most records that `latest` gives.
const LATEST_MAX: usize = 1000;
/// The most bytes that `latest` gives: what is older is left out, and the end says so.
const LATEST_BYTES_MAX: usize = 4 << 20;
/// How far before the end of the log the latest records are looked for first, in records of any
/// category; each further attempt goes back eight times as far.
const LATEST_REACH: u64 = 4096;

/// What is asked for.
#[derive(Debug, Default)]
struct Wanted {
    categories: Vec<String>,
    from: Option<ReadFrom>,
    limit: Option<u64>,
    latest: Option<usize>,
    follow: bool,
}

pub(crate) fn endpoints() -> [Endpoint; 1] {
    let tail = "Reads records of the log, from any place, now or as they come.";
    [Endpoint::get("/api/tail", get_tail, tail, described)]
}

/// What [`Wanted::parse`] reads, and what [`Lines`] writes.
fn described(operation: Operation<'_>) -> Operation<'_> {
    let names = json!({
        "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": CATEGORIES_MAX,
    });
    let latest = format!("The last ones, at most {LATEST_MAX}; goes with nothing else.");
    let number = || json!({"type": "integer", "minimum": 0});
    operation
        .parameter("query", "category", "One or several.", names)
        .required()
        .parameter(
            "query",
            "from",
            "Where to begin: an offset, a time, or so long ago as `-1h`.",
            json!({"type": "string"}),
        )
        .parameter("query", "limit", "The most records.", number())
        .parameter("query", "latest", &latest, number())
        .parameter(
            "query",
            "follow",
            "Whether to go on as records come.",
            json!({"type": "boolean"}),
        )
        .answer_as::<Line<'_>>(StatusCode::OK, "Each line is one of these.", NDJSON)
}

async fn get_tail(
    State(server): State<Arc<Server>>,
    Known(access): Known,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let wanted = Wanted::parse(query.as_deref().unwrap_or_default(), &server.home)?;
    let categories = readable(&wanted.categories, &access)?;
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    let tail = Tail::new(&server.home, categories, &wanted);
    tokio::spawn(async move {
        match wanted.latest {
            Some(latest) => tail.send_latest(&server, latest, &sender).await,
            None => tail.send(&server, wanted.follow, &sender).await,
        }
    });
    let mut response = Response::new(Body::new(Chunks(receiver)));
    let ndjson = HeaderValue::from_static(NDJSON);
    response.headers_mut().insert(header::CONTENT_TYPE, ndjson);
    Ok(response)
}

impl Wanted {
    fn parse(query: &str, home: &Home) -> Result<Self, ApiError> {
        let mut wanted = Self::default();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "category" => wanted.categories.push(value.into_owned()),
                "from" => wanted.from = Some(parse_from(&value, home.now())?),
                "limit" => wanted.limit = Some(parsed(&key, &value, "a number")?),
                "latest" => wanted.latest = Some(parsed(&key, &value, "a number")?),
                "follow" => wanted.follow = parsed(&key, &value, "true or false")?,
                _ => {}
            }
        }
        if !(1..=CATEGORIES_MAX).contains(&wanted.categories.len()) {
            let message = format!("give 1 to {CATEGORIES_MAX} categories as `category`");
            return Err(ApiError::bad_request(message));
        }
        let is_latest_alone = wanted.from.is_none() && wanted.limit.is_none() && !wanted.follow;
        if wanted.latest.is_some() && !is_latest_alone {
            let message = "`latest` goes with neither `from`, `limit` nor `follow`";
            let hint = "follow from the `next_offset` at the end of what `latest` gives";
            return Err(ApiError::bad_request(message).with_hint(hint));
        }
        Ok(wanted)
    }
}

fn parsed<T: FromStr>(key: &str, value: &str, expected: &str) -> Result<T, ApiError> {
    value.parse().map_err(|_unparsable| {
        let value = value.escape_debug();
        ApiError::bad_request(format!("`{key}` is `{value}`, not {expected}"))
    })
}

/// The categories in the log that are meant, under both of their names, as far as they may be
/// read.
fn readable(names: &[String], access: &Access) -> Result<HashSet<String>, ApiError> {
    let mut categories = HashSet::new();
    for name in names {
        let name = CategoryName::new(name)
            .map_err(|error| ApiError::caused_by(StatusCode::BAD_REQUEST, &error))?;
        let dataset = name.dataset();
        let both = [dataset.to_owned(), format!("perfpipe_{dataset}")];
        let allowed: Vec<_> = both.into_iter().filter(|name| access.may_read(name)).collect();
        if allowed.is_empty() {
            let message = format!("the token may not read category `{name}`");
            return Err(ApiError::forbidden(message));
        }
        categories.extend(allowed);
    }
    Ok(categories)
}

/// Goes through the log for one client.
struct Tail {
    home: Arc<Home>,
    categories: HashSet<String>,
    reader: Reader,
    decoder: RecordDecoder,
    /// Records from here on are not sent: they came after the request, which doesn't follow.
    until: u64,
    left: u64,
    next_offset: u64,
    is_complete: bool,
}

/// What a step came to.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    More,
    /// All that is there was read.
    AtEnd,
    /// As many records as were asked for were read, or none can be any more.
    Done,
}

type Sender = mpsc::Sender<Bytes>;

impl Tail {
    fn new(home: &Arc<Home>, categories: HashSet<String>, wanted: &Wanted) -> Self {
        let from = wanted.from.unwrap_or(ReadFrom::Oldest);
        let end = home.log().end();
        Self {
            reader: home.log().read(Some(categories.clone()), from),
            home: Arc::clone(home),
            categories,
            decoder: RecordDecoder::new(home),
            until: if wanted.follow { u64::MAX } else { end },
            left: wanted.limit.unwrap_or(u64::MAX),
            next_offset: end,
            is_complete: true,
        }
    }

    /// Sends records until they end, the client goes or the server ends.
    async fn send(mut self, server: &Server, follow: bool, sender: &Sender) {
        let mut commits = server.commits.clone();
        loop {
            // Before reading: a commit during the step is then seen as a change.
            commits.mark_unchanged();
            let Ok((tail, step, chunk)) = blocking(move || self.step()).await else { return };
            self = tail;
            // Asked even when there is nothing to send: a rare category is a long way through.
            let is_gone = sender.is_closed();
            if is_gone || !chunk.is_empty() && sender.send(chunk).await.is_err() {
                return;
            }
            match step {
                Step::More => {}
                Step::AtEnd if follow => tokio::select! {
                    changed = commits.changed() => if changed.is_err() { return },
                    () = server.ending.cancelled() => return,
                    () = sender.closed() => return,
                },
                Step::AtEnd | Step::Done => {
                    let mut lines = Lines::default();
                    lines.end(self.next_offset, self.is_complete, false);
                    // Whether the client is still there makes no difference any more.
                    return drop(sender.send(lines.take()).await);
                }
            }
        }
    }

    /// Reads on for a while.
    fn step(mut self) -> (Self, Step, Bytes) {
        let mut lines = Lines::default();
        let mut step = Step::More;
        for _ in 0..STEP_FRAMES_MAX {
            step = self.read_commit(&mut lines);
            if step != Step::More || lines.len() >= CHUNK_BYTES {
                break;
            }
        }
        (self, step, lines.take())
    }

    fn read_commit(&mut self, lines: &mut Lines) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        match self.reader.next_item() {
            Ok(None) => return Step::AtEnd,
            Ok(Some(ReadItem::Damage(damage))) => {
                self.is_complete = false;
                lines.damage(&damage);
            }
            Ok(Some(ReadItem::Frame(records))) => {
                for (group, record) in records.iter() {
                    if record.seq >= self.until {
                        return Step::Done;
                    }
                    lines.record(&self.home, &mut self.decoder, &group, &record);
                    self.left -= 1;
                    if self.left == 0 {
                        self.next_offset = record.seq + 1;
                        return Step::Done;
                    }
                }
            }
            Err(error) => {
                self.is_complete = false;
                lines.error(&chain(&error));
                return Step::Done;
            }
        }
        if self.reader.position() >= self.until { Step::Done } else { Step::More }
    }

    /// Sends the last few records.
    async fn send_latest(mut self, server: &Server, latest: usize, sender: &Sender) {
        let wanted = latest.min(LATEST_MAX);
        let (client, ending) = (sender.clone(), server.ending.clone());
        let read = blocking(move || {
            let is_over = || client.is_closed() || ending.is_cancelled();
            let found = self.latest(wanted, is_over);
            (self.next_offset, self.is_complete, found)
        });
        let Ok((next_offset, is_complete, Some(found))) = read.await else { return };
        let mut lines = Lines::default();
        found.lines.iter().for_each(|line| lines.line(line));
        lines.end(next_offset, is_complete, found.is_full && found.lines.len() < wanted);
        drop(sender.send(lines.take()).await);
    }

    /// Looks ever further back until there are enough, so that what is asked for most often, the
    /// end of a busy category, is found at once. `None` when `is_over` says that nobody wants
    /// them any more.
    fn latest(&mut self, latest: usize, is_over: impl Fn() -> bool) -> Option<Latest> {
        let end = self.until;
        let mut reach = LATEST_REACH;
        loop {
            let from = end.saturating_sub(reach);
            let found = self.last_from(from, latest, &is_over)?;
            if found.lines.len() >= latest || found.is_full || from == 0 {
                return Some(found);
            }
            reach = reach.saturating_mul(8);
        }
    }

    fn last_from(
        &mut self,
        from: u64,
        latest: usize,
        is_over: &impl Fn() -> bool,
    ) -> Option<Latest> {
        self.reader = self.home.log().read(Some(self.categories.clone()), ReadFrom::Seq(from));
        self.is_complete = true;
        let mut found = Latest::default();
        while !is_over() {
            let mut lines = Lines::default();
            let step = self.read_commit(&mut lines);
            lines.split().iter().for_each(|line| found.push(line, latest));
            if step != Step::More {
                return Some(found);
            }
        }
        None
    }
}

/// The last few lines.
#[derive(Debug, Default)]
struct Latest {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Whether some were left out for their bytes.
    is_full: bool,
}

impl Latest {
    fn push(&mut self, line: &[u8], lines_max: usize) {
        // A copy: a part of the chunk would keep all of it.
        self.lines.push_back(line.into());
        self.bytes += line.len();
        if self.lines.len() > lines_max {
            self.pop();
        }
        while self.bytes > LATEST_BYTES_MAX && self.lines.len() > 1 {
            self.pop();
            self.is_full = true;
        }
    }

    fn pop(&mut self) {
        if let Some(line) = self.lines.pop_front() {
            self.bytes -= line.len();
        }
    }
}

/// The answer's body: chunks as they come.
struct Chunks(mpsc::Receiver<Bytes>);

impl HttpBody for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perflab_model::{ManualClock, Nanos};
    use perflab_store::{Door, HomeSettings, Origin};
    use perflab_wire::{BodyForm, Limits, MessageForm, Request};

    #[test]
    fn looking_for_the_latest_ends_when_nobody_waits_for_them() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(Nanos(0)));
        let home = Home::open(dir.path(), HomeSettings::default(), clock).unwrap();
        let form = BodyForm::Ndjson { category: CategoryName::new("c").unwrap() };
        let body = "a\nb\nc".into();
        let request = Request::decode(&form, MessageForm::Plain, body, &Limits::default()).unwrap();
        let access = &Access::Everything;
        let origin = Origin { access, door: Door::Ndjson, arrival: Nanos(0), keys: None };
        drop(home.ingest(&request, &origin).wait());
        let mut tail = Tail::new(&home, HashSet::from(["c".to_owned()]), &Wanted::default());
        assert!(tail.latest(2, || true).is_none());
        assert_eq!(tail.latest(2, || false).unwrap().lines.len(), 2);
    }

    #[test]
    fn the_latest_lines_have_a_limit_in_bytes() {
        let mut latest = Latest::default();
        let large = vec![b'x'; LATEST_BYTES_MAX / 2];
        for _ in 0..3 {
            latest.push(&large, 100);
        }
        assert_eq!((latest.lines.len(), latest.is_full), (2, true));
        latest.push(b"small", 100);
        assert_eq!((latest.lines.len(), latest.bytes), (2, large.len() + 5));
        latest.push(&vec![b'x'; LATEST_BYTES_MAX + 1], 100);
        assert_eq!(latest.lines.len(), 1, "one line is given whatever its length");
    }
}
