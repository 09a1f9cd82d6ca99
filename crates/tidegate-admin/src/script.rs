//! Builds administrative SQL: names are always quoted, values always escaped.

use std::fmt::{self, Write as _};

use postgres_protocol::escape::{escape_identifier, escape_literal};

/// A part of a statement.
#[derive(Clone, Copy)]
pub(super) enum SqlPart<'a> {
    /// Text from Tidegate's source code.
    Syntax(&'static str),
    /// A name, which is written as a quoted identifier.
    Name(&'a str),
    /// The schema and the name of an object.
    Qualified(&'a str, &'a str),
    /// A value, which is written as an escaped literal.
    Value(&'a str),
    /// A secret value. It is written as an escaped literal, but is not displayed.
    Secret(&'a str),
    /// Text that PostgreSQL has quoted, such as a function with its arguments.
    Quoted(&'a str),
}

/// Statements that run in one transaction, and their text for display.
#[derive(Clone, Default)]
pub struct Script {
    steps: Vec<ScriptStep>,
}

#[derive(Clone)]
enum ScriptStep {
    Note(String),
    Statement { text: String, shown: String },
}

impl Script {
    /// Adds a comment. Control characters are escaped, so that a name with a line break cannot end
    /// the comment.
    pub(super) fn note(&mut self, text: impl AsRef<str>) {
        self.steps.push(ScriptStep::Note(comment(text.as_ref())));
    }

    pub(super) fn push(&mut self, parts: &[SqlPart<'_>]) {
        let mut text = String::new();
        let mut shown = String::new();
        for part in parts {
            let written = match *part {
                SqlPart::Syntax(syntax) => syntax.to_owned(),
                SqlPart::Name(name) => identifier(name),
                SqlPart::Qualified(schema, name) => {
                    format!("{}.{}", identifier(schema), identifier(name))
                }
                SqlPart::Value(value) => escape_literal(value).trim_start().to_owned(),
                SqlPart::Quoted(quoted) => printable(quoted),
                SqlPart::Secret(secret) => {
                    text.push_str(escape_literal(secret).trim_start());
                    shown.push_str("'…'");
                    continue;
                }
            };
            text.push_str(&written);
            shown.push_str(&written);
        }
        self.steps.push(ScriptStep::Statement { text, shown });
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.steps.append(&mut other.steps);
    }

    /// For each statement, the SQL that runs, and the SQL for display, which has no secrets.
    /// Comments are left out.
    pub(super) fn statements(&self) -> impl Iterator<Item = (&str, &str)> {
        self.steps.iter().filter_map(|step| match step {
            ScriptStep::Statement { text, shown } => Some((text.as_str(), shown.as_str())),
            ScriptStep::Note(_) => None,
        })
    }

    /// Whether the script has no statement. Comments do not count.
    pub(super) fn is_empty(&self) -> bool {
        self.statements().next().is_none()
    }
}

impl fmt::Display for Script {
    /// Writes the statements and comments as input for `psql`. Secrets are replaced by `'…'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            match step {
                ScriptStep::Note(text) => writeln!(f, "-- {text}")?,
                ScriptStep::Statement { shown, .. } => writeln!(f, "{shown};")?,
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

/// Whether a character changes how a terminal displays the text around it: control characters, and
/// marks that set the direction of writing (Unicode, "Bidirectional Algorithm", section 2).
pub fn is_unprintable(char: char) -> bool {
    let directs = matches!(char,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    char.is_control() || directs
}

/// Quotes an identifier. Unprintable characters are written as Unicode escapes, so that displayed
/// SQL cannot control a terminal or break a line (PostgreSQL, "Identifiers with Unicode Escapes").
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

/// Rewrites text that PostgreSQL has quoted: quoted identifiers are written as [`identifier`]
/// writes them.
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

/// Parses the quoted identifier at the start of a text. Returns the name, and the length of the
/// quoted form in bytes.
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

/// Text for a comment of one line, with control characters escaped.
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

/// Returns `objects` with a comma between each two of them.
pub(super) fn list<'a>(objects: impl IntoIterator<Item = SqlPart<'a>>) -> Vec<SqlPart<'a>> {
    let mut parts = Vec::new();
    for object in objects {
        if !parts.is_empty() {
            parts.push(SqlPart::Syntax(", "));
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
            SqlPart::Syntax("CREATE ROLE "),
            SqlPart::Name("a\"b"),
            SqlPart::Syntax(" PASSWORD "),
            SqlPart::Secret("o'clock"),
        ]);
        script.push(&[
            SqlPart::Syntax("COMMENT ON ROLE "),
            SqlPart::Name("a\"b"),
            SqlPart::Syntax(" IS "),
            SqlPart::Value("it's \\ here"),
        ]);
        assert_eq!(
            script.to_string(),
            "-- why\nCREATE ROLE \"a\"\"b\" PASSWORD '…';\n\
             COMMENT ON ROLE \"a\"\"b\" IS E'it''s \\\\ here';\n"
        );
        let ScriptStep::Statement { text, .. } = &script.steps[1] else {
            panic!("no statement")
        };
        assert_eq!(text, "CREATE ROLE \"a\"\"b\" PASSWORD 'o''clock'");
    }

    #[test]
    fn control_characters_are_escaped_wherever_a_name_stands() {
        let mut script = Script::default();
        script.note("the role a\nDROP TABLE t");
        script.push(&[
            SqlPart::Syntax("DROP ROLE "),
            SqlPart::Name("\u{1b}[2J\"\\é"),
        ]);
        script.push(&[
            SqlPart::Syntax("GRANT EXECUTE ON ROUTINE "),
            SqlPart::Quoted("public.\"a\"\"\nb\"(integer, \"T\")"),
        ]);
        assert_eq!(
            script.to_string(),
            "-- the role a\\u{a}DROP TABLE t\nDROP ROLE U&\"\\001B[2J\"\"\\\\é\";\n\
             GRANT EXECUTE ON ROUTINE public.U&\"a\"\"\\000Ab\"(integer, \"T\");\n"
        );
    }
}
