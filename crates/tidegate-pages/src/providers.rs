//! Functions for identity providers that several pages share.

use tidegate_http::error::ApiError;
use tidegate_http::percent;
use tidegate_identity::{Error as IdentityError, IdentityProviders, ProviderName};
use tidegate_oauth::Error;

use super::context::PageContext;
use super::form_error::failure;
use crate::template;

/// The identity providers that the sign-in page offers. `next` is the URL after the sign-in, with
/// the query of an authorization request.
pub(super) fn choices(context: &PageContext<'_>, next: &str) -> Vec<template::Choice> {
    let query = next.split_once('?').map_or("", |(_, query)| query);
    let names = context.app.providers().map(IdentityProviders::names);
    let choice = |name: &ProviderName| template::Choice {
        address: context.path(&format!("/signin/{}?{query}", percent::encode(&name.id))),
        label: name.label.clone(),
    };
    names.unwrap_or_default().iter().map(choice).collect()
}

/// The URL to which an identity provider sends the browser back.
pub(super) fn callback(context: &PageContext<'_>, provider: &str) -> String {
    let issuer = context.app.issuer().address();
    format!("{issuer}/signin/{}/callback", percent::encode(provider))
}

pub(super) fn unknown_provider() -> ApiError {
    ApiError::not_found("unknown sign-in provider")
}

pub(super) fn provider_error(error: impl Into<Error>) -> ApiError {
    match error.into() {
        Error::Identity(IdentityError::Outbound(cause)) => ApiError::unavailable(
            "PROVIDER_UNAVAILABLE",
            "The other service does not answer as it should. Try again, or sign in with a password.",
            std::time::Duration::from_secs(30),
        )
        .with_cause(Some(Box::new(cause))),
        error => failure(error),
    }
}
