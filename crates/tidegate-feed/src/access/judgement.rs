//! Has PostgreSQL judge row images as one caller, in one round trip.
//!
//! Many callers are judged at a time ([`crate::access::rls_evaluators`]). The executor sends such
//! statements of the members of a group together, each in a transaction of its own: claims are sealed
//! for one transaction, so no code that a policy runs for one member can act for the next one. Where a
//! policy may run code that is not built in, a reset of the session follows each of them.

use std::sync::{Arc, LazyLock};

use tidegate_sql::{
    Commit, Error, Executor, Login, Mode, Pipeline, PipelineStep, Principal, Result, Statement,
};

use crate::catalog_query::{TextRows, bind_statement, oid_array, options};

/// Sets the empty `search_path` under which PostgreSQL has printed the policies. Ends with the
/// transaction.
static EMPTY_PATH: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    let text = "SELECT pg_catalog.set_config('search_path', '', true)";
    Arc::new(Statement::around(text, "true").expect("the statement is one of Tidegate's"))
});

/// Runs the statement of [`super::rls_policy::RlsPolicy`] for row images (a JSON array). Returns the
/// numbers, from 1, of those that the caller may see; `None` if one of the transactions (the lower 32
/// bits of their ids) is not visible yet.
pub(super) async fn judge(
    executor: &dyn Executor,
    login: &Login,
    statement: &Arc<Statement>,
    transactions: &[u32],
    images: &str,
) -> Result<Option<Vec<usize>>> {
    let transactions = oid_array(transactions);
    let path = bind_statement(EMPTY_PATH.clone(), &[])?;
    let judgement = bind_statement(statement.clone(), &[&transactions, images])?;
    let (mut nothing, mut rows) = (TextRows::default(), TextRows::default());
    let steps = vec![
        PipelineStep {
            statement: &path,
            sink: &mut nothing,
        },
        PipelineStep {
            statement: &judgement,
            sink: &mut rows,
        },
    ];
    let pipeline = Pipeline {
        mode: Mode::Snapshot,
        steps,
        commit: Commit::Together,
    };
    let principal = Principal::Role(login.clone());
    let ran = executor.pipeline(&principal, pipeline, &options()).await;
    ran.map_err(|failed| failed.error)?;
    let row = rows.0.into_iter().next();
    let row = row.ok_or_else(|| Error::internal("the judgement has no row"))?;
    let numbers = row.into_iter().next().flatten();
    numbers.as_deref().map(numbers_of).transpose()
}

fn numbers_of(text: &str) -> Result<Vec<usize>> {
    let numbers = text.split(',').filter(|number| !number.is_empty());
    let numbers: std::result::Result<_, _> = numbers.map(str::parse).collect();
    numbers.map_err(Error::internal)
}
