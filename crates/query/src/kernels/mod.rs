//! The innermost loops: what is done once for each row. Generic over the width of the codes and
//! the kind of the weights, so that a column is read as it lies in its segment.

use std::ops::Range;

use perflab_store::segment::Weights;

/// How many rows are looked at together: their masks, groups and numbers stay in the nearest
/// caches.
pub(crate) const BLOCK_ROWS: usize = 4096;
/// With few groups, a row's group is often that of the row before it, and adding to a state has
/// to wait for the addition before it: so rows take turns among this many states of each group.
const LANES: usize = 4;
/// Beyond this size of all states groups are rarely the same, and memory matters more.
const LANES_BYTES_MAX: usize = 16 << 10;
/// The groups of rows that have no columns to group by.
static ZEROS: [u8; BLOCK_ROWS] = [0; BLOCK_ROWS];

/// What numbers the values or groups of rows.
pub(crate) trait Code: Copy + Into<u32> {
    /// How many there are, where they are so few that states are made for all of them: then
    /// nothing need be checked to find one.
    const ALL: Option<usize>;

    fn index(self) -> usize {
        self.into() as usize
    }
}

impl Code for u8 {
    const ALL: Option<usize> = Some(1 << 8);
}
impl Code for u16 {
    const ALL: Option<usize> = None;
}
impl Code for u32 {
    const ALL: Option<usize> = None;
}

/// The codes of rows, as narrow as they lie in the segment.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CodeSlice<'b> {
    U8(&'b [u8]),
    U16(&'b [u16]),
    U32(&'b [u32]),
}

impl CodeSlice<'static> {
    /// The only group, for up to a block of rows.
    pub(crate) fn zeros(rows: usize) -> Self {
        Self::U8(&ZEROS[..rows])
    }
}

impl<'b> CodeSlice<'b> {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::U8(codes) => codes.len(),
            Self::U16(codes) => codes.len(),
            Self::U32(codes) => codes.len(),
        }
    }

    /// Those at these places.
    pub(crate) fn gather(self, places: &[u32], into: &'b mut Vec<u32>) -> Self {
        fn gather<C: Code>(codes: &[C], places: &[u32], into: &mut Vec<u32>) {
            into.clear();
            into.extend(places.iter().map(|&place| codes[place as usize].into()));
        }
        match self {
            Self::U8(codes) => gather(codes, places, into),
            Self::U16(codes) => gather(codes, places, into),
            Self::U32(codes) => gather(codes, places, into),
        }
        Self::U32(into)
    }

    /// Gives each code to a function, together with what comes at its place.
    pub(crate) fn for_each<I>(self, with: impl Iterator<Item = I>, mut f: impl FnMut(u32, I)) {
        match self {
            Self::U8(codes) => codes.iter().zip(with).for_each(|(&code, i)| f(code.into(), i)),
            Self::U16(codes) => codes.iter().zip(with).for_each(|(&code, i)| f(code.into(), i)),
            Self::U32(codes) => codes.iter().zip(with).for_each(|(&code, i)| f(code, i)),
        }
    }

    /// Marks the place of each code, counted from `first`.
    pub(crate) fn mark(self, first: usize, marks: &mut [u8]) {
        let marks = &mut marks[first..];
        self.for_each(std::iter::repeat(()), |code, ()| marks[code as usize] = 1);
    }

    /// Marks a place for each pair of a code of these and one of the others: `first + code *
    /// stride + other`.
    pub(crate) fn mark_pairs(self, others: Self, first: usize, stride: usize, marks: &mut [u8]) {
        let marks = &mut marks[first * stride..];
        let mut mark = |code: u32, other: usize| marks[code as usize * stride + other] = 1;
        match others {
            CodeSlice::U8(others) => self.for_each(others.iter(), |c, o| mark(c, o.index())),
            CodeSlice::U16(others) => self.for_each(others.iter(), |c, o| mark(c, o.index())),
            CodeSlice::U32(others) => self.for_each(others.iter(), |c, o| mark(c, o.index())),
        }
    }
}

/// The weights of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WeightSlice<'b> {
    U8(&'b [u8]),
    U16(&'b [u16]),
    F64(&'b [f64]),
}

/// Room for the weights of a block.
#[derive(Debug, Default)]
pub(crate) struct WeightScratch {
    bytes: Vec<u8>,
    words: Vec<u16>,
    floats: Vec<f64>,
}

/// The integer that a weight is, where it is one that fits.
pub(crate) fn whole_weight(weight: f64) -> Option<u16> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked by going back"
    )]
    let whole = weight as u16;
    (f64::from(whole).to_bits() == weight.to_bits()).then_some(whole)
}

impl WeightScratch {
    /// The weights of the chosen rows of a block.
    pub(crate) fn of<'b>(
        &'b mut self,
        weights: &'b Weights,
        rows: Range<usize>,
        selected: Option<&[u32]>,
    ) -> WeightSlice<'b> {
        fn gather<W: Copy>(weights: &[W], places: &[u32], into: &mut Vec<W>) {
            into.clear();
            into.extend(places.iter().map(|&place| weights[place as usize]));
        }
        match (weights, selected) {
            (Weights::All(weight), _) => {
                self.repeat(*weight, selected.map_or(rows.len(), <[u32]>::len))
            }
            (Weights::U8(weights), None) => WeightSlice::U8(&weights[rows]),
            (Weights::U16(weights), None) => WeightSlice::U16(&weights[rows]),
            (Weights::F64(weights), None) => WeightSlice::F64(&weights[rows]),
            (Weights::U8(weights), Some(places)) => {
                gather(&weights[rows], places, &mut self.bytes);
                WeightSlice::U8(&self.bytes)
            }
            (Weights::U16(weights), Some(places)) => {
                gather(&weights[rows], places, &mut self.words);
                WeightSlice::U16(&self.words)
            }
            (Weights::F64(weights), Some(places)) => {
                gather(&weights[rows], places, &mut self.floats);
                WeightSlice::F64(&self.floats)
            }
        }
    }

    fn repeat(&mut self, weight: f64, rows: usize) -> WeightSlice<'_> {
        match whole_weight(weight).map(u8::try_from) {
            Some(Ok(weight)) => {
                self.bytes.clear();
                self.bytes.resize(rows, weight);
                WeightSlice::U8(&self.bytes)
            }
            Some(Err(_)) | None => {
                self.floats.clear();
                self.floats.resize(rows, weight);
                WeightSlice::F64(&self.floats)
            }
        }
    }
}

/// A state for each group. The memory is kept when they begin anew.
#[derive(Debug, Default)]
pub(crate) struct Lanes<A> {
    states: Vec<A>,
    /// How many states a group has: [`LANES`] or one.
    lanes: usize,
}

impl<A: Copy + Default> Lanes<A> {
    /// Begins with so many groups; more of them may follow where that is not known.
    pub(crate) fn reset(&mut self, groups: Option<usize>) {
        let groups = groups.unwrap_or(usize::MAX);
        let is_small = groups.saturating_mul(LANES * size_of::<A>()) <= LANES_BYTES_MAX;
        self.lanes = if is_small { LANES } else { 1 };
        self.states.clear();
        if groups != usize::MAX {
            self.grow(groups);
        }
    }

    /// There are so many groups by now.
    pub(crate) fn grow(&mut self, groups: usize) {
        // All codes of a byte have a state, wherever they begin.
        let wanted = (groups + (1 << 8)) * self.lanes;
        if wanted > self.states.len() {
            self.states.resize(wanted, A::default());
        }
    }

    /// Adds what comes with each row to the state of its group; the first of these is `base`.
    pub(crate) fn fold<I>(
        &mut self,
        base: usize,
        codes: CodeSlice<'_>,
        with: impl Iterator<Item = I>,
        add: impl Fn(&mut A, I),
    ) {
        match codes {
            CodeSlice::U8(codes) => self.fold_codes(base, codes, with, add),
            CodeSlice::U16(codes) => self.fold_codes(base, codes, with, add),
            CodeSlice::U32(codes) => self.fold_codes(base, codes, with, add),
        }
    }

    fn fold_codes<C: Code, I>(
        &mut self,
        base: usize,
        codes: &[C],
        with: impl Iterator<Item = I>,
        add: impl Fn(&mut A, I),
    ) {
        if self.lanes == 1 {
            let states = self.states.as_chunks_mut::<1>().0;
            fold(codes, with, &mut states[base..], add);
        } else {
            let states = self.states.as_chunks_mut::<LANES>().0;
            fold(codes, with, &mut states[base..], add);
        }
    }

    /// The groups of the first so many of which a state passes a test.
    pub(crate) fn find(&self, groups: usize, test: impl Fn(&A) -> bool, into: &mut Vec<u32>) {
        fn find<const LANES: usize, A>(
            states: &[[A; LANES]],
            test: impl Fn(&A) -> bool,
            into: &mut Vec<u32>,
        ) {
            // Without branches: which of them pass can't be foreseen.
            into.resize(states.len() + 1, 0);
            let mut found = 0;
            for (group, lanes) in (0_u32..).zip(states) {
                into[found] = group;
                found += usize::from(lanes.iter().any(&test));
            }
            into.truncate(found);
        }
        if self.lanes == 1 {
            find(&self.states.as_chunks::<1>().0[..groups], test, into);
        } else {
            find(&self.states.as_chunks::<LANES>().0[..groups], test, into);
        }
    }

    /// The state of a group: its parts, put together.
    pub(crate) fn get(&self, group: usize, join: impl Fn(A, A) -> A) -> A {
        let parts = &self.states[group * self.lanes..][..self.lanes];
        parts.iter().copied().reduce(join).unwrap_or_default()
    }
}

#[inline]
fn fold<const LANES: usize, C: Code, A, I>(
    codes: &[C],
    with: impl Iterator<Item = I>,
    states: &mut [[A; LANES]],
    add: impl Fn(&mut A, I),
) {
    let states = match C::ALL {
        Some(all) => &mut states[..all],
        None => states,
    };
    for (row, (code, with)) in codes.iter().zip(with).enumerate() {
        add(&mut states[code.index()][row % LANES], with);
    }
}
