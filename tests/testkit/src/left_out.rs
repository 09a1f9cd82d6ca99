//! Tests that are left out where an optional part is missing (docs/TESTING.md).

/// Prints that a test, or a part of it, is left out. `reason` says what is missing.
///
/// # Panics
///
/// If `TIDEGATE_TEST_REQUIRE` contains `part`.
#[expect(
    clippy::print_stderr,
    reason = "a test that is left out must not look like one that passed"
)]
pub fn left_out(part: &str, reason: &str) {
    assert!(!is_required(part), "{reason}");
    eprintln!("left out: {reason}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests have no caller who could say what must be there"
)]
fn is_required(part: &str) -> bool {
    std::env::var("TIDEGATE_TEST_REQUIRE").is_ok_and(|parts| parts.split(',').any(|it| it == part))
}
