//! Whole numbers that lose digits when JSON is read.

use serde_json::{Map, Value};

/// Finds the first whole number in `object` that was too large to be read exactly. Returns its
/// path, such as `org.id` or `orgs[0]`; `None` if there is no such number.
///
/// `serde_json` reads a whole number of more than 64 bits as a float and so rounds it. Two
/// different ids may then be equal. A large number that is written with an exponent, such as
/// `1e30`, cannot be distinguished from such a float, so it counts as inexact too.
pub fn inexact_number(object: &Map<String, Value>) -> Option<String> {
    let mut members = object.iter();
    members.find_map(|(name, value)| in_value(value).map(|rest| format!("{name}{rest}")))
}

/// The path from a value to its first inexact number. The path is empty if the value itself is the
/// number; `None` if there is no such number.
fn in_value(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64())?;
            // These are the limits beyond which a number does not fit into `u64` or `i64`.
            (float >= 2_f64.powi(64) || float <= -2_f64.powi(63)).then(String::new)
        }
        Value::Array(elements) => {
            let mut elements = elements.iter().enumerate();
            elements.find_map(|(index, element)| Some(format!("[{index}]{}", in_value(element)?)))
        }
        Value::Object(object) => inexact_number(object).map(|path| format!(".{path}")),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_of_more_than_64_bits_is_found_by_its_path() {
        for (text, path) in [
            (
                r#"{"a":18446744073709551615,"b":-9223372036854775808}"#,
                None,
            ),
            (
                r#"{"a":1.5,"b":1e3,"c":-0,"d":"98765432109876543210987"}"#,
                None,
            ),
            (r#"{"a":18446744073709551616}"#, Some("a")),
            (r#"{"a":-9223372036854775809}"#, Some("a")),
            (r#"{"a":1,"b":{"c":98765432109876543210987}}"#, Some("b.c")),
            (
                r#"{"a":[1,[{"b":98765432109876543210987}]]}"#,
                Some("a[1][0].b"),
            ),
        ] {
            let object = serde_json::from_str(text).unwrap();
            assert_eq!(inexact_number(&object).as_deref(), path, "{text}");
        }
    }
}
