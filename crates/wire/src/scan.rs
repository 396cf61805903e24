//! Looking for special bytes many at a time.
//!
//! Two ways, because the cost is in mispredicted branches: short strings end at their first
//! special byte ([`skip_plain`], a word at a time); encoded texts have one every few bytes
//! ([`marks_of`], which finds those of 64 bytes without a branch, and [`WindowCopy`]).

/// How many bytes are looked at together.
const WORD: usize = size_of::<u64>();

/// How many bytes of a [`Window`] are looked at together: one bit each.
pub(crate) const BLOCK: usize = u64::BITS as usize;

/// A block and what follows it, so that copies and escapes may reach beyond the block's end.
/// Arrays of fixed size, so that the compiler knows that they don't reach beyond the window's.
pub(crate) type Window = [u8; 2 * BLOCK];

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Sets the highest bit of each byte of a word that is special: see [`equal`], [`below`] and
/// their cheaper forms.
/// Other bits don't matter. A type of its own for each set of bytes, so that it is inlined.
pub(crate) trait Special: Fn(u64) -> u64 + Copy {}

impl<F: Fn(u64) -> u64 + Copy> Special for F {}

/// Marks the bytes that are `byte`, which is below 128.
///
/// Adding 127 to seven bits carries into the eighth unless they are 0, and never beyond it.
#[inline]
pub(crate) const fn equal(word: u64, byte: u8) -> u64 {
    let zero_if_equal = word ^ (ONES * byte as u64);
    !(((zero_if_equal & !HIGHS) + !HIGHS) | zero_if_equal)
}

/// Marks the bytes that are less than `byte`, which is below 128.
#[inline]
pub(crate) const fn below(word: u64, byte: u8) -> u64 {
    !(((word & !HIGHS) + ONES * (128 - byte) as u64) | word)
}

/// Like [`equal`], in fewer steps; bytes above the first that is marked may be marked wrongly.
///
/// Subtracting 1 borrows into the eighth bit of a byte that is 0, and from then on upwards.
#[inline]
pub(crate) const fn first_equal(word: u64, byte: u8) -> u64 {
    let zero_if_equal = word ^ (ONES * byte as u64);
    zero_if_equal.wrapping_sub(ONES) & !zero_if_equal
}

/// Like [`below`], in fewer steps; bytes above the first that is marked may be marked wrongly.
#[inline]
pub(crate) const fn first_below(word: u64, byte: u8) -> u64 {
    word.wrapping_sub(ONES * byte as u64) & !word
}

/// The position of the first special byte from `at` on. Stops up to seven bytes before the end
/// if there is none.
#[inline]
pub(crate) fn skip_plain(bytes: &[u8], mut at: usize, first_special: impl Special) -> usize {
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<WORD>) {
        let marks = first_special(u64::from_le_bytes(*word)) & HIGHS;
        at += marks.trailing_zeros() as usize / 8;
        if marks != 0 {
            break;
        }
    }
    at
}

/// A bit for each special byte of the block that the window begins with.
#[inline]
pub(crate) fn marks_of(window: &Window, special: impl Special) -> u64 {
    /// Moves the lowest bit of byte `i` to bit `56 + i`.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (words, _) = window[..BLOCK].as_chunks::<WORD>();
    let mut marks = 0;
    for (index, word) in words.iter().enumerate() {
        let lows = (special(u64::from_le_bytes(*word)) & HIGHS) >> 7;
        marks |= (lows.wrapping_mul(GATHER) >> 56) << (index * WORD);
    }
    marks
}

/// A window that is being copied with some of its bytes replaced or left out.
#[derive(Debug)]
pub(crate) struct WindowCopy<'w> {
    window: &'w Window,
    out: &'w mut Window,
    /// How much of the window is dealt with.
    read: usize,
    /// How much of `out` is in use.
    written: usize,
}

impl WindowCopy<'_> {
    /// Appends to `out` what `copy` makes of the window. Returns how much of the window that
    /// was, and the answer of `copy`.
    #[inline]
    pub(crate) fn append<A>(
        window: &Window,
        out: &mut Vec<u8>,
        copy: impl FnOnce(&mut WindowCopy<'_>) -> A,
    ) -> (usize, A) {
        let start = out.len();
        out.extend_from_slice(window);
        let Some(slot) = out.last_chunk_mut() else { unreachable!("a window was just added") };
        let mut this = WindowCopy { window, out: slot, read: 0, written: 0 };
        let answer = copy(&mut this);
        let (read, written) = (this.read, this.written);
        out.truncate(start + written);
        (read, answer)
    }

    /// Copies up to `position`, which is in the window's block.
    ///
    /// Always 16 bytes, or 64: what is copied too much is overwritten by what comes next, and a
    /// copy of fixed length is a few instructions where one of any length is a call.
    #[inline]
    pub(crate) fn copy_to(&mut self, position: usize) {
        let run = position - self.read;
        self.copy::<16>();
        if run > 16 {
            self.copy::<BLOCK>();
        }
        self.read = position;
        self.written += run;
    }

    /// Puts `byte` in the place of the next `taken` bytes.
    #[inline]
    pub(crate) fn replace(&mut self, byte: u8, taken: usize) {
        self.out[self.written] = byte;
        self.written += 1;
        self.read += taken;
    }

    /// Copies what is left of the block.
    #[inline]
    pub(crate) fn finish(&mut self) {
        if self.read < BLOCK {
            self.copy_to(BLOCK);
        }
    }

    #[inline]
    fn copy<const LENGTH: usize>(&mut self) {
        let from = self.window[self.read..].first_chunk::<LENGTH>();
        let to = self.out[self.written..].first_chunk_mut::<LENGTH>();
        if let (Some(from), Some(to)) = (from, to) {
            *to = *from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn special(word: u64) -> u64 {
        equal(word, b'"') | below(word, 0x20)
    }

    fn first_special(word: u64) -> u64 {
        first_equal(word, b'"') | first_below(word, 0x20)
    }

    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![
            any::<u8>(),
            proptest::sample::select(&[b'"', b'!', b'#', 0x1f, 0x20, 0x80, 0xa2][..]),
            Just(b'a'),
            Just(b'b'),
        ]
    }

    fn is_special(byte: u8) -> bool {
        matches!(byte, b'"' | 0..0x20)
    }

    proptest! {
        #[test]
        fn the_first_special_byte_is_found(bytes in proptest::collection::vec(byte(), 0..100)) {
            let found = skip_plain(&bytes, 0, first_special);
            prop_assert!(!bytes[..found].iter().any(|&byte| is_special(byte)));
            let is_there = bytes.get(found).is_some_and(|&byte| is_special(byte));
            prop_assert!(is_there || bytes.len() - found < WORD);
        }

        #[test]
        fn all_special_bytes_of_a_block_are_found(window in proptest::array::uniform::<_, 128>(byte())) {
            let marks = marks_of(&window, special);
            for (at, &byte) in window.iter().enumerate().take(BLOCK) {
                prop_assert_eq!(marks >> at & 1 == 1, is_special(byte), "{}", at);
            }
        }

        #[test]
        fn windows_are_copied_without_what_is_replaced(window in proptest::array::uniform::<_, 128>(byte())) {
            let mut out = vec![7];
            let (read, ()) = WindowCopy::append(&window, &mut out, |copy| {
                for at in (0..BLOCK).filter(|&at| is_special(window[at])) {
                    copy.copy_to(at);
                    copy.replace(b'*', 1);
                }
                copy.finish();
            });
            let replaced = window[..BLOCK].iter().map(|&byte| if is_special(byte) { b'*' } else { byte });
            prop_assert_eq!((read, out), (BLOCK, [7].into_iter().chain(replaced).collect()));
        }
    }
}
