//! Shortens paths of server files in errors that clients may see.

use tidegate_sql::DatabaseError;

/// Shortens each quoted path of a file to the file's name. Errors that are not about files stay
/// unchanged, because their quotes contain text of the caller.
pub(crate) fn shorten_paths(rejection: &mut DatabaseError) {
    if !is_about_files(&rejection.sqlstate) {
        return;
    }
    shorten(&mut rejection.message);
    for text in [&mut rejection.detail, &mut rejection.hint] {
        text.as_mut().map(shorten);
    }
}

/// Whether errors with this SQLSTATE can be about files. This is true for PostgreSQL's classes of
/// system, configuration and internal errors, for the codes of failed system calls
/// (`errcode_for_file_access`), and for 0A000, which CREATE EXTENSION uses.
fn is_about_files(sqlstate: &str) -> bool {
    matches!(sqlstate, "0A000" | "42501" | "42809" | "53100")
        || ["58", "F0", "XX"].contains(&sqlstate.get(..2).unwrap_or_default())
}

fn shorten(text: &mut String) {
    // The parts with odd indexes are inside quotes.
    let parts = text.split('"').enumerate().map(|(at, part)| {
        let is_path = at % 2 == 1
            && (part.starts_with('/')
                || ["base/", "global/", "pg_"]
                    .iter()
                    .any(|folder| part.starts_with(folder) && part.contains('/')));
        match part.rsplit_once('/') {
            Some((_, name)) if is_path => name,
            _ => part,
        }
    });
    *text = parts.collect::<Vec<_>>().join("\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_path_its_last_part_is_left() {
        for (sqlstate, before, after) in [
            (
                "0A000",
                "Could not open extension control file \"/usr/share/extension/x.control\": gone.",
                "Could not open extension control file \"x.control\": gone.",
            ),
            (
                "53100",
                "could not extend file \"base/16384/2619\": no space",
                "could not extend file \"2619\": no space",
            ),
            ("58P01", "\"pg_wal/1\" and \"/a/b", "\"1\" and \"b"),
            (
                "42501",
                "permission denied for schema \"a/b\"",
                "permission denied for schema \"a/b\"",
            ),
            (
                "22P02",
                "invalid input syntax for type integer: \"/usr/share/x\"",
                "invalid input syntax for type integer: \"/usr/share/x\"",
            ),
        ] {
            let mut rejection = DatabaseError {
                sqlstate: sqlstate.to_owned(),
                message: before.to_owned(),
                detail: Some(before.to_owned()),
                ..DatabaseError::default()
            };
            shorten_paths(&mut rejection);
            assert_eq!(rejection.message, after);
            assert_eq!(rejection.detail.as_deref(), Some(after));
        }
    }
}
