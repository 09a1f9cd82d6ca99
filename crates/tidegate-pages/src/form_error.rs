//! Errors of pages: errors that the person can correct in a form, and errors that end the request.

use http::StatusCode;
use tidegate_http::error::ApiError;
use tidegate_identity::{Error as IdentityError, RoleError};
use tidegate_oauth::{Error, ErrorKind};

use crate::template::FormMessage;

/// The error code of an invalid form.
const INVALID_FORM: &str = "INPUT_VALIDATION_ERROR";

/// An error that the person can correct.
#[derive(Clone, Debug)]
pub(super) struct FormError {
    pub(super) status: StatusCode,
    /// The error code for the log and the metrics.
    pub(super) code: &'static str,
    /// The seconds after which the person may try again, if the error is temporary.
    pub(super) retry_after: Option<u64>,
    pub(super) message: FormMessage,
}

impl FormError {
    /// Converts `error` to a form error whose message is shown beside `field`. Fails with an
    /// [`ApiError`] if the person cannot correct the error.
    pub(super) fn of(field: &'static str, error: impl Into<Error>) -> Result<Self, ApiError> {
        let error = error.into();
        let (retry_after, code) = (error.retry_after(), error.code());
        let correctable = match &error {
            Error::UnknownUserCode => Some((
                400,
                "No device waits with this code. Check it, or start again on the device."
                    .to_owned(),
            )),
            Error::Identity(error) => identity_message(error, retry_after.unwrap_or(1)),
            _ => None,
        };
        let Some((status, text)) = correctable else {
            return Err(failure(error));
        };
        Ok(Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST),
            code,
            retry_after,
            message: FormMessage::new(field, text),
        })
    }

    /// An invalid or expired link. The page itself has the text, so the message is empty.
    pub(super) fn expired_link() -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code: INVALID_FORM,
            retry_after: None,
            message: FormMessage::new("", ""),
        }
    }

    /// The user named a database whose users may not sign in here; `text` says which users may.
    pub(super) fn wrong_database(text: String) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code: INVALID_FORM,
            retry_after: None,
            message: FormMessage::new("database", text),
        }
    }

    /// A message above the form that is not an error.
    pub(super) fn notice(text: String) -> Self {
        Self {
            status: StatusCode::OK,
            code: INVALID_FORM,
            retry_after: None,
            message: FormMessage::new("", text),
        }
    }

    /// A required field is empty.
    pub(super) fn missing(field: &'static str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code: INVALID_FORM,
            retry_after: None,
            message: FormMessage::new(field, "Fill in this field."),
        }
    }
}

/// The status and the message for an error of `tidegate-identity`; `None` if the person cannot
/// correct the error. `wait` is in seconds.
fn identity_message(error: &IdentityError, wait: u64) -> Option<(u16, String)> {
    let (status, text) = match error {
        IdentityError::WrongCredentials => (400, "Wrong user name or password."),
        IdentityError::WrongPasskey => (
            400,
            "This passkey does not work here. Try again, or choose another way.",
        ),
        IdentityError::WrongSecondFactor => (400, "That code is wrong or was used already."),
        IdentityError::TooManyAttempts { .. } => {
            let text = format!("Too many attempts. Try again in {}.", span(wait));
            return Some((429, text));
        }
        IdentityError::Busy { .. } => (503, "Too many sign-ins at once. Try again shortly."),
        IdentityError::ReauthenticationRequired => (
            400,
            "You signed in too long ago. Sign in again from your application, and come back within \
             ten minutes.",
        ),
        IdentityError::LastCredential => (
            409,
            "This is your only way to sign in. Set a password first.",
        ),
        IdentityError::InvalidField {
            field: "password", ..
        } => (400, "Choose a password of 8 to 256 characters."),
        IdentityError::InvalidField { expected, .. } => {
            return Some((400, format!("Give {expected}.")));
        }
        IdentityError::Taken(_)
        | IdentityError::IdTaken
        | IdentityError::Role(RoleError::Taken(_)) => {
            (409, "This name is taken. Choose another one.")
        }
        _ => return None,
    };
    Some((status, text.to_owned()))
}

fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} seconds"),
        _ => format!("{} minutes", seconds.div_ceil(60)),
    }
}

/// The error of a request that ends with an error page.
pub(super) fn failure(error: impl Into<Error>) -> ApiError {
    ApiError::from_oauth(error, false)
}

/// The error page for an authorization request whose error must not be sent by a redirect.
pub(super) fn request_error(error: Error) -> ApiError {
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Internal => failure(error),
        // The error is shown to the person (RFC 6749, section 4.1.2.1).
        _ => ApiError::input(format!(
            "The application that sent you here made a faulty request: {}. Go back to it and try \
             again.",
            error.description()
        )),
    }
}

/// The message that is shown beside the password field; `None` if no password was given. Fails if
/// the person cannot correct the error.
pub(super) fn wrong_password(error: IdentityError) -> Result<Option<FormError>, ApiError> {
    if matches!(error, IdentityError::ReauthenticationRequired) {
        return Ok(None);
    }
    let wrong = matches!(error, IdentityError::WrongCredentials);
    let mut refused = FormError::of("password", error)?;
    if wrong {
        "The password is wrong.".clone_into(&mut refused.message.text);
    }
    Ok(Some(refused))
}
