//! The pages for a password reset and for the confirmation of a sign-up.

use maud::{Markup, html};

use super::form::{FormField, PageForm};

/// The form that requests a reset message.
pub(crate) fn ask_for_email(
    form: &PageForm<'_>,
    username: Option<&str>,
    database: Option<&str>,
) -> Markup {
    let fields = html! {
        (form.field(&FormField {
            value: username,
            autocomplete: "username",
            focus: true,
            ..FormField::text("username", "User name or e-mail")
        }))
        (form.field(&FormField { value: database, ..FormField::text("database", "Database") }))
        button.primary type="submit" { "Send a link" }
    };
    html! {
        h1 { "Forgot your password?" }
        p.lead { "We send you a link with which you choose a new one." }
        (form.around("ask", &fields))
    }
}

/// The form for the new password.
pub(crate) fn choose_password(form: &PageForm<'_>, user: &str) -> Markup {
    let fields = html! {
        // The hidden user name is for password managers, which need it beside a password.
        input type="text" name="username" value=(user) autocomplete="username" hidden readonly;
        (form.field(&FormField {
            autocomplete: "new-password",
            hint: Some("At least 8 characters"),
            focus: true,
            ..FormField::password("password", "New password")
        }))
        button.primary type="submit" { "Change password" }
    };
    html! {
        h1 { "Choose a new password" }
        p.lead { "for " strong { (user) } ". You are signed out everywhere." }
        (form.around("choose", &fields))
    }
}

/// Asks for confirmation of a sign-up. Programs that scan email follow links, so the user is
/// created only after a click.
pub(crate) fn confirm_sign_up(form: &PageForm<'_>, user: &str) -> Markup {
    let fields = html! { button.primary type="submit" { "Confirm account" } };
    html! {
        h1 { "Confirm your account" }
        p.lead { "Your user name will be " strong { (user) } "." }
        (form.around("confirm", &fields))
    }
}
