//! How the pool opens and looks after the connections of users.

use std::fmt;
use std::sync::Arc;

use tidegate_pool::{Connector, Key, OpenError, ResetFailed};
use tidegate_sql::BoxFuture;
use tidegate_wire::{Config, ConnectError, Secret, StartupPins, Terminator, says_lock_table_full};

use super::login_state::LoginStates;
use crate::connection::{Condition, Connection};

/// With what a role logs in.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Its password, such as [`crate::role_password`] makes it.
    pub password: Secret,
    /// What its sessions start with.
    pub pins: StartupPins,
    /// Whether the role may log in and with what settings, as [`crate::Roles::check_logins`] reads
    /// it; `None` when that was not asked.
    pub state: Option<String>,
    /// Whether the role may log in to the database once its password is right.
    pub admission: Admission,
}

impl Credential {
    /// A credential of which nothing more is known.
    pub fn new(password: Secret, pins: StartupPins) -> Self {
        Self {
            password,
            pins,
            state: None,
            admission: Admission::default(),
        }
    }
}

/// Whether a role may log in to a database. PostgreSQL answers with the same error as to a wrong
/// password when it may not (28P01).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// It may, as far as is known.
    #[default]
    Admitted,
    /// The role is not there, or `VALID UNTIL` or `NOLOGIN` keeps it out.
    Barred,
    /// The database is not there.
    NoDatabase,
}

/// Knows with what roles log in. Asked once for each connection.
pub trait Credentials: Send + Sync {
    /// The credential of a role in a database. Where strangers share the role (`shared`), what
    /// the role has set for itself must not reach its sessions.
    fn of<'a>(&'a self, key: &'a Key, shared: bool)
    -> BoxFuture<'a, Result<Credential, OpenError>>;
}

/// Opens connections that log in as users.
#[derive(Clone)]
pub struct RoleConnector {
    config: Arc<Config>,
    credentials: Arc<dyn Credentials>,
    terminator: Arc<dyn Terminator>,
    logins: Arc<LoginStates>,
}

impl RoleConnector {
    /// A connector to the cluster of `config`.
    pub fn new(
        config: Arc<Config>,
        credentials: Arc<dyn Credentials>,
        terminator: Arc<dyn Terminator>,
    ) -> Self {
        Self {
            config,
            credentials,
            terminator,
            logins: Arc::default(),
        }
    }

    /// With what states of their logins connections were opened.
    pub(super) fn logins(&self) -> &LoginStates {
        &self.logins
    }

    /// Ends backends that do not stop.
    pub(super) fn terminator(&self) -> &Arc<dyn Terminator> {
        &self.terminator
    }

    async fn log_in(&self, key: &Key, shared: bool) -> Result<Connection, OpenError> {
        let credential = self.credentials.of(key, shared).await?;
        let Credential {
            password,
            pins,
            state,
            admission,
        } = credential;
        if let Some(state) = state {
            self.logins.note(key, state);
        }
        let (database, role) = (key.database.as_str(), key.role.as_str());
        let opened = Connection::open(&self.config, database, role, password.reveal(), &pins);
        let opened = Box::pin(opened).await;
        if let Err(ConnectError::Refused(said)) = &opened
            && says_lock_table_full(said)
        {
            self.terminator.lock_table_is_full();
        }
        opened.map_err(|error| match (OpenError::from(error), admission) {
            (OpenError::Login(_), Admission::NoDatabase) => OpenError::NoDatabase,
            (OpenError::Login(cause), Admission::Barred) => OpenError::barred(cause),
            (error, _) => error,
        })
    }
}

impl fmt::Debug for RoleConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoleConnector")
            .field("target", &self.config.target)
            .finish_non_exhaustive()
    }
}

impl Connector for RoleConnector {
    type Connection = Connection;

    fn open<'a>(
        &'a self,
        key: &'a Key,
        shared: bool,
    ) -> BoxFuture<'a, Result<Connection, OpenError>> {
        Box::pin(self.log_in(key, shared))
    }

    fn is_open(&self, connection: &mut Connection) -> bool {
        connection.is_open()
    }

    fn condition(&self, connection: &mut Connection) -> tidegate_pool::Condition {
        match connection.condition() {
            // A reset that is under way is waited for by whoever takes the connection next.
            Condition::Ready | Condition::Resetting => tidegate_pool::Condition::Ready,
            Condition::Unsettled => tidegate_pool::Condition::ResetDue,
            Condition::Closed => tidegate_pool::Condition::Uncertain,
        }
    }

    fn may_run(&self, connection: &Connection) -> bool {
        connection.may_run()
    }

    fn reset<'a>(
        &'a self,
        connection: &'a mut Connection,
    ) -> BoxFuture<'a, Result<(), ResetFailed>> {
        Box::pin(async move {
            if connection.settle(&*self.terminator).await {
                Ok(())
            } else {
                Err(ResetFailed)
            }
        })
    }

    fn close(&self, connection: Connection) -> BoxFuture<'static, ()> {
        Box::pin(connection.close())
    }

    fn see_off(&self, connection: Connection) -> BoxFuture<'static, ()> {
        let terminator = self.terminator.clone();
        Box::pin(async move { connection.see_off(&*terminator).await })
    }
}
