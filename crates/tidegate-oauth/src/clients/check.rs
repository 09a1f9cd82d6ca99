//! The rules for the fields of a client's record.

use tidegate_identity::{Error as IdentityError, Secret, UserKind, group_role};

use crate::{Client, Result, redirect};

const MAX_ID_LENGTH: usize = 64;
const MAX_TEXT_LENGTH: usize = 1024;
const MAX_URIS: usize = 100;

/// Checks all fields. Fails with [`IdentityError::InvalidField`] or
/// [`IdentityError::InvalidElement`], which name the first invalid field or element.
pub(super) fn client(client: &Client) -> Result<()> {
    let invalid = |field, expected| Err(IdentityError::InvalidField { field, expected }.into());
    let id = |id: &str| {
        (1..=MAX_ID_LENGTH).contains(&id.len())
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
            && !matches!(id, "." | "..")
    };
    if !id(&client.id) {
        return invalid("id", "1 to 64 characters of A-Z a-z 0-9 _ . -, not . or ..");
    }
    if !is_short(&client.name) || client.name.contains(char::is_control) {
        return invalid(
            "name",
            "a text of at most 1024 bytes without control characters",
        );
    }
    // The consent page shows the home page as a link, so only `http` and `https` are allowed.
    if !client.homepage.as_deref().is_none_or(redirect::is_page) {
        return invalid("homepage", "an http or https address without a fragment");
    }
    // PostgreSQL cannot store the character U+0000 in a text.
    let is_description = |text: &str| is_short(text) && !text.contains('\0');
    if !client.description.as_deref().is_none_or(is_description) {
        return invalid(
            "description",
            "a text of at most 1024 bytes without the character U+0000",
        );
    }
    redirect_uris(&client.redirect_uris)?;
    let signup = &client.signup;
    let of_tenant = client.database.as_deref().zip(signup.group.as_deref());
    if let Some((database, group)) = of_tenant
        && group_role(database, group).is_err()
    {
        return invalid("signup_group", "the name of a group, as a user has it");
    }
    if signup.kind == UserKind::Member && signup.group.is_none() {
        return invalid("signup_group", "a group, which each member needs");
    }
    Ok(())
}

fn redirect_uris(uris: &[String]) -> Result<()> {
    let field = "redirect_uri";
    if uris.is_empty() || uris.len() > MAX_URIS {
        let expected = "1 to 100 addresses";
        return Err(IdentityError::InvalidField { field, expected }.into());
    }
    match uris.iter().position(|uri| !redirect::is_registrable(uri)) {
        None => Ok(()),
        Some(index) => Err(IdentityError::InvalidElement {
            field,
            index,
            expected: "an absolute address without a fragment, over https (http only to a loopback \
                       address or localhost) or with a scheme that is a reversed domain name",
        }
        .into()),
    }
}

/// Checks the secret given for a new client. Fails with [`IdentityError::InvalidField`] if the
/// client may not have the secret.
pub(super) fn secret(secret: Option<&Secret>, public: bool) -> Result<()> {
    let expected = match secret {
        Some(_) if public => "no secret for a public client",
        Some(secret) if !is_short(secret.expose()) => "a text of at most 1024 bytes",
        _ => return Ok(()),
    };
    Err(IdentityError::InvalidField {
        field: "secret",
        expected,
    }
    .into())
}

fn is_short(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= MAX_TEXT_LENGTH
}
