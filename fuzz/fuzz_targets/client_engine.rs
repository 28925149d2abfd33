//! Feeds the target `client_engine` from libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| refmcp_fuzz::targets::client_engine::run(bytes));
