//! Sums of numbers, of which means and deviations are made.

use crate::kernels::{Lanes, WeightSlice};
use crate::local::{Expected, ROW, fold_weighted, weight_of};
use crate::source::Block;

/// Rows, and the weighted sums of 1, of deviations from a middle, and of their squares where they
/// are wanted.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct MomentSums {
    // Beside each other, so that both are added at once.
    pub(crate) weight: f64,
    pub(crate) first: f64,
    pub(crate) second: f64,
    pub(crate) rows: u64,
}

impl MomentSums {
    /// Without branches: which values are null can't be foreseen.
    #[inline]
    fn add<const SQUARES: bool>(&mut self, value: f64, weight: f64, middle: f64) {
        let is_there = !value.is_nan();
        let weight = if is_there { weight } else { 0.0 };
        let deviation = if is_there { value - middle } else { 0.0 };
        self.rows += u64::from(is_there);
        self.weight += weight;
        self.first += weight * deviation;
        if SQUARES {
            self.second += weight * deviation * deviation;
        }
    }

    fn joined(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            weight: self.weight + other.weight,
            first: self.first + other.first,
            second: self.second + other.second,
        }
    }
}

/// The same without squares, rows and small integer weights in one number.
#[derive(Debug, Clone, Copy, Default)]
struct WholeSums {
    tally: u64,
    first: f64,
}

impl WholeSums {
    #[inline]
    fn add(&mut self, value: f64, weight: u16, middle: f64) {
        let is_there = !value.is_nan();
        self.tally += if is_there { ROW + u64::from(weight) } else { 0 };
        self.first += if is_there { (value - middle) * f64::from(weight) } else { 0.0 };
    }

    fn joined(self, other: Self) -> Self {
        Self { tally: self.tally + other.tally, first: self.first + other.first }
    }
}

impl From<WholeSums> for MomentSums {
    fn from(WholeSums { tally, first }: WholeSums) -> Self {
        Self { weight: weight_of(tally), first, second: 0.0, rows: tally / ROW }
    }
}

#[derive(Debug)]
enum Sums {
    Whole(Lanes<WholeSums>),
    Any(Lanes<MomentSums>),
}

/// The sums of local groups.
#[derive(Debug)]
pub(crate) struct LocalMoments {
    sums: Sums,
    /// Of all numbers in all segments.
    middle: f64,
    wants_squares: bool,
}

impl LocalMoments {
    pub(crate) fn new(middle: f64, wants_squares: bool) -> Self {
        Self { sums: Sums::Any(Lanes::default()), middle, wants_squares }
    }

    pub(crate) fn middle(&self) -> f64 {
        self.middle
    }

    pub(crate) fn reset(&mut self, expected: Expected) {
        match (&self.sums, expected.fits_tally() && !self.wants_squares) {
            (Sums::Whole(_), true) | (Sums::Any(_), false) => {}
            (Sums::Any(_), true) => self.sums = Sums::Whole(Lanes::default()),
            (Sums::Whole(_), false) => self.sums = Sums::Any(Lanes::default()),
        }
        match &mut self.sums {
            Sums::Whole(sums) => sums.reset(expected.groups),
            Sums::Any(sums) => sums.reset(expected.groups),
        }
    }

    pub(crate) fn grow(&mut self, groups: usize) {
        match &mut self.sums {
            Sums::Whole(sums) => sums.grow(groups),
            Sums::Any(sums) => sums.grow(groups),
        }
    }

    pub(crate) fn add(&mut self, block: &Block<'_>, numbers: &[f64]) {
        let middle = self.middle;
        match &mut self.sums {
            Sums::Whole(sums) => add_whole(sums, block, numbers, middle),
            Sums::Any(sums) if self.wants_squares => {
                fold_weighted(sums, block, numbers, |sums, value, weight| {
                    sums.add::<true>(value, weight, middle);
                });
            }
            Sums::Any(sums) => fold_weighted(sums, block, numbers, |sums, value, weight| {
                sums.add::<false>(value, weight, middle);
            }),
        }
    }

    pub(crate) fn get(&self, group: usize) -> MomentSums {
        match &self.sums {
            Sums::Whole(sums) => sums.get(group, WholeSums::joined).into(),
            Sums::Any(sums) => sums.get(group, MomentSums::joined),
        }
    }
}

fn add_whole(sums: &mut Lanes<WholeSums>, block: &Block<'_>, numbers: &[f64], middle: f64) {
    let (base, groups, numbers) = (block.base, block.groups, numbers.iter());
    match block.weights {
        WeightSlice::U8(weights) => {
            sums.fold(base, groups, numbers.zip(weights), |sums, (&value, &weight)| {
                sums.add(value, weight.into(), middle);
            });
        }
        WeightSlice::U16(weights) => {
            sums.fold(base, groups, numbers.zip(weights), |sums, (&value, &weight)| {
                sums.add(value, weight, middle);
            });
        }
        WeightSlice::F64(_) => unreachable!("said to be whole"),
    }
}
