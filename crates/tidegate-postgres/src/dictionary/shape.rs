//! What PostgreSQL says of a statement.

use std::sync::Arc;
use std::time::Duration;

use tidegate_values::codec::wire_format;
use tidegate_values::{Column, Type, WireFormat};
use tidegate_wire::body::Field;
use tokio::time::Instant;

use crate::multiplex::pace::Pace;

/// How long is believed what somebody else may change without PostgreSQL telling: what a type that
/// is not built in consists of and is called, which type a hint names, and which types PostgreSQL
/// inferred for parameters from the tables and functions that they stand beside.
const PERISHABLE: Duration = Duration::from_secs(4);

/// The parameters and columns of a statement.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) parameters: Vec<Type>,
    pub(crate) columns: Vec<Column>,
    /// The format codes of the columns.
    pub(crate) formats: Vec<i16>,
    /// The columns as PostgreSQL described them.
    pub(crate) fields: Vec<Field>,
    /// How long it takes, on whichever connection.
    pub(crate) pace: Arc<Pace>,
    /// The generation of the dictionary's types.
    generation: u64,
    /// Until when it is believed, when it has parameters or types that are not built in.
    perishes: Option<Instant>,
}

impl Shape {
    /// `types` are those of so many parameters, then those of the fields.
    pub(crate) fn new(
        parameters: usize,
        fields: Vec<Field>,
        mut types: Vec<Type>,
        generation: u64,
    ) -> Self {
        let perishes = parameters > 0 || types.iter().any(is_perishable);
        let perishes = perishes.then(|| Instant::now() + PERISHABLE);
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
            pace: Arc::default(),
            generation,
            perishes,
        }
    }

    /// Whether it can still be believed, given the dictionary's generation.
    #[inline]
    pub(crate) fn is_fresh(&self, generation: u64) -> bool {
        match self.perishes {
            // PostgreSQL itself refuses a prepared statement whose columns have changed, but plans
            // one anew with the types that its parameters had.
            None => true,
            Some(until) => self.generation == generation && Instant::now() < until,
        }
    }

    /// Whether PostgreSQL described the statement in the same way another time.
    pub(crate) fn is_described_as(&self, other: &Self) -> bool {
        let numbers = |shape: &Self| shape.parameters.iter().map(Type::oid).collect::<Vec<_>>();
        std::ptr::eq(self, other)
            || (self.fields == other.fields && numbers(self) == numbers(other))
    }

    /// The generation in which it was learnt.
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

/// Whether the type can be changed, or be another one under the same name.
fn is_perishable(r#type: &Type) -> bool {
    Type::from_oid(r#type.oid()).is_none()
}
