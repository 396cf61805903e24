//! Sends requests over several connections at once and counts what is acknowledged.
//!
//! 1. Each connection sends its next request as soon as the answer to the last one is there.
//! 2. What is answered between the end of the warm-up and the end of the run counts for the
//!    rate; everything that is answered counts for what the server must hold at the end.
//! 3. An answer that isn't `OK` for every row ends the run with an error: a refused row must
//!    not make the rate look better.

use crate::clock::{self, Stopwatch};
use crate::http1::{Message, Reader};
use crate::process;
use crate::requests::Requests;
use anyhow::{Context, Result, anyhow, bail};
use memchr::memmem;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// An answer that takes longer than this is a failure.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// How often the server's memory is looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// How much of a wrong answer is shown, in bytes.
const SHOWN_BYTES_MAX: usize = 300;

/// What to load, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    /// The server's process, whose memory and CPU time are watched.
    pub(crate) pid: u32,
    pub(crate) connections: usize,
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
    /// As many as possible where nothing is said.
    pub(crate) rows_per_s: Option<f64>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Rows acknowledged in the whole run, warm-up included.
    pub(crate) acknowledged: u64,
    /// Rows acknowledged in the measured part.
    pub(crate) rows: u64,
    pub(crate) rows_per_s: f64,
    /// Times of the requests of the measured part, sorted.
    pub(crate) times: Vec<Duration>,
    pub(crate) usage: Usage,
}

/// What the measured part used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) server_cpu: Duration,
    pub(crate) generator_cpu: Duration,
    pub(crate) anonymous_bytes_max: u64,
}

impl Load {
    pub(crate) fn run(&self, requests: &Requests<'_>) -> Result<Outcome> {
        let stop = AtomicBool::new(false);
        let stopwatch = Stopwatch::start();
        let (counts, usage) = thread::scope(|scope| {
            let connections: Vec<_> = (0..self.connections)
                .map(|index| {
                    let stop = &stop;
                    scope.spawn(move || {
                        let counts = self.send(index, requests, stopwatch, stop);
                        // The others need not go on when the run has failed.
                        stop.fetch_or(counts.is_err(), Ordering::Relaxed);
                        counts
                    })
                })
                .collect();
            let usage = self.watch(stopwatch, &stop);
            let counts: Result<Vec<Counts>> = connections
                .into_iter()
                .map(|thread| thread.join().map_err(|_panic| anyhow!("a connection panicked"))?)
                .collect();
            (counts, usage)
        });
        Ok(self.outcome(counts?, usage?))
    }

    fn outcome(&self, counts: Vec<Counts>, usage: Usage) -> Outcome {
        let rows = counts.iter().map(|counts| counts.rows).sum();
        let acknowledged = counts.iter().map(|counts| counts.acknowledged).sum();
        let mut times: Vec<_> = counts.into_iter().flat_map(|counts| counts.times).collect();
        times.sort_unstable();
        Outcome {
            acknowledged,
            rows,
            rows_per_s: rows as f64 / self.measured.as_secs_f64(),
            times,
            usage,
        }
    }

    fn end(&self) -> Duration {
        self.warm_up + self.measured
    }

    /// One connection: every `connections`-th request, from the `index`-th on.
    fn send(
        &self,
        index: usize,
        requests: &Requests<'_>,
        stopwatch: Stopwatch,
        stop: &AtomicBool,
    ) -> Result<Counts> {
        let stream = TcpStream::connect(self.address)
            .with_context(|| format!("failed to connect to {}", self.address))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        let mut answers = Reader::new(&stream);
        let mut request = Vec::new();
        let mut counts = Counts::default();
        for turn in (index..).step_by(self.connections) {
            requests.write(turn, &mut request);
            if let Some(rows_per_s) = self.rows_per_s {
                let due = Duration::from_secs_f64((turn * requests.rows()) as f64 / rows_per_s);
                thread::sleep(due.saturating_sub(stopwatch.elapsed()));
            }
            let sent = stopwatch.elapsed();
            if sent >= self.end() || stop.load(Ordering::Relaxed) {
                break;
            }
            (&stream).write_all(&request)?;
            let answer = answers.next()?.context("the server closed a connection")?;
            check_answer(&answer, requests.rows())?;
            self.count(requests.rows() as u64, sent, stopwatch.elapsed(), &mut counts);
        }
        Ok(counts)
    }

    fn count(&self, rows: u64, sent: Duration, answered: Duration, counts: &mut Counts) {
        counts.acknowledged += rows;
        if self.warm_up <= answered && answered < self.end() {
            counts.rows += rows;
            counts.times.push(answered - sent);
        }
    }

    /// Looks at the server and at this process until the end: at the memory all the time, at the
    /// CPU time from the end of the warm-up.
    fn watch(&self, stopwatch: Stopwatch, stop: &AtomicBool) -> Result<Usage> {
        let warm_up_bytes = self.watch_memory(self.warm_up, stopwatch, stop)?;
        let server_start = process::cpu(self.pid)?;
        let generator_start = clock::process_cpu();
        let measured_bytes = self.watch_memory(self.end(), stopwatch, stop)?;
        Ok(Usage {
            server_cpu: process::cpu(self.pid)?.saturating_sub(server_start),
            generator_cpu: clock::process_cpu().saturating_sub(generator_start),
            anonymous_bytes_max: warm_up_bytes.max(measured_bytes),
        })
    }

    /// The most anonymous memory that the server has until `end`.
    fn watch_memory(&self, end: Duration, stopwatch: Stopwatch, stop: &AtomicBool) -> Result<u64> {
        let mut bytes_max = 0;
        while stopwatch.elapsed() < end && !stop.load(Ordering::Relaxed) {
            bytes_max = bytes_max.max(process::anonymous_bytes(self.pid)?);
            thread::sleep(SAMPLE_EVERY.min(end.saturating_sub(stopwatch.elapsed())));
        }
        Ok(bytes_max)
    }
}

#[derive(Debug, Default)]
struct Counts {
    acknowledged: u64,
    rows: u64,
    times: Vec<Duration>,
}

/// Whether the answer says `OK` for each of `rows` entries.
fn check_answer(answer: &Message<'_>, rows: usize) -> Result<()> {
    let is_ok = answer.head.starts_with("HTTP/1.1 200 ");
    if is_ok && memmem::find_iter(answer.body, b":\"OK\"").count() == rows {
        return Ok(());
    }
    let status = answer.head.lines().next().unwrap_or_default();
    let shown = &answer.body[..answer.body.len().min(SHOWN_BYTES_MAX)];
    let shown = String::from_utf8_lossy(shown);
    bail!("the server did not take {rows} rows: {status}: {shown}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;
    use crate::naive;
    use crate::requests::{Door, form_entries};
    use std::net::TcpListener;

    fn short_load(address: SocketAddr) -> Load {
        Load {
            address,
            pid: std::process::id(),
            connections: 3,
            warm_up: Duration::from_millis(50),
            measured: Duration::from_millis(200),
            rows_per_s: None,
        }
    }

    #[test]
    fn what_is_acknowledged_is_what_the_server_took() {
        let messages = messages::generate(50);
        let form = form_entries(&messages);
        for (door, entries) in [(Door::Ndjson, &messages), (Door::Form, &form)] {
            let folder = tempfile::tempdir().unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = naive::Server::create(folder.path()).unwrap();
            let rows = server.rows();
            thread::spawn(move || server.serve(&listener));
            let requests = Requests::new(door, entries, 5);
            let outcome = short_load(address).run(&requests).unwrap();
            assert!(outcome.rows > 0 && outcome.rows <= outcome.acknowledged, "{door}");
            assert_eq!(outcome.times.len() as u64 * 5, outcome.rows);
            assert_eq!(outcome.acknowledged, rows.load(Ordering::SeqCst), "{door}");
            assert!(outcome.usage.anonymous_bytes_max > 0);
        }
    }

    #[test]
    fn an_answer_that_refuses_a_row_is_an_error() {
        let answer = |status: &str, body: &str| {
            let head = format!("HTTP/1.1 {status}\r\n\r\n");
            let body = body.as_bytes();
            check_answer(&Message { head: &head, body }, 2).is_ok()
        };
        let all = r#"{"count":2,"response_codes":{"0":"OK","1":"OK"}}"#;
        assert!(answer("200 OK", all));
        assert!(!answer("500 Internal Server Error", all));
        assert!(!answer("200 OK", r#"{"count":2,"response_codes":{"0":"OK","1":"ERROR"}}"#));
        assert!(!answer("200 OK", r#"{"count":1,"response_codes":{"0":"OK"}}"#));
    }

    #[test]
    fn a_server_that_is_not_there_ends_the_run() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let messages = messages::generate(1);
        let error = short_load(free).run(&Requests::new(Door::Ndjson, &messages, 1)).unwrap_err();
        assert!(error.to_string().starts_with("failed to connect"), "{error}");
    }
}
