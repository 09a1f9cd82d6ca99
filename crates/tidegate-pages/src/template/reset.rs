//! The pages for a password reset and for the confirmation of a sign-up.

use maud::{Markup, html};

use tidegate_identity::{Credentials, Timestamp};

use super::form::{FormField, PageForm};
use super::words::ago;

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

/// The form for the new password. An intruder may have added other credentials, which remain valid
/// after a change of the password. So the form shows the other credentials and offers to remove
/// them.
pub(crate) fn choose_password(
    form: &PageForm<'_>,
    user: &str,
    credentials: &Credentials,
    now: Timestamp,
) -> Markup {
    let fields = html! {
        // The hidden user name is for password managers, which need it beside a password.
        input type="text" name="username" value=(user) autocomplete="username" hidden readonly;
        (form.field(&FormField {
            autocomplete: "new-password",
            hint: Some("At least 8 characters"),
            focus: true,
            ..FormField::password("password", "New password")
        }))
        @if !credentials.passkeys.is_empty() || !credentials.linked_accounts.is_empty() {
            (other_ways(credentials, now))
        }
        button.primary type="submit" { "Change password" }
    };
    html! {
        h1 { "Choose a new password" }
        p.lead { "for " strong { (user) } ". You are signed out everywhere." }
        (form.around("choose", &fields))
    }
}

/// The credentials with which the user can sign in without the password, and a checkbox that
/// requests their removal.
fn other_ways(credentials: &Credentials, now: Timestamp) -> Markup {
    html! {
        p { "These sign in as you too:" }
        ul.list {
            @for passkey in &credentials.passkeys {
                li { div {
                    strong { (passkey.name) }
                    p.hint { "Passkey, added " (ago(now.since(passkey.created_at))) }
                } }
            }
            @for account in &credentials.linked_accounts {
                li { div {
                    strong { (account.name.as_deref().unwrap_or(&account.subject)) }
                    p.hint {
                        "Account of " (account.issuer)
                        @if let Some(at) = account.linked_at { ", linked " (ago(now.since(at))) }
                    }
                } }
            }
        }
        label.check {
            input type="checkbox" name="only_password" value="true";
            "Remove them. Do that if one is not yours, or if another person may have been in your account."
        }
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
