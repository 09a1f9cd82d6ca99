//! `tidegate doctor`.

use std::fmt::Write as _;

use tidegate_postgres::admin::Admin;
use tidegate_postgres::admin::doctor::{Finding, Verdict};

use super::print;
use crate::failure::{Failure, Result};
use crate::settings::Settings;
use crate::{master_key, ports, service};

/// Checks and prints. Fails when something needed is missing.
pub(crate) async fn run(settings: &Settings) -> Result {
    let config = service::config(settings)?;
    let replication = service::replication_config(settings)?;
    // The role of the check gets a password of any key.
    let passwords = match master_key::read(settings) {
        Ok(master) => service::role_passwords(&master),
        Err(_) => tidegate_postgres::admin::RolePasswords::new(ports::bytes(), ports::bytes),
    };
    let findings = Admin::new(config, passwords).examine(&replication).await?;
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
