//! The roles of users: made, grouped and dropped.

use std::sync::Arc;

use tidegate_sql::{DatabaseName, RoleName};
use tidegate_wire::Secret;
use tokio::sync::OwnedMutexGuard;

use super::session::{self, Session};
use super::user_role::{self, NewUser};
use super::{Admin, Error, GroupTurn, Result, authenticator, group, role, shared, tenant};

/// `dependent_objects_still_exist`, and `insufficient_privilege` where it is seen before that.
const DEPENDENT: [&str; 2] = ["2BP01", "42501"];

impl Admin {
    /// Makes the role of a user in no group, as [`Self::create_user_in_groups`].
    pub async fn create_user(&self, database: &DatabaseName, role: &RoleName) -> Result<()> {
        self.create_user_in_groups(database, role, &[]).await
    }

    /// Makes the role of a user: it may connect to the tenant's database and use the schema
    /// `public`, and is a member of the roles `groups`, which are `database/group/name` and are made
    /// if they are not there. Who names groups holds [`Self::turn_for_groups`].
    ///
    /// # Errors
    /// [`Error::ForeignRole`], [`Error::StaysMember`].
    pub async fn create_user_in_groups(
        &self,
        database: &DatabaseName,
        role: &RoleName,
        groups: &[RoleName],
    ) -> Result<()> {
        let _turn = self.turn_for_users(database).await;
        let home = self.sessions.take(&self.config).await?;
        let groups: Vec<_> = groups.iter().map(RoleName::as_str).collect();
        let new = NewUser {
            database: database.as_str(),
            role: role.as_str(),
            groups: &groups,
        };
        let unseated = session::alone(|| user_role::create(self, &home, &new)).await?;
        self.sessions.put(home);
        if unseated {
            self.try_to_seat((new.database, new.role)).await;
        }
        Ok(())
    }

    /// Puts a user into an authenticator. It works without, and gets one when a node starts.
    async fn try_to_seat(&self, (database, role): (&str, &str)) {
        let users = authenticator::Users {
            database,
            owner: None,
            shared: &[],
            only: Some(role),
        };
        if let Err(error) = authenticator::seat(self, &users).await {
            tracing::warn!(role, %error, "could not create an authenticator for the user; retrying within an hour");
        }
    }

    /// Waits for its turn to make or drop users of a database, among those of this process.
    async fn turn_for_users(&self, database: &DatabaseName) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.users.lock();
            Arc::clone(turns.entry(database.to_string()).or_default())
        };
        turn.lock_owned().await
    }

    /// Waits for its turn to change members of a tenant's groups, among all nodes of the cluster;
    /// the turn ends with what is returned. No longer than the administrator waits for any lock.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub async fn turn_for_groups(&self, database: &DatabaseName) -> Result<GroupTurn> {
        let session = self.sessions.take(&self.config).await?;
        group::wait_for_turn(&session, database.as_str()).await?;
        Ok(GroupTurn {
            session: Some(session),
            sessions: self.sessions.clone(),
        })
    }

    /// Makes the role of a user a member of the roles `groups`, which are `database/group/name` and
    /// are made if they are not there, and of no other group of the tenant. The roles of groups stay
    /// when their last member leaves, because rights hang on them; they go with the tenant.
    ///
    /// # Errors
    /// [`Error::ForeignRole`], [`Error::StaysMember`].
    pub async fn set_groups(
        &self,
        database: &DatabaseName,
        role: &RoleName,
        groups: &[RoleName],
    ) -> Result<()> {
        let session = self.sessions.take(&self.config).await?;
        let groups: Vec<_> = groups.iter().map(RoleName::as_str).collect();
        group::set(&session, (database.as_str(), role.as_str()), &groups).await?;
        self.sessions.put(session);
        Ok(())
    }

    /// Bounds the temporary files of a role that anonymous callers share, or takes that bound off
    /// again. Does nothing where PostgreSQL lets only a superuser do it, or an operator has set
    /// another bound; the doctor says so.
    /// Such a role has no authenticator: its callers share connections of its own.
    pub async fn limit_shared(&self, role: &RoleName, shared: bool) -> Result<()> {
        let session = self.open_home().await?;
        let role = role.as_str();
        session::alone(|| shared::limit(&session, role, shared)).await?;
        let Some((database, _)) = role.rsplit_once('/') else {
            return Ok(());
        };
        if shared {
            return session::alone(|| authenticator::unseat(&session, (database, role))).await;
        }
        if tenant::database_exists(&session, database).await? {
            self.try_to_seat((database, role)).await;
        }
        Ok(())
    }

    /// Refuses a role that [`Self::drop_user`] would refuse, with the same errors.
    pub async fn may_drop_user(
        &self,
        database: &DatabaseName,
        (role, owner): (&RoleName, &RoleName),
        reassign: bool,
    ) -> Result<()> {
        let session = self.open(database.as_str()).await?;
        let names = (role.as_str(), owner.as_str());
        tenant::may_drop_user(&session, (database.as_str(), names), reassign).await
    }

    /// Drops the role of a user. With `reassign`, what it owns goes to the tenant's owner. A role
    /// that is gone is no error, and one that is refused keeps what it has.
    ///
    /// # Errors
    /// [`Error::OwnsObjects`] without `reassign`, [`Error::CarriesRights`] with it,
    /// [`Error::UsedElsewhere`], and
    /// [`Error::StillUsed`] where somebody granted rights that the administrator may not take.
    pub async fn drop_user(
        &self,
        database: &DatabaseName,
        role: &RoleName,
        owner: &RoleName,
        reassign: bool,
    ) -> Result<()> {
        let _turn = self.turn_for_users(database).await;
        let session = self.open(database.as_str()).await?;
        match role::existing(&session, role.as_str()).await? {
            role::Existing::Nothing => return Ok(()),
            role::Existing::Foreign => return Err(Error::ForeignRole(role.to_string())),
            role::Existing::Ours => {}
        }
        let names = (role.as_str(), owner.as_str());
        tenant::may_drop_user(&session, (database.as_str(), names), reassign).await?;
        let home = self.open_home().await?;
        let sessions = (&home, &session);
        let dropped =
            session::alone(|| tenant::drop_user(sessions, (database.as_str(), names), reassign));
        let Err(error) = dropped.await else {
            return Ok(());
        };
        if role::existing(&home, role.as_str()).await? == role::Existing::Nothing {
            // Somebody else was faster.
            return Ok(());
        }
        Err(match error.sqlstate() {
            Some(code) if DEPENDENT.contains(&code) => Error::StillUsed {
                role: role.to_string(),
                reason: error.reason(),
            },
            _ => error,
        })
    }

    /// Runs statements of the operator's own as a user whose role Tidegate made, in one
    /// transaction. Names in them are qualified: the `search_path` is empty.
    pub async fn run_as(&self, database: &DatabaseName, role: &RoleName, sql: &str) -> Result<()> {
        let password = Secret::new(self.passwords.password(role.as_str()));
        let login = self.config.clone().with_login(role.as_str(), password);
        let session = Session::open_as_user(&login, database.as_str(), 0).await?;
        let ran = session.client.batch_execute(sql).await;
        ran.map_err(|error| Error::of_statement(error, "the script"))
    }
}
