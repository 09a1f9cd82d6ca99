//! How PostgreSQL describes a statement.

use std::sync::Arc;
use std::time::Duration;

use tidegate_values::codec::wire_format;
use tidegate_values::{Column, Type, WireFormat};
use tidegate_wire::body::FieldDescription;
use tokio::time::Instant;

use super::latency::LatencyEstimate;

/// How long a description may be used if it contains types whose changes PostgreSQL does not
/// report. There are three kinds: types that are not built in, types that hints name, and parameter
/// types that PostgreSQL inferred from tables and functions.
const LIFETIME: Duration = Duration::from_secs(4);

/// The parameters and columns of a statement.
#[derive(Debug)]
pub(crate) struct StatementDescription {
    pub(crate) parameters: Vec<Type>,
    pub(crate) columns: Vec<Column>,
    /// The format codes of the columns.
    pub(crate) formats: Vec<i16>,
    /// The columns as PostgreSQL described them.
    pub(crate) fields: Vec<FieldDescription>,
    /// The estimated latency of the statement, over all connections.
    pub(crate) latency: Arc<LatencyEstimate>,
    /// The generation of the metadata cache when the description was read.
    generation: u64,
    /// When the description expires. `None` if it has no parameters and only built-in types.
    expires: Option<Instant>,
}

impl StatementDescription {
    /// `parameters` is the number of parameters. `types` holds the types of the parameters,
    /// followed by those of the fields.
    pub(crate) fn new(
        parameters: usize,
        fields: Vec<FieldDescription>,
        mut types: Vec<Type>,
        generation: u64,
    ) -> Self {
        let expires = parameters > 0 || types.iter().any(may_change);
        let expires = expires.then(|| Instant::now() + LIFETIME);
        let columns: Vec<_> = fields
            .iter()
            .zip(types.drain(parameters.min(types.len())..))
            .map(|(field, r#type)| Column {
                name: field.name.clone(),
                format: wire_format(&r#type),
                r#type,
                origin: (field.table != 0).then_some((field.table, field.attribute)),
            })
            .collect();
        let formats = columns
            .iter()
            .map(|column| format_code(column.format))
            .collect();
        Self {
            parameters: types,
            columns,
            formats,
            fields,
            latency: Arc::default(),
            generation,
            expires,
        }
    }

    /// Whether the description is still valid in this generation of the cache.
    #[inline]
    pub(crate) fn is_fresh(&self, generation: u64) -> bool {
        match self.expires {
            // A description without an expiry has no parameters, and its columns have built-in
            // types. PostgreSQL refuses to run a prepared statement whose columns have changed, so
            // this description is never used when it is stale. Parameters need an expiry: after a
            // change of an inferred parameter type, PostgreSQL replans the statement with the old
            // type.
            None => true,
            Some(until) => self.generation == generation && Instant::now() < until,
        }
    }

    /// Whether both descriptions have the same parameters and columns.
    pub(crate) fn is_described_as(&self, other: &Self) -> bool {
        let numbers = |description: &Self| {
            description
                .parameters
                .iter()
                .map(Type::oid)
                .collect::<Vec<_>>()
        };
        std::ptr::eq(self, other)
            || (self.fields == other.fields && numbers(self) == numbers(other))
    }

    /// The generation of the metadata cache when the description was read.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }
}

fn format_code(format: WireFormat) -> i16 {
    match format {
        WireFormat::Text => 0,
        WireFormat::Binary => 1,
    }
}

/// Whether the type can be altered, or replaced by another of the same name.
fn may_change(r#type: &Type) -> bool {
    Type::from_oid(r#type.oid()).is_none()
}
