//! Feeds the target `uri_template` from libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| refmcp_fuzz::targets::uri_template::run(bytes));
