//! Whether those who must can log in, and those who must not cannot.

use std::error::Error as _;

use tidegate_sql::log::LogError;

use super::super::script::{Part, Script};
use super::super::session::Session;
use super::super::{Admin, Error, Result, role};
use super::Finding;
use crate::config::{Config, Secret};
use crate::replication;

/// What the names of roles that are made for the length of a check begin with.
const PROBE: &str = "tidegate_doctor_";

/// Makes a role as users have them and logs in as it, with its password and with a wrong one.
pub(super) async fn made_role(admin: &Admin, session: &Session) -> Result<Vec<Finding>> {
    // Several nodes may look at once.
    let probe = format!("{PROBE}{:08x}", admin.passwords.random_number());
    let probe = probe.as_str();
    let script = match role::make(session, probe, &admin.passwords).await {
        Ok(script) => script,
        Err(error @ Error::ForeignRole(_)) => {
            return Ok(vec![Finding::missing(error.to_string(), None)]);
        }
        Err(error) => return Err(error),
    };
    if let Err(error) = script.run_each(session).await {
        return Ok(vec![Finding::missing(
            format!(
                "a role for the check could not be made ({})",
                error.reason()
            ),
            None,
        )]);
    }
    let right = try_login(&admin.config, probe, &admin.passwords.password(probe)).await;
    let wrong = try_login(&admin.config, probe, "wrong").await;
    let mut drop = Script::default();
    drop.push(&[Part::Syntax("DROP ROLE "), Part::Name(probe)]);
    drop.run_each(session).await?;
    Ok(vec![admission(right), refusal(&wrong)])
}

fn admission(login: Result<(), String>) -> Finding {
    match login {
        Ok(()) => Finding::good("roles of users can log in"),
        Err(problem) => Finding::missing(
            format!("roles of users cannot log in ({problem}); pg_hba.conf needs such a line"),
            "-- host all all <address of this service> scram-sha-256".to_owned(),
        ),
    }
}

fn refusal(login: &Result<(), String>) -> Finding {
    match login {
        Err(_) => Finding::good("a wrong password is refused"),
        Ok(()) => Finding::missing(
            "roles log in with any password: from inside SQL a user could become another; replace \
             `trust` in pg_hba.conf by `scram-sha-256`",
            None,
        ),
    }
}

/// Logs in as the role of the check. That the role may not use the database comes after its
/// password was found right.
async fn try_login(config: &Config, role: &str, password: &str) -> Result<(), String> {
    let config = config.clone().with_login(role, Secret::new(password));
    match Session::open(&config, config.admin_database.as_str()).await {
        Ok(_) => Ok(()),
        Err(error) if error.sqlstate() == Some("42501") => Ok(()),
        Err(error) => Err(error.reason()),
    }
}

/// The login that reads changes, tried out as a stream of changes uses it.
pub(super) async fn replication(config: &Config) -> Finding {
    let name = &config.admin_role;
    match replication::identify(config).await {
        Ok(()) => Finding::good("changes can be read"),
        Err(LogError::NotAllowed { .. }) => {
            let role = postgres_protocol::escape::escape_identifier(name);
            Finding::advice(
                format!("{name} may not read changes: change events need it"),
                format!("ALTER ROLE {role} REPLICATION;"),
            )
        }
        Err(error) => {
            let cause = error
                .source()
                .map_or_else(|| error.to_string(), ToString::to_string);
            let text = format!("{name} cannot log in to read changes ({cause})");
            Finding::advice(text, None)
        }
    }
}
