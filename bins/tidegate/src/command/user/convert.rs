//! `tidegate user convert`.

use std::io;
use std::path::Path;

use tidegate_identity::{Conversion, UserKey, UserKind};

use super::tenant;
use crate::cli::ConvertedUsers;
use crate::command::print;
use crate::failure::{Failure, FileContext, Result};
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
    for name in &names(given.names, given.names_file.as_deref())? {
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

/// The names of the command line and, if there is one, those of a file.
fn names(mut names: Vec<String>, file: Option<&Path>) -> Result<Vec<String>> {
    let Some(file) = file else {
        return Ok(names);
    };
    let text = if file == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.on("read the names of users from", file)?;
    let lines = text.lines().map(str::trim);
    names.extend(lines.filter(|line| !line.is_empty()).map(str::to_owned));
    Ok(names)
}
