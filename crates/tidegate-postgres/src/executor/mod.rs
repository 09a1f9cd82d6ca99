//! The executor: runs the statements of each principal on the right connections.

mod multiplex;
mod pipeline;
mod query;
mod role_defaults;
mod route;
mod transaction;
mod user_executor;

use std::fmt;
use std::sync::Arc;

use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Executor, Mode, Pipeline, PipelineError,
    Principal, Result, RowSink, Terms, Transaction,
};

pub use route::Authentication;
pub use user_executor::UserExecutor;

/// Runs statements of users on their connections, and statements of the service on service
/// connections.
#[derive(Clone)]
pub struct Postgres {
    users: UserExecutor,
    service: Arc<dyn Executor>,
}

impl Postgres {
    /// `service` runs the statements of [`Principal::Control`] and [`Principal::Catalog`], such as
    /// [`tidegate_service::ServiceConnections`].
    pub fn new(users: UserExecutor, service: Arc<dyn Executor>) -> Self {
        let users = users.with_service(service.clone());
        Self { users, service }
    }

    /// Runs the statements of users.
    pub fn user_executor(&self) -> &UserExecutor {
        &self.users
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("users", &self.users)
            .finish_non_exhaustive()
    }
}

impl Executor for Postgres {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        terms: &'a Terms,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        match who {
            Principal::Role(login) => Box::pin(self.users.query(login, statement, terms, sink)),
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
            Principal::Role(login) => Box::pin(self.users.begin(login, mode, terms)),
            Principal::Control | Principal::Catalog(_) => self.service.begin(who, mode, terms),
        }
    }

    fn pipeline<'a>(
        &'a self,
        who: &'a Principal,
        pipeline: Pipeline<'a>,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Vec<Completion>, PipelineError>> {
        match who {
            Principal::Role(login) => Box::pin(self.users.pipeline(login, pipeline, terms)),
            Principal::Control | Principal::Catalog(_) => {
                self.service.pipeline(who, pipeline, terms)
            }
        }
    }

    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Description>> {
        match who {
            Principal::Role(login) => Box::pin(self.users.describe(login, statement, terms)),
            Principal::Control | Principal::Catalog(_) => {
                self.service.describe(who, statement, terms)
            }
        }
    }
}
