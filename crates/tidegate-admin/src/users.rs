//! Creates and drops the roles of users, and sets the groups of a user.

use std::sync::Arc;

use tidegate_sql::{DatabaseName, RoleName};
use tidegate_wire::Secret;
use tokio::sync::OwnedMutexGuard;

use super::session::{self, Session};
use super::user_role::{self, NewUser};
use super::{Admin, Error, GroupLock, Result, authenticator, claims, group, role, shared, tenant};

/// The SQLSTATEs with which PostgreSQL refuses to drop a role: `dependent_objects_still_exist` and
/// `insufficient_privilege`.
const DEPENDENT: [&str; 2] = ["2BP01", "42501"];

impl Admin {
    /// Creates the role of a user without groups; see [`Self::create_user_in_groups`].
    pub async fn create_user(&self, database: &DatabaseName, role: &RoleName) -> Result<()> {
        self.create_user_in_groups(database, role, &[]).await
    }

    /// Creates the role of a user. The role may connect to the tenant's database and use the schema
    /// `public`, and is a member of the roles `groups` (`database/group/name`), which are created
    /// if missing. If `groups` is not empty, the caller must hold [`Self::lock_groups`].
    ///
    /// # Errors
    ///
    /// [`Error::RoleExists`], [`Error::StaysMember`].
    pub async fn create_user_in_groups(
        &self,
        database: &DatabaseName,
        role: &RoleName,
        groups: &[RoleName],
    ) -> Result<()> {
        let _turn = self.lock_users(database).await;
        let home = self.sessions.take(&self.config).await?;
        let groups: Vec<_> = groups.iter().map(RoleName::as_str).collect();
        let new = NewUser {
            database: database.as_str(),
            role: role.as_str(),
            groups: &groups,
        };
        let unassigned =
            session::retry_on_conflict(|| user_role::create(self, &home, &new)).await?;
        self.sessions.put(home);
        if unassigned {
            self.try_to_assign((new.database, new.role)).await;
        }
        Ok(())
    }

    /// Assigns an authenticator to a user. Errors are only logged, because the user can work
    /// without an authenticator. Each node retries when it starts and once an hour.
    async fn try_to_assign(&self, (database, role): (&str, &str)) {
        let users = authenticator::Users {
            database,
            owner: None,
            shared: &[],
            only: Some(role),
        };
        if let Err(error) = authenticator::assign(self, &users).await {
            tracing::warn!(role, %error, "could not create an authenticator for the user; retrying within an hour");
        }
    }

    /// Takes the lock that lets only one task of this process change the users of a database at a
    /// time. Dropping the guard releases the lock.
    async fn lock_users(&self, database: &DatabaseName) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.user_locks.lock();
            Arc::clone(locks.entry(database.to_string()).or_default())
        };
        lock.lock_owned().await
    }

    /// Takes the lock that lets only one node of the cluster change the groups of a tenant at a
    /// time. Waits at most 30 seconds. Dropping the result releases the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`].
    pub async fn lock_groups(&self, database: &DatabaseName) -> Result<GroupLock> {
        let session = self.sessions.take(&self.config).await?;
        group::lock(&session, database.as_str()).await?;
        Ok(GroupLock {
            session: Some(session),
            sessions: self.sessions.clone(),
        })
    }

    /// Makes the role of a user a member of the roles `groups` (`database/group/name`), which are
    /// created if missing, and of no other group of the tenant. The role of a group is kept when
    /// the last member leaves, because the role may have privileges. It is dropped with the tenant.
    ///
    /// # Errors
    ///
    /// [`Error::RoleExists`], [`Error::StaysMember`].
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

    /// Prepares a role for anonymous callers who share it (`shared` is `true`), or for one user. A
    /// shared role gets a limit on temporary files and loses its authenticator, because its
    /// connections log in as the role itself. The role of one user loses that limit and gets an
    /// authenticator. The limit does not change if the administrator may not set it, or if an
    /// operator has set another limit.
    pub async fn set_shared(&self, role: &RoleName, shared: bool) -> Result<()> {
        let session = self.open_admin_database().await?;
        let role = role.as_str();
        session::retry_on_conflict(|| shared::limit(&session, role, shared)).await?;
        let Some((database, _)) = role.rsplit_once('/') else {
            return Ok(());
        };
        if shared {
            return session::retry_on_conflict(|| {
                authenticator::unassign(&session, (database, role))
            })
            .await;
        }
        if tenant::database_exists(&session, database).await? {
            self.try_to_assign((database, role)).await;
        }
        Ok(())
    }

    /// Checks whether [`Self::drop_user`] would refuse to drop the role, and fails with the same
    /// error. Does not check for [`Error::RoleExists`] and [`Error::StillUsed`].
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

    /// Drops the role of a user. With `reassign`, the objects that the role owns go to the tenant's
    /// owner. There is no error if the role does not exist. After an error the role keeps its
    /// privileges and objects.
    ///
    /// # Errors
    ///
    /// [`Error::RoleExists`] if Tidegate did not create the role, [`Error::OwnsObjects`] without
    /// `reassign`, [`Error::CarriesRights`] with `reassign`, [`Error::UsedElsewhere`], and
    /// [`Error::StillUsed`] if the administrator cannot revoke a grant of another role.
    pub async fn drop_user(
        &self,
        database: &DatabaseName,
        role: &RoleName,
        owner: &RoleName,
        reassign: bool,
    ) -> Result<()> {
        let _turn = self.lock_users(database).await;
        let session = self.open(database.as_str()).await?;
        match role::origin(&session, role.as_str()).await? {
            role::RoleOrigin::Missing => {
                return claims::delete_identity(&session, role.as_str()).await;
            }
            role::RoleOrigin::Other => return Err(Error::RoleExists(role.to_string())),
            role::RoleOrigin::Tidegate => {}
        }
        let names = (role.as_str(), owner.as_str());
        tenant::may_drop_user(&session, (database.as_str(), names), reassign).await?;
        let home = self.open_admin_database().await?;
        let sessions = (&home, &session);
        let dropped = session::retry_on_conflict(|| {
            tenant::drop_user(sessions, (database.as_str(), names), reassign)
        });
        let Err(error) = dropped.await else {
            return Ok(());
        };
        if role::origin(&home, role.as_str()).await? == role::RoleOrigin::Missing {
            // Another session has dropped the role in the meantime, so there is nothing left to do.
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

    /// Runs the statements in `sql` in one transaction, logged in as a role that Tidegate created.
    /// The statements must qualify all names, because the `search_path` is empty.
    pub async fn run_as(&self, database: &DatabaseName, role: &RoleName, sql: &str) -> Result<()> {
        let password = Secret::new(self.passwords.password(role.as_str()));
        let login = self.config.clone().with_login(role.as_str(), password);
        let session = Session::open_as_user(&login, database.as_str(), 0).await?;
        let ran = session.client.batch_execute(sql).await;
        ran.map_err(|error| Error::of_statement(error, "the script"))
    }
}
