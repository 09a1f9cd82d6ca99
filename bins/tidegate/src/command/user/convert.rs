//! `tidegate user convert`.

use tidegate_identity::{Conversion, UserKey, UserKind};

use super::tenant;
use crate::cli::ConvertedUsers;
use crate::command::print;
use crate::failure::{Failure, Result};
use crate::service::Service;

/// Converts users one after the other. Continues with the next user after an error, and fails at
/// the end.
pub(super) async fn run(given: ConvertedUsers, service: &Service) -> Result {
    tenant(service, &given.database).await?;
    let accounts = service.accounts();
    let conversion = Conversion {
        kind: UserKind::from(given.to),
        user_groups: given.group,
        reassign: given.reassign,
    };
    let mut failed = Vec::new();
    for name in &given.names {
        let key = UserKey::new(&given.database, name);
        match accounts.convert(&key, &conversion).await {
            Ok(user) => print(format_args!(
                "{name} is a {} now; its sessions have ended.\n",
                match user.kind() {
                    UserKind::Role => "user with a role",
                    UserKind::Member => "member",
                }
            ))?,
            Err(error) => failed.push(format!("{name}: {}", Failure::from(error).text())),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(failed.join("\n")))
}
