//! Parses `ErrorResponse` messages.

use tidegate_sql::DatabaseError;

use super::redact_paths::shorten_paths;

/// An error as PostgreSQL sent it.
#[derive(Clone, Debug, Default)]
pub struct ServerError {
    /// The part of the error that a caller may see. Its `position` refers to the statement as
    /// PostgreSQL received it.
    pub rejection: DatabaseError,
    /// The name of the C function that raised the error. Unlike the message, it is never
    /// translated.
    pub routine: String,
    /// The number, from 1, of the parameter that PostgreSQL could not read; `None` if the error is
    /// not about reading a parameter.
    pub parameter: Option<usize>,
}

impl ServerError {
    /// Reads the fields of an `ErrorResponse` (PostgreSQL, "Error and Notice Message Fields").
    /// Unknown fields are skipped.
    pub fn read(body: &[u8]) -> Self {
        let mut error = Self::default();
        let rejection = &mut error.rejection;
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, value)) = field.split_first() else {
                continue;
            };
            let value = String::from_utf8_lossy(value).into_owned();
            match kind {
                b'C' => rejection.sqlstate = value,
                // This field is the untranslated severity. FATAL and PANIC end the session.
                b'V' => rejection.fatal = value != "ERROR",
                b'M' => rejection.message = value,
                b'D' => rejection.detail = Some(value),
                b'H' => rejection.hint = Some(value),
                b'P' => rejection.position = value.parse().ok(),
                b's' => rejection.schema = Some(value),
                b't' => rejection.table = Some(value),
                b'c' => rejection.column = Some(value),
                b'n' => rejection.constraint = Some(value),
                b'R' => error.routine = value,
                b'W' => error.parameter = parameter(&value),
                _ => {}
            }
        }
        shorten_paths(&mut error.rejection);
        error
    }

    /// The error for a statement whose cached description is stale. After this error the executor
    /// reads the description again. The SQLSTATE is 26000, as for a prepared statement that does
    /// not exist.
    pub fn stale() -> Self {
        let mut error = Self::default();
        "26000".clone_into(&mut error.rejection.sqlstate);
        error
    }

    /// Whether a stale description of the statement may have caused the error. A missing privilege
    /// (42501) has other causes, so it is excluded although its code is in class 42.
    pub fn may_be_stale_description(&self) -> bool {
        let is_of_names = self.rejection.sqlstate.starts_with("42") && !self.is("42501");
        is_of_names || self.is("08P01") || self.is("XX000")
    }

    /// Whether the error may mean that a type with a given OID does not exist.
    pub fn is_missing_type(&self) -> bool {
        self.is("42704") || self.is("XX000")
    }

    /// Whether the error has this SQLSTATE.
    pub fn is(&self, sqlstate: &str) -> bool {
        self.rejection.sqlstate == sqlstate
    }

    /// Whether the error means that the prepared statement is stale: it does not exist, or a
    /// definition that it uses has changed. In both cases the statement has not run.
    pub fn is_stale_statement(&self) -> bool {
        self.is("26000") || (self.is("0A000") && self.routine == "RevalidateCachedQuery")
    }
}

/// The parameter number in a context such as `unnamed portal parameter $1`. If an input function
/// fails during Bind, this text is the last line of the context. Its words may be translated, and
/// the value may follow the number (`$1 = …`). If the last line has a colon before `$1`, it lists
/// all parameters, and the result is `None`.
fn parameter(context: &str) -> Option<usize> {
    let (words, number) = context.lines().next_back()?.split_once(" $")?;
    let number = number
        .split_once(" = ")
        .map_or(number, |(number, _)| number);
    number.parse().ok().filter(|_| !words.ends_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_of_binding_names_a_parameter() {
        let cases = [
            ("unnamed portal parameter $2", Some(2)),
            ("unnamed portal parameter $12 = 'x $1'", Some(12)),
            (
                "PL/pgSQL function f(integer) line 1\nunnamed portal parameter $1",
                Some(1),
            ),
            ("unnamed portal with parameters: $1 = 'x', $2 = 'y'", None),
            (
                "unnamed portal parameter $1\nPL/pgSQL function f() line 1",
                None,
            ),
            ("SQL statement \"select $1\"", None),
            ("", None),
        ];
        for (context, number) in cases {
            assert_eq!(parameter(context), number, "{context}");
        }
    }

    #[test]
    fn the_fields_that_a_caller_may_see_are_kept() {
        let error = ServerError::read(
            b"SERROR\0VERROR\0C23505\0Mduplicate key\0DKey (id)=(1)\0spublic\0tartists\0\
              nartists_pkey\0P7\0Fnbtinsert.c\0L670\0R_bt_check_unique\0\0",
        );
        let rejection = &error.rejection;
        assert_eq!(rejection.sqlstate, "23505");
        assert_eq!(rejection.message, "duplicate key");
        assert_eq!(rejection.detail.as_deref(), Some("Key (id)=(1)"));
        assert_eq!(rejection.constraint.as_deref(), Some("artists_pkey"));
        assert_eq!(rejection.position, Some(7));
        assert_eq!(error.routine, "_bt_check_unique");
        assert!(!error.is_stale_statement());
    }
}
