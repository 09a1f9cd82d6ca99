//! The executor: every principal on the connections that are meant for it.

mod connector;
mod roles;
mod transaction;

use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, DatabaseName, Description, Executor, Mode, Principal,
    Result, RowSink, Terms, Transaction,
};

pub use connector::{Credential, Credentials, RoleConnector};
pub use roles::Roles;

/// Runs statements as users on connections that logged in as their roles, and as the service on
/// connections of its own.
#[derive(Debug)]
pub struct Postgres<S> {
    roles: Roles,
    service: S,
}

impl<S: Executor> Postgres<S> {
    /// `service` runs what [`Principal::Control`] and [`Principal::Catalog`] ask for.
    pub fn new(roles: Roles, service: S) -> Self {
        Self { roles, service }
    }

    /// The part that runs statements as users.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// The part that runs statements as the service.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// Forgets a database that is dropped and closes its connections.
    pub fn forget(&self, database: &DatabaseName) {
        self.roles.forget(database);
    }
}

impl<S: Executor> Executor for Postgres<S> {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        terms: &'a Terms,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        match who {
            Principal::Role(login) => Box::pin(self.roles.query(login, statement, terms, sink)),
            Principal::Control | Principal::Catalog(_) => {
                self.service.query(who, statement, terms, sink)
            }
        }
    }

    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        match who {
            Principal::Role(login) => Box::pin(self.roles.begin(login, mode, terms)),
            Principal::Control | Principal::Catalog(_) => self.service.begin(who, mode, terms),
        }
    }

    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Description>> {
        match who {
            Principal::Role(login) => Box::pin(self.roles.describe(login, statement, terms)),
            Principal::Control | Principal::Catalog(_) => {
                self.service.describe(who, statement, terms)
            }
        }
    }
}
