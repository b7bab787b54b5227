#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| containerpilot_fuzzing::run("recording", bytes));
