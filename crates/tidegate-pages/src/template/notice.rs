//! Questions for consent or confirmation, and messages.

use maud::{Markup, html};
use tidegate_oauth::{Client, PendingDevice, Scopes};

use super::form::{FormField, PageForm};

/// A message, with a link for continuing.
pub(crate) fn notice(title: &str, text: &str, next: Option<(&str, &str)>) -> Markup {
    html! {
        h1 { (title) }
        p.lead { (text) }
        @if let Some((address, label)) = next {
            p { a.primary href=(address) { (label) } }
        }
    }
}

/// An error message, with a link for continuing and the request id for support.
pub(crate) fn failure(
    (title, text): (&str, &str),
    next: Option<(&str, &str)>,
    request_id: &str,
) -> Markup {
    html! {
        (notice(title, text, next))
        @if !request_id.is_empty() {
            p.hint { "Request " code { (request_id) } }
        }
    }
}

/// Asks for consent for a client.
pub(crate) fn consent(
    form: &PageForm<'_>,
    client: &Client,
    (user, scopes): (&str, Scopes),
) -> Markup {
    html! {
        h1 { "Allow access?" }
        (about(client, user, scopes))
        (decision(form))
        (another(form, user))
    }
}

/// Asks for consent for a device.
pub(crate) fn device_consent(form: &PageForm<'_>, device: &PendingDevice, user: &str) -> Markup {
    html! {
        h1 { "Connect this device?" }
        p.code aria-label="Code on the device" { (device.user_code) }
        p.lead { "Allow only if this code stands on a device in front of you." }
        (about(&device.client, user, device.scopes))
        (decision(form))
        (another(form, user))
    }
}

fn about(client: &Client, user: &str, scopes: Scopes) -> Markup {
    html! {
        div.about {
            p { strong { (client.name) } }
            @if let Some(description) = &client.description { p.hint { (description) } }
            @if let Some(homepage) = &client.homepage { p.hint { (homepage) } }
        }
        (permissions(user, scopes))
    }
}

/// What the application may do, in words.
fn permissions(user: &str, scopes: Scopes) -> Markup {
    let identity = scopes.names().filter_map(in_words);
    let identity: Vec<_> = identity.collect();
    if scopes.narrows() {
        return html! {
            p { "As " strong { (user) } ", it may:" }
            ul { @for words in &identity { li { (words) } } }
        };
    }
    html! {
        p { "It will read and change data as " strong { (user) } ", with all of your rights." }
        @if !identity.is_empty() {
            p { "It may also:" }
            ul { @for words in &identity { li { (words) } } }
        }
    }
}

/// A scope in words. `openid` and `offline_access` say nothing that a person must decide.
pub(super) fn in_words(scope: &str) -> Option<&'static str> {
    match scope {
        "read" => Some("read data that you may read"),
        "write" => Some("change data that you may change"),
        "methods" => Some("call methods"),
        "sql" => Some("run any SQL statement with your rights, also to change data"),
        "admin" => Some("manage users, applications, tokens and methods, as far as you may"),
        "profile" => Some("see your name and properties"),
        "email" => Some("see your email address"),
        _ => None,
    }
}

fn decision(form: &PageForm<'_>) -> Markup {
    let fields = html! {
        div.pair {
            button.primary type="submit" name="decision" value="allow" { "Allow" }
            button type="submit" name="decision" value="deny" { "Deny" }
        }
    };
    form.around("decide", &fields)
}

fn another(form: &PageForm<'_>, user: &str) -> Markup {
    let fields = html! {
        p.aside {
            "Signed in as " (user) ". "
            button.link type="submit" { "Use another account" }
        }
    };
    let quiet = PageForm {
        message: None,
        ..*form
    };
    quiet.around("switch", &fields)
}

/// Lets the user go on with the account that is signed in, or with another one.
pub(crate) fn select_account(form: &PageForm<'_>, user: &str) -> Markup {
    let fields = html! {
        button.primary type="submit" { "Continue as " (user) }
    };
    html! {
        h1 { "Choose an account" }
        (form.around("continue", &fields))
        (another(form, user))
    }
}

/// The message after the user approved or denied a device.
pub(crate) fn decided(allowed: bool) -> Markup {
    if allowed {
        notice(
            "Device connected",
            "You can close this page and go on with your device.",
            None,
        )
    } else {
        notice(
            "Request denied",
            "The device gets no access. You can close this page.",
            None,
        )
    }
}

/// The form for a device's user code.
pub(crate) fn user_code(form: &PageForm<'_>, typed: Option<&str>) -> Markup {
    let fields = html! {
        (form.field(&FormField {
            value: typed,
            focus: true,
            hint: Some("Eight letters, such as WDJB-MJHT"),
            ..FormField::text("user_code", "Code")
        }))
        button.primary type="submit" { "Continue" }
    };
    html! {
        h1 { "Connect a device" }
        p.lead { "Enter the code that your device shows." }
        (form.around("code", &fields))
    }
}

/// Asks the user for confirmation of a sign-out.
pub(crate) fn sign_out(form: &PageForm<'_>, user: &str) -> Markup {
    let fields = html! { button.primary type="submit" { "Sign out" } };
    html! {
        h1 { "Sign out?" }
        p.lead { "You are signed in as " strong { (user) } "." }
        (form.around("sign_out", &fields))
    }
}
