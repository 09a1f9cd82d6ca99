//! Converts names to `PascalCase` and `camelCase`.

/// Splits a name at `_` and at every character that GraphQL does not allow, and joins the pieces,
/// each with a capital first letter. A leading digit gets the prefix `T`. The result is empty if no
/// character is left.
fn join_words(name: &str) -> String {
    let mut joined = String::with_capacity(name.len());
    for piece in name.split(|character: char| !character.is_ascii_alphanumeric()) {
        let mut characters = piece.chars();
        let Some(first) = characters.next() else {
            continue;
        };
        if joined.is_empty() && first.is_ascii_digit() {
            joined.push('T');
        }
        joined.push(first.to_ascii_uppercase());
        joined.push_str(characters.as_str());
    }
    joined
}

/// Converts a name to `PascalCase`: `my_table` becomes `MyTable`. A name without valid characters
/// becomes `Table`.
pub(super) fn pascal_case(name: &str) -> String {
    let joined = join_words(name);
    if joined.is_empty() {
        "Table".to_owned()
    } else {
        joined
    }
}

/// Converts a name to `camelCase`: `my_table` becomes `myTable`.
pub(super) fn camel_case(name: &str) -> String {
    let mut joined = pascal_case(name);
    if let Some(first) = joined.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    joined
}

/// Joins the columns of a key into a suffix: `(a_id, b)` becomes `ByAIdB`.
pub(super) fn by_columns<'a>(columns: impl Iterator<Item = &'a str>) -> String {
    let mut suffix = String::from("By");
    columns.for_each(|column| suffix.push_str(&join_words(column)));
    suffix
}
