//! Drillstates that were seen, and everything that one can say.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{is_scuba_url, read, read_url_query, write, write_url};
use crate::document::{
    Compare, Derived, Document, Filter, Grouping, Metric, Operator, Order, Simple, View,
};

/// As PyTorch's compile-time profiler builds it.
fn pytorch() -> Value {
    json!({
        "aggregateList": [],
        "aggregation_field": "async_stack_complete",
        "b_constraints": [[]],
        "c_constraints": [[]],
        "cols": ["namespace_id", "namespace_process_id"],
        "compare": "none",
        "constraints": [
            [{"column": "sample_tags", "op": "all", "value": ["[\"host & co + 1\"]"]}]
        ],
        "derivedCols": [],
        "end": "now",
        "filterMode": "DEFAULT",
        "hideEmptyColumns": "false",
        "is_timeseries": "false",
        "metric": "count",
        "order": "weight",
        "order_desc": "true",
        "param_dimensions": [
            {"dim": "py_async_stack", "op": "edge", "param": "0", "anchor": "0"}
        ],
        "return_remainder": "false",
        "samplingRatio": "1",
        "should_pivot": "false",
        "start": "-30 days",
        "timezone": "America/Los_Angeles",
        "top": 10000,
    })
}

const BEFORE: &str = "dataset=pyperf_experimental/on_demand&drillstate=";
const AFTER: &str = "&view=GraphProfilerView&&normalized=1726332703&pool=uber";

fn as_document() -> Document {
    let values = vec!["host & co + 1".to_owned()];
    Document {
        since: "-30 days".to_owned(),
        timezone: "America/Los_Angeles".to_owned(),
        any_of: vec![vec![Filter { column: "sample_tags".to_owned(), op: Operator::All, values }]],
        aggregates: vec![Metric::Of(Simple::Count)],
        order: Some(Order { by: "count".to_owned(), descending: true }),
        top: Some(10_000),
        view: View::Graph,
        view_column: Some("py_async_stack".to_owned()),
        ..Document::new("pyperf_experimental/on_demand")
    }
}

#[test]
fn pytorchs_url_is_read_raw_encoded_and_as_browsers_send_it() {
    let json = pytorch().to_string();
    let encoded: String = form_urlencoded::byte_serialize(json.as_bytes()).collect();
    let by_browser = json.replace('"', "%22").replace(' ', "%20").replace('&', "%26");
    for state in [json, encoded, by_browser] {
        let mut document = read_url_query(&format!("{BEFORE}{state}{AFTER}")).unwrap();
        let kept = std::mem::take(&mut document.drillstate);
        assert_eq!(document, as_document(), "{state}");
        assert_eq!(kept["pool"], json!("uber"));
        assert_eq!(kept["aggregation_field"], json!("async_stack_complete"));
        assert_eq!(kept["order_desc"], json!("true"), "as it was written");
    }
}

#[test]
fn a_url_that_was_read_is_written_with_all_it_said() {
    let document = read_url_query(&format!("{BEFORE}{}{AFTER}", pytorch())).unwrap();
    let url = write_url(&document).unwrap();
    assert!(is_scuba_url(&url));
    let again = read_url_query(url.split_once('?').unwrap().1).unwrap();
    assert_eq!(again, document);
    let state = Value::Object(write(&document).unwrap());
    for (key, value) in pytorch().as_object().unwrap() {
        assert_eq!(state[key], *value, "{key}");
    }
    assert_eq!(state["normalized"], json!("1726332703"));
}

#[test]
fn a_change_wins_over_what_was_written_and_the_unknown_stays() {
    let mut document = read_url_query(&format!("{BEFORE}{}{AFTER}", pytorch())).unwrap();
    document.top = Some(5);
    let state = write(&document).unwrap();
    assert_eq!(state["top"], json!(5));
    assert_eq!(state["pool"], json!("uber"));
    assert_eq!(state["samplingRatio"], json!("1"));
}

#[test]
fn values_are_nested_arrays_plain_texts_or_numbers() {
    let values = |value: Value| {
        let constraint = json!({"column": "x", "op": "eq", "value": value});
        let state = json!({"dataset": "d", "constraints": [[constraint]]});
        read(state.as_object().unwrap()).unwrap().any_of[0][0].values.clone()
    };
    assert_eq!(values(json!(["[\"a\",\"b\"]"])), ["a", "b"]);
    assert_eq!(values(json!(["a", "[\"b\"]"])), ["a", "b"]);
    assert_eq!(values(json!("a")), ["a"]);
    assert_eq!(values(json!([1, "[2, true]"])), ["1", "2", "true"]);
    assert_eq!(values(json!(["[not json"])), ["[not json"]);
}

#[test]
fn a_metric_is_of_the_columns_that_are_shown() {
    let aggregates = |state: Value| {
        let mut state = state.as_object().unwrap().clone();
        state.insert("dataset".to_owned(), json!("d"));
        let texts = |document: Document| {
            document.aggregates.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        read(&state).map(texts).map_err(|error| error.to_string())
    };
    let sums = aggregates(json!({"metric": "sum", "cols": ["a", "b"], "aggregateList": ["p99:c"]}));
    assert_eq!(sums.unwrap(), ["sum:a", "sum:b", "p99:c"]);
    assert_eq!(aggregates(json!({"metric": "count", "cols": ["a"]})).unwrap(), ["count"]);
    assert_eq!(aggregates(json!({})).unwrap(), Vec::<String>::new());
    assert!(aggregates(json!({"metric": "sum"})).is_err());
}

#[test]
fn what_is_wrong_is_named() {
    let error = |state: Value| {
        let error = read(state.as_object().unwrap()).unwrap_err();
        let source = std::error::Error::source(&error);
        source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
    };
    assert_eq!(error(json!({})), "the drillstate names no dataset");
    assert_eq!(
        error(json!({"dataset": "d", "top": "many"})),
        "`top` of the drillstate is \"many\", not a number of rows"
    );
    assert_eq!(
        error(json!({"dataset": "d", "constraints": [[{"column": "x", "op": "eqq"}]]})),
        "a constraint of the drillstate: there is no operator `eqq`; did you mean `eq`?"
    );
    assert!(read_url_query("dataset=d&drillstate={").unwrap_err().to_string().contains("JSON"));
    assert!(read_url_query("dataset=d&drillstate=[]").unwrap_err().to_string().contains("JSON"));
    assert!(!is_scuba_url("https://example.com/other?x=/intern/scuba/query/"));
    assert!(is_scuba_url("https://host/intern/scuba/query/?dataset=d"));
}

#[test]
fn what_a_drillstate_cannot_say_is_refused_by_name() {
    let document =
        Document { group_by: vec![Grouping::Time(Some("1h".to_owned()))], ..Document::new("d") };
    assert_eq!(
        write(&document).unwrap_err().to_string(),
        "a drillstate can't say that rows are grouped by `time:1h` at this place; a link of \
         perflab's own can"
    );
}

fn filters() -> impl Strategy<Value = Filter> {
    let values = prop::collection::vec("\\PC{0,6}|\\[1\\]|true|7", 0..3);
    ("\\PC{1,6}", prop::sample::select(&Operator::ALL[..]), values)
        .prop_map(|(column, op, values)| Filter { column, op, values })
}

fn groupings() -> impl Strategy<Value = Vec<Grouping>> {
    let columns = prop::collection::vec("\\PC{1,6}|time".prop_map(Grouping::Column), 0..3);
    (any::<bool>(), columns).prop_map(|(is_series, columns)| {
        let time = is_series.then_some(Grouping::Time(None));
        time.into_iter().chain(columns).collect()
    })
}

fn views() -> impl Strategy<Value = (View, Option<String>)> {
    const VIEWS: [View; 7] = [
        View::Table,
        View::Series,
        View::Distribution,
        View::Samples,
        View::Tree,
        View::Graph,
        View::Differs,
    ];
    (prop::sample::select(&VIEWS[..]), prop::option::of("\\PC{1,6}"))
}

fn comparisons() -> impl Strategy<Value = Option<Compare>> {
    let any_of = prop::collection::vec(prop::collection::vec(filters(), 0..2), 0..2);
    prop_oneof![
        Just(None),
        Just(Some(Compare::Previous)),
        "[1-9] weeks".prop_map(|length| Some(Compare::Ago(length))),
        any_of.prop_map(|any_of| Some(Compare::Against(any_of))),
    ]
}

fn derived() -> impl Strategy<Value = Vec<Derived>> {
    let one =
        ("\\PC{1,6}", "\\PC{1,6}").prop_map(|(name, expression)| Derived { name, expression });
    prop::collection::vec(one, 0..2)
}

/// Everything that a drillstate can say.
fn documents() -> impl Strategy<Value = Document> {
    let orders = ("count|samples|p99:x|job|weights", any::<bool>())
        .prop_map(|(by, descending)| Order { by, descending });
    (
        ("[a-z/_]{1,8}", "-[1-9] days|[0-9]{10}", "now|yesterday", "UTC|Europe/Berlin"),
        prop::collection::vec(prop::collection::vec(filters(), 0..3), 0..3),
        groupings(),
        prop::collection::vec(crate::document::strategies::metrics(), 0..3),
        (prop::option::of(orders), prop::option::of(0_usize..10_000), any::<bool>(), any::<bool>()),
        (views(), comparisons(), derived(), prop::collection::vec("\\PC{1,6}", 0..2)),
    )
        .prop_map(
            |(texts, any_of, group_by, aggregates, (order, top, pivot, other), shown)| {
                let (dataset, since, until, timezone) = texts;
                let ((view, view_column), compare, derived, columns) = shown;
                Document {
                    since,
                    until,
                    timezone,
                    any_of,
                    group_by,
                    aggregates,
                    order,
                    top,
                    other,
                    pivot,
                    compare,
                    derived,
                    view,
                    view_column,
                    columns,
                    ..Document::new(dataset)
                }
            },
        )
}

/// A drillstate that someone else might have written: known keys in other forms, and others.
fn states() -> impl Strategy<Value = Map<String, Value>> {
    let unknown = prop::collection::btree_map(
        "filterMode|pool|icicle_state|[a-z]{3}",
        prop_oneof![Just(json!({"a": [1]})), Just(json!("false")), Just(json!(null))],
        0..4,
    );
    (
        unknown,
        prop_oneof![Just(json!(7)), Just(json!("7")), Just(json!(""))],
        prop_oneof![Just(json!(true)), Just(json!("true")), Just(json!("false"))],
        prop_oneof![Just(json!(["[\"a\"]", "b"])), Just(json!("a")), Just(json!([]))],
        "count|sum|p99",
    )
        .prop_map(|(unknown, top, flag, value, metric)| {
            let mut state: Map<String, Value> = unknown.into_iter().collect();
            let known = json!({
                "dataset": "d", "top": top, "is_timeseries": flag, "order_desc": flag,
                "order": "hits", "metric": metric, "cols": ["a"], "view": "sandwich",
                "constraints": [[{"column": "x", "op": "eq", "value": value}]],
            });
            state.extend(known.as_object().unwrap().clone());
            state
        })
}

proptest! {
    #[test]
    fn a_document_that_was_written_is_read_as_it_was(document in documents()) {
        let state = write(&document).unwrap();
        prop_assert_eq!(&read(&state).unwrap(), &document);
        let url = write_url(&document).unwrap();
        let from_url = read_url_query(url.split_once('?').unwrap().1).unwrap();
        prop_assert_eq!(from_url, document);
    }

    #[test]
    fn a_drillstate_that_was_read_is_written_with_every_key(state in states()) {
        let written = write(&read(&state).unwrap()).unwrap();
        for (key, value) in &state {
            prop_assert_eq!(&written[key], value, "{}", key);
        }
    }

    #[test]
    fn no_url_panics(query in "(dataset=d&)?drillstate=[\\PC%{}\"&]{0,24}") {
        if let Err(error) = read_url_query(&query) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
