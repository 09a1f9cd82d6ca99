//! Checks every right and setting that the service needs, and says in SQL what is missing.

mod authenticators;
mod checks;
mod entrance;
mod inside;
mod kept;
mod logins;
mod open;
mod own;
mod present;
mod shared;

use tidegate_wire::Config;

use super::script::{Part, Script};
use super::session::Session;
use super::{Admin, Result};

pub use kept::KeptTenant;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked, or what is wrong.
    pub text: String,
    /// How bad it is.
    pub verdict: Severity,
    /// What sets it right.
    pub sql: Option<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Good,
    /// What no check can tell, and an operator should know.
    Note,
    /// The service works, but something of it does not, or could be better.
    Advice,
    /// The service does not work, or not safely.
    Missing,
}

impl Finding {
    fn good(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            verdict: Severity::Good,
            sql: None,
        }
    }

    fn advice(text: impl Into<String>, sql: impl Into<Option<String>>) -> Self {
        Self {
            text: text.into(),
            verdict: Severity::Advice,
            sql: sql.into(),
        }
    }

    fn missing(text: impl Into<String>, sql: impl Into<Option<String>>) -> Self {
        Self {
            text: text.into(),
            verdict: Severity::Missing,
            sql: sql.into(),
        }
    }

    /// `good` when `holds`, else `missing` with its SQL.
    fn require(holds: bool, good: &str, missing: &str, sql: String) -> Self {
        if holds {
            Self::good(good)
        } else {
            Self::missing(missing, sql)
        }
    }

    /// The same for what the service can do without.
    fn recommend(holds: bool, good: &str, advice: &str, sql: String) -> Self {
        if holds {
            Self::good(good)
        } else {
            Self::advice(advice, sql)
        }
    }
}

/// From where change events come.
#[derive(Clone, Copy, Debug)]
pub enum FeedLogin<'a> {
    /// From the log, with this login.
    Logical(&'a Config),
    /// From outboxes, which the administrator makes.
    Outbox,
}

impl Admin {
    /// Checks everything, for change events from this source.
    ///
    /// Makes a role for the length of the check, to see whether such roles can log in.
    ///
    /// # Errors
    /// Only when the administrator itself cannot log in or read the catalog.
    pub async fn examine(&self, feed: FeedLogin<'_>) -> Result<Vec<Finding>> {
        let session = self.open_home().await?;
        let mut findings = checks::rights(&session).await?;
        findings.extend(checks::settings(&session, self.config.nodes).await?);
        findings.extend(feed_findings(&session, self.config.nodes, feed).await?);
        findings.extend(checks::template(&session).await?);
        findings.push(shared::maintenance_databases(&session, feed).await?);
        findings.push(shared::notification_queue(&session).await?);
        findings.push(shared::memory());
        findings.extend(own::control(self, &session).await?);
        findings.extend(inside::control_schema(self, &session).await?);
        findings.push(checks::encryption(&session, &self.config).await?);
        findings.extend(logins::made_role(self, &session).await?);
        findings.extend(logins::trusting_lines(&session).await?);
        Ok(findings)
    }

    /// Why changes cannot be read from this source; nothing when they can.
    ///
    /// # Errors
    /// Only when the administrator itself cannot log in or read the catalog.
    pub async fn why_no_changes(&self, feed: FeedLogin<'_>) -> Result<Option<String>> {
        let session = self.open_home().await?;
        let findings = match feed {
            FeedLogin::Logical(reader) => {
                // Too few slots are found out by whoever subscribes.
                let [level, _] = checks::logical_decoding(&session, self.config.nodes).await?;
                vec![level, logins::replication(reader).await]
            }
            FeedLogin::Outbox => Vec::new(),
        };
        let mut wanting = findings.into_iter();
        let wanting = wanting.find(|finding| finding.verdict != Severity::Good);
        Ok(wanting.map(|finding| finding.text))
    }
}

/// What change events need.
async fn feed_findings(session: &Session, nodes: u32, feed: FeedLogin<'_>) -> Result<Vec<Finding>> {
    match feed {
        FeedLogin::Logical(reader) => {
            let mut findings = checks::logical_decoding(session, nodes).await?.to_vec();
            findings.push(logins::replication(reader).await);
            Ok(findings)
        }
        FeedLogin::Outbox => Ok(vec![Finding::good(
            "change events come from outboxes, which need no setting of the server",
        )]),
    }
}

/// The statements that make the control database.
pub(super) fn control_database(name: &str, admin: &str) -> Script {
    let mut script = Script::default();
    script.push(&[
        Part::Syntax("CREATE DATABASE "),
        Part::Name(name),
        Part::Syntax(" OWNER "),
        Part::Name(admin),
        Part::Syntax(" TEMPLATE template0 ENCODING 'UTF8'"),
    ]);
    script.push(&[
        Part::Syntax("REVOKE ALL ON DATABASE "),
        Part::Name(name),
        Part::Syntax(" FROM PUBLIC"),
    ]);
    script
}

/// Whether the administrator may make databases.
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
