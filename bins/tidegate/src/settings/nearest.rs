//! Suggests a setting for a mistyped name.

use super::table::{Setting, TABLE};

/// The setting with the most similar name, if any is similar enough.
pub(super) fn nearest(name: &str) -> Option<&'static Setting> {
    let scored = TABLE
        .iter()
        .map(|setting| (distance(name, setting.name), setting));
    let (distance, setting) = scored.min_by_key(|(distance, _)| *distance)?;
    let contained = setting.name.contains(name) && name.len() > 2;
    (distance <= setting.name.len() / 2 || contained).then_some(setting)
}

/// How many letters must be inserted, deleted, replaced or swapped with a neighbour (optimal string
/// alignment distance).
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut rows = vec![(0..=right.len()).collect::<Vec<_>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut best = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}
