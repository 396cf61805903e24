//! Any bytes as a request body: `cargo +nightly fuzz run request_body fuzz/corpus/request_body fuzz/seeds/request_body`.
#![no_main]

#[path = "../src/request_body.rs"]
mod request_body;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    request_body::check(input);
});
