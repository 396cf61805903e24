//! Profile rows: samples of stacks, each with a set of tags, the same on every machine.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers are drawn from ranges that fit"
)]

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use arrow::array::{
    Array, ArrayRef, DictionaryArray, ListArray, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt8Array, UInt16Array, UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Field, Schema, UInt16Type};

use super::rows::{DAY_NS, DAYS, ROWS_PER_BATCH, START_NS};
use crate::random::Random;

/// The tag that is asked about; one row in twenty has it.
pub(crate) const TAG: &str = "suite-7";
const TAGS: usize = 20;
const FRAMES: usize = 20_000;
const STACKS: usize = 100_000;

/// All stacks, as frames from the root on.
#[derive(Debug)]
pub(crate) struct Stacks {
    frames: Arc<StringArray>,
    stacks: Vec<Vec<u16>>,
    tags: ArrayRef,
}

impl Stacks {
    pub(crate) fn new() -> Self {
        let mut random = Random::new(11);
        let frames = (0..FRAMES).map(|n| format!("module_{:03}::function_{n:05}", n % 300));
        let stacks = (0..STACKS).map(|_| stack(&mut random)).collect();
        let tags = (0..TAGS).map(|n| format!("suite-{n}"));
        Self {
            frames: Arc::new(StringArray::from_iter_values(frames)),
            stacks,
            tags: Arc::new(StringArray::from_iter_values(tags)),
        }
    }

    /// The frames of a stack, as the peers' table of stacks has them.
    pub(crate) fn lists(&self) -> Result<ArrayRef> {
        self.list_of(0..STACKS)
    }

    fn list_of(&self, stacks: impl Iterator<Item = usize>) -> Result<ArrayRef> {
        let stacks: Vec<&Vec<u16>> = stacks.map(|stack| &self.stacks[stack]).collect();
        let codes =
            UInt16Array::from_iter_values(stacks.iter().flat_map(|stack| stack.iter().copied()));
        let items =
            DictionaryArray::<UInt16Type>::try_new(codes, Arc::clone(&self.frames) as ArrayRef)?;
        let field = Arc::new(Field::new("item", items.data_type().clone(), false));
        let offsets = OffsetBuffer::from_lengths(stacks.iter().map(|stack| stack.len()));
        Ok(Arc::new(ListArray::try_new(field, offsets, Arc::new(items), None)?))
    }

    /// The numbers of the stacks of a batch's rows, and of their tags: a few stacks are hot.
    fn draw(number: usize) -> (Vec<usize>, Vec<u16>, Random) {
        let mut random = Random::new(number as u64 + (1 << 32));
        let mut draw = |count: usize| {
            let skew = random.unit() * random.unit() * random.unit();
            (skew * count as f64) as usize
        };
        let stacks = (0..ROWS_PER_BATCH).map(|_| draw(STACKS)).collect();
        let tags = (0..ROWS_PER_BATCH).map(|_| random.below(TAGS as u64) as u16).collect();
        (stacks, tags, random)
    }

    /// The rows of one of `batches` batches, with whole stacks.
    pub(crate) fn batch(&self, number: usize, batches: usize) -> Result<RecordBatch> {
        let (stacks, tags, mut random) = Self::draw(number);
        let mut known = HashMap::new();
        let mut distinct = Vec::new();
        let ids = UInt32Array::from_iter_values(stacks.iter().map(|&stack| {
            *known.entry(stack).or_insert_with(|| {
                distinct.push(stack);
                (distinct.len() - 1) as u32
            })
        }));
        let stacks = DictionaryArray::try_new(ids, self.list_of(distinct.into_iter())?)?;
        let set = HashMap::from([("perflab.kind".to_owned(), "set".to_owned())]);
        let tags = self.tag_lists(tags)?;
        let fields = vec![
            Field::new("time", times(number, batches)?.data_type().clone(), true),
            Field::new("weight", arrow::datatypes::DataType::UInt8, true),
            Field::new("tags", tags.data_type().clone(), true).with_metadata(set),
            Field::new("stack", stacks.data_type().clone(), true),
        ];
        let columns = vec![times(number, batches)?, weights(&mut random), tags, Arc::new(stacks)];
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    /// The same rows with a stack's number in place of its frames, for the peers.
    pub(crate) fn numbered_batch(&self, number: usize, batches: usize) -> Result<RecordBatch> {
        let (stacks, tags, mut random) = Self::draw(number);
        let ids = UInt32Array::from_iter_values(stacks.iter().map(|&stack| stack as u32));
        let tags = DictionaryArray::<UInt16Type>::try_new(tags.into(), Arc::clone(&self.tags))?;
        Ok(RecordBatch::try_from_iter(vec![
            ("time", times(number, batches)?),
            ("weight", weights(&mut random)),
            ("tag", Arc::new(tags) as ArrayRef),
            ("stack_id", Arc::new(ids) as ArrayRef),
        ])?)
    }

    /// Each row has one tag.
    fn tag_lists(&self, tags: Vec<u16>) -> Result<ArrayRef> {
        let offsets = OffsetBuffer::from_lengths(tags.iter().map(|_| 1));
        let items = DictionaryArray::<UInt16Type>::try_new(tags.into(), Arc::clone(&self.tags))?;
        let field = Arc::new(Field::new("item", items.data_type().clone(), false));
        Ok(Arc::new(ListArray::try_new(field, offsets, Arc::new(items), None)?))
    }
}

/// 25 to 55 frames; neighbours in a stack are often the same in many stacks.
fn stack(random: &mut Random) -> Vec<u16> {
    let depth = 25 + random.below(31);
    let mut frame = 0_u64;
    (0..depth)
        .map(|level| {
            // Few ways near the root, many near the leaf.
            frame = (frame * 31 + level * 7 + random.below(1 + level / 3)) % FRAMES as u64;
            frame as u16
        })
        .collect()
}

fn times(number: usize, batches: usize) -> Result<ArrayRef> {
    let step = DAYS * DAY_NS / i64::try_from(batches * ROWS_PER_BATCH)?;
    let first = i64::try_from(number * ROWS_PER_BATCH)?;
    let times = (first..).take(ROWS_PER_BATCH).map(|row| START_NS + row * step);
    Ok(Arc::new(TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC")))
}

fn weights(random: &mut Random) -> ArrayRef {
    let weights = (0..ROWS_PER_BATCH).map(|_| 1 + random.below(4) as u8);
    Arc::new(UInt8Array::from_iter_values(weights))
}
