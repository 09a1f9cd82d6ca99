//! `tidegate user convert`: converts users with a role to members, and members to users with a
//! role.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use tidegate_identity::{Conversion, User, UserKey, UserKind};

use super::tenant;
use crate::cli::ConvertedUsers;
use crate::cli_error::{CliError, FileContext, Result};
use crate::command::print;
use crate::service::Service;

/// Checks all users first, and converts none if one of them would be refused. Otherwise converts
/// them one after the other and stops at the first error. The text of this error names the users
/// that were not converted.
pub(super) async fn run(given: ConvertedUsers, service: &Service) -> Result {
    tenant(service, &given.database).await?;
    let accounts = service.accounts();
    let conversion = Conversion {
        kind: UserKind::from(given.to),
        user_groups: given.group,
        reassign: given.reassign,
    };
    let names = names(given.names, given.names_file.as_deref())?;
    let key = |name: &str| UserKey::new(&given.database, name);
    let (mut before, mut refused) = (Vec::new(), Vec::new());
    for name in &names {
        match accounts.check_convert(&key(name), &conversion).await {
            Ok(user) => before.push(user),
            Err(error) => refused.push(format!("{name}: {}", CliError::from(error).text())),
        }
    }
    if !refused.is_empty() {
        if names.len() > 1 {
            refused.push("no user is converted".to_owned());
        }
        return Err(CliError::Refused(refused.join("\n")));
    }
    for (index, (name, before)) in names.iter().zip(&before).enumerate() {
        match accounts.convert(&before.key, &conversion).await {
            Ok(user) => report(before, &user)?,
            Err(error) => {
                return Err(CliError::Refused(format!(
                    "{name}: {}\nnot converted: {}",
                    CliError::from(error).text(),
                    names[index..].join(", ")
                )));
            }
        }
    }
    Ok(())
}

fn report(before: &User, user: &User) -> Result {
    let kind = match user.kind() {
        UserKind::Role => "user with a role",
        UserKind::Member => "member",
    };
    let name = &user.key.name;
    if before.kind() == user.kind() {
        return print(format_args!("{name} is a {kind} already.\n"));
    }
    print(format_args!(
        "{name} is a {kind} now; its sessions have ended.\n"
    ))
}

/// The names on the command line, followed by those in `file`, without repetitions.
fn names(mut names: Vec<String>, file: Option<&Path>) -> Result<Vec<String>> {
    if let Some(file) = file {
        names.extend(names_in(file)?);
    }
    let mut known = HashSet::new();
    names.retain(|name| known.insert(name.clone()));
    Ok(names)
}

fn names_in(file: &Path) -> Result<Vec<String>> {
    let text = if file == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.on("read the names of users from", file)?;
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty());
    Ok(lines.map(str::to_owned).collect())
}
