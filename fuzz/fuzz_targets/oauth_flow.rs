//! Feeds the target `oauth_flow` from libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| refmcp_fuzz::targets::oauth_flow::run(bytes));
