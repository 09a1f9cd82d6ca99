//! What errors of statements mean to a GraphQL client.

use tidegate_sql::{InputError, Rejection};

use super::{Code, Error};

impl Error {
    /// What an error of a statement means; `anonymous` tells whether the caller might do better
    /// with a token.
    ///
    /// # Errors
    ///
    /// The error itself when the database is away or broken: that is no answer of this protocol.
    pub(crate) fn of_sql(
        error: tidegate_sql::Error,
        anonymous: bool,
    ) -> Result<Self, tidegate_sql::Error> {
        Ok(match error {
            tidegate_sql::Error::Input(InputError::InvalidValue {
                place,
                expected,
                problem,
            }) => Self::input(format!("`{place}` is not a {expected}: {problem}")),
            tidegate_sql::Error::Input(error) => Self::input(error.to_string()),
            tidegate_sql::Error::Rejected(rejection) => {
                match code(&rejection.sqlstate, anonymous) {
                    Some(code) => Self::rejected(code, rejection),
                    None => return Err(tidegate_sql::Error::Rejected(rejection)),
                }
            }
            tidegate_sql::Error::Deadline => {
                Self::new(Code::Timeout, "the request did not end before its deadline")
            }
            tidegate_sql::Error::ResultTooLarge(limit) => Self::new(
                Code::TooComplex,
                format!("the result is larger than {limit} bytes"),
            ),
            away => return Err(away),
        })
    }

    fn rejected(code: Code, rejection: Box<Rejection>) -> Self {
        let message = match &rejection.place {
            Some(place) => format!("`{place}`: {}", rejection.message),
            None => rejection.message.clone(),
        };
        let mut error = Self::new(code, message);
        error.rejection = Some(rejection);
        error
    }
}

/// The word for an SQLSTATE (PostgreSQL, "PostgreSQL Error Codes"); `None` when the database is
/// away or broken, which whoever serves tells its log.
fn code(sqlstate: &str, anonymous: bool) -> Option<Code> {
    Some(match sqlstate {
        "42501" if anonymous => Code::Unauthenticated,
        "42501" | "25006" => Code::Forbidden,
        // What the schema said is not true any more; the next request knows the new one.
        "40001" | "40P01" | "55P03" | "42P01" | "42703" => Code::Conflict,
        "57014" => Code::Timeout,
        _ => match sqlstate.get(..2).unwrap_or_default() {
            "23" | "44" => Code::ConstraintViolation,
            "28" => Code::Forbidden,
            "40" => Code::Conflict,
            "08" | "53" | "58" | "F0" | "XX" => return None,
            "57" if sqlstate.starts_with("57P0") => return None,
            "54" => Code::TooComplex,
            _ => Code::BadUserInput,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_word() {
        let cases = [
            ("23505", Some(Code::ConstraintViolation)),
            ("23502", Some(Code::ConstraintViolation)),
            ("44000", Some(Code::ConstraintViolation)),
            ("42501", Some(Code::Forbidden)),
            ("40001", Some(Code::Conflict)),
            ("57014", Some(Code::Timeout)),
            ("22P02", Some(Code::BadUserInput)),
            ("P0001", Some(Code::BadUserInput)),
            ("MY001", Some(Code::BadUserInput)),
            ("53300", None),
            ("57P01", None),
            ("XX000", None),
        ];
        for (sqlstate, expected) in cases {
            assert_eq!(code(sqlstate, false), expected, "{sqlstate}");
        }
        assert_eq!(code("42501", true), Some(Code::Unauthenticated));
    }
}
