//! Feeds the target `server_engine` from libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| refmcp_fuzz::targets::server_engine::run(bytes));
