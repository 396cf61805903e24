//! A home in a folder of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use perflab_log::{ReadFrom, ReadItem};
use perflab_model::{CategoryName, ManualClock, Nanos};
use perflab_store::segment::{ColumnData, Segment, Snapshot};
use perflab_store::{Access, Answer, Door, Home, HomeSettings, Keys, Origin};
use perflab_wire::{BodyForm, Limits, MessageForm, Request};

pub(crate) const NOW: Nanos = Nanos(1_700_000_000_000_000_000);

pub(crate) fn open(dir: &Path) -> Arc<Home> {
    open_with(dir, HomeSettings::default())
}

pub(crate) fn open_with(dir: &Path, settings: HomeSettings) -> Arc<Home> {
    Home::open(dir, settings, Arc::new(ManualClock::new(NOW))).unwrap()
}

/// Sends lines to a category and waits for the answer.
pub(crate) fn log(home: &Home, category: &str, lines: &str) -> Answer {
    log_with_keys(home, category, lines, None)
}

pub(crate) fn log_with_keys(
    home: &Home,
    category: &str,
    lines: &str,
    keys: Option<&Keys>,
) -> Answer {
    log_at(home, category, lines, NOW, keys)
}

pub(crate) fn log_at(
    home: &Home,
    category: &str,
    lines: &str,
    arrival: Nanos,
    keys: Option<&Keys>,
) -> Answer {
    let form = BodyForm::Ndjson { category: CategoryName::new(category).unwrap() };
    ingest(home, (Door::Ndjson, &form), lines.to_owned().into_bytes(), arrival, keys)
}

/// Sends an Arrow stream to a category and waits for the answer.
pub(crate) fn log_arrow(home: &Home, category: &str, stream: Vec<u8>, keys: &Keys) -> Answer {
    let form = BodyForm::Arrow { category: CategoryName::new(category).unwrap() };
    ingest(home, (Door::Arrow, &form), stream, NOW, Some(keys))
}

fn ingest(
    home: &Home,
    (door, form): (Door, &BodyForm),
    body: Vec<u8>,
    arrival: Nanos,
    keys: Option<&Keys>,
) -> Answer {
    let limits = Limits::default();
    let request = Request::decode(form, MessageForm::Plain, body.into(), &limits).unwrap();
    let origin = Origin { access: &Access::Everything, door, arrival, keys };
    let settled = home.ingest(&request, &origin).wait();
    settled.answer(home, |index| request.entry(index))
}

/// The messages of a category, without their codec.
pub(crate) fn messages(home: &Home, category: &str) -> Vec<String> {
    let categories = [category.to_owned()].into();
    let mut reader = home.log().read(Some(categories), ReadFrom::Oldest);
    let mut found = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        let ReadItem::Frame(records) = item else { panic!("damage") };
        for (_, record) in records.iter() {
            found.push(String::from_utf8(record.payload[1..].to_vec()).unwrap());
        }
    }
    found
}

/// A home whose clock the test moves.
pub(crate) fn open_at(dir: &Path, settings: HomeSettings, clock: &Arc<ManualClock>) -> Arc<Home> {
    let home = Home::open(dir, settings, Arc::<ManualClock>::clone(clock)).unwrap();
    assert!(home.wait_until_current(PATIENCE));
    home
}

/// How long a test waits for what other threads do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Writes the memory tables to files, as they are after a while.
pub(crate) fn flush(home: &Home, clock: &ManualClock) {
    clock.advance(Duration::from_mins(5));
    home.tend();
}

/// The rows of a dataset as text, sorted; everything must be there.
pub(crate) fn rows(home: &Home, dataset: &str) -> Vec<String> {
    let snapshot = home.snapshot(dataset).unwrap();
    assert_eq!(snapshot.missing, [""; 0]);
    rows_of(&snapshot)
}

pub(crate) fn rows_of(snapshot: &Snapshot) -> Vec<String> {
    let mut rows: Vec<String> = snapshot.segments.iter().flat_map(|s| segment_rows(s)).collect();
    rows.sort();
    rows
}

fn segment_rows(segment: &Segment) -> Vec<String> {
    let (times, weights) = (segment.times().unwrap(), segment.weights().unwrap());
    let row = |row: usize| {
        let fields = segment.columns().iter().filter_map(|column| {
            let value = value(segment, &column.data().unwrap(), row)?;
            Some(format!(" {}={value}", column.name()))
        });
        format!("{}*{}{}", times[row], weights.get(row), fields.collect::<String>())
    };
    (0..segment.rows()).map(row).collect()
}

fn value(segment: &Segment, data: &ColumnData, row: usize) -> Option<String> {
    match data {
        ColumnData::Int { values, validity } => {
            let is_valid = validity.as_ref().is_none_or(|valid| valid.value(row));
            is_valid.then(|| values.get(row).to_string())
        }
        ColumnData::Float { values } => (!values[row].is_nan()).then(|| values[row].to_string()),
        ColumnData::String { codes, strings } => {
            let code = codes.get(row);
            ((code as usize) < strings.len()).then(|| strings.get(code).to_owned())
        }
        ColumnData::List { ids } => {
            let (lists, id) = (segment.lists().unwrap(), ids.get(row));
            lists.check().unwrap();
            ((id as usize) < lists.len()).then(|| lists.strings(id).collect::<Vec<_>>().join(","))
        }
    }
}
