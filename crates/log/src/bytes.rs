//! Little-endian numbers and length-prefixed strings: the alphabet of every file of the log.

/// Appends fields to a buffer.
pub(crate) trait Put {
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    fn put_i64(&mut self, value: i64);
    /// A string of less than 64 KiB, with its length in front.
    fn put_str(&mut self, value: &str);
}

impl Put for Vec<u8> {
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_i64(&mut self, value: i64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_str(&mut self, value: &str) {
        let len = u16::try_from(value.len()).expect("names are limited to less than 64 KiB");
        self.put_u16(len);
        self.extend_from_slice(value.as_bytes());
    }
}

/// Takes fields off the front of a slice; `None` when it ends too early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(front)
    }

    fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn take_u16(&mut self) -> Option<u16> {
        self.take_array().map(u16::from_le_bytes)
    }

    pub(crate) fn take_u32(&mut self) -> Option<u32> {
        self.take_array().map(u32::from_le_bytes)
    }

    pub(crate) fn take_u64(&mut self) -> Option<u64> {
        self.take_array().map(u64::from_le_bytes)
    }

    pub(crate) fn take_i64(&mut self) -> Option<i64> {
        self.take_array().map(i64::from_le_bytes)
    }

    pub(crate) fn take_str(&mut self) -> Option<&'a str> {
        let len = self.take_u16()?;
        std::str::from_utf8(self.take(usize::from(len))?).ok()
    }
}
