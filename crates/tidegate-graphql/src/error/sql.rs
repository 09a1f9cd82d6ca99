//! Maps errors of statements to GraphQL errors.

use std::time::Duration;

use tidegate_sql::{DatabaseError, DatabaseName, InputError, Principal};
use tidegate_values::ValueError;

use super::{Code, Error};

/// How long a client must wait before it retries a request whose PostgreSQL session ended.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Error {
    /// The GraphQL error for an error of a statement that ran as `principal`. If `anonymous` is
    /// true, the caller has no token, and a missing privilege is reported as `UNAUTHENTICATED`.
    ///
    /// # Errors
    ///
    /// An error that is not reported in a GraphQL response, for example because the database is
    /// unavailable or the service itself failed. If PostgreSQL ended the session, the error is
    /// [`tidegate_sql::Error::Unavailable`].
    pub(crate) fn of_sql(
        error: tidegate_sql::Error,
        principal: &Principal,
        anonymous: bool,
    ) -> Result<Self, tidegate_sql::Error> {
        Ok(match error {
            tidegate_sql::Error::Input(InputError::Value(ValueError::InvalidValue {
                place,
                expected,
                problem,
            })) => Self::input(format!("`{place}` is not a {expected}: {problem}")),
            tidegate_sql::Error::Input(error) => Self::input(error.to_string()),
            tidegate_sql::Error::Rejected(rejection) if rejection.fatal => {
                return Err(tidegate_sql::Error::Unavailable {
                    retry_after: RETRY_AFTER,
                    source: Some(rejection),
                });
            }
            tidegate_sql::Error::Rejected(rejection) => {
                Self::rejected(code(&rejection, anonymous), rejection)
            }
            tidegate_sql::Error::Unavailable {
                retry_after,
                source: Some(source),
            } => match source.downcast::<DatabaseError>() {
                Ok(rejection) if !rejection.fatal => Self::with_hidden_cause(&rejection, principal),
                Ok(rejection) => {
                    return Err(tidegate_sql::Error::Unavailable {
                        retry_after,
                        source: Some(rejection),
                    });
                }
                Err(source) => {
                    return Err(tidegate_sql::Error::Unavailable {
                        retry_after,
                        source: Some(source),
                    });
                }
            },
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

    fn rejected(code: Code, rejection: Box<DatabaseError>) -> Self {
        let message = match &rejection.place {
            Some(place) => format!("`{place}`: {}", rejection.message),
            None => rejection.message.clone(),
        };
        let mut error = Self::new(code, message);
        error.rejection = Some(rejection);
        error
    }

    /// The error for a rejection whose cause is a resource outside the database, such as memory,
    /// disk space or a foreign server. PostgreSQL's message may name hosts and files, so it is only
    /// logged.
    fn with_hidden_cause(rejection: &DatabaseError, principal: &Principal) -> Self {
        let database = principal.database().map(DatabaseName::as_str);
        let role = match principal {
            Principal::Role(login) => Some(login.role.as_str()),
            Principal::Control | Principal::Catalog(_) => None,
        };
        tracing::warn!(database, role, cause = %rejection, "statement failed in PostgreSQL");
        let code = DatabaseError {
            sqlstate: rejection.sqlstate.clone(),
            ..DatabaseError::default()
        };
        let mut error = Self::new(Code::Internal, "the database cannot do this now");
        error.rejection = Some(Box::new(code));
        error
    }
}

/// The code for an SQLSTATE (PostgreSQL, "PostgreSQL Error Codes").
fn code(rejection: &DatabaseError, anonymous: bool) -> Code {
    let sqlstate = &*rejection.sqlstate;
    match sqlstate {
        "42501" if anonymous => Code::Unauthenticated,
        "42501" | "25006" => Code::Forbidden,
        "40001" | "40P01" | "55P03" => Code::Conflict,
        // An error with a position is in the SQL that this service wrote, because an error inside a
        // function of the database has no position. The cause is a stale cached schema, and the
        // next request uses a new one.
        _ if sqlstate.starts_with("42") && rejection.position.is_some() => Code::Conflict,
        "57014" => Code::Timeout,
        // The statement exceeds a limit that PostgreSQL's configuration sets, such as
        // `temp_file_limit`.
        "53400" => Code::TooComplex,
        _ => match sqlstate.get(..2).unwrap_or_default() {
            "23" | "44" => Code::ConstraintViolation,
            "28" => Code::Forbidden,
            "40" => Code::Conflict,
            "08" | "53" | "58" | "F0" | "XX" => Code::Internal,
            "57" if sqlstate.starts_with("57P0") => Code::Internal,
            "54" => Code::TooComplex,
            _ => Code::BadUserInput,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_word() {
        let cases = [
            ("23505", Code::ConstraintViolation),
            ("23502", Code::ConstraintViolation),
            ("44000", Code::ConstraintViolation),
            ("42501", Code::Forbidden),
            ("40001", Code::Conflict),
            ("57014", Code::Timeout),
            ("22P02", Code::BadUserInput),
            ("P0001", Code::BadUserInput),
            ("MY001", Code::BadUserInput),
            ("53300", Code::Internal),
            ("53400", Code::TooComplex),
            ("57P01", Code::Internal),
            ("XX000", Code::Internal),
        ];
        for (sqlstate, expected) in cases {
            assert_eq!(
                code(&database_error(sqlstate, None), false),
                expected,
                "{sqlstate}"
            );
        }
        let forbidden = database_error("42501", None);
        assert_eq!(code(&forbidden, true), Code::Unauthenticated);
        // In generated SQL, these errors mean that a definition changed.
        for sqlstate in ["42P01", "42703", "42883", "42804"] {
            assert_eq!(
                code(&database_error(sqlstate, Some(9)), false),
                Code::Conflict
            );
            assert_eq!(
                code(&database_error(sqlstate, None), false),
                Code::BadUserInput
            );
        }
    }

    fn database_error(sqlstate: &str, position: Option<u32>) -> DatabaseError {
        DatabaseError {
            sqlstate: sqlstate.to_owned(),
            position,
            ..DatabaseError::default()
        }
    }

    #[test]
    fn only_what_a_living_session_says_is_of_a_field() {
        let database_error = |fatal| DatabaseError {
            sqlstate: "57P01".to_owned(),
            message: "the host is db-7".to_owned(),
            hint: Some("ask db-8".to_owned()),
            fatal,
            ..DatabaseError::default()
        };
        let away = |source: Box<dyn std::error::Error + Send + Sync>| {
            let (retry_after, source) = (RETRY_AFTER, Some(source));
            let error = tidegate_sql::Error::Unavailable {
                retry_after,
                source,
            };
            Error::of_sql(error, &Principal::Control, false)
        };
        let error = away(Box::new(database_error(false))).unwrap();
        assert_eq!(error.code, Code::Internal);
        let rejection = *error.rejection.unwrap();
        assert_eq!(
            rejection,
            DatabaseError {
                sqlstate: "57P01".to_owned(),
                ..DatabaseError::default()
            }
        );
        assert!(!error.message.contains("db-"), "{}", error.message);
        away(Box::new(database_error(true))).unwrap_err();
        away("no route".into()).unwrap_err();
        let gone = tidegate_sql::Error::Rejected(Box::new(database_error(true)));
        Error::of_sql(gone, &Principal::Control, false).unwrap_err();
    }
}
