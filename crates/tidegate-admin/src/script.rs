//! Administrative SQL, written by one writer: names are always quoted, values always escaped.

use std::fmt::{self, Write as _};

use postgres_protocol::escape::{escape_identifier, escape_literal};

/// A part of a statement.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// Text that stands in our source.
    Syntax(&'static str),
    /// A name from outside.
    Name(&'a str),
    /// A name with its schema.
    Qualified(&'a str, &'a str),
    /// A value from outside.
    Value(&'a str),
    /// A value that is not shown.
    Secret(&'a str),
    /// Text that PostgreSQL itself quoted, such as a function with its arguments.
    Quoted(&'a str),
}

/// Statements that run together in one transaction, and their text for people.
#[derive(Clone, Default)]
pub struct Script {
    steps: Vec<Step>,
}

#[derive(Clone)]
enum Step {
    Note(String),
    Statement { text: String, shown: String },
}

impl Script {
    /// Adds a comment. Control characters are escaped: a name with a line break must not end it.
    pub(super) fn note(&mut self, text: impl AsRef<str>) {
        self.steps.push(Step::Note(comment(text.as_ref())));
    }

    /// Adds a statement.
    pub(super) fn push(&mut self, parts: &[Part<'_>]) {
        let mut text = String::new();
        let mut shown = String::new();
        for part in parts {
            let written = match *part {
                Part::Syntax(syntax) => syntax.to_owned(),
                Part::Name(name) => identifier(name),
                Part::Qualified(schema, name) => {
                    format!("{}.{}", identifier(schema), identifier(name))
                }
                Part::Value(value) => escape_literal(value).trim_start().to_owned(),
                Part::Quoted(quoted) => printable(quoted),
                Part::Secret(secret) => {
                    text.push_str(escape_literal(secret).trim_start());
                    shown.push_str("'…'");
                    continue;
                }
            };
            text.push_str(&written);
            shown.push_str(&written);
        }
        self.steps.push(Step::Statement { text, shown });
    }

    /// Adds the steps of another script.
    pub(super) fn append(&mut self, mut other: Self) {
        self.steps.append(&mut other.steps);
    }

    /// The statements: as they are run, and as they may be shown, without secrets.
    pub(super) fn statements(&self) -> impl Iterator<Item = (&str, &str)> {
        self.steps.iter().filter_map(|step| match step {
            Step::Statement { text, shown } => Some((text.as_str(), shown.as_str())),
            Step::Note(_) => None,
        })
    }

    /// Whether there is no statement.
    pub(super) fn is_empty(&self) -> bool {
        self.statements().next().is_none()
    }
}

impl fmt::Display for Script {
    /// The statements as `psql` would take them, but for the verifiers of passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            match step {
                Step::Note(text) => writeln!(f, "-- {text}")?,
                Step::Statement { shown, .. } => writeln!(f, "{shown};")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether a character changes how a terminal shows the text around it: control characters, and
/// the marks that set the direction of writing (Unicode, "Bidirectional Algorithm", section 2).
pub fn is_unprintable(char: char) -> bool {
    let directs = matches!(char,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    char.is_control() || directs
}

/// A quoted identifier. One with unprintable characters is written with Unicode escapes, so that SQL
/// that is shown neither reaches the terminal as a command nor breaks a line (PostgreSQL,
/// "Identifiers with Unicode Escapes").
pub(super) fn identifier(name: &str) -> String {
    if !name.contains(is_unprintable) {
        return escape_identifier(name);
    }
    let mut text = String::from("U&\"");
    for char in name.chars() {
        match char {
            '"' => text.push_str("\"\""),
            '\\' => text.push_str("\\\\"),
            char if is_unprintable(char) => {
                let _ = write!(text, "\\{:04X}", u32::from(char));
            }
            char => text.push(char),
        }
    }
    text.push('"');
    text
}

/// Text that PostgreSQL has quoted, with the quoted identifiers in it written as by [`identifier`].
pub(super) fn printable(quoted: &str) -> String {
    if !quoted.contains(is_unprintable) {
        return quoted.to_owned();
    }
    let mut text = String::new();
    let mut rest = quoted;
    while let Some(start) = rest.find('"') {
        text.push_str(&rest[..start]);
        let (name, length) = unquote(&rest[start..]);
        text.push_str(&identifier(&name));
        rest = &rest[start + length..];
    }
    text.push_str(rest);
    text
}

/// The name of the quoted identifier with which a text begins, and the length of its quoted form.
fn unquote(text: &str) -> (String, usize) {
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, char)) = chars.next() {
        if char != '"' {
            name.push(char);
        } else if chars.next_if(|(_, next)| *next == '"').is_some() {
            name.push('"');
        } else {
            return (name, at + 1);
        }
    }
    (name, text.len())
}

/// Text for a comment of one line.
pub(super) fn comment(text: &str) -> String {
    text.chars().fold(String::new(), |mut line, char| {
        if char.is_control() {
            line.extend(char.escape_unicode());
        } else {
            line.push(char);
        }
        line
    })
}

/// Joins the parts of several objects with commas.
pub(super) fn list<'a>(objects: impl IntoIterator<Item = Part<'a>>) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    for object in objects {
        if !parts.is_empty() {
            parts.push(Part::Syntax(", "));
        }
        parts.push(object);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_quoted_and_secrets_are_not_shown() {
        let mut script = Script::default();
        script.note("why");
        script.push(&[
            Part::Syntax("CREATE ROLE "),
            Part::Name("a\"b"),
            Part::Syntax(" PASSWORD "),
            Part::Secret("o'clock"),
        ]);
        script.push(&[
            Part::Syntax("COMMENT ON ROLE "),
            Part::Name("a\"b"),
            Part::Syntax(" IS "),
            Part::Value("it's \\ here"),
        ]);
        assert_eq!(
            script.to_string(),
            "-- why\nCREATE ROLE \"a\"\"b\" PASSWORD '…';\n\
             COMMENT ON ROLE \"a\"\"b\" IS E'it''s \\\\ here';\n"
        );
        let Step::Statement { text, .. } = &script.steps[1] else {
            panic!("no statement")
        };
        assert_eq!(text, "CREATE ROLE \"a\"\"b\" PASSWORD 'o''clock'");
    }

    #[test]
    fn control_characters_are_escaped_wherever_a_name_stands() {
        let mut script = Script::default();
        script.note("the role a\nDROP TABLE t");
        script.push(&[Part::Syntax("DROP ROLE "), Part::Name("\u{1b}[2J\"\\é")]);
        script.push(&[
            Part::Syntax("GRANT EXECUTE ON ROUTINE "),
            Part::Quoted("public.\"a\"\"\nb\"(integer, \"T\")"),
        ]);
        assert_eq!(
            script.to_string(),
            "-- the role a\\u{a}DROP TABLE t\nDROP ROLE U&\"\\001B[2J\"\"\\\\é\";\n\
             GRANT EXECUTE ON ROUTINE public.U&\"a\"\"\\000Ab\"(integer, \"T\");\n"
        );
    }
}
