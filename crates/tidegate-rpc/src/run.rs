//! One call on its way through PostgreSQL.

use tidegate_sql::{BoundStatement, Completion, Executor, RowSink, Transaction};

use crate::context::Context;
use crate::error::Error;
use crate::output::Output;
use crate::payload::Call;
use crate::prepare::Prepared;
use crate::reply;
use crate::result::{Discard, ResultSink};

/// Where a statement runs.
pub(crate) enum Place<'a> {
    /// In a transaction of its own.
    Alone(&'a dyn Executor, &'a Context<'a>),
    /// In the transaction of its batch.
    Within(&'a mut dyn Transaction),
}

impl Place<'_> {
    async fn query(
        &mut self,
        statement: &BoundStatement,
        sink: &mut dyn RowSink,
    ) -> tidegate_sql::Result<Completion> {
        match self {
            Self::Alone(executor, context) => {
                let query = executor.query(context.principal, statement, &context.terms, sink);
                query.await
            }
            Self::Within(transaction) => transaction.query(statement, sink).await,
        }
    }
}

/// Runs a call and writes its answer, if it has one. After an error part of an answer may be
/// there.
pub(crate) async fn run(
    mut place: Place<'_>,
    call: &Call<'_>,
    prepared: Prepared,
    out: &mut dyn Output,
) -> Result<(), Error> {
    let Prepared {
        statement,
        format,
        writer,
    } = prepared;
    let done = match call.id {
        None => place.query(&statement, &mut Discard).await.map(drop),
        Some(id) => {
            reply::begin_result(id, out.bytes());
            let mut sink = ResultSink::new(writer, format, out);
            match place.query(&statement, &mut sink).await {
                Ok(completion) => sink.finish(completion).and_then(|()| {
                    out.bytes().extend_from_slice(b"}");
                    out.check()
                }),
                Err(error) => Err(error),
            }
        }
    };
    done.map_err(|error| Error::of_statement(error, statement.statement.placeholders()))
}
