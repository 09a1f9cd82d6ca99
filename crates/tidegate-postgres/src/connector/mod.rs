//! Opens, resets and closes the pool's connections.

mod login_state;

use std::fmt;
use std::sync::Arc;

use tidegate_pool::{Connector, OpenError, PoolKey, Recycle, ResetFailed};
use tidegate_sql::BoxFuture;
use tidegate_wire::{
    BackendTerminator, Config, ConnectError, Secret, StartupParameters, is_lock_table_error,
};

use crate::connection::{Connection, ConnectionState};
use login_state::LoginStates;

pub use login_state::LOGIN_STATE;

/// The credential with which a role logs in.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The password, for example from [`crate::role_password()`].
    pub password: Secret,
    /// The startup parameters of the role's sessions.
    pub startup: StartupParameters,
    /// The state of the login ([`LOGIN_STATE`]); `None` if it was not read.
    /// [`crate::UserExecutor::check_logins`] compares it with the current state.
    pub state: Option<String>,
    /// Whether the role may log in to the database, as far as the service knows. The password is
    /// not considered.
    pub admission: Admission,
}

impl Credential {
    /// A credential without a login state, of a role that may log in.
    pub fn new(password: Secret, startup: StartupParameters) -> Self {
        Self {
            password,
            startup,
            state: None,
            admission: Admission::default(),
        }
    }
}

/// Whether a role may log in to a database. PostgreSQL's error does not show this: it is the same
/// (28P01) for a role that does not exist, for an expired role, and for a wrong password.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// Nothing is known that prevents the login.
    #[default]
    Admitted,
    /// The role does not exist, or `VALID UNTIL` or `NOLOGIN` prevents the login.
    AccessDenied,
    /// The database does not exist.
    NoDatabase,
}

/// The role may not log in on the primary. The service therefore does not log it in on a replica.
#[derive(Debug, thiserror::Error)]
#[error("the role may not log in on the primary")]
struct LockedOut;

/// Provides the credentials of roles. It is called once for each new connection.
pub trait Credentials: Send + Sync {
    /// The credential of a role in a database. If `fixed_settings` is true, anonymous callers or
    /// the members of a group share the role, and settings that the role set for itself must not
    /// apply to its sessions.
    fn of<'a>(
        &'a self,
        key: &'a PoolKey,
        fixed_settings: bool,
    ) -> BoxFuture<'a, Result<Credential, OpenError>>;
}

/// Opens connections that log in as users, authenticators or groups.
#[derive(Clone)]
pub struct RoleConnector {
    config: Arc<Config>,
    credentials: Arc<dyn Credentials>,
    terminator: Arc<dyn BackendTerminator>,
    logins: Arc<LoginStates>,
    /// Whether the connections are for a replica. If not, connections to a standby are not reused.
    for_replica: bool,
}

impl RoleConnector {
    /// A connector to the cluster of `config`.
    pub fn new(
        config: Arc<Config>,
        credentials: Arc<dyn Credentials>,
        terminator: Arc<dyn BackendTerminator>,
    ) -> Self {
        Self {
            config,
            credentials,
            terminator,
            logins: Arc::default(),
            for_replica: false,
        }
    }

    /// The same connector, for a standby that runs only reads.
    #[must_use]
    pub fn for_replica(self) -> Self {
        Self {
            for_replica: true,
            ..self
        }
    }

    /// The login states at the time when the open connections were opened.
    pub(crate) fn logins(&self) -> &LoginStates {
        &self.logins
    }

    /// The terminator for backends that do not react to a cancel request.
    pub(crate) fn terminator(&self) -> &Arc<dyn BackendTerminator> {
        &self.terminator
    }

    async fn log_in(&self, key: &PoolKey, fixed_settings: bool) -> Result<Connection, OpenError> {
        let credential = self.credentials.of(key, fixed_settings).await?;
        let Credential {
            password,
            startup,
            state,
            admission,
        } = credential;
        if let Some(state) = state {
            self.logins.note(key, state);
        }
        // `admission` was determined on the primary. It is checked here, because the standby may
        // still admit a role that may no longer log in on the primary.
        if self.for_replica && admission != Admission::Admitted {
            return Err(OpenError::access_denied(Arc::new(LockedOut)));
        }
        let (database, role) = (key.database.as_str(), key.role.as_str());
        let opened = Connection::open(&self.config, database, role, password.reveal(), &startup);
        let opened = Box::pin(opened).await;
        if let Err(ConnectError::Refused(rejection)) = &opened
            && is_lock_table_error(rejection)
        {
            self.terminator.lock_table_is_full();
        }
        opened.map_err(|error| match (OpenError::from(error), admission) {
            (OpenError::Login(_), Admission::NoDatabase) => OpenError::NoDatabase,
            (OpenError::Login(cause), Admission::AccessDenied) => OpenError::access_denied(cause),
            (error, _) => error,
        })
    }
}

impl fmt::Debug for RoleConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoleConnector")
            .field("hosts", &self.config.addresses())
            .finish_non_exhaustive()
    }
}

impl Connector for RoleConnector {
    type Connection = Connection;

    fn open<'a>(
        &'a self,
        key: &'a PoolKey,
        fixed_settings: bool,
    ) -> BoxFuture<'a, Result<Connection, OpenError>> {
        Box::pin(self.log_in(key, fixed_settings))
    }

    fn is_open(&self, connection: &mut Connection) -> bool {
        connection.is_current() && connection.is_open()
    }

    fn recycle(&self, connection: &mut Connection) -> Recycle {
        // A connection to a standby is discarded, unless this connector is for a replica. After a
        // failover, the connection that replaces it reaches the primary.
        let is_refused = connection.is_in_recovery() && !self.for_replica;
        if is_refused || !connection.is_current() {
            return Recycle::Discard;
        }
        match connection.state() {
            // A connection can be reused before the response to its reset arrives, because the next
            // user of the connection waits for the response.
            ConnectionState::Idle | ConnectionState::Resetting => Recycle::Reuse,
            ConnectionState::NeedsRecovery => Recycle::Reset,
            ConnectionState::Closed => Recycle::Discard,
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
            if connection.recover(&*self.terminator).await {
                Ok(())
            } else {
                Err(ResetFailed)
            }
        })
    }

    fn close(&self, connection: Connection) -> BoxFuture<'static, ()> {
        Box::pin(connection.close())
    }

    fn close_and_wait(&self, connection: Connection) -> BoxFuture<'static, ()> {
        let terminator = self.terminator.clone();
        Box::pin(async move { connection.close_and_wait(&*terminator).await })
    }
}
