//! Texts with `:name` as the placeholder of a parameter.

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplatePart {
    /// Text that is copied unchanged.
    Text(String),
    /// The value of the parameter with this index.
    Parameter(usize),
}

/// Splits a text at the parameters with these names. `::type` is a cast and not a parameter.
pub(crate) fn split(text: &str, names: &[&str]) -> Vec<TemplatePart> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let (before, after) = rest.split_at(at);
        plain.push_str(before);
        let colons = after.len() - after.trim_start_matches(':').len();
        let after_colons = &after[colons..];
        let word = after_colons
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map_or(after_colons, |end| &after_colons[..end]);
        match names.iter().position(|name| *name == word) {
            Some(index) if colons == 1 => {
                parts.push(TemplatePart::Text(std::mem::take(&mut plain)));
                parts.push(TemplatePart::Parameter(index));
            }
            _ => plain.push_str(&after[..colons + word.len()]),
        }
        rest = &after_colons[word.len()..];
    }
    plain.push_str(rest);
    parts.push(TemplatePart::Text(plain));
    parts.retain(|part| *part != TemplatePart::Text(String::new()));
    parts
}

/// Joins the parts. `value` returns the text for the parameter with an index.
pub(crate) fn join(parts: &[TemplatePart], value: impl Fn(usize) -> String) -> String {
    let part = |part: &TemplatePart| match part {
        TemplatePart::Text(text) => text.clone(),
        TemplatePart::Parameter(index) => value(*index),
    };
    parts.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::{TemplatePart, join, split};

    #[test]
    fn parameters_are_found_by_their_whole_name() {
        let parts = split("a = :id and b = :ident and c = :id::int", &["id"]);
        let text = |text: &str| TemplatePart::Text(text.to_owned());
        assert_eq!(
            parts,
            [
                text("a = "),
                TemplatePart::Parameter(0),
                text(" and b = :ident and c = "),
                TemplatePart::Parameter(0),
                text("::int"),
            ]
        );
        assert_eq!(split("x::id", &["id"]), [text("x::id")]);
    }

    #[test]
    fn a_template_in_json_is_filled() {
        let parts = split(r#"{"id": :id, "price": ":id.25"}"#, &["id"]);
        let filled = join(&parts, |_| "7".to_owned());
        assert_eq!(filled, r#"{"id": 7, "price": "7.25"}"#);
    }
}
