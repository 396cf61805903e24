//! How many different values there are: exact up to a size, then estimated.

use foldhash::fast::RandomState;
use hashbrown::HashSet;

/// So many values are counted exactly.
pub(crate) const EXACT_MAX: usize = 1 << 16;
/// 2^14 registers: a standard error of 0.8 %.
const REGISTER_BITS: u32 = 14;

/// A set of hashes; a HyperLogLog once it is large (Flajolet et al. 2007, with the estimator of
/// Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017).
#[derive(Debug, Clone)]
pub(crate) enum Distinct {
    Exact(HashSet<u64, RandomState>),
    Estimated(Box<[u8]>),
}

impl Default for Distinct {
    fn default() -> Self {
        Self::Exact(HashSet::default())
    }
}

impl Distinct {
    /// What it takes, about.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Exact(hashes) => hashes.capacity() * (size_of::<u64>() + 1),
                Self::Estimated(registers) => registers.len(),
            }
    }

    pub(crate) fn add(&mut self, hash: u64) {
        match self {
            Self::Exact(hashes) => {
                hashes.insert(hash);
                if hashes.len() > EXACT_MAX {
                    self.estimate();
                }
            }
            Self::Estimated(registers) => raise(registers, hash),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        match other {
            Self::Exact(hashes) => hashes.iter().for_each(|&hash| self.add(hash)),
            Self::Estimated(others) => {
                let registers = self.estimate();
                let pairs = registers.iter_mut().zip(others);
                pairs.for_each(|(register, &other)| *register = (*register).max(other));
            }
        }
    }

    fn estimate(&mut self) -> &mut [u8] {
        if let Self::Exact(hashes) = self {
            let mut registers = vec![0; 1 << REGISTER_BITS].into_boxed_slice();
            hashes.iter().for_each(|&hash| raise(&mut registers, hash));
            *self = Self::Estimated(registers);
        }
        match self {
            Self::Estimated(registers) => registers,
            Self::Exact(_) => unreachable!("made just now"),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a count of values in memory")]
    pub(crate) fn count(&self) -> f64 {
        match self {
            Self::Exact(hashes) => hashes.len() as f64,
            Self::Estimated(registers) => estimate(registers).round(),
        }
    }
}

fn raise(registers: &mut [u8], hash: u64) {
    let place = (hash >> (64 - REGISTER_BITS)) as usize;
    // The bit below keeps the rank in bounds when all others are 0.
    let rest = (hash << REGISTER_BITS) | (1 << (REGISTER_BITS - 1));
    let rank = u8::try_from(rest.leading_zeros() + 1).unwrap_or(u8::MAX);
    registers[place] = registers[place].max(rank);
}

/// Ertl's improved raw estimator: no bias at either end, no constants from tables.
fn estimate(registers: &[u8]) -> f64 {
    const RANKS: usize = (64 - REGISTER_BITS) as usize;
    let mut counts = [0.0_f64; RANKS + 2];
    registers.iter().for_each(|&rank| counts[usize::from(rank).min(RANKS + 1)] += 1.0);
    let registers = f64::from(1_u32 << REGISTER_BITS);
    let mut sum = registers * tau(1.0 - counts[RANKS + 1] / registers);
    for count in counts[1..=RANKS].iter().rev() {
        sum = 0.5 * (sum + count);
    }
    sum += registers * sigma(counts[0] / registers);
    registers / (2.0 * std::f64::consts::LN_2) * registers / sum
}

fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z <= before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z >= before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "whole numbers, and estimates of the same registers")]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    fn hashes(range: std::ops::Range<u64>) -> Distinct {
        let state = foldhash::quality::FixedState::with_seed(0);
        let mut distinct = Distinct::default();
        range.for_each(|n| distinct.add(state.hash_one(n)));
        distinct
    }

    #[test]
    fn it_is_exact_up_to_its_limit() {
        let limit = EXACT_MAX as u64;
        assert_eq!(hashes(0..0).count(), 0.0);
        assert_eq!(hashes(0..limit).count(), EXACT_MAX as f64);
        assert!(matches!(hashes(0..limit + 1), Distinct::Estimated(_)));
    }

    #[test]
    fn beyond_it_is_close() {
        for count in [70_000, 500_000, 3_000_000_u64] {
            let found = hashes(0..count).count();
            let error = (found / count as f64 - 1.0).abs();
            assert!(error < 0.03, "{found} of {count}");
        }
    }

    #[test]
    fn merging_is_counting_all() {
        let mut left = hashes(0..100_000);
        left.merge(&hashes(50_000..60_000));
        left.merge(&hashes(90_000..200_000));
        assert_eq!(left.count(), hashes(0..200_000).count());
        let mut small = hashes(0..10);
        small.merge(&hashes(5..20));
        assert_eq!(small.count(), 20.0);
        small.merge(&hashes(0..100_000));
        assert_eq!(small.count(), hashes(0..100_000).count());
    }
}
