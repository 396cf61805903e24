//! Any bytes as the body of a frame of the log, behind a right checksum: record decoding must
//! neither panic nor see records that cannot be there.
#![no_main]

/// A record's length field.
const RECORD_BYTES_MIN: usize = 4;

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    if let Some(records) = perflab_log::count_records_in_body(body) {
        assert!(records * RECORD_BYTES_MIN <= body.len(), "{records} records in {} bytes", body.len());
    }
});
