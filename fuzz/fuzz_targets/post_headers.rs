//! Feeds the target `post_headers` from libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| refmcp_fuzz::targets::post_headers::run(bytes));
