//! What becomes of cold segments that nobody needs any more, or that can't be used.

use std::collections::HashMap;

use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt as _};

use super::calls::{Call, Unreachable};
use super::{ColdStore, LISTS, ROWS};

impl ColdStore {
    /// All objects that are of segments of this home, by their names, and how long they are.
    pub(in crate::keeper) fn list(&self) -> Result<HashMap<Path, u64>, Unreachable> {
        let (objects, prefix) = (self.objects(), self.place.prefix.clone());
        let listed = async move { objects.list(Some(&prefix)).try_collect::<Vec<_>>().await };
        let listed = self.calls.wait(Call::Write, 0, listed)?;
        let listed = listed.ok_or_else(|| self.no_place())?;
        let segments = listed.into_iter().filter(|object| self.is_of_segment(&object.location));
        Ok(segments.map(|ObjectMeta { location, size, .. }| (location, size)).collect())
    }

    /// Folders of datasets have numbers; nothing else has.
    fn is_of_segment(&self, object: &Path) -> bool {
        let first = object.prefix_match(&self.place.prefix).and_then(|mut parts| parts.next());
        first.is_some_and(|part| part.as_ref().parse::<u64>().is_ok())
    }

    /// Makes the sign that the place is what it is.
    pub(in crate::keeper) fn put_sign(&self) -> Result<(), Unreachable> {
        if !self.place.is_signed {
            return Ok(());
        }
        let text = "The cold rows of a perflab home are here.\n".into();
        self.write_object(&self.place.sign, &text, |_| {})
    }

    /// Removes what is there of a segment.
    pub(in crate::keeper) fn remove(&self, folder: u64, id: u64) -> Result<(), Unreachable> {
        [LISTS, ROWS].iter().try_for_each(|kind| self.remove_object(self.object(folder, id, kind)))
    }

    pub(in crate::keeper) fn remove_object(&self, object: Path) -> Result<(), Unreachable> {
        let objects = self.objects();
        let removed = async move { objects.delete(&object).await };
        // One that isn't there needs not be removed.
        self.calls.wait(Call::Write, 0, removed).map(drop)
    }

    /// Removes what was being written when a process ended; returns how many files that were.
    pub(in crate::keeper) fn remove_staged(&self) -> Result<usize, Unreachable> {
        let Some(local) = &self.place.local else { return Ok(0) };
        let removed = local.remove_staged(&self.place.prefix);
        removed.map_err(|error| self.calls.failed(Call::Write, error.to_string()))
    }

    /// Moves what is there of a segment to where damaged bytes are kept; says where.
    pub(in crate::keeper) fn set_aside(&self, folder: u64, id: u64) -> Result<Path, Unreachable> {
        let aside =
            |kind| self.place.quarantine.clone().join(format!("segment-{folder}-{id}.{kind}"));
        for kind in [LISTS, ROWS] {
            let (objects, from, to) = (self.objects(), self.object(folder, id, kind), aside(kind));
            let moved = async move { objects.rename(&from, &to).await };
            // What is missing needs not be moved.
            self.calls.wait(Call::Write, 0, moved)?;
        }
        Ok(aside(ROWS))
    }
}
