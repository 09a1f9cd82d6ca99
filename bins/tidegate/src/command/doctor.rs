//! `tidegate doctor`.

use std::fmt::Write as _;

use tidegate_postgres::admin::doctor::{Finding, Verdict};
use tidegate_postgres::admin::{Admin, RolePasswords};

use super::print;
use crate::failure::{Failure, Result};
use crate::settings::Settings;
use crate::{master_key, ports, service};

/// Checks and prints. Fails when something needed is missing.
pub(crate) async fn run(settings: &Settings) -> Result {
    let config = service::config(settings)?;
    let replication = service::replication_config(settings)?;
    let keyless = settings.master_key.is_none() && settings.master_key_file.is_none();
    // The role of the check gets a password of any key.
    let passwords = if keyless {
        RolePasswords::new(ports::bytes(), ports::bytes)
    } else {
        service::role_passwords(&master_key::read(settings)?)
    };
    let mut findings = Admin::new(config, passwords).examine(&replication).await?;
    if keyless {
        findings.push(no_master_key());
    }
    print(report(&findings))?;
    let missing = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Missing)
        .count();
    if missing == 0 {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "{missing} thing(s) that the service needs are missing; what is printed above sets them \
         right, run as a superuser"
    )))
}

fn no_master_key() -> Finding {
    Finding {
        text: "there is no master key, and `serve` needs one: make it with `tidegate key init \
               FILE` and name the file in master_key_file"
            .to_owned(),
        verdict: Verdict::Advice,
        sql: None,
    }
}

fn report(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding {
        text: said,
        verdict,
        sql,
    } in findings
    {
        let mark = match verdict {
            Verdict::Good => "ok     ",
            Verdict::Advice => "advice ",
            Verdict::Missing => "MISSING",
        };
        let _ = writeln!(text, "{mark}  {said}");
        if *verdict == Verdict::Good {
            continue;
        }
        for line in sql.iter().flat_map(|sql| sql.lines()) {
            let _ = writeln!(text, "         {line}");
        }
    }
    text
}
