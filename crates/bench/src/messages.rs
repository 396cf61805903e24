//! The messages of the benchmark: 25 fields (7 int, 9 normal, 9 float), about 900 bytes, written
//! as Python's `json.dumps` writes them. The same count gives the same messages on every machine,
//! but for their times, which are those of the last day: older rows would become cold at once.

use crate::joined::Joined;
use crate::random::Random;
use std::io::Write;
use std::time::SystemTime;

/// How many different messages are sent in turn. Enough that the 20,000 commits and 2,000 names
/// all appear, so that no dictionary is cheaper than it would be in life.
pub(crate) const DISTINCT: usize = 200_000;

pub(crate) const FIELDS: usize = 25;

const COMMITS: u64 = 20_000;
const NAMES: u64 = 2_000;
const DAY_S: u64 = 24 * 60 * 60;

/// `count` messages, one per line.
pub(crate) fn generate(count: usize) -> Joined {
    let now_s = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    generate_from(now_s.saturating_sub(DAY_S), count)
}

fn generate_from(mut time_s: u64, count: usize) -> Joined {
    let mut random = Random::new(0x5eed);
    let commits: Vec<String> = (0..COMMITS).map(|_| random.commit()).collect();
    let mut messages = Joined::new("\n");
    for index in 0..count {
        time_s += u64::from(index % 10 == 9);
        messages.push_with(|out| write_message(out, time_s, &mut random, &commits));
    }
    messages
}

fn write_message(out: &mut Vec<u8>, time_s: u64, random: &mut Random, commits: &[String]) {
    write_ints(out, time_s, random);
    write_normals(out, random, commits);
    write_floats(out, random);
}

fn write_ints(out: &mut Vec<u8>, time_s: u64, random: &mut Random) {
    put(
        out,
        format_args!(
            r#"{{"int": {{"time": {time_s}, "rounds": {}, "iterations": {}, "outliers": {}, "weight": 1, "pid": {}, "cpu_count": 16}}, "#,
            random.below(100_000),
            random.below(1_000),
            random.below(100),
            random.below(65_536),
        ),
    );
}

fn write_normals(out: &mut Vec<u8>, random: &mut Random, commits: &[String]) {
    let name = random.below(NAMES);
    let module = name / 40;
    let commit = random.pick(commits);
    put(
        out,
        format_args!(
            r#""normal": {{"benchmark_group": "group_{module:02}_serialize", "benchmark_name": "tests/bench/serialize/test_module_{module}.py::TestRoundTrip::test_{name:04}[large-py311-release]", "commit_id": "{commit}", "#,
        ),
    );
    match random.below(10) {
        0..7 => put(out, format_args!(r#""branch": "main", "#)),
        _ => put(out, format_args!(r#""branch": "feature/branch-{}", "#, random.below(19))),
    }
    put(
        out,
        format_args!(
            r#""hostname": "ci-runner-{:03}.build.dc1.example.com", "python_version": "3.11.{}", "machine": "x86_64-linux-gnu-epyc-{}-16core", "os": "Debian GNU/Linux 12 (bookworm)", "suite_path": "/builds/project/component-{}/tests/benchmarks/nightly/serialize"}}, "#,
            random.below(200),
            random.below(10),
            random.below(4),
            random.below(30),
        ),
    );
}

fn write_floats(out: &mut Vec<u8>, random: &mut Random) {
    let mean = 1e-6 + random.unit() * 0.01;
    put(
        out,
        format_args!(
            r#""float": {{"min": {}, "max": {}, "mean": {mean}, "median": {}, "stddev": {}, "iqr": {}, "q1": {}, "q3": {}, "ops": {}}}}}"#,
            mean * 0.9,
            mean * (1.5 + random.unit()),
            mean * 0.99,
            mean * random.unit() * 0.1,
            mean * random.unit() * 0.05,
            mean * random.unit() * 0.97,
            mean * (1.0 + random.unit()) * 1.03,
            1.0 / mean,
        ),
    );
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    drop(out.write_fmt(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn messages_have_the_fields_and_the_size_that_the_benchmark_says() {
        let messages = generate(1_000);
        for message in messages.iter() {
            let message: serde_json::Value = serde_json::from_slice(message).unwrap();
            let fields = |section: &str| message[section].as_object().unwrap().len();
            assert_eq!([fields("int"), fields("normal"), fields("float")], [7, 9, 9]);
            assert!(message["int"]["pid"].is_i64() && message["float"]["q3"].is_f64());
        }
        let average = messages.all().len() / messages.len();
        assert!((850..=950).contains(&average), "{average} bytes");
    }

    #[test]
    fn messages_differ_from_one_another_and_not_between_runs() {
        let messages = generate_from(1_700_000_000, 5_000);
        let different: HashSet<&[u8]> = messages.iter().collect();
        assert_eq!(different.len(), 5_000);
        assert_eq!(generate_from(1_700_000_000, 5_000).all(), messages.all());
    }
}
