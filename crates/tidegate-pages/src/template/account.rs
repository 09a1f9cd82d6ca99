//! The account page.

use maud::{Markup, html};
use tidegate_identity::{Browser, BrowserSession, LinkedIdentity, ProviderName, Timestamp};
use tidegate_oauth::{Account, Consent, Session};

use super::form::{FormField, PageForm};
use super::notice::in_words;
use super::passkeys;
use super::second_factor::code_field;
use super::words::{agent, ago};

/// The user's sessions and linked accounts, each with a button that ends or unlinks it, and the
/// password form.
pub(crate) fn account(
    form: &PageForm<'_>,
    browser: &Browser,
    account: &Account,
    (now, done): (Timestamp, Option<&str>),
    providers: &[ProviderName],
) -> Markup {
    let key = &browser.user.key;
    let message = form.message.filter(|message| message.field == "account");
    let elsewhere = !providers.is_empty() || !account.identities.is_empty();
    html! {
        h1 { "Your account" }
        p.lead { strong { (key.name) } " in the database " strong { (key.database) } }
        @if let Some(done) = done { p.done role="status" { (done) } }
        @if let Some(message) = message { p.error role="alert" { (message.text) } }
        section {
            h2 { "Applications and devices" }
            @if account.sessions.is_empty() { p.hint { "None has access." } }
            ul.list { @for (session, name) in &account.sessions { (application(form, session, name, now)) } }
        }
        @if !account.consents.is_empty() {
            section {
                h2 { "What you allowed" }
                p.hint { "You are not asked again for this." }
                ul.list { @for (consent, name) in &account.consents { (allowed(form, consent, name, now)) } }
            }
        }
        section {
            h2 { "Browsers" }
            ul.list { @for open in &account.browsers { (browser_item(form, open, browser, now)) } }
        }
        @if elsewhere {
            section {
                h2 { "Accounts elsewhere" }
                (identities(form, &account.identities, now, providers))
            }
        }
        section { h2 { "Password" } (password(form, browser)) }
        @if let Some(own) = &account.passkeys { (passkeys::section(form, own, now)) }
        section { h2 { "Two-step sign-in" } (second_factor(form, browser, account.recovery_codes)) }
        (form.without_message().around("sign_out", &html! { button type="submit" { "Sign out" } }))
    }
}

fn application(form: &PageForm<'_>, session: &Session, name: &str, now: Timestamp) -> Markup {
    let fields = html! {
        input type="hidden" name="session" value=(session.id);
        button type="submit" aria-label={ "End the access of " (name) } { "End" }
    };
    html! {
        li {
            div {
                strong { (name) }
                @if session.personal.is_some() { p.hint { "Access token" } }
                p.hint {
                    "Connected " (ago(now.since(session.created_at)))
                    @if session.refreshed_at > session.created_at {
                        ", last used " (ago(now.since(session.refreshed_at)))
                    }
                }
            }
            (form.without_message().around("end_session", &fields))
        }
    }
}

fn allowed(form: &PageForm<'_>, consent: &Consent, name: &str, now: Timestamp) -> Markup {
    let fields = html! {
        input type="hidden" name="client" value=(consent.client_id);
        button type="submit" aria-label={ "Take back what " (name) " is allowed" } { "Take back" }
    };
    let words: Vec<_> = consent.scopes.names().filter_map(in_words).collect();
    let all = !consent.scopes.narrows();
    html! {
        li {
            div {
                strong { (name) }
                p.hint {
                    @if all { "Everything that you may do" } @else { (words.join("; ")) }
                    ", allowed " (ago(now.since(consent.given_at)))
                }
            }
            (form.without_message().around("withdraw_consent", &fields))
        }
    }
}

fn browser_item(
    form: &PageForm<'_>,
    open: &BrowserSession,
    own: &Browser,
    now: Timestamp,
) -> Markup {
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
            @if !here { (form.without_message().around("end_browser", &fields)) }
        }
    }
}

fn identities(
    form: &PageForm<'_>,
    linked: &[LinkedIdentity],
    now: Timestamp,
    providers: &[ProviderName],
) -> Markup {
    let buttons = html! {
        @for provider in providers {
            button type="submit" name="provider" value=(provider.id) { "Link " (provider.label) }
        }
    };
    html! {
        @if linked.is_empty() { p { "None is linked. Link one to sign in with it." } }
        ul.list { @for identity in linked { (identity_item(form, identity, now, providers)) } }
        @if !providers.is_empty() {
            (form.without_message().around("link", &html! { div.row { (buttons) } }))
        }
    }
}

fn identity_item(
    form: &PageForm<'_>,
    identity: &LinkedIdentity,
    now: Timestamp,
    providers: &[ProviderName],
) -> Markup {
    let id = identity.provider.as_deref();
    let provider = providers.iter().find(|provider| Some(&*provider.id) == id);
    let label = provider.map_or(&*identity.issuer, |provider| &*provider.label);
    let name = identity.name.as_deref().unwrap_or(&identity.subject);
    let fields = html! {
        input type="hidden" name="issuer" value=(identity.issuer);
        input type="hidden" name="subject" value=(identity.subject);
        button type="submit" aria-label={ "Unlink " (label) ", " (name) } { "Unlink" }
    };
    html! {
        li {
            div {
                strong { (label) }
                p.hint {
                    (name)
                    @if let Some(at) = identity.linked_at { ", linked " (ago(now.since(at))) }
                }
            }
            (form.without_message().around("unlink", &fields))
        }
    }
}

fn password(form: &PageForm<'_>, browser: &Browser) -> Markup {
    let (name, has_one) = (&browser.user.key.name, browser.user.password_hash.is_some());
    let label = if has_one {
        "Change password"
    } else {
        "Set password"
    };
    let fields = html! {
        // The hidden user name is for password managers, which need it beside a password.
        input type="text" name="username" autocomplete="username" value=(name) readonly hidden;
        @if has_one { (form.field(&FormField::password("password", "Current password"))) }
        (form.field(&FormField {
            autocomplete: "new-password",
            hint: Some("At least 8 characters; every other session ends"),
            ..FormField::password("new_password", "New password")
        }))
        button type="submit" { (label) }
    };
    html! {
        @if !has_one { p { "You have none: you sign in with a passkey or with an account elsewhere." } }
        (form.around("change_password", &fields))
    }
}

fn second_factor(form: &PageForm<'_>, browser: &Browser, left: Option<u64>) -> Markup {
    if let Some(left) = left {
        let proof = match browser.user.password_hash {
            Some(_) => FormField::password("proof", "Your password, or a code"),
            None => code_field("proof", "A code of your authenticator"),
        };
        let fields = html! {
            input type="text" name="username" autocomplete="username"
                value=(browser.user.key.name) readonly hidden;
            (form.field(&FormField {
                hint: Some("Six digits of your authenticator, or a recovery code, will do"),
                ..proof
            }))
            button type="submit" { "Turn off" }
        };
        return html! {
            p { "On. " (left) " recovery codes are left." }
            (form.around("remove_second_factor", &fields))
        };
    }
    let form = form.without_message();
    html! {
        p { "Off. With it, signing in also takes a code from your phone, so that the password alone is of no use to others." }
        (form.around("begin_enrolment", &html! { button type="submit" { "Set up" } }))
    }
}

/// The form that asks for the password of a person who signed in some time ago. `step` is the name
/// of the form, `purpose` says what the person wants to do, and `hidden` has the form's other
/// fields.
pub(crate) fn confirm_password(
    form: &PageForm<'_>,
    name: &str,
    (step, purpose): (&str, &str),
    hidden: &[(&str, &str)],
) -> Markup {
    let fields = html! {
        @for (field, value) in hidden { input type="hidden" name=(field) value=(value); }
        input type="text" name="username" autocomplete="username" value=(name) readonly hidden;
        (form.field(&FormField { focus: true, ..FormField::password("password", "Your password") }))
        button.primary type="submit" { "Continue" }
    };
    html! {
        h1 { "Is it you?" }
        p.lead { "You signed in some time ago. To " (purpose) ", enter your password." }
        (form.around(step, &fields))
    }
}
