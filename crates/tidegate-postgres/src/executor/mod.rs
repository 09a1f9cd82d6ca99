//! The executor: every principal on the connections that are meant for it.

mod beginning;
mod connector;
mod login_state;
mod multiplex;
mod pipeline;
mod query;
mod roles;
mod route;
mod transaction;

use std::fmt;
use std::sync::Arc;

use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Executor, Mode, Pipeline, PipelineError,
    Principal, QueryOptions, Result, RowSink, Transaction,
};

pub use connector::{Admission, Credential, Credentials, RoleConnector};
pub use login_state::LOGIN_STATE;
pub use roles::Roles;
pub(crate) use roles::told;
pub use route::Authentication;

/// Runs statements as users on connections that logged in as their roles, and as the service on
/// connections of its own.
#[derive(Clone)]
pub struct Postgres {
    roles: Roles,
    service: Arc<dyn Executor>,
}

impl Postgres {
    /// `service` runs what [`Principal::Control`] and [`Principal::Catalog`] ask for, such as
    /// [`tidegate_service::Control`].
    pub fn new(roles: Roles, service: Arc<dyn Executor>) -> Self {
        let roles = roles.with_service(service.clone());
        Self { roles, service }
    }

    /// The part that runs statements as users.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("roles", &self.roles)
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
            Principal::Role(login) => Box::pin(self.roles.query(login, statement, options, sink)),
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
            Principal::Role(login) => Box::pin(self.roles.begin(login, mode, options)),
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
            Principal::Role(login) => Box::pin(self.roles.pipeline(login, pipeline, options)),
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
            Principal::Role(login) => Box::pin(self.roles.describe(login, statement, options)),
            Principal::Control | Principal::Catalog(_) => {
                self.service.describe(who, statement, options)
            }
        }
    }
}
