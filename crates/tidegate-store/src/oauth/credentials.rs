//! Deletes all of a user's credentials of one kind.

use tidegate_identity::{CredentialKind, UserKey};

use crate::error::Result;
use crate::query::{Argument, Database, Query};
use crate::row;

static PASSKEYS: Query = Query::new(
    "delete from tidegate.passkeys where database = :database and user_name = :user_name \
     returning name",
);
static LINKED_ACCOUNTS: Query = Query::new(
    "delete from tidegate.identities where database = :database and user_name = :user_name \
     returning issuer",
);
/// The foreign key of the recovery codes deletes them together with the second factor.
static SECOND_FACTOR: Query = Query::new(
    "delete from tidegate.second_factors \
     where database = :database and user_name = :user_name returning ''",
);

pub(super) async fn delete(
    database: &Database,
    key: &UserKey,
    kind: CredentialKind,
) -> Result<Vec<String>> {
    let query = match kind {
        CredentialKind::Passkeys => &PASSKEYS,
        CredentialKind::LinkedAccounts => &LINKED_ACCOUNTS,
        CredentialKind::SecondFactor => &SECOND_FACTOR,
    };
    let values: [Argument<'_>; 2] = [&key.database, &key.name];
    database.rows(query, &values, row::string).await
}
