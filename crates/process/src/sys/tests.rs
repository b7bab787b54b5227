#![forbid(unsafe_code)]

#[test]
fn released_code_still_runs() {
    super::release_unused_memory();
    assert_eq!(format!("{:.3}", 1.0 / 3.0), "0.333");
}
