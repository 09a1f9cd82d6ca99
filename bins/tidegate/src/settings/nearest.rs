//! Suggests a setting for a mistyped name.

use strsim::osa_distance;

use super::table::{Setting, TABLE};

/// The setting whose name has the smallest edit distance from `name`. If this distance is too
/// large, returns `None`, unless `name` has at least three bytes and the setting's name contains
/// `name`.
pub(super) fn nearest(name: &str) -> Option<&'static Setting> {
    let scored = TABLE
        .iter()
        .map(|setting| (osa_distance(name, setting.name), setting));
    let (distance, setting) = scored.min_by_key(|(distance, _)| *distance)?;
    let contained = setting.name.contains(name) && name.len() > 2;
    (distance <= setting.name.len() / 2 || contained).then_some(setting)
}
