//! `tidegate doctor`: checks the privileges and settings that the service needs.

use std::fmt::Write as _;

use tidegate_admin::doctor::{Finding, Severity};
use tidegate_admin::{Admin, RolePasswords};
use tidegate_identity::MasterKey;

use super::print;
use crate::cli_error::{CliError, Result};
use crate::settings::Settings;
use crate::{master_key, ports, service};

/// Runs the checks and prints the findings.
///
/// # Errors
///
/// If a finding has the severity `Missing`.
pub(crate) async fn run(settings: &Settings) -> Result {
    let config = service::config(settings)?;
    let replication = service::replication_config(settings)?;
    let keyless = settings.master_key.is_none() && settings.master_key_file.is_none();
    let master = if keyless {
        None
    } else {
        Some(master_key::read(settings)?)
    };
    // The doctor tries logins with a temporary role. Without the master key, the password of this
    // role is derived from a random key.
    let passwords = match &master {
        Some(master) => service::role_passwords(master),
        None => RolePasswords::new(ports::bytes(), ports::bytes),
    };
    let admin = Admin::new(config, passwords);
    let feed = crate::feed::change_source(settings, &replication);
    let mut findings = admin.examine(feed).await?;
    findings.push(match &master {
        Some(master) => check_master_key(&admin, master).await?,
        None => no_master_key(),
    });
    findings.extend(admin.examine_tenants(feed).await?);
    print(report(&findings))?;
    let missing = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Missing)
        .count();
    if missing == 0 {
        return Ok(());
    }
    Err(CliError::Refused(format!(
        "{missing} thing(s) that the service needs are missing; what is printed above sets them \
         right; SQL is for a superuser"
    )))
}

/// Compares the fingerprint of the master key with the fingerprint in the control database. Secrets
/// in the control database can be decrypted only with the key that has this fingerprint.
async fn check_master_key(admin: &Admin, master: &MasterKey) -> Result<Finding> {
    let kept = admin.recorded_fingerprint().await?;
    let (severity, text) = match kept {
        None => (
            Severity::Good,
            "no readable control database has another master key",
        ),
        Some(kept) if kept == master.fingerprint() => (
            Severity::Good,
            "the master key is the one of the control database",
        ),
        Some(_) => (
            Severity::Missing,
            "the master key is not the one that the control database was set up with: `serve` \
             refuses it; give the right one in master_key_file",
        ),
    };
    Ok(Finding {
        text: text.to_owned(),
        severity,
        sql: None,
    })
}

fn no_master_key() -> Finding {
    Finding {
        text: "there is no master key, and `serve` needs one: make it with `tidegate key init \
               FILE` and name the file in master_key_file"
            .to_owned(),
        severity: Severity::Missing,
        sql: None,
    }
}

fn report(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding {
        text: finding,
        severity,
        sql,
    } in findings
    {
        let mark = match severity {
            Severity::Good => "ok     ",
            Severity::Note => "note   ",
            Severity::Advice => "advice ",
            Severity::Missing => "MISSING",
        };
        let _ = writeln!(text, "{mark}  {}", super::single_line(finding));
        if *severity == Severity::Good {
            continue;
        }
        for line in sql.iter().flat_map(|sql| sql.lines()) {
            let _ = writeln!(text, "         {line}");
        }
    }
    text
}
