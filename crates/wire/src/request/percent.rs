//! Percent-encoding of forms.

use crate::scan::{self, Window, WindowCopy};

/// What doesn't stand for itself.
#[inline]
fn special(word: u64) -> u64 {
    scan::equal(word, b'%') | scan::equal(word, b'+')
}

const NO_DIGIT: u8 = 0xff;

/// The value of each byte as a hexadecimal digit.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0_u8;
    while value < 16 {
        digits[b"0123456789abcdef"[value as usize] as usize] = value;
        digits[b"0123456789ABCDEF"[value as usize] as usize] = value;
        value += 1;
    }
    digits
};

/// Decodes one key or value of a form: `+` is a space, `%XX` a byte. A `%` without two digits
/// stands for itself, as in every browser.
pub(super) fn decode(encoded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(encoded.len() + size_of::<Window>());
    let mut rest = encoded;
    while let Some(window) = rest.first_chunk() {
        let (read, ()) = WindowCopy::append(window, &mut decoded, |copy| {
            decode_window(window, copy);
        });
        rest = &rest[read..];
    }
    while let Some(&byte) = rest.first() {
        let (byte, taken) = match (byte, rest) {
            (b'%', [_, high, low, ..]) => digits(*high, *low).map_or((b'%', 1), |byte| (byte, 3)),
            (b'+', _) => (b' ', 1),
            _ => (byte, 1),
        };
        decoded.push(byte);
        rest = &rest[taken..];
    }
    decoded
}

#[inline]
fn decode_window(window: &Window, copy: &mut WindowCopy<'_>) {
    let mut marks = scan::marks_of(window, special);
    while marks != 0 {
        let position = marks.trailing_zeros() as usize;
        marks &= marks - 1;
        copy.copy_to(position);
        if window[position] == b'+' {
            copy.replace(b' ', 1);
        } else if let Some(byte) = digits(window[position + 1], window[position + 2]) {
            copy.replace(byte, 3);
        } else {
            copy.replace(b'%', 1);
        }
    }
    copy.finish();
}

/// The byte that two hexadecimal digits stand for.
#[inline]
fn digits(high: u8, low: u8) -> Option<u8> {
    let (high, low) = (DIGITS[usize::from(high)], DIGITS[usize::from(low)]);
    // A digit is below 16: only `NO_DIGIT` sets any of the upper bits.
    ((high | low) < 16).then_some(high << 4 | low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_that_are_none_stand_for_themselves() {
        assert_eq!(decode(b"a%2Fb+c%2fd"), b"a/b c/d");
        assert_eq!(decode(b"%"), b"%");
        assert_eq!(decode(b"100%+%4%zz%e9"), b"100% %4%zz\xe9");
    }

    proptest! {
        #[test]
        fn it_decodes_what_browsers_encode(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let encoded: String = form_urlencoded::byte_serialize(&bytes).collect();
            prop_assert_eq!(decode(encoded.as_bytes()), bytes);
        }

        #[test]
        fn it_decodes_anything_like_the_reference(encoded in "[%+a-f0-9Xé&]{0,400}") {
            let reference: Vec<u8> = form_urlencoded::parse(format!("k={}", encoded.replace('&', "%26")).as_bytes())
                .next().map(|(_, value)| value.into_owned().into_bytes()).unwrap_or_default();
            let decoded = String::from_utf8_lossy(&decode(encoded.replace('&', "%26").as_bytes())).into_owned();
            prop_assert_eq!(decoded.into_bytes(), reference);
        }
    }
}
