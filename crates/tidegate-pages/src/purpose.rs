//! The purpose of a sign-in.

use tidegate_oauth::Client;

/// The page that requires a sign-in, and the users who may sign in for it.
pub(super) struct Purpose<'a> {
    /// The OAuth client; `None` for a page of this service.
    pub(super) client: Option<&'a Client>,
    /// The database whose users may sign in; `None` if users of any database may.
    pub(super) database: Option<&'a str>,
    /// The URL of the page that requires the sign-in.
    pub(super) page: &'a str,
    /// The URL to which the browser goes after the sign-in.
    pub(super) next: &'a str,
    /// Whether even a person who is already signed in must sign in again.
    pub(super) again: bool,
    /// The user name with which the form is filled in, if a certain user is expected to sign in.
    pub(super) username: Option<&'a str>,
    /// The URL to which the browser finally goes; `None` if it is `page`.
    pub(super) returns_to: Option<&'a str>,
    /// The sign-up page, if sign-up is allowed.
    pub(super) sign_up: Option<&'a str>,
}

impl<'a> Purpose<'a> {
    /// The sign-in for a page of this service at the URL `page`.
    pub(super) fn own_page(page: &'a str) -> Self {
        Self {
            client: None,
            database: None,
            page,
            next: page,
            again: false,
            username: None,
            returns_to: None,
            sign_up: None,
        }
    }
}
