//! Tests of the texts of errors.

use std::time::Duration;

use tidegate_identity::{Error as IdentityError, StoreError};
use tidegate_oauth::{Error, ErrorKind, TokenError};

fn samples() -> Vec<Error> {
    let second = Duration::from_millis(1_001);
    let faults = [
        TokenError::TooLong,
        TokenError::Malformed,
        TokenError::UnknownHeader,
        TokenError::BadSignature,
        TokenError::NotForUs,
        TokenError::UnknownPersonalToken,
        TokenError::Expired,
        TokenError::SessionEnded,
    ];
    let mut samples: Vec<_> = faults.into_iter().map(Error::InvalidToken).collect();
    samples.extend(of_users().map(Error::from));
    samples.extend([
        Error::MissingParameter("client_id"),
        Error::DuplicateParameter("client_id".to_owned()),
        Error::ParameterNotText("client_id"),
        Error::TwoCredentials,
        Error::UnsupportedGrantType,
        Error::InvalidScope,
        Error::InvalidTarget,
        Error::NoServiceUser,
        Error::ServiceUserDisabled,
        Error::PersonalTokenRefused("no"),
        Error::TooManyPersonalTokens,
        Error::GrantNotAllowed,
        Error::ForeignDatabase,
        Error::ForeignToken,
        Error::UnknownClient,
        Error::UnknownGuestClient,
        Error::ClientNotAuthenticated,
        Error::PublicClient,
        Error::InvalidRefreshToken,
        Error::NoDefaultUser,
        Error::WrongMasterKey,
        Error::KeyTooYoung { wait: second },
    ]);
    samples.extend(of_flows());
    samples
}

fn of_users() -> [IdentityError; 21] {
    let second = Duration::from_millis(1_001);
    let cause = || -> Box<dyn std::error::Error + Send + Sync> { "host db: password".into() };
    [
        IdentityError::Malformed {
            part: "body",
            expected: "a JSON object",
        },
        IdentityError::WrongCredentials,
        IdentityError::TooManyAttempts {
            retry_after: second,
        },
        IdentityError::Busy {
            retry_after: second,
        },
        IdentityError::InvalidField {
            field: "name",
            expected: "a name",
        },
        IdentityError::InvalidElement {
            field: "names",
            index: 1,
            expected: "a name",
        },
        IdentityError::Taken("user"),
        IdentityError::IdTaken,
        IdentityError::DefaultUserTaken,
        IdentityError::NotFound("user"),
        IdentityError::DamagedSecret,
        IdentityError::NoRandomness,
        IdentityError::HasherFailed,
        IdentityError::Store(StoreError::Unavailable(cause())),
        IdentityError::Store(StoreError::Failed(cause())),
        IdentityError::WrongSecondFactor,
        IdentityError::SecondFactorRequired,
        IdentityError::ReauthenticationRequired,
        IdentityError::LastCredential,
        IdentityError::InvalidLink,
        IdentityError::LoginDenied,
    ]
}

fn of_flows() -> [Error; 12] {
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
    let error = Error::from(IdentityError::TooManyAttempts {
        retry_after: Duration::from_millis(1_001),
    });
    assert_eq!(error.retry_after(), Some(2));
    let error = Error::from(IdentityError::TooManyAttempts {
        retry_after: Duration::ZERO,
    });
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
