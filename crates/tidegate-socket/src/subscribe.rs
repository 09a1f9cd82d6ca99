//! Converts the request of a client into a subscription of the change feed.

use std::sync::Arc;

use bytes::{BufMut as _, BytesMut};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate_catalog::Schema;
use tidegate_catalog::model::RelationId;
use tidegate_feed::{
    CustomForm, EventSender, FieldError, Operation, Operations, PathSegment, Predicate, Resync,
    SelectedColumn, Selection, SubscribeRequest, Subscription, ValueForm,
};
use tidegate_filter::{Filter, Json};
use tidegate_graphql::{Api, ChangeKind, Error, ErrorSummary, PreparedOperation};
use tidegate_plan::EventField;
use tidegate_plan::operation::Output;
use tidegate_sql::Login;

use tidegate_http::app::App;
use tidegate_http::error::ApiError;
use tidegate_http::report::{Context, Errors, Protocol};

/// A subscription that a client has requested.
pub(crate) struct RequestedSubscription {
    /// The response key of the root field, under which messages contain the rows; empty for a
    /// subscription without GraphQL.
    pub key: Arc<str>,
    /// The OID of the table.
    pub relation: u32,
    pub operations: Operations,
    pub selection: Selection,
    pub predicate: Option<Predicate>,
}

/// The reason why a subscription was refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The GraphQL document is invalid.
    GraphQl(Vec<Error>),
    /// Any other reason, with its code and message.
    Other { code: &'static str, message: String },
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Other { code, message }
    }

    /// The errors to log and count; `None` if there are none.
    pub(super) fn errors(&self) -> Option<Errors> {
        match self {
            Self::GraphQl(errors) => Errors::of_graphql(&ErrorSummary::of(errors)),
            Self::Other { code, .. } => Some(Errors::one(Protocol::WebSocket, code)),
        }
    }
}

/// Converts a prepared GraphQL subscription to a request to the feed.
pub(crate) fn of_graphql(
    api: &Api,
    prepared: &PreparedOperation,
    variables: Option<&RawValue>,
) -> Result<RequestedSubscription, Refusal> {
    let asked = api
        .subscribe(prepared, variables)
        .map_err(Refusal::GraphQl)?;
    let schema = api.schema();
    let relation = schema.relation(asked.relation);
    let columns = asked.selection.fields.into_iter().map(|field| {
        let key: Box<str> = (&*field.key).into();
        let (id, parts) = match field.output {
            Output::Column(id) => (id, None),
            Output::Parts(id, parts) => (id, Some(parts)),
            Output::Typename => {
                return Ok(SelectedColumn {
                    column: key.clone(),
                    key,
                    form: ValueForm::Text(relation.type_name.clone()),
                });
            }
            Output::One(..) | Output::Many(..) => {
                let text = format!("`{key}`: relationships cannot be selected in events");
                return Err(Refusal::new("unsupported_selection", text));
            }
        };
        Ok(SelectedColumn {
            key,
            column: relation.column(id).name.clone(),
            form: ValueForm::Custom(shown(EventField::new(relation, id, parts))),
        })
    });
    let columns = columns.collect::<Result<_, _>>()?;
    let predicate = predicate(asked.condition.as_deref(), schema, asked.relation)?;
    Ok(RequestedSubscription {
        key: asked.key,
        relation: relation.oid,
        operations: Operations::from(match asked.change {
            ChangeKind::Added => Operation::Insert,
            ChangeKind::Updated => Operation::Update,
            ChangeKind::Deleted => Operation::Delete,
        }),
        selection: Selection {
            columns,
            key: false,
        },
        predicate,
    })
}

/// The refusal of a node that has no change feed.
pub(crate) fn no_feed() -> Refusal {
    Refusal::new("feed_unavailable", "this service feeds no changes")
}

/// The form in which the values of a field are written.
fn shown(field: EventField) -> CustomForm {
    CustomForm::new(field.name(), field.not_null(), move |column| {
        let writer = field.writer(column);
        Box::new(move |raw, out, field_errors| {
            let mut found = Vec::new();
            let shown = writer.write(raw, out, &mut found)?;
            field_errors.extend(found.into_iter().map(|field_error| FieldError {
                path: field_error.path.into_iter().map(step).collect(),
                problem: field_error.problem,
            }));
            Ok(shown)
        })
    })
}

fn step(segment: tidegate_plan::PathSegment) -> PathSegment {
    match segment {
        tidegate_plan::PathSegment::Key(key) => PathSegment::Key(key),
        tidegate_plan::PathSegment::Index(index) => PathSegment::Index(index),
    }
}

/// Appends a comma and the member `errors` of an event. Appends nothing if `field_errors` is
/// `None`. `key` is the response key, as JSON.
pub(crate) fn write_field_errors(
    key: &str,
    field_errors: Option<&[FieldError]>,
    out: &mut BytesMut,
) {
    let Some(field_errors) = field_errors else {
        return;
    };
    let row = [serde_json::from_str(key).unwrap_or_default(), json!(0)];
    let errors = field_errors.iter().map(|field_error| {
        let within_row = field_error.path.iter().map(|step| match step {
            PathSegment::Key(key) => json!(&**key),
            PathSegment::Index(index) => json!(index),
        });
        let path: Value = row.iter().cloned().chain(within_row).collect();
        let extensions = json!({"code": "BAD_USER_INPUT"});
        json!({"message": field_error.problem, "path": path, "extensions": extensions})
    });
    out.put_slice(b",\"errors\":");
    out.put_slice(errors.collect::<Value>().to_string().as_bytes());
}

/// Compiles the condition `where`, which is JSON: an object, or a string with a condition. Returns
/// `None` without a condition.
pub(crate) fn predicate(
    condition: Option<&str>,
    schema: &Schema,
    relation: RelationId,
) -> Result<Option<Predicate>, Refusal> {
    let Some(condition) = condition else {
        return Ok(None);
    };
    let invalid = |error: tidegate_filter::Error| {
        let code = match error {
            tidegate_filter::Error::Unsupported { .. } => "unsupported_filter",
            _ => "bad_user_input",
        };
        Refusal::new(code, error.to_string())
    };
    let json = Json::from(condition);
    let filter = Filter::parse_subscription(&json, schema, relation, "where").map_err(invalid)?;
    let predicate = Predicate::new(&filter, schema.relation(relation)).map_err(invalid)?;
    Ok(Some(predicate))
}

impl RequestedSubscription {
    /// Starts the subscription. The first delivery in the queue of `sender` is the acknowledgement.
    /// `tag` identifies the subscription in deliveries. `after` is the text of the cursor after
    /// which the subscription resumes; `None` to start now.
    pub(crate) async fn subscribe(
        self,
        app: &App,
        login: Login,
        sender: &EventSender,
        (tag, after): (u64, Option<String>),
    ) -> Result<Subscription, Refusal> {
        let feed = app.feed().ok_or_else(no_feed)?;
        let after = match after.as_deref().map(str::parse) {
            Some(Err(invalid)) => {
                return Err(Refusal::new(
                    "invalid_cursor",
                    format!("`after`: {invalid}"),
                ));
            }
            Some(Ok(cursor)) => Some(cursor),
            None => None,
        };
        let (relation, caller) = (self.relation, login.clone());
        let request = SubscribeRequest {
            login,
            tag,
            relation,
            operations: self.operations,
            selection: self.selection,
            predicate: self.predicate,
            after,
        };
        feed.subscribe(sender, request)
            .await
            .map_err(|error| refused(&error, &caller, relation))
    }
}

/// The refusal for an error of the feed. Logs the errors that the operator must know about:
/// timeouts, failed checks of privileges, and internal errors.
fn refused(error: &tidegate_feed::Error, caller: &Login, relation: u32) -> Refusal {
    use tidegate_feed::Error as E;
    let Login { database, role, .. } = caller;
    let code = match error {
        E::NoTable | E::NoColumn(_) | E::NoRole => "not_allowed",
        E::Unsupported(_) => "unsupported_subscription",
        E::Filter(_) => "unsupported_filter",
        E::CaptureNotAllowed { .. } => "capture_not_allowed",
        E::Timeout { .. } => {
            tracing::warn!(%database, %role, relation, cause = %error, "subscribe timed out");
            "subscribe_timeout"
        }
        E::Unavailable(_) => "feed_unavailable",
        E::Privileges(cause) => {
            tracing::warn!(%database, %role, relation, %cause, "could not check privileges for a subscription");
            "database_unavailable"
        }
        E::Closed => "closed",
        E::Internal(cause) => {
            let context = Context {
                database: Some(database.as_str()),
                role: Some(role.as_str()),
                ..Context::default()
            };
            ApiError::internal(cause.to_string()).log(&context);
            "internal_error"
        }
    };
    Refusal::new(code, error.to_string())
}

/// The value of `reason` in a `resync` message, which says why changes may be missing.
pub(crate) const fn resync_reason(reason: Resync) -> &'static str {
    match reason {
        Resync::Expired => "expired",
        Resync::OtherLog => "other_log",
        Resync::Interrupted => "interrupted",
        Resync::Truncated => "truncated",
        Resync::Partitions => "partitions",
        Resync::Incomplete => "incomplete",
    }
}
