//! A call alone on its way through PostgreSQL.

use tidegate_sql::{Completion, Executor, Terms};

use crate::context::Context;
use crate::error::Error;
use crate::output::Output;
use crate::payload::Call;
use crate::prepare::Prepared;
use crate::reply;
use crate::result::{Discard, ResultSink, ResultWriter};

/// Runs a call in a transaction of its own and writes its answer, if it has one. After an error
/// part of an answer may be there.
pub(crate) async fn run(
    executor: &dyn Executor,
    context: &Context<'_>,
    call: &Call<'_>,
    prepared: Prepared,
    out: &mut dyn Output,
) -> Result<(), Error> {
    let Prepared {
        statement,
        format,
        writer,
        author,
    } = prepared;
    let terms = Terms {
        author,
        ..context.terms
    };
    let query = |sink| executor.query(context.principal, &statement, &terms, sink);
    let done = match call.id {
        None => query(&mut Discard).await.map(drop),
        Some(id) => {
            reply::begin_result(id, out.bytes());
            let result = ResultWriter::new(writer, format);
            let mut sink = ResultSink { result, out };
            let ran = query(&mut sink).await;
            ran.and_then(|completion| finish(sink, completion))
        }
    };
    done.map_err(|error| Error::of_statement(error, statement.statement.placeholders()))
}

fn finish(sink: ResultSink<'_>, completion: Completion) -> tidegate_sql::Result<()> {
    let ResultSink { mut result, out } = sink;
    result.finish(completion, out.bytes())?;
    out.bytes().extend_from_slice(b"}");
    out.check()
}
