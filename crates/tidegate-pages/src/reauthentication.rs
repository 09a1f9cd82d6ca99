//! The page that asks for the password of a person who signed in some time ago.

use http::Response;
use tidegate_http::body::Body;
use tidegate_http::error::ApiError;
use tidegate_identity::{Browser, Error as IdentityError};

use super::context::{PageContext, form};
use super::form_error::wrong_password;
use crate::template;

/// A step of the account page that requires a recent sign-in or the password.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuardedStep<'a> {
    /// The name of the step's form.
    pub(super) step: &'static str,
    /// The purpose of the step in words, which the page shows after "To": `remove a passkey` gives
    /// "To remove a passkey, …".
    pub(super) purpose: &'a str,
    /// The hidden fields of the form, each with its name and value.
    pub(super) fields: &'a [(&'a str, &'a str)],
}

/// Whether a guarded step that failed with `error` can be repeated with the password of the user of
/// `browser`.
pub(super) fn takes_password(browser: &Browser, error: &IdentityError) -> bool {
    let about_password = matches!(
        error,
        IdentityError::ReauthenticationRequired
            | IdentityError::WrongCredentials
            | IdentityError::TooManyAttempts { .. }
            | IdentityError::Busy { .. }
    );
    about_password && browser.user.password_hash.is_some()
}

/// Shows the form of a step with a field for the password. Also shows `error`, unless the error
/// only says that a password is needed.
pub(super) fn ask_for_password(
    context: &PageContext<'_>,
    browser: &Browser,
    wanted: &GuardedStep<'_>,
    error: IdentityError,
) -> Result<Response<Body>, ApiError> {
    let refused = wrong_password(error)?;
    let (action, token) = (context.path("/account"), context.token());
    let form = form(&action, &token, refused.as_ref());
    let name = &browser.user.key.name;
    let card =
        template::confirm_password(&form, name, (wanted.step, wanted.purpose), wanted.fields);
    Ok(context.show("Is it you?", &card, (refused.as_ref(), None)))
}
