//! Sparing writers: PostgreSQL refuses UPDATE and DELETE of a table that is published with them and
//! whose replica identity is gone, because its primary key or its index was dropped, or its owner
//! wants none.

use tidegate_changelog::LogResult;
use tidegate_sql::DatabaseName;
use tracing::warn;

use super::survey::Survey;
use super::{EVERYTHING, Shared};
use crate::actor::Actor;

/// Takes a table out of the publication of every operation if its writers are refused: what was to
/// be done about it could not be done.
pub(super) async fn writers(
    shared: &Shared,
    database: &DatabaseName,
    relation: u32,
) -> LogResult<()> {
    if let Some(owner) = Actor::owner(&shared.logins, database).await?
        && owner.spare(relation).await?
    {
        return Ok(());
    }
    let admin = Actor::admin(&shared.logins, database).await?;
    admin.spare(relation).await.map(drop)
}

impl Actor {
    /// Says whether nobody is refused any more.
    async fn spare(&self, relation: u32) -> LogResult<bool> {
        self.begin().await?;
        let spared = self.spare_within(relation).await;
        self.end(spared).await
    }

    async fn spare_within(&self, relation: u32) -> LogResult<bool> {
        let Some(mut survey) = self.survey(relation).await? else {
            return Ok(true);
        };
        if !survey.refuses_writers() {
            return Ok(true);
        }
        if !survey.may_publish {
            return Ok(false);
        }
        let name = &survey.name;
        warn!(
            table = name,
            "its changes are captured no more: writers were refused"
        );
        let mut commands = format!("ALTER PUBLICATION \"{EVERYTHING}\" DROP TABLE ONLY {name}; ");
        if let Some(entry) = survey.ledger.0.get_mut(&relation) {
            entry.since = None;
        }
        commands.push_str(&survey.comment());
        self.run(&commands).await?;
        Ok(true)
    }

    /// Whether the writers of a table are refused.
    pub(super) async fn refuses_writers(&self, relation: u32) -> LogResult<bool> {
        let survey = self.survey(relation).await?;
        Ok(survey.is_some_and(|survey| survey.refuses_writers()))
    }

    /// What a table is like; nothing where it cannot be captured at all.
    async fn survey(&self, relation: u32) -> LogResult<Option<Survey>> {
        use tidegate_changelog::LogError::{Gone, NoTable, Unsupported};
        match Survey::of(self, relation).await {
            Ok(survey) => Ok(Some(survey)),
            Err(Gone | NoTable | Unsupported(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
