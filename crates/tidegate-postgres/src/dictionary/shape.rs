//! What PostgreSQL says of a statement.

use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::codec::wire_format;
use tidegate_sql::{Column, Type, TypeKind, WireFormat};
use tokio::time::Instant;

use crate::lane::pace::Pace;
use crate::wire::body::Field;

/// How long is believed what somebody else may change without PostgreSQL telling: the attributes of
/// a composite type, the labels of an enum, the base of a domain, and which types the parameters
/// have that PostgreSQL inferred from the tables and functions that they stand beside.
const PERISHABLE: Duration = Duration::from_secs(5);

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
    /// Until when it is believed, when it holds types that are not built in or were inferred.
    perishes: Option<Instant>,
}

impl Shape {
    /// `types` are those of the parameters, then those of the fields; `parameters` says how many
    /// parameters there are and whether PostgreSQL inferred the type of one.
    pub(super) fn new_at(
        (parameters, inferred): (usize, bool),
        fields: Vec<Field>,
        mut types: Vec<Type>,
        generation: u64,
        now: Instant,
    ) -> Self {
        let perishes = inferred || types.iter().any(is_perishable);
        let perishes = perishes.then(|| now + PERISHABLE);
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

    /// [`Shape::new_at`] now.
    pub(crate) fn new(
        parameters: (usize, bool),
        fields: Vec<Field>,
        types: Vec<Type>,
        generation: u64,
    ) -> Self {
        Self::new_at(parameters, fields, types, generation, Instant::now())
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

/// Whether the type has parts that can be changed under the same number.
fn is_perishable(r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Simple | TypeKind::Pseudo => false,
        TypeKind::Array(inner) | TypeKind::Range(inner) | TypeKind::Multirange(inner) => {
            is_perishable(inner)
        }
        _ => true,
    }
}
