//! Columns that are computed for a question and never stored.

use super::build::{encode_floats, encode_strings};
use super::column::read_column;
use super::dictionary::Entries;
use super::file::Sheet;
use super::image::Image;
use super::source::NULL;
use super::{Segment, SegmentError, places_by_name};

/// The values of a computed column, one per row of its segment.
#[derive(Debug, Clone)]
pub enum Computed {
    /// NaN for null.
    Float(Vec<f64>),
    /// Places in `strings`, which are sorted and different from each other.
    String { codes: Vec<Option<u32>>, strings: Vec<String> },
}

impl Segment {
    /// The same rows with further columns. Those that are stored are shared, not copied.
    pub fn with_columns(&self, computed: Vec<(String, Computed)>) -> Result<Self, SegmentError> {
        let mut encoded = Vec::new();
        for (name, computed) in computed {
            encoded.push(match computed {
                Computed::Float(values) => encode_floats(&name, values),
                Computed::String { codes, strings } => {
                    let codes: Vec<u32> =
                        codes.into_iter().map(|code| code.unwrap_or(NULL)).collect();
                    let strings = Entries::of(strings.iter().map(String::as_str))?;
                    encode_strings(&name, &codes, strings)?
                }
            });
        }
        // Through the bytes of a file, so that there is one way to read a column.
        let file = Sheet::new(self.rows(), encoded).into_bytes()?;
        let mut columns = self.columns.clone();
        for raw in Image::open(&file)?.columns()? {
            columns.push(read_column(raw, self.rows())?);
        }
        columns.sort_by(|x, y| (x.name(), x.kind()).cmp(&(y.name(), y.kind())));
        Ok(Self {
            times: self.times.clone(),
            times_raw: self.times_raw.clone(),
            weights: self.weights.clone(),
            weights_raw: self.weights_raw.clone(),
            by_name: places_by_name(&columns),
            columns,
            bytes: self.bytes + file.len(),
            lists: self.lists.clone(),
            number: None,
        })
    }
}
