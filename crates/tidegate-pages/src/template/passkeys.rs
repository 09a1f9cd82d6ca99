//! The forms for passkeys. They need the script `passkeys.js`; without it they stay hidden.

use maud::{Markup, html};
use tidegate_identity::{Passkey, PasskeyRequest, Timestamp};

use super::form::PageForm;
use super::words::ago;

/// The form on the sign-in page for signing in with a passkey.
pub(super) fn sign_in(form: &PageForm<'_>, request: &PasskeyRequest, script: &str) -> Markup {
    let label = "Sign in with a passkey";
    let field = form.message.filter(|message| message.field == "passkey");
    html! {
        (question(&form.without_message(), ("passkey", "get", label), request))
        @if let Some(message) = field { p.error role="alert" { (message.text) } }
        script src=(script) defer {}
    }
}

/// The page on which the browser creates a passkey.
pub(crate) fn add_passkey(form: &PageForm<'_>, request: &PasskeyRequest, script: &str) -> Markup {
    html! {
        h1 { "Add a passkey" }
        p.lead { "Your device or password manager keeps it. You sign in with it instead of the password and the code." }
        (question(form, ("add_passkey", "create", "Create a passkey"), request))
        noscript { p.error { "This needs JavaScript." } }
        p.error role="alert" data-no-passkeys hidden { "This browser has no passkeys, or is too old for them here." }
        p.aside { a href=(form.action) { "Back to your account" } }
        script src=(script) defer {}
    }
}

/// A form that the script submits with the response of an authenticator.
fn question(
    form: &PageForm<'_>,
    (step, kind, label): (&str, &str, &str),
    request: &PasskeyRequest,
) -> Markup {
    let fields = html! {
        input type="hidden" name="sealed" value=(request.sealed);
        input type="hidden" name="credential" value="";
        div data-passkey=(kind) data-options=(request.options) hidden {
            button.other type="submit" { (label) }
            p.error role="alert" hidden { "The browser gave no passkey. Try again, or choose another way." }
        }
    };
    form.around(step, &fields)
}

/// The section of the account page that lists the user's passkeys.
pub(super) fn section(form: &PageForm<'_>, passkeys: &[Passkey], now: Timestamp) -> Markup {
    let form = form.without_message();
    let add = html! { button type="submit" { "Add a passkey" } };
    html! {
        section {
            h2 { "Passkeys" }
            @if passkeys.is_empty() {
                p { "None. With one you sign in by your device's lock instead of the password." }
            }
            ul.list { @for passkey in passkeys { (item(&form, passkey, now)) } }
            (form.around("begin_passkey", &add))
        }
    }
}

fn item(form: &PageForm<'_>, passkey: &Passkey, now: Timestamp) -> Markup {
    let rename = html! {
        input type="hidden" name="passkey" value=(passkey.id);
        div.row {
            input name="name" value=(passkey.name) maxlength="64" required autocomplete="off"
                aria-label={ "New name of the passkey " (passkey.name) };
            button type="submit" { "Rename" }
        }
    };
    let fields = html! {
        input type="hidden" name="passkey" value=(passkey.id);
        button type="submit" aria-label={ "Remove the passkey " (passkey.name) } { "Remove" }
    };
    html! {
        li {
            div {
                strong { (passkey.name) }
                p.hint {
                    "Added " (ago(now.since(passkey.created_at)))
                    @if let Some(at) = passkey.used_at { ", last used " (ago(now.since(at))) }
                }
                details {
                    summary { "Another name" }
                    (form.around("rename_passkey", &rename))
                }
            }
            (form.around("remove_passkey", &fields))
        }
    }
}
