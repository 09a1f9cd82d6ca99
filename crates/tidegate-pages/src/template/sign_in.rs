//! The sign-in page.

use maud::{Markup, html};
use tidegate_identity::PasskeyRequest;

use super::form::{FormField, PageForm};
use super::passkeys;

/// An identity provider as a button of the sign-in page.
pub(crate) struct Choice {
    pub address: String,
    pub label: String,
}

/// The content of the sign-in page.
pub(crate) struct SignIn<'a> {
    pub form: PageForm<'a>,
    /// The name of the OAuth client.
    pub client: Option<&'a str>,
    pub database: Option<&'a str>,
    pub username: Option<&'a str>,
    /// The URL of the sign-up page, if sign-up is allowed.
    pub sign_up: Option<&'a str>,
    /// Whether a link to sign in can be sent by email.
    pub email_link: bool,
    /// The challenge for a sign-in by a passkey, and the path of the script that passes it to the
    /// authenticator; `None` if browsers allow no passkeys at the service's URL.
    pub passkey: Option<(PasskeyRequest, String)>,
    /// The identity providers, one button each.
    pub choices: &'a [Choice],
    /// The URL of the password reset page.
    pub reset: &'a str,
}

pub(crate) fn sign_in(page: &SignIn<'_>) -> Markup {
    let (form, named) = (&page.form, page.username.is_some());
    let fields = html! {
        (form.field(&FormField {
            value: page.username,
            autocomplete: "username",
            focus: !named,
            ..FormField::text("username", "User name")
        }))
        (form.field(&FormField { focus: named, ..FormField::password("password", "Password") }))
        (database(form, page.database))
        button.primary type="submit" { "Sign in" }
        @if page.email_link {
            // A link by email needs no password, so the browser must not require the password
            // field.
            button.other type="submit" name="by" value="email" formnovalidate { "E-mail me a link" }
        }
    };
    html! {
        h1 { "Sign in" }
        @if let Some(client) = page.client {
            p.lead { "to continue to " strong { (client) } }
        }
        (form.around("sign_in", &fields))
        @if let Some((request, script)) = &page.passkey {
            (passkeys::sign_in(form, request, script))
        }
        @for choice in page.choices {
            p { a.choice href=(choice.address) { "Sign in with " (choice.label) } }
        }
        p.aside { a href=(page.reset) { "Forgot your password?" } }
        @if let Some(sign_up) = page.sign_up {
            p.aside { "No account yet? " a href=(sign_up) { "Sign up" } }
        }
    }
}

/// The page that an emailed sign-in link opens. Its button confirms the sign-in.
pub(crate) fn email_sign_in(form: &PageForm<'_>, user: &str) -> Markup {
    let fields = html! { button.primary type="submit" { "Sign in" } };
    html! {
        h1 { "Sign in" }
        p.lead { "as " strong { (user) } }
        (form.around("email", &fields))
    }
}

/// The field for the database. It is collapsed if the database is known, because people then do not
/// need the field.
fn database(form: &PageForm<'_>, known: Option<&str>) -> Markup {
    let field = form.field(&FormField {
        value: known,
        ..FormField::text("database", "Database")
    });
    let is_wrong = form.message.is_some_and(|it| it.field == "database");
    match known.filter(|_| !is_wrong) {
        Some(name) => html! {
            details.folded {
                summary { "Database " strong { (name) } }
                (field)
            }
        },
        None => field,
    }
}
