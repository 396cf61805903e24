//! The questions, as the algebra and as the peers' SQL.
//!
//! A peer may be asked in several ways; the fastest whose answer is as good as ours counts.

use perflab_query::algebra::{Aggregate, Condition, Dimension, Order, Question, Test, Top};

use super::rows::{DAY_NS, DAYS, RARE_COMMIT, START_NS};
use super::stacks::TAG;

const HOUR_NS: i64 = DAY_NS / 24;

/// A question and what it is called.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) what: &'static str,
    pub(crate) ours: Ours,
    pub(crate) duckdb: Vec<&'static str>,
    pub(crate) clickhouse: Vec<&'static str>,
    pub(crate) agreement: Agreement,
}

#[derive(Debug)]
pub(crate) enum Ours {
    Question(Question),
    /// The merged tree of the stacks with a tag.
    Tree(Vec<Vec<Condition>>),
}

/// How far answers may differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Agreement {
    /// But for the rounding of floats.
    Exact,
    /// Percentiles. A peer's last way is exact, and its others count when they are as close to
    /// that as our sketch promises to be. Ours are weighted and the peers' are not; weights don't
    /// depend on the numbers here, so that both are about the same.
    Percentile,
    /// A tree, which the peers can't fold: the total weight is compared.
    Total,
}

fn column(name: &str) -> Dimension {
    Dimension::Column(name.to_owned())
}

fn having(column: &str, test: Test) -> Vec<Vec<Condition>> {
    vec![vec![Condition { column: column.to_owned(), test }]]
}

fn by(group_by: Vec<Dimension>, aggregate: Aggregate, top: usize) -> Question {
    Question {
        group_by,
        aggregates: vec![aggregate],
        top: Some(Top { count: top, by: 0, order: Order::Descending }),
        ..Question::default()
    }
}

/// The twelve questions of the benchmark.
pub(crate) fn questions() -> Vec<Asked> {
    let mut asked = grouped();
    asked.extend(selected());
    asked.extend(many_groups());
    asked
}

fn grouped() -> Vec<Asked> {
    let buckets = (0..DAYS * 8).map(|bucket| START_NS + bucket * 3 * HOUR_NS).collect();
    let series = vec![Dimension::Time(buckets), column("status")];
    let average = Aggregate::Avg("latency".to_owned());
    let p99 = Aggregate::Percentile(0.99, "latency".to_owned());
    vec![
        Asked {
            what: "count by status",
            ours: Ours::Question(by(vec![column("status")], Aggregate::Count, 100)),
            duckdb: vec![
                "SELECT status, sum(weight) AS n FROM rows GROUP BY 1 ORDER BY n DESC LIMIT 100",
            ],
            clickhouse: vec![
                "SELECT status, sum(weight) AS n FROM rows GROUP BY status ORDER BY n DESC LIMIT 100",
            ],
            agreement: Agreement::Exact,
        },
        Asked {
            what: "3 hours × status",
            ours: Ours::Question(by(series, Aggregate::Count, 10_000)),
            duckdb: vec![
                "SELECT time_bucket(INTERVAL 3 HOURS, time) AS t, status, sum(weight) AS n FROM rows GROUP BY 1, 2 ORDER BY n DESC",
                "SELECT epoch_us(time) // 10800000000 AS t, status, sum(weight) AS n FROM rows GROUP BY 1, 2 ORDER BY n DESC",
            ],
            clickhouse: vec![
                "SELECT toStartOfInterval(time, INTERVAL 3 HOUR) AS t, status, sum(weight) AS n FROM rows GROUP BY t, status ORDER BY n DESC",
                "SELECT intDiv(toUnixTimestamp(time), 10800) AS t, status, sum(weight) AS n FROM rows GROUP BY t, status ORDER BY n DESC",
            ],
            agreement: Agreement::Exact,
        },
        Asked {
            what: "weighted average by job",
            ours: Ours::Question(by(vec![column("job")], average, 1000)),
            duckdb: vec![
                "SELECT job, sum(latency * weight) / sum(weight) FILTER (latency IS NOT NULL) AS a FROM rows GROUP BY 1 ORDER BY a DESC",
                "SELECT job, sum(latency * weight) / sum(CASE WHEN latency IS NULL THEN 0 ELSE weight END) AS a FROM rows GROUP BY 1 ORDER BY a DESC",
            ],
            clickhouse: vec![
                "SELECT job, avgWeighted(latency, weight) AS a FROM rows GROUP BY job ORDER BY a DESC",
                "SELECT job, sum(latency * weight) / sumIf(weight, latency IS NOT NULL) AS a FROM rows GROUP BY job ORDER BY a DESC",
            ],
            agreement: Agreement::Exact,
        },
        Asked {
            what: "p99 by status",
            ours: Ours::Question(by(vec![column("status")], p99, 100)),
            duckdb: vec![
                "SELECT status, approx_quantile(latency, 0.99) AS p FROM rows GROUP BY 1 ORDER BY p DESC",
                "SELECT status, quantile_cont(latency, 0.99) AS p FROM rows GROUP BY 1 ORDER BY p DESC",
            ],
            clickhouse: vec![
                "SELECT status, quantileDD(0.0078, 0.99)(latency) AS p FROM rows GROUP BY status ORDER BY p DESC",
                "SELECT status, quantileBFloat16(0.99)(latency) AS p FROM rows GROUP BY status ORDER BY p DESC",
                "SELECT status, quantileTDigest(0.99)(latency) AS p FROM rows GROUP BY status ORDER BY p DESC",
                "SELECT status, quantile(0.99)(latency) AS p FROM rows GROUP BY status ORDER BY p DESC",
                "SELECT status, quantileExact(0.99)(latency) AS p FROM rows GROUP BY status ORDER BY p DESC",
            ],
            agreement: Agreement::Percentile,
        },
        Asked {
            what: "distinct commits",
            ours: Ours::Question(Question {
                aggregates: vec![Aggregate::Distinct("commit".to_owned())],
                ..Question::default()
            }),
            duckdb: vec!["SELECT count(DISTINCT commit) FROM rows"],
            clickhouse: vec!["SELECT uniqExact(commit) FROM rows"],
            agreement: Agreement::Exact,
        },
    ]
}

fn selected() -> Vec<Asked> {
    let last_days = (START_NS + (DAYS - 7) * DAY_NS, START_NS + DAYS * DAY_NS);
    let job = having("job", Test::In(vec!["linux-job-017".to_owned()]));
    let regex = having("test", Test::Regex("_1.*7$".to_owned()));
    let rare = having("commit", Test::In(vec![RARE_COMMIT.to_owned()]));
    let count = || Question { aggregates: vec![Aggregate::Count], ..Question::default() };
    vec![
        Asked {
            what: "7 days, one job, top 10 tests",
            ours: Ours::Question(Question {
                range: Some(last_days),
                any_of: job,
                ..by(vec![column("test")], Aggregate::Count, 10)
            }),
            duckdb: vec![
                "SELECT test, sum(weight) AS n FROM rows WHERE time >= TIMESTAMP '2023-11-08' AND time < TIMESTAMP '2023-11-15' AND job = 'linux-job-017' GROUP BY 1 ORDER BY n DESC LIMIT 10",
            ],
            clickhouse: vec![
                "SELECT test, sum(weight) AS n FROM rows WHERE time >= '2023-11-08 00:00:00' AND time < '2023-11-15 00:00:00' AND job = 'linux-job-017' GROUP BY test ORDER BY n DESC LIMIT 10",
            ],
            agreement: Agreement::Exact,
        },
        Asked {
            what: "regular expression on test",
            ours: Ours::Question(Question { any_of: regex, ..count() }),
            duckdb: vec!["SELECT sum(weight) FROM rows WHERE regexp_matches(test, '_1.*7$')"],
            clickhouse: vec!["SELECT sum(weight) FROM rows WHERE match(test, '_1.*7$')"],
            agreement: Agreement::Exact,
        },
        Asked {
            what: "rows of a rare commit",
            ours: Ours::Question(Question { any_of: rare, ..count() }),
            duckdb: vec!["SELECT sum(weight) FROM rows WHERE commit = 'rare-commit'"],
            clickhouse: vec!["SELECT sum(weight) FROM rows WHERE commit = 'rare-commit'"],
            agreement: Agreement::Exact,
        },
        Asked {
            what: "tree of one tag's stacks",
            ours: Ours::Tree(having("tags", Test::Any(vec![TAG.to_owned()]))),
            // They leave it to whoever asks to merge the stacks.
            duckdb: vec![
                "SELECT frames, n FROM (SELECT stack_id, sum(weight) AS n FROM samples WHERE tag = 'suite-7' GROUP BY 1) JOIN stacks USING (stack_id)",
            ],
            clickhouse: vec![
                "SELECT frames, n FROM (SELECT stack_id, sum(weight) AS n FROM samples WHERE tag = 'suite-7' GROUP BY stack_id) AS sums INNER JOIN stacks USING (stack_id)",
                "SELECT frames, n FROM stacks INNER JOIN (SELECT stack_id, sum(weight) AS n FROM samples WHERE tag = 'suite-7' GROUP BY stack_id) AS sums USING (stack_id)",
            ],
            agreement: Agreement::Total,
        },
    ]
}

fn many_groups() -> Vec<Asked> {
    vec![
        Asked {
            what: "top 10 of 20,000 tests",
            ours: Ours::Question(by(vec![column("test")], Aggregate::Count, 10)),
            duckdb: vec![
                "SELECT test, sum(weight) AS n FROM rows GROUP BY 1 ORDER BY n DESC LIMIT 10",
            ],
            clickhouse: vec![
                "SELECT test, sum(weight) AS n FROM rows GROUP BY test ORDER BY n DESC LIMIT 10",
            ],
            agreement: Agreement::Exact,
        },
        Asked {
            what: "job × host",
            ours: Ours::Question(by(vec![column("job"), column("host")], Aggregate::Count, 100)),
            duckdb: vec![
                "SELECT job, host, sum(weight) AS n FROM rows GROUP BY 1, 2 ORDER BY n DESC LIMIT 100",
            ],
            clickhouse: vec![
                "SELECT job, host, sum(weight) AS n FROM rows GROUP BY job, host ORDER BY n DESC LIMIT 100",
                "SELECT CAST(job AS Nullable(String)) AS j, host, sum(weight) AS n FROM rows GROUP BY j, host ORDER BY n DESC LIMIT 100",
            ],
            agreement: Agreement::Exact,
        },
        Asked {
            what: "test × commit, top 100",
            ours: Ours::Question(by(vec![column("test"), column("commit")], Aggregate::Count, 100)),
            duckdb: vec![
                "SELECT test, commit, sum(weight) AS n FROM rows GROUP BY 1, 2 ORDER BY n DESC LIMIT 100",
            ],
            clickhouse: vec![
                "SELECT test, commit, sum(weight) AS n FROM rows GROUP BY test, commit ORDER BY n DESC LIMIT 100",
            ],
            agreement: Agreement::Exact,
        },
    ]
}
