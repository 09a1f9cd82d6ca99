//! The texts of errors.

use std::time::Duration;

use tidegate_oauth::{Error, ErrorKind, StoreError, TokenError};

fn samples() -> Vec<Error> {
    let second = Duration::from_millis(1_001);
    let faults = [
        TokenError::TooLong,
        TokenError::Malformed,
        TokenError::UnknownHeader,
        TokenError::BadSignature,
        TokenError::NotForUs,
        TokenError::Expired,
        TokenError::SessionEnded,
    ];
    let cause = || -> Box<dyn std::error::Error + Send + Sync> { "host db: password".into() };
    let mut samples: Vec<_> = faults.into_iter().map(Error::InvalidToken).collect();
    samples.extend([
        Error::Malformed {
            part: "body",
            expected: "a JSON object",
        },
        Error::MissingParameter("client_id"),
        Error::DuplicateParameter("client_id".to_owned()),
        Error::ParameterNotText("client_id"),
        Error::TwoCredentials,
        Error::UnsupportedGrantType,
        Error::GrantNotAllowed,
        Error::ForeignDatabase,
        Error::ForeignToken,
        Error::UnknownClient,
        Error::UnknownGuestClient,
        Error::ClientNotAuthenticated,
        Error::WrongCredentials,
        Error::InvalidRefreshToken,
        Error::NoDefaultUser,
        Error::TooManyAttempts {
            retry_after: second,
        },
        Error::Busy {
            retry_after: second,
        },
        Error::InvalidMember {
            member: "name",
            expected: "a name",
        },
        Error::Taken("user"),
        Error::DefaultUserTaken,
        Error::NotFound("user"),
        Error::WrongMasterKey,
        Error::DamagedKey,
        Error::KeyTooYoung { wait: second },
        Error::NoRandomness,
        Error::HasherFailed,
        Error::Store(StoreError::Unavailable(cause())),
        Error::Store(StoreError::Failed(cause())),
    ]);
    samples.extend(of_flows());
    samples
}

fn of_flows() -> [Error; 13] {
    [
        Error::UnsupportedResponseType,
        Error::UnregisteredRedirect,
        Error::InvalidCode,
        Error::AuthorizationPending,
        Error::SlowDown,
        Error::AccessDenied,
        Error::ExpiredDeviceCode,
        Error::InvalidDeviceCode,
        Error::UnknownUserCode,
        Error::SecondFactorNeeded,
        Error::SecondFactorMissing,
        Error::WrongSecondFactor,
        Error::SignUpClosed,
    ]
}

#[test]
fn no_description_has_a_colon_and_a_blank() {
    for error in samples() {
        let text = error.description();
        assert!(
            !text.contains(": ") && !text.contains('"') && text.is_ascii(),
            "{text}"
        );
        assert!(!text.is_empty() && !text.contains("host"), "{text}");
    }
}

#[test]
fn retryable_errors_say_when_to_retry() {
    for error in samples() {
        let waits = matches!(error.kind(), ErrorKind::Throttled | ErrorKind::Unavailable);
        assert_eq!(error.retry_after().is_some(), waits, "{error}");
    }
    let error = Error::TooManyAttempts {
        retry_after: Duration::from_millis(1_001),
    };
    assert_eq!(error.retry_after(), Some(2));
    let error = Error::TooManyAttempts {
        retry_after: Duration::ZERO,
    };
    assert_eq!(error.retry_after(), Some(1));
}

#[test]
fn internal_errors_reveal_nothing() {
    for error in samples()
        .into_iter()
        .filter(|error| error.kind() == ErrorKind::Internal)
    {
        assert_eq!(error.code(), "server_error");
        assert_eq!(error.description(), "internal server error");
    }
}
