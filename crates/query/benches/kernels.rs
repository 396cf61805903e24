//! How fast questions are answered from segments in memory: `cargo bench -p perflab-query`.
//!
//! Milliseconds per question over the generated rows with all cores, and nanoseconds of one core
//! per row: the smallest of several rounds in turn, so that other work on the machine matters
//! little. `-- TEXT` takes only the questions with this text in their name.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark fails by panicking, prints, and reads the clock; its numbers are small"
)]

use std::sync::Arc;
use std::time::Instant;

use perflab_model::{Batch, ListKind, Nanos, Schema, SchemaState};
use perflab_query::algebra::{Aggregate, Condition, Dimension, Order, Question, Test, Top};
use perflab_query::views::{Fold, NODES_MAX, TreeQuestion, tree};
use perflab_query::{Limits, Selection, answer};
use perflab_store::segment::{Segment, Snapshot, Source, build};

const SEGMENTS: usize = 16;
const ROWS_PER_SEGMENT: usize = 1 << 20;
const ROUNDS: usize = 7;
const PROFILE_SEGMENTS: usize = 20;
const PROFILE_ROWS_PER_SEGMENT: usize = 1_000_000;
const STACKS: u64 = 100_000;
const FRAMES: u64 = 20_000;
/// Thirty days.
const SPAN_NS: i64 = 30 * 24 * 3600 * 1_000_000_000;

fn main() {
    // Cargo gives a flag of its own.
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let is_wanted = |what: &str| wanted.as_ref().is_none_or(|wanted| what.contains(wanted));
    let mut questions = questions();
    questions.retain(|(what, _)| is_wanted(what));
    if !questions.is_empty() {
        measure(SEGMENTS, generate, &questions, |question, snapshot| {
            answer(question, snapshot, &Limits::default()).unwrap().rows.len()
        });
    }
    let mut trees = trees();
    trees.retain(|(what, _)| is_wanted(what));
    if !trees.is_empty() {
        measure(PROFILE_SEGMENTS, profile, &trees, |(question, selection), snapshot| {
            tree(question, selection, None, snapshot, &Limits::default()).unwrap().nodes.len()
        });
    }
}

/// Prints how long each question takes over generated segments, and how large its answer is.
fn measure<Q>(
    segments: usize,
    generate: fn(usize) -> Segment,
    questions: &[(&'static str, Q)],
    ask: impl Fn(&Q, &Snapshot) -> usize,
) {
    let start = Instant::now();
    let snapshot = Snapshot::of((0..segments).map(generate));
    let rows: usize = snapshot.segments.iter().map(|segment| segment.rows()).sum();
    let bytes: usize = snapshot.segments.iter().map(|segment| segment.bytes()).sum();
    println!(
        "{rows} rows in {segments} segments, {} bytes per row, made in {:.1} s",
        bytes / rows,
        start.elapsed().as_secs_f64()
    );
    let mut times = vec![Vec::new(); questions.len()];
    for _ in 0..=ROUNDS {
        for ((_, question), times) in questions.iter().zip(&mut times) {
            let (start, cpu) = (Instant::now(), cpu_seconds());
            let size = ask(question, &snapshot);
            times.push((start.elapsed().as_secs_f64(), cpu_seconds() - cpu, size));
        }
    }
    for ((what, _), times) in questions.iter().zip(&mut times) {
        // The first round reads everything once, to check it.
        let first = times.remove(0).0;
        let least =
            |of: fn(&(f64, f64, usize)) -> f64| times.iter().map(of).fold(f64::MAX, f64::min);
        println!(
            "{what:32} {:>8.1} ms {:>6.2} ns/row, {} groups or nodes (first: {:.0} ms)",
            least(|time| time.0) * 1e3,
            least(|time| time.1) * 1e9 / rows as f64,
            times[0].2,
            first * 1e3
        );
    }
}

/// What all threads of this process have worked.
fn cpu_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let nanos = tasks.map(|task| {
        let spent = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
        spent.split(' ').next().unwrap().parse::<f64>().unwrap()
    });
    nanos.sum::<f64>() / 1e9
}

fn column(name: &str) -> Dimension {
    Dimension::Column(name.to_owned())
}

fn questions() -> Vec<(&'static str, Question)> {
    let top = Top { count: 100, by: 0, order: Order::Descending };
    let all =
        Question { aggregates: vec![Aggregate::Count], top: Some(top), ..Question::default() };
    let condition = |column: &str, test| vec![vec![Condition { column: column.to_owned(), test }]];
    let latency = || "latency".to_owned();
    let hours = (0..240).map(|bucket| bucket * SPAN_NS / 240).collect();
    vec![
        ("count by status", Question { group_by: vec![column("status")], ..all.clone() }),
        (
            "3 hours x status",
            Question { group_by: vec![Dimension::Time(hours), column("status")], ..all.clone() },
        ),
        (
            "7 days, one job, by test",
            Question {
                range: Some((SPAN_NS / 30 * 23, SPAN_NS)),
                any_of: condition("job", Test::In(vec!["job-17".to_owned()])),
                group_by: vec![column("test")],
                ..all.clone()
            },
        ),
        (
            "weighted avg by job",
            Question {
                group_by: vec![column("job")],
                aggregates: vec![Aggregate::Avg(latency())],
                ..all.clone()
            },
        ),
        (
            "regex on test",
            Question {
                any_of: condition("test", Test::Regex("number_0[12].*7$".to_owned())),
                ..all.clone()
            },
        ),
        (
            "p99 by status",
            Question {
                group_by: vec![column("status")],
                aggregates: vec![Aggregate::Percentile(0.99, latency())],
                ..all.clone()
            },
        ),
        ("count by test", Question { group_by: vec![column("test")], ..all.clone() }),
        (
            "distinct commits",
            Question { aggregates: vec![Aggregate::Distinct("commit".to_owned())], ..all.clone() },
        ),
        ("job x host", Question { group_by: vec![column("job"), column("host")], ..all.clone() }),
        (
            "test x commit",
            Question { group_by: vec![column("test"), column("commit")], ..all.clone() },
        ),
        (
            "one rare commit",
            Question {
                any_of: condition("commit", Test::In(vec!["commit-00007".to_owned()])),
                ..all
            },
        ),
    ]
}

/// Of the stacks that have one of twenty tags.
fn trees() -> Vec<(&'static str, (TreeQuestion, Selection))> {
    let test = Test::Any(vec!["tag-7".to_owned()]);
    let condition = Condition { column: "tags".to_owned(), test };
    let selection = Selection { range: None, any_of: vec![vec![condition]] };
    let folds = [
        ("tree of a tag, from the root", Fold::FromRoot),
        ("tree of a tag, from the leaf", Fold::FromLeaf),
        ("tree of a tag, callees", Fold::Callees(frame(3, 5))),
    ];
    let question = |fold| TreeQuestion { column: "stack".to_owned(), fold, nodes_max: NODES_MAX };
    folds.map(|(what, fold)| (what, (question(fold), selection.clone()))).to_vec()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn float(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Small numbers are more frequent.
    fn skewed(&mut self, below: f64) -> u64 {
        let float = self.float();
        (float * float * below) as u64
    }
}

fn generate(segment: usize) -> Segment {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (segment as u64 + 1));
    let mut batch = Batch::new(Arc::new(SchemaState::new(Schema::default())));
    let rows = (SEGMENTS * ROWS_PER_SEGMENT) as i64;
    for n in 0..ROWS_PER_SEGMENT {
        let at = (segment * ROWS_PER_SEGMENT + n) as i64;
        let mut row = batch.begin_row();
        // One in fifty has none.
        if !random.next().is_multiple_of(50) {
            row.string(
                "status",
                ["ok", "failed", "skipped", "error", "flaky", "slow", "lost", "new"]
                    [random.skewed(8.0) as usize],
            )
            .unwrap();
        }
        row.string("job", &format!("job-{}", random.skewed(200.0))).unwrap();
        row.string("test", &format!("test_case_number_{:05}", random.skewed(20_000.0))).unwrap();
        // Commits come one after the other.
        let commit = at * 20_000 / rows + (random.next() % 40) as i64;
        row.string("commit", &format!("commit-{commit:05}")).unwrap();
        row.string("host", &format!("host-{}", random.next() % 200)).unwrap();
        if !random.next().is_multiple_of(50) {
            row.float("latency", -(1.0 - random.float()).ln() * 300.0).unwrap();
        }
        for name in ["a", "b", "c", "d", "e"] {
            row.float(name, random.float()).unwrap();
        }
        let weight = if random.next().is_multiple_of(10) { 10.0 } else { 1.0 };
        row.commit(Nanos(at * (SPAN_NS / rows)), weight).unwrap();
    }
    let built = build(&[Source::Batch(&batch)]).unwrap();
    Segment::open(&built).unwrap()
}

/// Stacks part at each of their first frames, until each is alone.
fn frame(depth: u32, stack: u64) -> String {
    let alone = STACKS.ilog2() + 1;
    let branch = stack >> (alone - depth.min(alone));
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (u64::from(depth) << 32 | branch));
    random.next();
    format!("library::module::function_{:05}", random.next() % FRAMES)
}

/// A sample of a stack per row, with two tags.
fn profile(segment: usize) -> Segment {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (segment as u64 + 1));
    let mut batch = Batch::new(Arc::new(SchemaState::new(Schema::default())));
    let stacks: Vec<Vec<String>> = (0..STACKS)
        .map(|stack| (0..25 + (stack % 31) as u32).map(|depth| frame(depth, stack)).collect())
        .collect();
    for n in 0..PROFILE_ROWS_PER_SEGMENT {
        let stack = &stacks[random.skewed(STACKS as f64) as usize];
        let tag = format!("tag-{}", random.next() % 20);
        let mut row = batch.begin_row();
        row.strings("stack", ListKind::Vector, stack.iter().map(String::as_str)).unwrap();
        row.strings("tags", ListKind::Set, ["all", tag.as_str()]).unwrap();
        let at = (segment * PROFILE_ROWS_PER_SEGMENT + n) as i64;
        row.commit(Nanos(at), (1 + random.next() % 3) as f64).unwrap();
    }
    let built = build(&[Source::Batch(&batch)]).unwrap();
    Segment::open(&built).unwrap()
}
