//! A home in a folder of its own.

use std::path::Path;
use std::sync::Arc;

use perflab_log::{ReadFrom, ReadItem};
use perflab_model::{CategoryName, ManualClock, Nanos};
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
    let body = lines.to_owned().into();
    let request = Request::decode(&form, MessageForm::Plain, body, &Limits::default()).unwrap();
    let access = &Access::Everything;
    let origin = Origin { access, door: Door::Ndjson, arrival, keys };
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
