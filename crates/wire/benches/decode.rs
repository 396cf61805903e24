//! How fast one thread decodes messages: `cargo bench -p perflab-wire`.
//!
//! Rows and megabytes of message text per second of CPU time, the best of several rounds.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking and prints"
)]

use bytes::Bytes;
use perflab_model::{Batch, CategoryName, Nanos, Schema, SchemaState};
use perflab_wire::{BodyForm, Codec, Limits, MessageForm, Registry, Request, decode};
use std::fmt::Write as _;
use std::sync::Arc;

const MESSAGES: usize = 20_000;
const MESSAGES_PER_BODY: usize = 1_000;
const ROUNDS: usize = 7;
/// The kernel counts a thread's time in ticks of some milliseconds: a round is many of them.
const PASSES: usize = 10;
const ARRIVAL: Nanos = Nanos(1_800_000_000_000_000_000);

fn main() {
    let messages = Generator(0x9e37_79b9_7f4a_7c15).messages(MESSAGES);
    let bytes: usize = messages.iter().map(String::len).sum();
    println!("{MESSAGES} messages, {} bytes each on average", bytes / MESSAGES);

    let forms: Vec<_> = messages.chunks(MESSAGES_PER_BODY).map(form_body).collect();
    let strings: Vec<_> = messages.chunks(MESSAGES_PER_BODY).map(json_body).collect();
    let lines: Vec<_> =
        messages.chunks(MESSAGES_PER_BODY).map(|chunk| Bytes::from(chunk.join("\n"))).collect();
    let ndjson = BodyForm::Ndjson { category: CategoryName::new("perfpipe_bench").unwrap() };

    report("serde_json::Value (yardstick)", bytes, || parse_values(&messages));
    report("message -> batch", bytes, || decode_messages(&messages));
    report("form body -> entries -> batch", bytes, || decode_bodies(&BodyForm::UrlEncoded, &forms));
    report("JSON body -> entries -> batch", bytes, || decode_bodies(&BodyForm::Json, &strings));
    report("NDJSON body -> entries -> batch", bytes, || decode_bodies(&ndjson, &lines));
    report("form body -> entries", bytes, || read_bodies(&BodyForm::UrlEncoded, &forms));
}

fn report(what: &str, bytes: usize, run: impl Fn() -> usize) {
    let best_ns = (0..ROUNDS)
        .map(|_| {
            let start = cpu_ns();
            (0..PASSES).for_each(|_| assert_eq!(run(), MESSAGES));
            cpu_ns() - start
        })
        .min()
        .unwrap();
    let seconds = best_ns as f64 / 1e9 / PASSES as f64;
    let (rows, megabytes) = (MESSAGES as f64 / seconds, bytes as f64 / seconds / 1e6);
    println!("{what:32} {rows:>9.0} rows/s {megabytes:>6.0} MB/s {:>6.0} ns/row", 1e9 / rows);
}

/// What other programs pay for just parsing the messages, on this machine in this run.
fn parse_values(messages: &[String]) -> usize {
    let parse = |message: &String| serde_json::from_str::<serde_json::Value>(message);
    messages.iter().filter(|message| parse(message).is_ok_and(|value| value.is_object())).count()
}

fn decode_messages(messages: &[String]) -> usize {
    let (registry, schema) = (Registry::default(), Arc::new(SchemaState::new(Schema::default())));
    let mut rows = 0;
    for chunk in messages.chunks(MESSAGES_PER_BODY) {
        let mut batch = Batch::new(Arc::clone(&schema));
        for message in chunk {
            decode(Codec::Message, message.as_bytes(), ARRIVAL, &registry, &mut batch).unwrap();
        }
        rows += batch.len();
    }
    rows
}

fn decode_bodies(form: &BodyForm, bodies: &[Bytes]) -> usize {
    let (registry, schema) = (Registry::default(), Arc::new(SchemaState::new(Schema::default())));
    let mut rows = 0;
    for body in bodies {
        let request = read(form, body);
        let mut batch = Batch::new(Arc::clone(&schema));
        for entry in request.entries() {
            let entry = entry.unwrap();
            decode(entry.codec, entry.message, ARRIVAL, &registry, &mut batch).unwrap();
        }
        rows += batch.len();
    }
    rows
}

fn read_bodies(form: &BodyForm, bodies: &[Bytes]) -> usize {
    bodies.iter().map(|body| read(form, body).len()).sum()
}

fn read(form: &BodyForm, body: &Bytes) -> Request {
    Request::decode(form, MessageForm::Plain, body.clone(), &Limits::default()).unwrap()
}

fn array(messages: &[String]) -> String {
    let entries = messages.iter().map(|message| {
        let message = serde_json::Value::from(message.as_str());
        format!(r#"{{"category": "perfpipe_bench", "message": {message}, "line_escape": false}}"#)
    });
    format!("[{}]", entries.collect::<Vec<_>>().join(", "))
}

fn form_body(messages: &[String]) -> Bytes {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("access_token", "0|x").append_pair("logs", &array(messages));
    Bytes::from(form.finish())
}

fn json_body(messages: &[String]) -> Bytes {
    let logs = serde_json::Value::from(array(messages));
    Bytes::from(format!(r#"{{"access_token": "0|x", "logs": {logs}}}"#))
}

/// Nanoseconds that this thread has run: unlike the wall clock, this leaves out what else runs
/// on the machine.
fn cpu_ns() -> u64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    schedstat.split_ascii_whitespace().next().unwrap().parse().unwrap()
}

/// Messages like those of a benchmark suite in CI: 25 fields, about 900 bytes, the same in
/// every run (xorshift).
struct Generator(u64);

impl Generator {
    fn next(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn fraction(&mut self) -> f64 {
        self.next(1 << 53) as f64 / (1_u64 << 53) as f64
    }

    fn messages(&mut self, count: usize) -> Vec<String> {
        let commits: Vec<String> = (0..500)
            .map(|_| format!("{:020x}{:020x}", self.next(u64::MAX), self.next(u64::MAX)))
            .collect();
        (0..count).map(|index| self.message(index, &commits)).collect()
    }

    fn message(&mut self, index: usize, commits: &[String]) -> String {
        let test = self.next(2000);
        let commit = &commits[usize::try_from(self.next(500)).unwrap()];
        let mut message = format!(
            r#"{{"int": {{"time": {}, "rounds": {}, "iterations": {}, "outliers": {}, "weight": 1, "pid": {}, "cpu_count": 16}}"#,
            1_700_000_000 + index / 10,
            self.next(100_000),
            self.next(1000),
            self.next(100),
            self.next(65_536),
        );
        let branch = match self.next(10) {
            0..7 => "main".to_owned(),
            _ => format!("feature/branch-{}", self.next(20)),
        };
        write!(
            message,
            r#", "normal": {{"benchmark_group": "group_{:02}_serialize", "benchmark_name": "tests/bench/test_module_{}.py::test_{test:04}[large-py311]", "commit_id": "{commit}", "branch": "{branch}", "hostname": "ci-runner-{:03}.dc1.example.com", "python_version": "3.11.{}", "machine": "x86_64-linux-gnu-epyc-{}", "os": "Debian GNU/Linux 12 (bookworm)", "suite_path": "/builds/project/component-{}/tests/benchmarks"}}"#,
            test / 40,
            test / 40,
            self.next(200),
            self.next(10),
            self.next(4),
            self.next(30),
        )
        .unwrap();
        let mean = self.fraction() * 0.01;
        message.push_str(r#", "float": {"#);
        for (index, name) in
            ["min", "max", "mean", "median", "stddev", "iqr", "q1", "q3", "ops"].iter().enumerate()
        {
            let separator = if index == 0 { "" } else { ", " };
            let value = mean * (0.5 + self.fraction());
            write!(message, r#"{separator}"{name}": {value}"#).unwrap();
        }
        message.push_str("}}");
        message
    }
}
