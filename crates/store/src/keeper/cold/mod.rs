//! Cold segments as objects: `<dataset's number>/<segment's number>.parquet`, and
//! `….lists.parquet` beside it where the segment has lists. They are in the home's folder `cold`, or
//! wherever the server was told to keep them, under a name of the home's own.
//!
//! An object is complete when it has its name, and is never changed after that.

mod calls;
mod local;
mod place;
mod tidy;
mod url;

pub use calls::Unreachable;
pub use place::PlaceError;
pub use url::{ColdUrl, ColdUrlError};

use std::io;
use std::path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use perflab_log::Disk;
use perflab_model::Clock;

use super::steps::{COOL_DURABLE, COOL_SYNCED, COOL_WRITTEN, Fault};
use crate::catalog::{ColdEntry, SegmentEntry};
use calls::{Call, Calls};
use place::Place;

/// So many bytes of an object are asked for at a time.
const READ_BYTES: u64 = 8 << 20;

const ROWS: &str = "parquet";
const LISTS: &str = "lists.parquet";

/// Why a cold segment can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ColdError {
    #[error("`{object}`: {why}")]
    Damaged { object: Path, why: String },
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
}

#[derive(Debug)]
pub(super) struct ColdStore {
    place: Place,
    calls: Calls,
    fault: Fault,
}

/// What a cold store works with.
#[derive(Debug)]
pub(super) struct ColdParts<'p> {
    pub(super) home: &'p path::Path,
    pub(super) home_id: &'p str,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) fault: Fault,
}

/// Why cold segments can't be kept where they are to be.
#[derive(Debug, thiserror::Error)]
pub enum ColdStartError {
    #[error(
        "this home has cold rows in `{known}`, so they can't be kept in `{given}`: give the place \
         that has them, or none"
    )]
    Elsewhere { known: String, given: String },
    #[error("the catalog says that cold rows are in `{place}`")]
    NoPlace {
        place: String,
        #[source]
        error: ColdUrlError,
    },
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("failed to start the thread that reads and writes cold rows")]
    Thread(#[from] io::Error),
}

/// The objects of a segment and their lengths.
type Lengths = Vec<(Path, u64)>;

impl ColdStore {
    /// Where `url` says, else in the home. Nothing is asked of it yet.
    pub(super) fn open(
        url: Option<&ColdUrl>,
        parts: ColdParts<'_>,
    ) -> Result<Self, ColdStartError> {
        let ColdParts { home, home_id, disk, clock, fault } = parts;
        let place = match url {
            Some(url) => Place::at(url, home_id, disk)?,
            None => Place::of_home(home, disk)?,
        };
        let calls = Calls::new(place.name.clone(), clock)?;
        Ok(Self { place, calls, fault })
    }

    fn object(&self, folder: u64, id: u64, kind: &str) -> Path {
        let folder = self.place.prefix.clone().join(folder.to_string());
        folder.join(format!("{id}.{kind}"))
    }

    /// The objects that a segment has, and their lengths.
    pub(super) fn lengths(&self, folder: u64, entry: &SegmentEntry) -> Lengths {
        let object = |kind, len| (self.object(folder, entry.id, kind), len);
        let lists = entry.list_bytes.map(|bytes| object(LISTS, bytes));
        lists.into_iter().chain([object(ROWS, entry.row_bytes)]).collect()
    }

    /// Whether it is worth while to make something for it.
    pub(super) fn is_writable(&self) -> bool {
        self.calls.check(Call::Write).is_ok()
    }

    /// Whether the last call to it failed.
    pub(super) fn is_failing(&self) -> bool {
        self.calls.is_failing()
    }

    /// Ends all calls.
    pub(super) fn end(&self) {
        self.calls.end();
    }

    /// Writes a segment, so that it is there after a power cut once this returns.
    pub(super) fn write(
        &self,
        (folder, id): (u64, u64),
        (rows, lists): (&Bytes, Option<&Bytes>),
    ) -> Result<(), Unreachable> {
        if let Some(lists) = lists {
            self.write_object(&self.object(folder, id, LISTS), lists, self.fault)?;
        }
        self.write_object(&self.object(folder, id, ROWS), rows, self.fault)
    }

    fn write_object(&self, object: &Path, bytes: &Bytes, fault: Fault) -> Result<(), Unreachable> {
        self.on_disk(|local| local.make_folder_of(object))?;
        self.put(object.clone(), bytes)?;
        fault(COOL_WRITTEN);
        // Elsewhere, the answer says that the bytes will stay.
        self.on_disk(|local| local.sync(object))?;
        fault(COOL_SYNCED);
        self.on_disk(|local| local.sync_folder_of(object))?;
        fault(COOL_DURABLE);
        Ok(())
    }

    fn put(&self, object: Path, bytes: &Bytes) -> Result<(), Unreachable> {
        let (objects, payload) = (self.objects(), PutPayload::from(bytes.clone()));
        let put = async move { objects.put(&object, payload).await };
        let written = self.calls.wait(Call::Write, bytes.len() as u64, put)?;
        written.map(drop).ok_or_else(|| self.no_place())
    }

    /// What it means when something is not found that is not looked for.
    fn no_place(&self) -> Unreachable {
        self.calls.failed(Call::Write, "there is no such place".to_owned())
    }

    /// Does what a folder of this machine needs.
    fn on_disk(
        &self,
        work: impl FnOnce(&local::LocalFolder) -> io::Result<()>,
    ) -> Result<(), Unreachable> {
        let done = self.place.local.as_ref().map_or(Ok(()), work);
        done.map_err(|error| self.calls.failed(Call::Write, error.to_string()))
    }

    fn objects(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.place.objects)
    }

    /// Reads a segment: its rows, and its lists where it has them. Their checksums are right.
    pub(super) fn read(
        &self,
        folder: u64,
        entry: &SegmentEntry,
        cold: &ColdEntry,
    ) -> Result<(Bytes, Option<Bytes>), ColdError> {
        let rows =
            self.read_one(&self.object(folder, entry.id, ROWS), entry.row_bytes, cold.row_crc)?;
        let lists = entry.list_bytes.zip(cold.list_crc);
        let lists =
            lists.map(|(len, crc)| self.read_one(&self.object(folder, entry.id, LISTS), len, crc));
        Ok((rows, lists.transpose()?))
    }

    fn read_one(&self, object: &Path, len: u64, crc: u32) -> Result<Bytes, ColdError> {
        let damaged = |why| Err(ColdError::Damaged { object: object.clone(), why });
        let fetched = fetch(self.objects(), object.clone(), len);
        let Some(fetched) = self.calls.wait(Call::Read, len, fetched)? else {
            self.check_sign(Call::Read)?;
            return damaged(MISSING.to_owned());
        };
        match fetched {
            Err(found) => damaged(wrong_length(found, len)),
            Ok(bytes) if crc32c::crc32c(&bytes) != crc => {
                damaged("its checksum is wrong".to_owned())
            }
            Ok(bytes) => Ok(bytes),
        }
    }

    /// Checks that the place is what it was when the home began to use it.
    pub(super) fn check_place(&self) -> Result<(), Unreachable> {
        self.check_sign(Call::Write)
    }

    /// Finds out whether it can be read again, when it is time to.
    pub(super) fn look_again(&self) {
        if self.calls.is_due(Call::Read) {
            // What comes of it is known to those who ask next.
            self.check_sign(Call::Read).unwrap_or_default();
        }
    }

    fn check_sign(&self, call: Call) -> Result<(), Unreachable> {
        let (objects, sign) = (self.objects(), self.place.sign.clone());
        let found = self.calls.wait(call, 0, async move { objects.head(&sign).await })?;
        if found.is_some() || !self.place.is_signed {
            return Ok(());
        }
        let why = format!(
            "it has no `{}`, so it is not what it was: look whether it is there, and whether its \
             name is right",
            self.place.sign
        );
        Err(self.calls.failed(call, why))
    }
}

pub(super) const MISSING: &str = "it is missing";

pub(super) fn wrong_length(found: u64, len: u64) -> String {
    format!("it has {found} bytes instead of {len}")
}

/// The bytes of an object, if there are this many, else how many there are. They are asked for in
/// pieces, so that little is lost when a connection breaks.
async fn fetch(
    objects: Arc<dyn ObjectStore>,
    object: Path,
    len: u64,
) -> object_store::Result<Result<Bytes, u64>> {
    // Before anything is read: an object that grew need not fit into memory.
    let found = objects.head(&object).await?.size;
    if found != len {
        return Ok(Err(found));
    }
    let mut bytes = BytesMut::new();
    let mut start = 0;
    while start < len {
        let end = len.min(start + READ_BYTES);
        bytes.extend_from_slice(&objects.get_range(&object, start..end).await?);
        start = end;
    }
    Ok(Ok(bytes.freeze()))
}
