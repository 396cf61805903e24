//! Which values of a column are there.

const WORD_BITS: usize = u64::BITS as usize;

/// One bit per value, 0 for null; no bits at all while nothing is null, which is the usual case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validity {
    /// Empty while `nulls` is 0; bits from `len` on are 0.
    words: Vec<u64>,
    len: usize,
    nulls: usize,
}

impl Validity {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn nulls(&self) -> usize {
        self.nulls
    }

    /// Whether the value is there; false past the end.
    pub fn is_valid(&self, index: usize) -> bool {
        let bit = || self.words[index / WORD_BITS] >> (index % WORD_BITS) & 1 == 1;
        index < self.len && (self.nulls == 0 || bit())
    }

    /// The bits, least significant first; `None` when nothing is null.
    pub fn words(&self) -> Option<&[u64]> {
        (self.nulls > 0).then_some(&self.words)
    }

    /// The positions of the values that are there, ascending.
    pub fn valid(&self) -> impl Iterator<Item = usize> {
        let all = if self.nulls == 0 { 0..self.len } else { 0..0 };
        let words = self.words.iter().enumerate();
        let bits = words.flat_map(|(at, &word)| ones(word).map(move |bit| at * WORD_BITS + bit));
        all.chain(bits)
    }

    #[inline]
    pub(super) fn push_valid(&mut self) {
        if self.nulls > 0 {
            self.push_bit();
        }
        self.len += 1;
    }

    pub(super) fn push_nulls(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        if self.nulls == 0 {
            self.words.clear();
            self.words.resize(self.len.div_ceil(WORD_BITS), u64::MAX);
            self.clear_bits_from(self.len);
        }
        self.len += count;
        self.nulls += count;
        self.words.resize(self.len.div_ceil(WORD_BITS), 0);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.len = len;
        if self.nulls == 0 {
            return;
        }
        self.words.truncate(len.div_ceil(WORD_BITS));
        self.clear_bits_from(len);
        let valid: usize = self.words.iter().map(|word| word.count_ones() as usize).sum();
        self.nulls = len - valid;
        if self.nulls == 0 {
            self.words.clear();
        }
    }

    fn push_bit(&mut self) {
        let bit = self.len % WORD_BITS;
        match self.words.last_mut() {
            Some(word) if bit > 0 => *word |= 1 << bit,
            _ => self.words.push(1),
        }
    }

    fn clear_bits_from(&mut self, len: usize) {
        let used = len % WORD_BITS;
        if let Some(word) = self.words.last_mut()
            && used > 0
        {
            *word &= (1 << used) - 1;
        }
    }
}

/// The positions of the bits that are set, ascending.
fn ones(word: u64) -> impl Iterator<Item = usize> {
    let rest = std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)));
    rest.take_while(|&word| word != 0).map(|word| word.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Valid(usize),
        Nulls(usize),
        Truncate(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_usize..80).prop_map(Step::Valid),
            (0_usize..80).prop_map(Step::Nulls),
            (0_usize..300).prop_map(Step::Truncate),
        ]
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_list_of_bools(steps in proptest::collection::vec(step(), 0..30)) {
            let mut validity = Validity::default();
            let mut model: Vec<bool> = Vec::new();
            for step in steps {
                match step {
                    Step::Valid(count) => {
                        (0..count).for_each(|_| validity.push_valid());
                        model.extend(vec![true; count]);
                    }
                    Step::Nulls(count) => {
                        validity.push_nulls(count);
                        model.extend(vec![false; count]);
                    }
                    Step::Truncate(len) => {
                        validity.truncate(len);
                        model.truncate(len);
                    }
                }
                let read: Vec<bool> = (0..validity.len()).map(|i| validity.is_valid(i)).collect();
                prop_assert_eq!(&read, &model);
                let valid: Vec<usize> = validity.valid().collect();
                prop_assert_eq!(valid, (0..model.len()).filter(|&i| model[i]).collect::<Vec<_>>());
                prop_assert_eq!(validity.nulls(), model.iter().filter(|valid| !**valid).count());
                prop_assert!(!validity.is_valid(model.len()));
            }
        }
    }
}
