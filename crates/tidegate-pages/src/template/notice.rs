//! Questions for consent or confirmation, and messages.

use maud::{Markup, html};
use tidegate_oauth::{Client, PendingDevice, Scopes};

use super::form::{FormField, PageForm};

/// A message, with a link for continuing. `next` consists of the URL and the text of the link.
pub(crate) fn notice(title: &str, text: &str, next: Option<(&str, &str)>) -> Markup {
    html! {
        h1 { (title) }
        p.lead { (text) }
        @if let Some((address, label)) = next {
            p { a.primary href=(address) { (label) } }
        }
    }
}

/// The set of links that an error page has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FailureLinks {
    Nothing,
    /// The console, and the documentation for the person who develops the application.
    Reference,
    /// All parts of the service.
    Everything,
}

/// The links of an error page. `base` is the path of the issuer's URL.
pub(crate) fn failure_links(links: FailureLinks, base: &str, has_console: bool) -> Markup {
    match links {
        FailureLinks::Nothing => html! {},
        FailureLinks::Reference => html! {
            p { a href={ (base) "/" } { "Console" } }
            p { a href={ (base) "/docs/api" } { "Documentation for developers" } }
        },
        FailureLinks::Everything => html! {
            ul.places {
                @if has_console {
                    li { a href={ (base) "/" } { "Console" } span { "tables, queries and users" } }
                    li { a href={ (base) "/docs/" } { "Documentation" } span { "guides and reference" } }
                    li { a href={ (base) "/docs/api" } { "API" } span { "all requests" } }
                } @else {
                    li {
                        a href={ (base) "/api/v4/openapi.json" } { "API description" }
                        span { "OpenAPI" }
                    }
                }
                li { a href={ (base) "/account" } { "Your account" } span { "password and sessions" } }
            }
        },
    }
}

/// An error message, with links and the request id for support.
pub(crate) fn failure((title, text): (&str, &str), links: &Markup, request_id: &str) -> Markup {
    html! {
        (notice(title, text, None))
        (links)
        @if !request_id.is_empty() {
            p.hint.request { "Request " code { (request_id) } }
        }
    }
}

/// Asks for consent for a client that gets the result at `redirect_uri`.
pub(crate) fn consent(
    form: &PageForm<'_>,
    client: &Client,
    redirect_uri: &str,
    (user, scopes): (&str, Scopes),
) -> Markup {
    html! {
        h1 { "Allow access?" }
        (about(client, Some(destination(redirect_uri))))
        (permissions(user, scopes))
        (decision(form))
        (another(form, user))
    }
}

pub(crate) fn device_consent(form: &PageForm<'_>, device: &PendingDevice, user: &str) -> Markup {
    html! {
        h1 { "Connect this device?" }
        p.code aria-label="Code on the device" { (device.user_code) }
        p.lead { "Allow only if your own device shows this code. If another person sent it to you, deny." }
        (about(&device.client, None))
        (permissions(user, device.scopes))
        (decision(form))
        (another(form, user))
    }
}

/// The host of a redirect URI, or a text for an application that is installed on the device.
fn destination(redirect_uri: &str) -> &str {
    let rest = redirect_uri
        .strip_prefix("https://")
        .or_else(|| redirect_uri.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?']).next());
    host.unwrap_or("an application on this device")
}

fn about(client: &Client, returns_to: Option<&str>) -> Markup {
    html! {
        div.about {
            p { strong { (client.name) } }
            @if let Some(description) = &client.description { p.hint { (description) } }
            @if let Some(homepage) = &client.homepage { p.hint { (homepage) } }
            @if let Some(place) = returns_to { p.hint { "Returns to " (place) } }
        }
    }
}

/// The permissions of the application, in words.
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

/// A scope in words. `None` for scopes such as `openid` and `offline_access`, about which a person
/// need not decide.
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

/// Asks whether to continue as the user who is signed in, or as another user.
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

/// The message after the user allowed or denied a device.
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
