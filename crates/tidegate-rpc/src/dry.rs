//! Dry runs: what PostgreSQL infers of a method, without running it.

use bytes::BytesMut;
use tidegate_methods::{Method, NotNull, Signature};
use tidegate_sql::{BoundStatement, Description, InputError};
use tidegate_values::OutputFormat;
use tidegate_values::Parameter;
use tidegate_values::parameter;

use crate::context::{Context, Outcome};
use crate::dispatcher::Dispatcher;
use crate::error::Error;
use crate::output::Output;
use crate::payload::{Call, Payload};
use crate::reply::{self, List};
use crate::result::write_types;

/// Describes the statements of a message's calls, each for itself, and writes the answer.
pub(crate) async fn run(
    dispatcher: &Dispatcher,
    context: &Context<'_>,
    payload: &Payload<'_>,
    out: &mut dyn Output,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut list = List::default();
    let batch = matches!(payload, Payload::Batch(_));
    for call in payload.calls() {
        let described = describe(dispatcher, context, call).await;
        if let Some(id) = call.id {
            outcome.answered = true;
            if batch {
                list.separate(out.bytes());
            }
            match &described {
                Ok(result) => {
                    reply::begin_result(id, out.bytes());
                    out.bytes().extend_from_slice(result);
                    out.bytes().extend_from_slice(b"}");
                }
                Err(error) => reply::write_error(id, error, out.bytes()),
            }
        }
        if let Err(error) = described {
            outcome.note(error);
        }
    }
    if list.has_begun() {
        out.bytes().extend_from_slice(b"]");
    }
    outcome
}

/// Describes a call's statement, keeps the signature and gives the result.
async fn describe(
    dispatcher: &Dispatcher,
    context: &Context<'_>,
    call: &Call<'_>,
) -> Result<BytesMut, Error> {
    if let Err(wrong) = &call.params {
        return Err(Error::Params(wrong.clone()));
    }
    let method = dispatcher.find(context, &call.method).await?;
    let statement = method.without_values().map_err(Error::Definition)?;
    let executor = &*dispatcher.executor;
    let described = executor.describe(context.principal, &statement, &context.terms);
    let description = described.await.map_err(of_description)?;
    let result = result(&method, &statement, &description, context)?;
    let tenant = context.tenant()?;
    let candidates = NotNull::candidates(&statement.statement, &description);
    let not_null = NotNull::load(executor, tenant, &candidates, &context.terms)
        .await
        .map_err(Error::Statement)?;
    let signature = Signature::infer(&statement.statement, &description, &not_null);
    // Whether it was kept does not matter: if not, somebody has changed the method meanwhile.
    dispatcher
        .registry
        .record(tenant, &method, &signature)
        .await
        .map_err(Error::Registry)?;
    Ok(result)
}

/// `{"schema":{…},"data":[],"params":{…}}`; formats that would fail a call fail here.
fn result(
    method: &Method,
    statement: &BoundStatement,
    description: &Description,
    context: &Context<'_>,
) -> Result<BytesMut, Error> {
    let mut out = BytesMut::new();
    check_input_formats(statement, description, &mut out).map_err(Error::Definition)?;
    let mut writer = crate::prepare::writer(method, OutputFormat::Json, context.timezone)
        .map_err(Error::Definition)?;
    writer
        .columns(&description.columns, &mut out)
        .map_err(|error| of_description(error.into()))?;
    writer.finish(None, &mut out);
    // In front of the brace that closes the result.
    out.truncate(out.len() - 1);
    out.extend_from_slice(b",\"params\":");
    let names = statement.statement.placeholders().iter();
    let names = names.map(String::as_str);
    write_types(names.zip(&description.parameters), &mut out);
    out.extend_from_slice(b"}");
    Ok(out)
}

/// No value is needed to see that a type takes no format.
fn check_input_formats(
    statement: &BoundStatement,
    description: &Description,
    scratch: &mut BytesMut,
) -> Result<(), InputError> {
    let formats = statement.formats.iter().map(Option::as_ref);
    for (index, (format, r#type)) in formats.zip(&description.parameters).enumerate() {
        let place = || statement.place(0, index);
        parameter::encode(&Parameter::Null, r#type, format, &place, scratch)?;
    }
    Ok(())
}

/// No value of the caller takes part in a description.
fn of_description(error: tidegate_sql::Error) -> Error {
    Error::of_statement(error, &[])
}
