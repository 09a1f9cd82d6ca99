//! The executor: runs the statements of each principal on connections for this principal.

mod caller_limit;
mod capacity;
mod checked_out;
mod claims_key_cache;
mod member_route;
mod multiplex;
mod open_logins;
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
    Principal, QueryOptions, Result, RowSink, Transaction,
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
    /// Creates an executor. `users` runs the statements of users. `service`, such as
    /// [`tidegate_service::ServiceConnections`], runs those of [`Principal::Control`] and
    /// [`Principal::Catalog`].
    pub fn new(users: UserExecutor, service: Arc<dyn Executor>) -> Self {
        let users = users.with_service(service.clone());
        Self { users, service }
    }

    /// The executor of users' statements.
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
        options: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        match who {
            Principal::Role(login) => Box::pin(self.users.query(login, statement, options, sink)),
            Principal::Control | Principal::Catalog(_) => {
                self.service.query(who, statement, options, sink)
            }
        }
    }

    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        match who {
            Principal::Role(login) => Box::pin(self.users.begin(login, mode, options)),
            Principal::Control | Principal::Catalog(_) => self.service.begin(who, mode, options),
        }
    }

    fn pipeline<'a>(
        &'a self,
        who: &'a Principal,
        pipeline: Pipeline<'a>,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Vec<Completion>, PipelineError>> {
        match who {
            Principal::Role(login) => Box::pin(self.users.pipeline(login, pipeline, options)),
            Principal::Control | Principal::Catalog(_) => {
                self.service.pipeline(who, pipeline, options)
            }
        }
    }

    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        match who {
            Principal::Role(login) => Box::pin(self.users.describe(login, statement, options)),
            Principal::Control | Principal::Catalog(_) => {
                self.service.describe(who, statement, options)
            }
        }
    }
}
