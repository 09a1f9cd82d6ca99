//! Golden files, which contain the expected output of tests.

use std::fs;

/// Compares text with a golden file. `path` is relative to the crate's folder, which is the current
/// folder of its tests.
///
/// # Panics
///
/// If the text differs, with the first line that differs. The text is also written to `<path>.new`.
/// After a review that file can replace the golden file.
pub fn assert_golden(path: &str, text: &str) {
    let golden = fs::read_to_string(path).unwrap();
    if golden == text {
        return;
    }
    let new = format!("{path}.new");
    fs::write(&new, text).unwrap();
    let same = golden.lines().zip(text.lines()).take_while(|(a, b)| a == b);
    let number = same.count();
    let line = |text: &str| text.lines().nth(number).unwrap_or("(end)").to_owned();
    panic!(
        "line {} of {path} differs from {new}:\n- {}\n+ {}",
        number + 1,
        line(&golden),
        line(text)
    );
}
