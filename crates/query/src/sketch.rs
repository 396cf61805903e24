//! Weighted quantiles of many values in little memory: a histogram whose buckets are 1/64 of a
//! power of two wide, so that an answer is off by less than 0.8 % of its value.
//!
//! As in HDR histograms and DDSketch, but the bucket is taken out of the float's own bits: no
//! logarithm. Two histograms are merged by adding their counts.

use crate::kernels::CodeSlice;

/// Mantissa bits that a bucket keeps.
const MANTISSA_BITS: u32 = 6;
const SHIFT: u32 = 52 - MANTISSA_BITS;
/// Buckets are added this many at a time.
const GROWTH: usize = 64;

/// The weights of values, by bucket.
#[derive(Debug, Clone)]
pub struct Sketch {
    /// The key of the first of `weights`.
    first: i32,
    weights: Vec<f64>,
    total: f64,
    least: f64,
    most: f64,
}

impl Default for Sketch {
    fn default() -> Self {
        let (least, most) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { first: 0, weights: Vec::new(), total: 0.0, least, most }
    }
}

/// Ascends with the value. Without branches: signs can't be foreseen.
#[inline]
fn key(value: f64) -> i32 {
    // Zero is zero, whatever its sign.
    let bits = (value + 0.0).to_bits();
    let magnitude = ((bits & !(1 << 63)) >> SHIFT) as i32;
    let is_negative = (bits >> 63) as i32;
    magnitude ^ -is_negative
}

/// The middle of a bucket.
fn middle(key: i32) -> f64 {
    let magnitude = if key < 0 { -(key + 1) } else { key };
    // Zero, and what is too small to have a magnitude.
    if magnitude == 0 {
        return 0.0;
    }
    let value = f64::from_bits((u64::from(magnitude.unsigned_abs()) << SHIFT) + (1 << (SHIFT - 1)));
    if key < 0 { -value } else { value }
}

impl Sketch {
    /// How much memory it takes.
    pub fn held_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&self.weights[..])
    }

    /// # Panics
    /// Never: the key is among the buckets once they have grown.
    #[inline]
    pub fn add(&mut self, value: f64, weight: f64) {
        let key = key(value);
        self.total += weight;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        let place = key.wrapping_sub(self.first).cast_unsigned() as usize;
        match self.weights.get_mut(place) {
            Some(bucket) => *bucket += weight,
            None => self.add_growing(key, weight),
        }
    }

    #[cold]
    fn add_growing(&mut self, key: i32, weight: f64) {
        if self.weights.is_empty() {
            self.first = key;
        }
        if key < self.first {
            let more = (self.first - key).unsigned_abs() as usize + GROWTH;
            self.weights.splice(0..0, std::iter::repeat_n(0.0, more));
            self.first -= i32::try_from(more).unwrap_or(i32::MAX);
        }
        let place = (key - self.first).unsigned_abs() as usize;
        if place >= self.weights.len() {
            self.weights.resize(place + GROWTH, 0.0);
        }
        self.weights[place] += weight;
    }

    pub fn merge(&mut self, other: &Self) {
        for (key, &weight) in (other.first..).zip(&other.weights) {
            if weight > 0.0 {
                self.add_growing(key, weight);
            }
        }
        self.total += other.total;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// The value at or below which this part of the weight lies; `None` without weight.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        if self.total <= 0.0 {
            return None;
        }
        if part <= 0.0 {
            return Some(self.least);
        }
        if part >= 1.0 {
            return Some(self.most);
        }
        let wanted = self.total * part;
        let (mut below, mut last) = (0.0, 0);
        for (key, weight) in (self.first..).zip(&self.weights).filter(|(_, weight)| **weight > 0.0)
        {
            (below, last) = (below + weight, key);
            if below >= wanted {
                break;
            }
        }
        Some(middle(last).clamp(self.least, self.most))
    }

    /// Everything about it, as numbers: for engines that move the states of aggregates themselves.
    pub fn to_state(&self) -> Vec<f64> {
        let is_used = |weight: &f64| *weight > 0.0;
        let start = self.weights.iter().position(is_used).unwrap_or(0);
        let end = self.weights.iter().rposition(is_used).map_or(start, |last| last + 1);
        let first = self.first.saturating_add(i32::try_from(start).unwrap_or(i32::MAX));
        let mut state = vec![f64::from(first), self.total, self.least, self.most];
        state.extend_from_slice(&self.weights[start..end]);
        state
    }

    /// The sketch of a state; `None` for numbers that are none.
    pub fn from_state(state: &[f64]) -> Option<Self> {
        let [first, total, least, most, weights @ ..] = state else { return None };
        #[expect(clippy::cast_possible_truncation, reason = "written from an i32")]
        let first = *first as i32;
        Some(Self { first, weights: weights.to_vec(), total: *total, least: *least, most: *most })
    }
}

/// The histograms of several groups, of numbers that are known to lie in a range: every bucket of
/// it has a place.
#[derive(Debug)]
pub(crate) struct Bins {
    range: (f64, f64),
    first: i32,
    /// How many places a group has: the last is for what is no number.
    width: usize,
    weights: Vec<f64>,
}

impl Bins {
    /// How many places a group needs.
    pub(crate) fn width((least, most): (f64, f64)) -> usize {
        usize::try_from(key(most) - key(least)).unwrap_or(usize::MAX - 2) + 2
    }

    /// Uses the memory of those before.
    pub(crate) fn new(range: (f64, f64), groups: usize, before: Option<Self>) -> Self {
        let mut weights = before.map_or_else(Vec::new, |before| before.weights);
        let width = Self::width(range);
        weights.clear();
        weights.resize(groups * width, 0.0);
        Self { range, first: key(range.0), width, weights }
    }

    pub(crate) fn add(
        &mut self,
        base: usize,
        groups: CodeSlice<'_>,
        weighted: impl Iterator<Item = (f64, f64)>,
    ) {
        let (first, width, last) = (self.first, self.width, self.width - 1);
        let weights = &mut self.weights[base * width..];
        groups.for_each(weighted, |group, (value, weight)| {
            let place = key(value).wrapping_sub(first).cast_unsigned() as usize;
            weights[group as usize * width + place.min(last)] += weight;
        });
    }

    /// Adds the histogram of a group to another.
    pub(crate) fn add_to(&self, sketch: &mut Sketch, group: usize) {
        let weights = &self.weights[group * self.width..][..self.width - 1];
        for (key, &weight) in (self.first..).zip(weights) {
            if weight > 0.0 {
                sketch.add_growing(key, weight);
                sketch.total += weight;
            }
        }
        sketch.least = sketch.least.min(self.range.0);
        sketch.most = sketch.most.max(self.range.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(values: &mut [(f64, f64)], part: f64) -> f64 {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted = values.iter().map(|(_, weight)| weight).sum::<f64>() * part;
        let mut below = 0.0;
        for (value, weight) in values.iter() {
            below += weight;
            if below >= wanted {
                return *value;
            }
        }
        values.last().unwrap().0
    }

    proptest! {
        #[test]
        fn it_is_close_to_the_exact_quantile(
            mut values in prop::collection::vec((prop_oneof![-1e9..1e9, Just(0.0), -1e-3..1e-3], (1_u8..9).prop_map(f64::from)), 1..200),
            part in 0.0..=1.0,
            cut in 0_usize..200,
        ) {
            let (mut left, mut right) = (Sketch::default(), Sketch::default());
            for (index, (value, weight)) in values.iter().enumerate() {
                if index < cut { left.add(*value, *weight) } else { right.add(*value, *weight) }
            }
            left.merge(&Sketch::from_state(&right.to_state()).unwrap());
            let (found, expected) = (left.quantile(part).unwrap(), exact(&mut values, part));
            prop_assert!((found - expected).abs() <= expected.abs() * 0.008 + 1e-300, "{found} {expected}");
        }
    }

    #[test]
    fn the_ends_are_exact() {
        let mut sketch = Sketch::default();
        assert_eq!(sketch.quantile(0.5), None);
        for value in [3.3, -7.7, 100.1] {
            sketch.add(value, 1.0);
        }
        assert_eq!(sketch.quantile(0.0), Some(-7.7));
        assert_eq!(sketch.quantile(1.0), Some(100.1));
    }
}
