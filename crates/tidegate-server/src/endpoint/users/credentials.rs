//! `/api/v4/users/{name}/credentials`: how a user signs in. A user sees its own credentials. The
//! owner sees the credentials of all users, and can remove the credentials of other users.

use http::Response;
use serde::Serialize;
use tidegate_identity::{CredentialKind, Credentials, LinkedIdentity, Passkey};

use super::{UserAdmin, rest};
use tidegate_http::body::Body;
use tidegate_http::call::{Call, no_content};
use tidegate_http::error::ApiError;

#[derive(Serialize)]
struct CredentialsView<'a> {
    password: bool,
    passkeys: Vec<PasskeyView<'a>>,
    linked_accounts: Vec<LinkedAccountView<'a>>,
    /// Null without a second factor.
    second_factor: Option<SecondFactorView>,
}

#[derive(Serialize)]
struct PasskeyView<'a> {
    name: &'a str,
    created_at: String,
    /// Null for a passkey that was never used.
    used_at: Option<String>,
}

#[derive(Serialize)]
struct LinkedAccountView<'a> {
    issuer: &'a str,
    name: Option<&'a str>,
    linked_at: Option<String>,
}

#[derive(Serialize)]
struct SecondFactorView {
    /// The number of unused recovery codes.
    recovery_codes: u64,
}

/// Handles `GET`.
pub(crate) async fn show<B>(mut call: Call<'_, B>, name: &str) -> Result<Response<Body>, ApiError> {
    let admin = UserAdmin::of(&mut call).await?;
    admin.require_own_name(&[name])?;
    let found = admin
        .accounts
        .directory()
        .credentials(&admin.key(name))
        .await;
    let found = found.map_err(|error| rest::naming(error, "user", name))?;
    rest::shown(&shown(&found))
}

/// Handles `DELETE`, which removes all credentials of the kinds in the path and ends the user's
/// sessions.
pub(crate) async fn remove<B>(
    mut call: Call<'_, B>,
    name: &str,
    kinds: &str,
) -> Result<Response<Body>, ApiError> {
    let admin = UserAdmin::of(&mut call).await?;
    rest::require_owner(&admin.user.claims)?;
    // Users remove their own credentials on the page `/account`, which requires a proof of
    // identity. A stolen token must not suffice to turn off the owner's second factor.
    if name == admin.user.claims.user {
        return Err(ApiError::insufficient_privileges(
            "the owner removes its own credentials on /account",
        ));
    }
    let kinds = rest::names(call.app, kinds)?;
    let kinds = kinds.iter().map(|kind| {
        let known = CredentialKind::from_name(kind);
        known.ok_or_else(|| unknown(kind))
    });
    let kinds = kinds.collect::<Result<Vec<_>, _>>()?;
    let removed = admin.accounts.directory();
    let removed = removed.remove_credentials(&admin.key(name), &kinds).await;
    removed.map_err(|error| rest::naming(error, "user", name))?;
    admin.apply(call.app).await?;
    Ok(no_content())
}

fn unknown(kind: &str) -> ApiError {
    let known = CredentialKind::ALL.map(CredentialKind::name).join(", ");
    ApiError::not_found(format!(
        "there are no credentials `{kind}`; expected some of {known}"
    ))
}

fn shown(credentials: &Credentials) -> CredentialsView<'_> {
    CredentialsView {
        password: credentials.password,
        passkeys: credentials.passkeys.iter().map(passkey).collect(),
        linked_accounts: credentials.linked_accounts.iter().map(linked).collect(),
        second_factor: credentials
            .recovery_codes
            .map(|recovery_codes| SecondFactorView { recovery_codes }),
    }
}

fn passkey(passkey: &Passkey) -> PasskeyView<'_> {
    PasskeyView {
        name: &passkey.name,
        created_at: rest::time(passkey.created_at),
        used_at: passkey.used_at.map(rest::time),
    }
}

fn linked(account: &LinkedIdentity) -> LinkedAccountView<'_> {
    LinkedAccountView {
        issuer: &account.issuer,
        name: account.name.as_deref(),
        linked_at: account.linked_at.map(rest::time),
    }
}
