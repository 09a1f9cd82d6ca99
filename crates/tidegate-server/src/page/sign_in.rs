//! Signing in with a password.

use maud::{Markup, html};

use super::form::{Field, Form};

/// Another way to sign in.
pub(crate) struct Choice {
    pub address: String,
    pub label: String,
}

/// What the sign-in page shows.
pub(crate) struct SignIn<'a> {
    pub form: Form<'a>,
    /// The application that a person signs in to.
    pub client: Option<&'a str>,
    pub database: Option<&'a str>,
    pub username: Option<&'a str>,
    /// Where a person may make an account.
    pub sign_up: Option<&'a str>,
    /// Accounts elsewhere.
    pub choices: &'a [Choice],
    /// Where a person who forgot the password goes.
    pub reset: &'a str,
}

pub(crate) fn sign_in(page: &SignIn<'_>) -> Markup {
    let (form, named) = (&page.form, page.username.is_some());
    let fields = html! {
        (form.field(&Field {
            value: page.username,
            autocomplete: "username",
            focus: !named,
            ..Field::text("username", "User name")
        }))
        (form.field(&Field { focus: named, ..Field::password("password", "Password") }))
        (form.field(&Field {
            value: page.database,
            ..Field::text("database", "Database")
        }))
        button.primary type="submit" { "Sign in" }
    };
    html! {
        h1 { "Sign in" }
        @if let Some(client) = page.client {
            p.lead { "to continue to " strong { (client) } }
        }
        (form.around("sign_in", &fields))
        @for choice in page.choices {
            p { a.choice href=(choice.address) { "Sign in with " (choice.label) } }
        }
        p.aside { a href=(page.reset) { "Forgot your password?" } }
        @if let Some(sign_up) = page.sign_up {
            p.aside { "No account yet? " a href=(sign_up) { "Sign up" } }
        }
    }
}
