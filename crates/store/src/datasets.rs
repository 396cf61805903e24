//! The datasets in use: what each accepts, and which columns it has.
//!
//! Columns are learnt in memory while rows are checked and written to the catalog later, by
//! [`Datasets::record`]: no row waits for SQLite. A crash in between loses nothing, since the
//! log has the rows that the columns come from.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use perflab_model::{Schema, SchemaFileError, SchemaState};

use crate::catalog::{Catalog, CatalogError};

/// The most datasets there can be.
pub const DATASETS_MAX: usize = 10_000;

/// Why a dataset can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error("`{dataset}` would be one more than {DATASETS_MAX} datasets, which is the limit")]
    TooMany { dataset: String },
    #[error("failed to use the schema of dataset `{dataset}`")]
    Schema {
        dataset: String,
        #[source]
        error: SchemaFileError,
    },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// One dataset in use.
#[derive(Debug)]
pub(crate) struct Dataset {
    pub(crate) name: Arc<str>,
    pub(crate) schema: Arc<SchemaState>,
    /// Whether rows were checked since its columns were last recorded.
    touched: AtomicBool,
    recorded: AtomicUsize,
    /// Whether nothing was known of it when it came into use.
    is_new: bool,
}

impl Dataset {
    /// Says that rows were checked: there may be columns to record.
    pub(crate) fn touch(&self) {
        self.touched.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct Datasets {
    columns_max: usize,
    /// Every dataset there is, with its declared schema as text.
    declared: Mutex<HashMap<String, Option<String>>>,
    in_use: RwLock<HashMap<String, Arc<Dataset>>>,
}

impl Datasets {
    pub(crate) fn load(catalog: &Catalog, columns_max: usize) -> Result<Self, CatalogError> {
        let declared = Mutex::new(catalog.datasets()?);
        Ok(Self { columns_max, declared, in_use: RwLock::default() })
    }

    pub(crate) fn find(&self, catalog: &Catalog, name: &str) -> Result<Arc<Dataset>, DatasetError> {
        let in_use = self.in_use.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(dataset) = in_use.get(name) {
            return Ok(Arc::clone(dataset));
        }
        drop(in_use);
        self.load_one(catalog, name)
    }

    /// What a dataset accepts; the default when it is not there yet.
    pub(crate) fn schema(&self, name: &str) -> Result<Schema, DatasetError> {
        let declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        let text = declared.get(name).and_then(Option::as_deref);
        self.parse(name, text)
    }

    /// Every dataset there is.
    pub(crate) fn names(&self) -> Vec<String> {
        let declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        declared.keys().cloned().collect()
    }

    /// Whether there is such a dataset.
    pub(crate) fn contains(&self, name: &str) -> bool {
        let declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        declared.contains_key(name)
    }

    /// The text of a dataset's declared schema.
    pub(crate) fn schema_text(&self, name: &str) -> Option<String> {
        let declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        declared.get(name)?.clone()
    }

    /// Declares what a dataset accepts; `None`: anything again.
    pub(crate) fn declare(
        &self,
        catalog: &Catalog,
        name: &str,
        text: Option<&str>,
    ) -> Result<(), DatasetError> {
        self.parse(name, text)?;
        let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        check_room(&declared, name)?;
        // Whoever asks next gets it with the new schema; what is being checked now finishes
        // under the old one, as if it had come a moment earlier.
        let mut in_use = self.in_use.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = in_use.get(name) {
            catalog.add_columns(name, &old.schema.columns())?;
        }
        catalog.set_schema(name, text)?;
        declared.insert(name.to_owned(), text.map(str::to_owned));
        in_use.remove(name);
        Ok(())
    }

    fn load_one(&self, catalog: &Catalog, name: &str) -> Result<Arc<Dataset>, DatasetError> {
        // Held over the catalog's answer, so that two requests can't make two of one dataset.
        let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        let in_use = self.in_use.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(dataset) = in_use.get(name) {
            return Ok(Arc::clone(dataset));
        }
        drop(in_use);
        check_room(&declared, name)?;
        let is_new = !declared.contains_key(name);
        let text = declared.entry(name.to_owned()).or_default();
        let schema = self.parse(name, text.as_deref())?;
        let columns = catalog.columns(name)?;
        // Columns from before the schema was declared would count as admitted.
        let known = columns.iter().filter(|(column, kind)| match &schema {
            Schema::Open { .. } => true,
            Schema::Declared { columns, .. } => columns.get(column) == Some(kind),
        });
        let known = known.map(|(column, kind)| (column.as_str(), *kind));
        let state = SchemaState::with_columns(schema.clone(), known);
        let dataset = Arc::new(Dataset {
            name: name.into(),
            recorded: AtomicUsize::new(state.columns().len()),
            schema: Arc::new(state),
            touched: AtomicBool::new(false),
            is_new,
        });
        let mut in_use = self.in_use.write().unwrap_or_else(PoisonError::into_inner);
        in_use.insert(name.to_owned(), Arc::clone(&dataset));
        Ok(dataset)
    }

    /// Gives the place of a dataset back that was never more than a name: nobody uses it, and no
    /// row has brought it a column.
    pub(crate) fn forget_unused(&self, name: &str) {
        let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody gets hold of it meanwhile: that takes this lock.
        let mut in_use = self.in_use.write().unwrap_or_else(PoisonError::into_inner);
        let is_unused = in_use.get(name).is_some_and(|dataset| {
            dataset.is_new && Arc::strong_count(dataset) == 1 && dataset.schema.columns().is_empty()
        });
        if is_unused {
            in_use.remove(name);
            declared.remove(name);
        }
    }

    fn parse(&self, name: &str, text: Option<&str>) -> Result<Schema, DatasetError> {
        match text {
            None => Ok(Schema::Open { columns_max: self.columns_max }),
            Some(text) => Schema::declared_from_json(text)
                .map_err(|error| DatasetError::Schema { dataset: name.to_owned(), error }),
        }
    }

    /// Writes columns that appeared since the last call to the catalog. Those that can't be written
    /// now are tried again the next time.
    pub(crate) fn record(&self, catalog: &Catalog) -> Result<(), CatalogError> {
        let in_use = self.in_use.read().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<_> = in_use.values().cloned().collect();
        drop(in_use);
        for dataset in all {
            if !dataset.touched.swap(false, Ordering::Relaxed) {
                continue;
            }
            let columns = dataset.schema.columns();
            if columns.len() == dataset.recorded.load(Ordering::Relaxed) {
                continue;
            }
            if let Err(error) = catalog.add_columns(&dataset.name, &columns) {
                dataset.touch();
                return Err(error);
            }
            dataset.recorded.store(columns.len(), Ordering::Relaxed);
        }
        Ok(())
    }
}

fn check_room(declared: &HashMap<String, Option<String>>, name: &str) -> Result<(), DatasetError> {
    if declared.len() >= DATASETS_MAX && !declared.contains_key(name) {
        return Err(DatasetError::TooMany { dataset: name.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use perflab_model::{Batch, COLUMNS_MAX, Nanos};
    use perflab_wire::{Codec, Registry, decode};
    use tempfile::TempDir;

    use super::*;

    fn open(dir: &TempDir, name: &str) -> Catalog {
        Catalog::open(&dir.path().join(name), Nanos(0)).unwrap().0
    }

    #[test]
    fn columns_that_could_not_be_recorded_are_recorded_later() {
        let dir = TempDir::new().unwrap();
        let (broken, sound) = (open(&dir, "broken"), open(&dir, "sound"));
        let datasets = Datasets::load(&sound, COLUMNS_MAX).unwrap();
        let names = ["a", "b", "c"];
        for name in names {
            let dataset = datasets.find(&sound, name).unwrap();
            let mut batch = Batch::new(Arc::clone(&dataset.schema));
            let message = br#"{"x":1}"#;
            decode(Codec::Message, message, Nanos(0), &Registry::default(), &mut batch).unwrap();
            dataset.touch();
        }
        broken.close().unwrap();
        datasets.record(&broken).unwrap_err();
        datasets.record(&sound).unwrap();
        for name in names {
            assert_eq!(sound.columns(name).unwrap().len(), 1, "{name}");
        }
    }
}
