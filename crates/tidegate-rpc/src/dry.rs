//! Dry runs, which find what PostgreSQL infers about a method without running it.

use bytes::BytesMut;
use tidegate_methods::{Method, NotNull, Registry, Signature};
use tidegate_sql::{BoundStatement, Description, Executor, InputError};
use tidegate_values::{OutputFormat, Parameter, parameter};

use crate::bind;
use crate::call::Call;
use crate::context::{Context, DispatchOutcome};
use crate::error::Error;
use crate::output::Output;
use crate::payload::Payload;
use crate::reply::{self, List};
use crate::result::write_types;

/// Describes the statement of each call of a message, independently of the other calls. Writes the
/// response.
pub(crate) async fn run(
    registry: &Registry,
    executor: &dyn Executor,
    context: &Context<'_>,
    payload: &Payload<'_>,
    out: &mut dyn Output,
) -> DispatchOutcome {
    let mut outcome = DispatchOutcome::default();
    let mut list = List::default();
    let batch = matches!(payload, Payload::Batch(_));
    for call in payload.calls() {
        let described = describe(registry, executor, context, call).await;
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
            outcome.record(error);
        }
    }
    if list.has_begun() {
        out.bytes().extend_from_slice(b"]");
    }
    outcome
}

/// Describes a call's statement, stores the signature and returns the result.
async fn describe(
    registry: &Registry,
    executor: &dyn Executor,
    context: &Context<'_>,
    call: &Call<'_>,
) -> Result<BytesMut, Error> {
    if let Err(wrong) = &call.params {
        return Err(Error::Params(wrong.clone()));
    }
    let method = bind::find(registry, context, &call.method).await?;
    let statement = method.without_values().map_err(Error::Definition)?;
    let described = executor.describe(context.principal, &statement, &context.options);
    let description = described.await.map_err(Error::of_statement)?;
    let result = result(&method, &statement, &description, context)?;
    let tenant = context.tenant()?;
    let candidates = NotNull::candidates(&statement.statement, &description);
    let not_null = NotNull::load(executor, tenant, &candidates, &context.options)
        .await
        .map_err(Error::Statement)?;
    let signature = Signature::infer(&statement.statement, &description, &not_null);
    // If the method was changed after it was looked up, the signature is not stored. The next dry
    // run stores one.
    registry
        .record(tenant, &method, &signature)
        .await
        .map_err(Error::Registry)?;
    Ok(result)
}

/// Writes the result `{"schema":{…},"data":[],"params":{…}}`. Fails if a call would fail because of
/// the method's formats.
fn result(
    method: &Method,
    statement: &BoundStatement,
    description: &Description,
    context: &Context<'_>,
) -> Result<BytesMut, Error> {
    let mut out = BytesMut::new();
    check_input_formats(statement, description, &mut out).map_err(Error::Definition)?;
    let mut writer =
        bind::writer(method, OutputFormat::Json, context.timezone).map_err(Error::Definition)?;
    writer
        .columns(&description.columns, &mut out)
        .map_err(|error| Error::of_statement(error.into()))?;
    writer.finish(None, &mut out);
    // The member `params` is inserted before the closing brace of the result.
    out.truncate(out.len() - 1);
    out.extend_from_slice(b",\"params\":");
    let names = statement.statement.placeholders().iter();
    let names = names.map(String::as_str);
    write_types(names.zip(&description.parameters), &mut out);
    out.extend_from_slice(b"}");
    Ok(out)
}

/// Checks that each parameter with a format has a type that accepts formats. For this check any
/// value suffices, so NULL is encoded.
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
