//! Sign-up with an account of an identity provider: the first sign-in creates the user.

use super::IdentityService;
use super::sign_up::create_self_registered;
use crate::{
    Accounts, Error, ExternalIdentity, NewUser, RequestContext, Result, SignUpUser, TenantName,
    User, UserName,
};

/// The maximum number of user names that are tried for a new user.
const MAX_NAMES: u32 = 20;
/// The maximum number of characters that are taken from the provider's user name. It leaves room
/// for a numeric suffix.
const NAME_CHARACTERS: usize = 24;

impl IdentityService {
    /// The user of this tenant who has linked this account. A user who only has the same email
    /// address is not returned, because the addresses of users may be unverified.
    pub async fn user_of_account(
        &self,
        database: &str,
        account: &ExternalIdentity,
    ) -> Result<Option<User>> {
        let (issuer, subject) = (&account.issuer, &account.subject);
        let store = &self.ports.store;
        Ok(store.user_of_identity(database, issuer, subject).await?)
    }

    /// Creates a user of the kind and group in `template` for an account of `provider`, and links
    /// the account. The calling function must check that sign-up is allowed.
    ///
    /// Errors: [`Error::InvalidField`] without a verified email address,
    /// [`Error::TooManyAttempts`], and the errors of [`Accounts::create`].
    pub async fn sign_up_with_account(
        &self,
        (accounts, template): (&Accounts, &SignUpUser),
        database: &str,
        (provider, account): (&str, &ExternalIdentity),
        context: &RequestContext,
    ) -> Result<User> {
        let email = account.verified_email.as_deref();
        let email = email.ok_or(Error::InvalidField {
            field: "email",
            expected: "an account whose e-mail address the provider has verified",
        })?;
        self.count_sign_up(context).await?;
        let preferred = account.name.as_deref().unwrap_or(email);
        let names = (preferred, email);
        let user = create_with_free_name((accounts, template), database, names, context).await?;
        if self.store_link(&user, (provider, account), context).await? {
            return Ok(user);
        }
        // A parallel request of the same person linked the account first. The user that the other
        // request created is returned, and the user of this request is dropped.
        let accounts = accounts.acting_as(&user.key.name, context.address);
        accounts.drop_new(&user).await?;
        let user = self.user_of_account(database, account).await?;
        user.ok_or(Error::InvalidLink)
    }
}

/// Creates a user of the kind and group in `template` with the preferred name. If the name is
/// taken, appends a number to it.
async fn create_with_free_name(
    (accounts, template): (&Accounts, &SignUpUser),
    database: &str,
    (preferred, email): (&str, &str),
    context: &RequestContext,
) -> Result<User> {
    let stem = name_stem(preferred);
    for number in 1..=MAX_NAMES {
        let name = match number {
            1 => stem.clone(),
            _ => format!("{stem}-{number}"),
        };
        let mut new = NewUser::new(TenantName::adopted(database)?, UserName::parse(&name)?);
        new.email = Some(email.to_owned());
        new.is_email_confirmed = true;
        match create_self_registered(accounts, template.of(new), context).await {
            Err(Error::Taken(_) | Error::IdTaken) => {}
            created => return created,
        }
    }
    Err(Error::Taken("user"))
}

/// The beginning of a user name, made from a preferred name or an email address. Uses only the part
/// before `@`, removes characters that are not allowed, and cuts the rest to leave room for a
/// suffix. Returns `user` if no character is left.
pub(super) fn name_stem(preferred: &str) -> String {
    let allowed = |c: &char| c.is_ascii_alphanumeric() || "_.-".contains(*c);
    let local_part = preferred.split('@').next().unwrap_or_default();
    let stem: String = local_part
        .chars()
        .filter(allowed)
        .take(NAME_CHARACTERS)
        .collect();
    if stem.is_empty() {
        "user".to_owned()
    } else {
        stem
    }
}
