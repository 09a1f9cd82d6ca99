//! Scripted connections without PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_pool::{Connector, OpenError, PoolKey, Recycle, ResetFailed};
use tidegate_sql::{BoxFuture, DatabaseError, DatabaseName, Login, RoleName, RoleUse};
use tokio::time::sleep;

/// A login of a user whose session is number 1.
pub(crate) fn login(database: &str, role: &str) -> Login {
    session(database, role, 1)
}

pub(crate) fn session(database: &str, role: &str, number: u128) -> Login {
    Login {
        database: DatabaseName::new(database),
        role: RoleName::new(role),
        role_use: RoleUse::User(number),
    }
}

pub(crate) fn anonymous(database: &str, role: &str) -> Login {
    Login {
        role_use: RoleUse::Anonymous,
        ..login(database, role)
    }
}

/// How the simulated server behaves from now on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Script {
    Up,
    Down,
    Slow(Duration),
    /// The server allows this many connections.
    Limit(usize),
    /// The role with this name has reached its connection limit.
    LimitOf(&'static str),
    /// The role with this name has another password.
    WrongPassword(&'static str),
    /// The role may not log in, and a retry does not help.
    NoLogin,
    NoDatabase,
}

#[derive(Debug)]
struct FakeServer {
    script: Script,
    attempts: usize,
    numbers: usize,
    open: usize,
    most_open: usize,
    closed: Vec<String>,
    severed: Vec<usize>,
}

/// A connector to the simulated server.
#[derive(Clone, Debug)]
pub(crate) struct Fake(Arc<Mutex<FakeServer>>);

impl Default for Fake {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(FakeServer {
            script: Script::Up,
            attempts: 0,
            numbers: 0,
            open: 0,
            most_open: 0,
            closed: Vec::new(),
            severed: Vec::new(),
        })))
    }
}

/// A connection to the simulated server.
#[derive(Debug)]
pub(crate) struct FakeConnection {
    pub(crate) number: usize,
    pub(crate) database: String,
    pub(crate) role: String,
    /// Whether the connection was opened for a role that anonymous callers share.
    pub(crate) shared: bool,
    /// The duration of the connection's next reset.
    pub(crate) reset_due: Option<Duration>,
    pub(crate) resets: usize,
    pub(crate) uncertain: bool,
    /// If set, the server runs the connection's statement until the test notifies this.
    pub(crate) runs_on: Option<Arc<tokio::sync::Notify>>,
    server: Arc<Mutex<FakeServer>>,
}

impl Drop for FakeConnection {
    fn drop(&mut self) {
        let mut server = self.server.lock();
        server.open -= 1;
        server.closed.push(self.role.clone());
    }
}

impl Fake {
    pub(crate) fn script(&self, script: Script) {
        self.0.lock().script = script;
    }

    pub(crate) fn attempts(&self) -> usize {
        self.0.lock().attempts
    }

    /// The roles of the connections that were closed.
    pub(crate) fn closed(&self) -> Vec<String> {
        self.0.lock().closed.clone()
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
        self.0.lock().open
    }

    pub(crate) fn most_open(&self) -> usize {
        self.0.lock().most_open
    }

    /// Makes the server close a connection.
    pub(crate) fn sever(&self, number: usize) {
        self.0.lock().severed.push(number);
    }

    fn connect(&self, key: &PoolKey, shared: bool) -> Result<FakeConnection, OpenError> {
        let cause = || Arc::new(std::io::Error::other("scripted"));
        let mut server = self.0.lock();
        match server.script {
            Script::Down => return Err(OpenError::Unreachable(cause())),
            Script::Limit(most) if server.open >= most => return Err(OpenError::Full(cause())),
            Script::LimitOf(role) if key.role.as_str() == role => {
                return Err(OpenError::Limited(cause()));
            }
            Script::WrongPassword(role) if key.role.as_str() == role => {
                return Err(OpenError::Login(cause()));
            }
            Script::NoLogin => {
                let (rejection, cause) = (login_refused(), cause());
                return Err(OpenError::AccessDenied { rejection, cause });
            }
            Script::NoDatabase => return Err(OpenError::NoDatabase),
            Script::Up
            | Script::Slow(_)
            | Script::Limit(_)
            | Script::LimitOf(_)
            | Script::WrongPassword(_) => {}
        }
        server.numbers += 1;
        server.open += 1;
        server.most_open = server.most_open.max(server.open);
        Ok(FakeConnection {
            number: server.numbers,
            database: key.database.to_string(),
            role: key.role.to_string(),
            shared,
            reset_due: None,
            resets: 0,
            uncertain: false,
            runs_on: None,
            server: self.0.clone(),
        })
    }
}

impl Connector for Fake {
    type Connection = FakeConnection;

    fn open<'a>(
        &'a self,
        key: &'a PoolKey,
        shared: bool,
    ) -> BoxFuture<'a, Result<FakeConnection, OpenError>> {
        Box::pin(async move {
            let script = {
                let mut server = self.0.lock();
                server.attempts += 1;
                server.script
            };
            if let Script::Slow(time) = script {
                sleep(time).await;
            }
            tokio::task::yield_now().await;
            self.connect(key, shared)
        })
    }

    fn is_open(&self, connection: &mut FakeConnection) -> bool {
        !self.0.lock().severed.contains(&connection.number)
    }

    fn recycle(&self, connection: &mut FakeConnection) -> Recycle {
        match connection.reset_due {
            _ if connection.uncertain => Recycle::Discard,
            Some(_) => Recycle::Reset,
            None => Recycle::Reuse,
        }
    }

    fn may_run(&self, connection: &FakeConnection) -> bool {
        connection.runs_on.is_some()
    }

    fn close(&self, connection: FakeConnection) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Some(ended) = &connection.runs_on {
                ended.notified().await;
            }
        })
    }

    fn reset<'a>(
        &'a self,
        connection: &'a mut FakeConnection,
    ) -> BoxFuture<'a, Result<(), ResetFailed>> {
        Box::pin(async move {
            sleep(connection.reset_due.unwrap_or_default()).await;
            connection.reset_due = None;
            connection.resets += 1;
            Ok(())
        })
    }
}

fn login_refused() -> Box<DatabaseError> {
    Box::new(DatabaseError {
        sqlstate: "28000".to_owned(),
        ..DatabaseError::default()
    })
}
