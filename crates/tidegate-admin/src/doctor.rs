//! Checks all privileges and settings that the service needs, and returns the SQL for those that
//! are missing.

mod authenticators;
mod checks;
mod claims;
mod connect_privilege;
mod control_database;
mod databases;
mod failover;
mod logins;
mod missing_objects;
mod public_access;
mod recorded_tenants;
mod server_settings;
mod shared;
mod wal_settings;

use tidegate_wire::Config;

use super::script::{Script, SqlPart};
use super::session::Session;
use super::{Admin, Result};

pub use recorded_tenants::RecordedTenant;

/// The result of one check of the doctor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The finding in words: a check that passed, or a problem.
    pub text: String,
    /// How severe the finding is.
    pub severity: Severity,
    /// The SQL, or the commands or settings, that fix the problem.
    pub sql: Option<String>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No problem.
    Good,
    /// The condition cannot be checked, but an operator should know about it.
    Note,
    /// The service works, but one of its features does not, or a setting should be improved.
    Advice,
    /// The service does not work or is not safe until the problem is fixed.
    Missing,
}

impl Finding {
    fn ok(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            severity: Severity::Good,
            sql: None,
        }
    }

    fn advice(text: impl Into<String>, sql: impl Into<Option<String>>) -> Self {
        Self {
            text: text.into(),
            severity: Severity::Advice,
            sql: sql.into(),
        }
    }

    fn missing(text: impl Into<String>, sql: impl Into<Option<String>>) -> Self {
        Self {
            text: text.into(),
            severity: Severity::Missing,
            sql: sql.into(),
        }
    }

    /// Reports `good` if `holds`. Otherwise reports `missing`, with the SQL that fixes the problem.
    fn require(holds: bool, good: &str, missing: &str, sql: String) -> Self {
        if holds {
            Self::ok(good)
        } else {
            Self::missing(missing, sql)
        }
    }

    /// Reports `good` if `holds`. Otherwise reports `advice`, with the SQL that fixes the problem.
    /// Used for conditions that the service can do without.
    fn recommend(holds: bool, good: &str, advice: &str, sql: String) -> Self {
        if holds {
            Self::ok(good)
        } else {
            Self::advice(advice, sql)
        }
    }
}

/// The source of change events, with the configuration of the login that reads it.
#[derive(Clone, Copy, Debug)]
pub enum ChangeSource<'a> {
    /// Logical decoding on every node, with this login.
    Logical(&'a Config),
    /// Logical decoding with this login, on one node that sends the changes to the other nodes.
    LogicalOverBus(&'a Config),
    /// Outboxes, which the administrator creates.
    Outbox,
}

impl<'a> ChangeSource<'a> {
    /// The login that reads changes from WAL; `None` if the changes come from outboxes.
    fn reader(self) -> Option<&'a Config> {
        match self {
            Self::Logical(reader) | Self::LogicalOverBus(reader) => Some(reader),
            Self::Outbox => None,
        }
    }
}

impl Admin {
    /// Runs all checks, including those that change events from `feed` need.
    ///
    /// Creates a temporary role to check that users' roles can log in.
    ///
    /// # Errors
    ///
    /// Only if the administrator cannot log in or read the catalog.
    pub async fn examine(&self, feed: ChangeSource<'_>) -> Result<Vec<Finding>> {
        let session = self.open_admin_database().await?;
        let mut findings = checks::rights(&session).await?;
        findings.extend(server_settings::check(&session, self.config.nodes).await?);
        findings.extend(feed_findings(&session, self.config.nodes, feed).await?);
        findings.extend(checks::template(&session).await?);
        findings.push(shared::maintenance_databases(&session, feed).await?);
        findings.push(shared::notification_queue(&session).await?);
        findings.push(shared::memory());
        findings.extend(control_database::control(self, &session).await?);
        findings.extend(databases::control_schema(self, &session).await?);
        findings.push(checks::encryption(&session, &self.config).await?);
        findings.extend(logins::try_temporary_role(self, &session).await?);
        findings.extend(logins::trusting_lines(&session).await?);
        Ok(findings)
    }

    /// Returns the reason why changes cannot be read from `feed`, with the SQL that fixes the
    /// problem. Returns `None` if the changes can be read.
    ///
    /// # Errors
    ///
    /// Only if the administrator cannot log in or read the catalog.
    pub async fn why_no_changes(&self, feed: ChangeSource<'_>) -> Result<Option<String>> {
        let session = self.open_admin_database().await?;
        // A lack of slots is not checked here, because it is reported when a client subscribes.
        let findings = match feed.reader() {
            Some(reader) => vec![
                wal_settings::level(&session).await?,
                logins::replication(reader).await,
            ],
            None => Vec::new(),
        };
        let mut wanting = findings.into_iter();
        let wanting = wanting.find(|finding| finding.severity != Severity::Good);
        Ok(wanting.map(|Finding { text, sql, .. }| match sql {
            Some(sql) => format!("{text}: {sql}"),
            None => format!("{text}."),
        }))
    }
}

/// Checks the server's settings and the login that are needed to read changes from WAL. Outboxes
/// need neither.
async fn feed_findings(
    session: &Session,
    nodes: u32,
    feed: ChangeSource<'_>,
) -> Result<Vec<Finding>> {
    let Some(reader) = feed.reader() else {
        return Ok(vec![Finding::ok(
            "change events come from outboxes, which need no setting of the server",
        )]);
    };
    let mut findings = vec![wal_settings::level(session).await?];
    let has_bus = matches!(feed, ChangeSource::LogicalOverBus(_));
    findings.extend(wal_settings::slots_and_senders(session, nodes, has_bus).await?);
    findings.push(logins::replication(reader).await);
    findings.extend(failover::slots(session, reader).await?);
    Ok(findings)
}

/// The statements that create the control database `name` with the owner `admin`, closed to PUBLIC.
pub(super) fn control_database(name: &str, admin: &str) -> Script {
    let mut script = Script::default();
    script.push(&[
        SqlPart::Syntax("CREATE DATABASE "),
        SqlPart::Name(name),
        SqlPart::Syntax(" OWNER "),
        SqlPart::Name(admin),
        SqlPart::Syntax(" TEMPLATE template0 ENCODING 'UTF8'"),
    ]);
    script.push(&[
        SqlPart::Syntax("REVOKE ALL ON DATABASE "),
        SqlPart::Name(name),
        SqlPart::Syntax(" FROM PUBLIC"),
    ]);
    script
}

pub(super) async fn may_create_databases(session: &Session) -> Result<bool> {
    let row = session
        .client
        .query_one(
            "SELECT rolcreatedb OR rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user",
            &[],
        )
        .await?;
    Ok(row.get(0))
}
