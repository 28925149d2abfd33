//! Feeds the target `prompt_file` from libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| refmcp_fuzz::targets::prompt_file::run(bytes));
