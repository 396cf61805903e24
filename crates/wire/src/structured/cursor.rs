//! Bytes that are taken from the front. Lengths on the wire are checked against what is there,
//! and nothing is ever allocated for them.

use super::ThriftError;

#[derive(Debug, Clone)]
pub(super) struct Cursor<'m> {
    bytes: &'m [u8],
    at: usize,
}

impl<'m> Cursor<'m> {
    pub(super) fn new(bytes: &'m [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'m [u8], ThriftError> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..count);
        let taken = taken.ok_or(ThriftError::Truncated {
            at: self.bytes.len(),
            wanted: count.saturating_sub(rest.len()),
        })?;
        self.at += count;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ThriftError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ThriftError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn varint(&mut self) -> Result<u64, ThriftError> {
        let at = self.at;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ThriftError::Varint { at })
    }

    pub(super) fn zigzag(&mut self) -> Result<i64, ThriftError> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Checks a number of items, each of which takes `item_bytes` at least: a loop over them is
    /// no longer than the message.
    pub(super) fn count(&self, count: i64, item_bytes: usize) -> Result<usize, ThriftError> {
        let length = || ThriftError::Length { at: self.at, length: count };
        let items = usize::try_from(count).map_err(|_negative| length())?;
        if items > self.remaining() / item_bytes {
            return Err(length());
        }
        Ok(items)
    }
}
