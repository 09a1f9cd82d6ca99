//! Logs in to PostgreSQL, and asks for a password if it is needed.

use std::io::IsTerminal as _;

use tidegate_admin::{Admin, Error as AdminError, RolePasswords};
use tidegate_wire::ConnectFault;

use super::address::Address;
use crate::cli_error::{CliError, Result};
use crate::settings::{Layers, Settings};
use crate::terminal::{ExitOnSignal, NoEcho};
use crate::{ports, service};

/// An administrator for checks before the first change. It needs no master key: it derives the
/// passwords of roles from a random secret.
pub(super) fn administrator(settings: &Settings) -> Result<Admin> {
    let passwords = RolePasswords::new(ports::bytes(), ports::bytes);
    Ok(Admin::new(service::config(settings)?, passwords))
}

/// Checks the login of the administrator. If the URL has no password, the password is taken from
/// `PGPASSWORD`, as in libpq. If PostgreSQL requires a password and there is none, asks for it at
/// the terminal. The password is added to `address` and to `admin_url`.
///
/// Returns an [`ExitOnSignal`] only if it asked for the password. While this value exists, a signal
/// ends the process.
pub(super) async fn check(
    address: &mut Address,
    layers: &mut Layers,
) -> Result<Option<ExitOnSignal>> {
    if !address.has_password()
        && let Some(password) = from_environment()
    {
        use_password(address, layers, &password);
    }
    match administrator(&layers.settings()?)?.server().await {
        Ok(_) => Ok(None),
        Err(AdminError::NoPassword { role, .. }) if std::io::stdin().is_terminal() => {
            let mut terminal = NoEcho::open()?;
            let password = terminal.ask(&format!("PostgreSQL password of {role}: "))?;
            use_password(address, layers, password.expose());
            let interruptible = terminal.close();
            let server = administrator(&layers.settings()?)?.server().await;
            server.map_err(|error| refused(error, address))?;
            Ok(Some(interruptible))
        }
        Err(AdminError::NoPassword { role, .. }) => Err(CliError::Usage(format!(
            "PostgreSQL asks for the password of {role}, and the address has none; set PGPASSWORD, \
             or run the command at a terminal"
        ))),
        Err(error) => Err(refused(error, address)),
    }
}

/// Adds advice to the error of a failed login, according to the reason for the failure.
fn refused(error: AdminError, address: &Address) -> CliError {
    let AdminError::Connect { source, .. } = &error else {
        return error.into();
    };
    let reason = error.reason();
    let remedy = match source.fault() {
        ConnectFault::Login | ConnectFault::AccessDenied => {
            "correct the user or the password in the address, or the password in PGPASSWORD"
                .to_owned()
        }
        // tokio-postgres reports the failed step only in the text of the error, so the text is
        // searched.
        ConnectFault::Unavailable if reason.contains("TLS handshake") => {
            "a server without TLS needs ?sslmode=disable in the address, and one whose certificate \
             is not a public one needs sslrootcert"
                .to_owned()
        }
        ConnectFault::Unavailable => {
            format!(
                "no PostgreSQL answers at {}; start it, or correct the address",
                address.server()
            )
        }
        _ => return error.into(),
    };
    CliError::Refused(format!("{}; {remedy}", CliError::from(error).text()))
}

fn use_password(address: &mut Address, layers: &mut Layers, password: &str) {
    address.set_password(password);
    layers.decide(&[("admin_url", Some(address.administrator()))]);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the binary is where the environment is read"
)]
fn from_environment() -> Option<String> {
    let password = std::env::var("PGPASSWORD").ok();
    password.filter(|password| !password.is_empty())
}
