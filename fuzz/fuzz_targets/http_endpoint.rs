//! Feeds the target `http_endpoint` from libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| refmcp_fuzz::targets::http_endpoint::run(bytes));
