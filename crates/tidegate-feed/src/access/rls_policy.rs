//! The row level security policies that apply to a role on a table, as one query.

use std::fmt::Write as _;

use crate::catalog_query::quoted;
use crate::decode::pgoutput::{ColumnValue, Tuple};
use crate::decode::schema::RelationSchema;

/// The row level security policies that apply when a role reads a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RlsPolicy {
    /// The query that takes row images as a JSON document, and returns the numbers of the rows that
    /// pass.
    pub(super) query: String,
    /// The names of the columns that the policies read; `None` if they are unknown.
    columns: Option<Vec<Box<str>>>,
    /// Whether no row can pass.
    pub(super) denies_all: bool,
    /// The comparisons of which a visible row passes at least one; `None` if the policies are not
    /// such a list.
    pub(super) equalities: Option<Vec<PolicyEquality>>,
}

/// The condition of a policy that compares a column with the caller's id or a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyEquality {
    pub(crate) column: Box<str>,
    pub(crate) compared: ComparedType,
    /// The name of the claim; `None` for the id.
    pub(crate) claim: Option<Box<str>>,
}

/// The type of a column that a policy compares. Values are equal if PostgreSQL prints the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComparedType {
    /// A text whose equality is that of its bytes.
    Text,
    Uuid,
    Integer,
    Bigint,
}

/// One policy of a table.
pub(crate) struct PolicyClause {
    pub(crate) permissive: bool,
    pub(crate) condition: Box<str>,
    /// The numbers of the columns that the policy reads, separated by commas.
    pub(crate) columns: Box<str>,
    /// What the condition is, if it only compares a column with the caller's id or a claim.
    pub(crate) equality: Option<PolicyEquality>,
}

impl RlsPolicy {
    /// Combines the policies of a role as PostgreSQL does: a row must pass one permissive policy
    /// and every restrictive policy (PostgreSQL, "Row Security Policies"). `numbers` has the
    /// numbers and names of all columns.
    pub(crate) fn new(
        schema: &str,
        name: &str,
        policies: Vec<PolicyClause>,
        numbers: &[(Box<str>, Box<str>)],
    ) -> Self {
        let (mut permissive, mut restrictive) = (Vec::new(), Vec::new());
        let equality = |policy: &PolicyClause| {
            let equality = policy.equality.clone();
            equality.filter(|_| policy.permissive)
        };
        let equalities: Option<Vec<_>> = policies.iter().map(equality).collect();
        let mut columns = Some(Vec::new());
        for policy in policies {
            // A policy that uses the whole row reads every column.
            if policy.condition.contains(".*") {
                columns = None;
            }
            for number in policy.columns.split(',') {
                let named = numbers.iter().find(|(known, _)| &**known == number);
                if let (Some(columns), Some((_, name))) = (&mut columns, named) {
                    columns.push(name.clone());
                }
            }
            let conditions = if policy.permissive {
                &mut permissive
            } else {
                &mut restrictive
            };
            conditions.push(policy.condition);
        }
        let denies_all = permissive.is_empty();
        let condition = condition(&permissive, &restrictive);
        let query = query(schema, name, numbers, &condition);
        Self {
            query,
            columns,
            denies_all,
            equalities: equalities.filter(|equalities| !equalities.is_empty()),
        }
    }

    /// The columns that the policies read. `None` if they are unknown; then they may be all
    /// columns.
    pub(crate) fn columns(&self) -> Option<&[Box<str>]> {
        self.columns.as_deref()
    }

    /// Whether a row image has every column that the policies read.
    pub(super) fn can_evaluate(&self, schema: &RelationSchema, tuple: &Tuple) -> bool {
        let is_present = |at: usize| tuple.value(at) != ColumnValue::Absent;
        match &self.columns {
            Some(columns) => columns
                .iter()
                .all(|column| schema.find(column).is_some_and(is_present)),
            None => (0..schema.columns.len()).all(is_present),
        }
    }
}

fn condition(permissive: &[Box<str>], restrictive: &[Box<str>]) -> String {
    let mut condition = String::new();
    for (number, one) in permissive.iter().enumerate() {
        let opening = if number == 0 { "((" } else { " OR (" };
        write!(condition, "{opening}{one})").expect("writing to a String cannot fail");
    }
    condition.push(')');
    for one in restrictive {
        write!(condition, " AND ({one})").expect("writing to a String cannot fail");
    }
    condition
}

/// Writes the query for the numbers, from 1, of the rows that pass. The rows have the table's name
/// as their alias, because conditions may refer to the table by name.
fn query(schema: &str, name: &str, numbers: &[(Box<str>, Box<str>)], condition: &str) -> String {
    let (schema, name) = (quoted(schema), quoted(name));
    let mut columns = String::new();
    let mut number = String::from("number of the row");
    for (_, column) in numbers {
        // The name of the row number must not be a column's. If a column starts with it, it is made
        // longer than that column.
        if column.starts_with(&*number) {
            number = format!("{column}_");
        }
        write!(columns, "{}, ", quoted(column)).expect("writing to a String cannot fail");
    }
    let number = quoted(&number);
    format!(
        "SELECT {name}.{number}::text FROM ROWS FROM (pg_catalog.jsonb_populate_recordset(\
         NULL::{schema}.{name}, :rows::pg_catalog.jsonb)) WITH ORDINALITY \
         AS {name}({columns}{number}) WHERE {condition}"
    )
}
