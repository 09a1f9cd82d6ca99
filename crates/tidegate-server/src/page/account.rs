//! The account page.

use std::time::Duration;

use maud::{Markup, html};
use tidegate_oauth::{Account, Browser, BrowserSession, Session, Timestamp};

use super::form::{Field, Form};

/// What is open in a user's name, with a button to end each, and the password.
pub(crate) fn account(
    form: &Form<'_>,
    browser: &Browser,
    account: &Account,
    (now, done): (Timestamp, Option<&str>),
) -> Markup {
    let key = &browser.user.key;
    html! {
        h1 { "Your account" }
        p.lead { strong { (key.name) } " in the database " strong { (key.database) } }
        @if let Some(done) = done { p.done role="status" { (done) } }
        section {
            h2 { "Applications and devices" }
            @if account.sessions.is_empty() { p.hint { "None has access." } }
            ul.list { @for (session, name) in &account.sessions { (application(form, session, name, now)) } }
        }
        section {
            h2 { "Browsers" }
            ul.list { @for open in &account.browsers { (browser_item(form, open, browser, now)) } }
        }
        section { h2 { "Password" } (password(form, &key.name)) }
        section { h2 { "Two-step sign-in" } (second_factor(form, account.recovery_codes)) }
        (form_of(form).around("sign_out", &html! { button type="submit" { "Sign out" } }))
    }
}

/// The form without its complaint, which belongs to one of several.
fn form_of<'a>(form: &Form<'a>) -> Form<'a> {
    Form {
        complaint: None,
        ..*form
    }
}

fn application(form: &Form<'_>, session: &Session, name: &str, now: Timestamp) -> Markup {
    let fields = html! {
        input type="hidden" name="session" value=(session.id);
        button type="submit" aria-label={ "End the access of " (name) } { "End" }
    };
    html! {
        li {
            div {
                strong { (name) }
                p.hint { "Last used " (ago(now.since(session.refreshed_at))) ", since " (ago(now.since(session.created_at))) }
            }
            (form_of(form).around("end_session", &fields))
        }
    }
}

fn browser_item(form: &Form<'_>, open: &BrowserSession, own: &Browser, now: Timestamp) -> Markup {
    let here = open.id == own.session.id;
    let name = agent(&open.agent);
    let fields = html! {
        input type="hidden" name="browser" value=(open.id.to_base64url());
        button type="submit" aria-label={ "Sign out " (name) } { "Sign out" }
    };
    html! {
        li {
            div {
                strong { (name) }
                p.hint {
                    @if here { "This browser" } @else { "Last used " (ago(now.since(open.seen_at))) }
                    @if let Some(address) = open.address { ", from " (address) }
                }
            }
            @if !here { (form_of(form).around("end_browser", &fields)) }
        }
    }
}

fn password(form: &Form<'_>, name: &str) -> Markup {
    let fields = html! {
        // Password managers look for the name that a password belongs to.
        input type="text" name="username" autocomplete="username" value=(name) readonly hidden;
        (form.field(&Field::password("password", "Current password")))
        (form.field(&Field {
            autocomplete: "new-password",
            hint: Some("At least 8 characters; every other session ends"),
            ..Field::password("new_password", "New password")
        }))
        button type="submit" { "Change password" }
    };
    form.around("change_password", &fields)
}

fn second_factor(form: &Form<'_>, left: Option<u64>) -> Markup {
    let form = form_of(form);
    if let Some(left) = left {
        return html! {
            p { "On. " (left) " recovery codes are left." }
            (form.around("remove_second_factor", &html! { button type="submit" { "Turn off" } }))
        };
    }
    html! {
        p { "Off. A code of your phone beside the password keeps others out who learn it." }
        (form.around("begin_enrolment", &html! { button type="submit" { "Set up" } }))
    }
}

/// How long ago something was, as people say it.
fn ago(since: Duration) -> String {
    let seconds = since.as_secs();
    let (count, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

/// What a browser is, as far as it says so.
fn agent(text: &str) -> String {
    let first = |known: &[(&str, &'static str)]| {
        let found = known.iter().find(|(mark, _)| text.contains(mark));
        found.map(|(_, name)| *name)
    };
    let browser = first(&[
        ("Firefox/", "Firefox"),
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = first(&[
        ("Windows", "Windows"),
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ => "A browser".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_people_tell_them() {
        for (seconds, text) in [
            (0, "just now"),
            (60, "1 minute ago"),
            (7_200, "2 hours ago"),
            (86_400 * 3, "3 days ago"),
        ] {
            assert_eq!(ago(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn a_browser_is_named_without_its_version() {
        let chrome =
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36";
        assert_eq!(agent(chrome), "Chrome on Linux");
        assert_eq!(agent("<script>"), "A browser");
    }
}
