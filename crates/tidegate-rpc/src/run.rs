//! Runs a single call.

use tidegate_sql::{Completion, Executor, QueryOptions};

use crate::bind::BoundCall;
use crate::call::Call;
use crate::context::Context;
use crate::error::Error;
use crate::output::Output;
use crate::reply;
use crate::result::{Discard, ResultSink, ResultWriter};

/// Runs a call in a transaction of its own. Writes the response, unless the call is a notification.
/// After an error, the output may have a part of a response.
pub(crate) async fn run(
    executor: &dyn Executor,
    context: &Context<'_>,
    call: &Call<'_>,
    bound: BoundCall,
    out: &mut dyn Output,
) -> Result<(), Error> {
    let BoundCall {
        statement,
        format,
        writer,
        author,
    } = bound;
    let options = QueryOptions {
        author,
        ..context.options
    };
    let query = |sink| executor.query(context.principal, &statement, &options, sink);
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
    done.map_err(Error::of_statement)
}

fn finish(sink: ResultSink<'_>, completion: Completion) -> tidegate_sql::Result<()> {
    let ResultSink { mut result, out } = sink;
    result.finish(completion, out.bytes())?;
    out.bytes().extend_from_slice(b"}");
    out.check()
}
