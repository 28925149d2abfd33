//! Feeds the target `metadata` from libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| refmcp_fuzz::targets::metadata::run(bytes));
