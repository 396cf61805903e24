//! How the payload of a log record is read: its first byte says.

/// What the bytes after the first one of a log record's payload are. The numbers are part of
/// the log's format: they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// A JSON object or a line of text, as it was sent.
    Message = 1,
    /// A Thrift `WriteStructuredMessage` in the binary protocol.
    Structured = 2,
    /// An Arrow IPC stream of one record batch: many rows.
    Bulk = 3,
}

/// A payload that no codec reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    #[error("the log record has no payload")]
    Empty,
    #[error("the log record has codec {0}, which this version does not know")]
    Unknown(u8),
}

impl Codec {
    /// The first byte of the payload.
    pub fn byte(self) -> u8 {
        self as u8
    }

    /// Takes a log record's payload apart.
    pub fn split(payload: &[u8]) -> Result<(Self, &[u8]), CodecError> {
        let (&codec, message) = payload.split_first().ok_or(CodecError::Empty)?;
        Ok((Self::try_from(codec)?, message))
    }
}

impl TryFrom<u8> for Codec {
    type Error = CodecError;

    fn try_from(byte: u8) -> Result<Self, CodecError> {
        match byte {
            1 => Ok(Self::Message),
            2 => Ok(Self::Structured),
            3 => Ok(Self::Bulk),
            other => Err(CodecError::Unknown(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_come_apart_as_they_were_put_together() {
        for codec in [Codec::Message, Codec::Structured, Codec::Bulk] {
            assert_eq!(Codec::split(&[codec.byte(), 7, 8]), Ok((codec, &[7, 8][..])));
        }
        assert_eq!(Codec::split(&[]), Err(CodecError::Empty));
        assert_eq!(Codec::split(&[0]), Err(CodecError::Unknown(0)));
        assert_eq!(Codec::split(&[4, 1]), Err(CodecError::Unknown(4)));
    }
}
