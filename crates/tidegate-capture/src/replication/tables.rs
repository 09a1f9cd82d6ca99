//! Creates the two publications of a database, without tables.

use tidegate_changelog::{LogError, LogResult};
use tidegate_sql::DatabaseName;

use super::{EVERYTHING, INSERTS, Shared};
use crate::capture_session::CaptureSession;

/// Creates the publications if they are missing. Returns whether it created any. If so, an existing
/// retention slot must be created again, because it cannot decode changes for publications that are
/// newer than the slot.
pub(super) async fn prepare(shared: &Shared, database: &DatabaseName) -> LogResult<bool> {
    let admin = CaptureSession::admin(&shared.logins, database).await?;
    let state = State::read(&admin).await?;
    if state.wal_level != "logical" {
        return Err(LogError::NotAllowed {
            reason: format!("wal_level is {}", state.wal_level),
            remedy: "set it to logical (`tidegate doctor` prints how), and restart PostgreSQL"
                .to_owned(),
        });
    }
    if state.missing.is_empty() {
        return Ok(false);
    }
    if let Some(owner) = CaptureSession::owner(&shared.logins, database).await?
        && State::read(&owner).await?.may_create
    {
        return owner.publish().await;
    }
    if state.may_create {
        return admin.publish().await;
    }
    Err(LogError::NotAllowed {
        reason: format!(
            "{} may not make a publication",
            shared.logins.admin.admin_role
        ),
        remedy: format!(
            "run GRANT CREATE ON DATABASE \"{database}\" TO \"{}\"",
            shared.logins.admin.admin_role
        ),
    })
}

pub(super) fn options(publication: &str) -> String {
    let operations = match publication {
        INSERTS => "insert, truncate",
        _ => "insert, update, delete, truncate",
    };
    format!("publish = '{operations}', publish_via_partition_root = true")
}

impl CaptureSession {
    async fn publish(&self) -> LogResult<bool> {
        self.begin().await?;
        let done = async {
            let state = State::read(self).await?;
            for publication in &state.missing {
                let options = options(publication);
                self.run(&format!(
                    "CREATE PUBLICATION \"{publication}\" WITH ({options})"
                ))
                .await?;
            }
            Ok(!state.missing.is_empty())
        };
        let done = done.await;
        self.end(done).await
    }
}

/// The facts that decide whether the database can be captured.
struct State {
    wal_level: String,
    may_create: bool,
    /// The publications of the service that do not exist.
    missing: Vec<&'static str>,
}

impl State {
    async fn read(session: &CaptureSession) -> LogResult<Self> {
        let rows = session
            .rows(
                "SELECT pg_catalog.current_setting('wal_level'), \
                        pg_catalog.has_database_privilege(\
                            pg_catalog.current_database(), 'CREATE'), \
                        ARRAY(SELECT pubname::text FROM pg_catalog.pg_publication)",
                &[],
            )
            .await?;
        let row = rows.first().ok_or_else(|| super::unreadable("a setting"))?;
        let there: Vec<String> = row.get(2);
        let is_missing = |name: &&str| !there.iter().any(|there| there == name);
        Ok(Self {
            wal_level: row.get(0),
            may_create: row.get(1),
            missing: [EVERYTHING, INSERTS]
                .into_iter()
                .filter(is_missing)
                .collect(),
        })
    }
}
