//! What PostgreSQL says in an `ErrorResponse`.

use tidegate_sql::Rejection;

/// An error as PostgreSQL sent it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerError {
    /// What a caller may see; its position counts in the text that PostgreSQL got.
    pub(crate) rejection: Rejection,
    /// The function of PostgreSQL that raised it. Unlike the message it is not translated.
    pub(crate) routine: String,
}

impl ServerError {
    /// Reads the fields (PostgreSQL, "Error and Notice Message Fields"); unknown ones are skipped.
    pub(crate) fn read(body: &[u8]) -> Self {
        let mut error = Self::default();
        let rejection = &mut error.rejection;
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, value)) = field.split_first() else {
                continue;
            };
            let value = String::from_utf8_lossy(value).into_owned();
            match kind {
                b'C' => rejection.sqlstate = value,
                b'M' => rejection.message = value,
                b'D' => rejection.detail = Some(value),
                b'H' => rejection.hint = Some(value),
                b'P' => rejection.position = value.parse().ok(),
                b's' => rejection.schema = Some(value),
                b't' => rejection.table = Some(value),
                b'c' => rejection.column = Some(value),
                b'n' => rejection.constraint = Some(value),
                b'R' => error.routine = value,
                _ => {}
            }
        }
        error
    }

    /// What stands for a description that has changed.
    pub(crate) fn stale() -> Self {
        let mut error = Self::default();
        "26000".clone_into(&mut error.rejection.sqlstate);
        error
    }

    /// Whether a statement may have failed because its description was out of date.
    pub(crate) fn is_bad_guess(&self) -> bool {
        self.rejection.sqlstate.starts_with("42") || self.is("08P01") || self.is("XX000")
    }

    pub(crate) fn is(&self, sqlstate: &str) -> bool {
        self.rejection.sqlstate == sqlstate
    }

    /// Whether a prepared statement does not fit any more: it is gone, or a definition that it
    /// uses has changed. Nothing of the statement has run then.
    pub(crate) fn is_stale_statement(&self) -> bool {
        self.is("26000") || (self.is("0A000") && self.routine == "RevalidateCachedQuery")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
