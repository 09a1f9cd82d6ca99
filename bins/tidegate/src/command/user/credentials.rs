//! `tidegate user credentials`: shows or removes passkeys, linked accounts and second factors.

use tidegate_identity::{CredentialKind, Credentials, UserKey};

use super::super::{print, print_table};
use crate::cli::CredentialChoice;
use crate::cli_error::Result;
use crate::service::Service;

/// Shows the credentials of a user. If `remove` is not empty, removes all credentials of these
/// kinds instead.
pub(super) async fn run(service: &Service, key: &UserKey, remove: Vec<CredentialChoice>) -> Result {
    super::tenant(service, &key.database).await?;
    if remove.is_empty() {
        let found = service.users().credentials(key).await?;
        return print_table(&["KIND", "NAME"], &rows(&found));
    }
    let kinds: Vec<CredentialKind> = remove.into_iter().map(Into::into).collect();
    service.users().remove_credentials(key, &kinds).await?;
    let names: Vec<_> = kinds.into_iter().map(CredentialKind::name).collect();
    print(format_args!(
        "{} has none of these any more: {}; its sessions have ended.\n",
        key.name,
        names.join(", ")
    ))
}

fn rows(found: &Credentials) -> Vec<Vec<String>> {
    let row = |kind: &str, name: &str| vec![kind.to_owned(), name.to_owned()];
    let mut rows = Vec::new();
    if found.password {
        rows.push(row("password", ""));
    }
    let kind = CredentialKind::Passkeys.name();
    rows.extend(found.passkeys.iter().map(|one| row(kind, &one.name)));
    let kind = CredentialKind::LinkedAccounts.name();
    rows.extend(
        found
            .linked_accounts
            .iter()
            .map(|one| row(kind, &one.issuer)),
    );
    if let Some(codes) = found.recovery_codes {
        let left = format!("{codes} recovery codes");
        rows.push(row(CredentialKind::SecondFactor.name(), &left));
    }
    rows
}
