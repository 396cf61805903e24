//! Reading Arrow streams that anyone may have made.
//!
//! Arrow's reader believes the lengths that a stream gives and takes that much memory, and where
//! they contradict each other it may panic. So lengths are checked first, and a panic counts as
//! an error: it is one of an assertion, and leaves nothing behind.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::{MessageHeader, root_as_message};

use super::BULK_ROWS_MAX;

/// What a length may be preceded by.
const CONTINUATION: u32 = u32::MAX;

/// All batches of a stream.
pub(super) fn read(stream: &[u8]) -> Result<Vec<RecordBatch>, ArrowError> {
    check_lengths(stream).map_err(|what| ArrowError::IpcError(what.to_owned()))?;
    let read = || StreamReader::try_new(Cursor::new(stream), None)?.collect();
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ArrowError::IpcError("its parts contradict each other".to_owned())))
}

/// Whether every part of the stream lies within it, and no batch has more rows than its bytes can
/// hold.
fn check_lengths(mut rest: &[u8]) -> Result<(), &'static str> {
    while !rest.is_empty() {
        let mut length = take_u32(&mut rest)?;
        if length == CONTINUATION {
            length = take_u32(&mut rest)?;
        }
        if length == 0 {
            return Ok(());
        }
        let head = take(&mut rest, u64::from(length))?;
        let message =
            root_as_message(head).map_err(|_invalid| "the head of a message can't be read")?;
        let body =
            u64::try_from(message.bodyLength()).map_err(|_negative| "a length is negative")?;
        take(&mut rest, body)?;
        let rows = match message.header_type() {
            MessageHeader::RecordBatch => message.header_as_record_batch().map(|b| b.length()),
            _ => None,
        };
        // A row takes at least a bit, unless it has no values at all.
        let rows_max = body.saturating_mul(8).max(BULK_ROWS_MAX as u64);
        if rows.is_some_and(|rows| u64::try_from(rows).is_ok_and(|rows| rows > rows_max)) {
            return Err("a batch says that it has more rows than its bytes can hold");
        }
    }
    Ok(())
}

fn take<'s>(rest: &mut &'s [u8], length: u64) -> Result<&'s [u8], &'static str> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let (taken, after) = rest.split_at_checked(length).ok_or("it is cut off")?;
    *rest = after;
    Ok(taken)
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, &'static str> {
    let bytes = take(rest, 4)?;
    Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte)))
}
