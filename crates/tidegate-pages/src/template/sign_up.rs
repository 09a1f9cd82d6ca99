//! The sign-up page.

use maud::{Markup, html};

use super::form::{FormField, PageForm};

/// The content of the sign-up page.
pub(crate) struct SignUp<'a> {
    pub form: PageForm<'a>,
    /// The name of the OAuth client.
    pub client: &'a str,
    pub username: Option<&'a str>,
    pub email: Option<&'a str>,
    /// The URL of the sign-in page; `None` if the browser did not come from that page.
    pub sign_in: Option<&'a str>,
}

pub(crate) fn sign_up(page: &SignUp<'_>) -> Markup {
    let form = &page.form;
    let fields = html! {
        (form.field(&FormField {
            value: page.username,
            autocomplete: "username",
            hint: Some("1 to 32 letters, digits and _ . @ + -"),
            focus: form.message.is_none(),
            ..FormField::text("username", "User name")
        }))
        (form.field(&FormField {
            value: page.email,
            kind: "email",
            autocomplete: "email",
            ..FormField::text("email", "E-mail")
        }))
        (form.field(&FormField {
            autocomplete: "new-password",
            hint: Some("At least 8 characters"),
            ..FormField::password("password", "Password")
        }))
        button.primary type="submit" { "Create account" }
    };
    html! {
        h1 { "Create an account" }
        p.lead { "to use " strong { (page.client) } }
        (form.around("sign_up", &fields))
        @if let Some(sign_in) = page.sign_in {
            p.aside { "Already have one? " a href=(sign_in) { "Sign in" } }
        }
    }
}
