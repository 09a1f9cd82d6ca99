//! The row level security policies that apply to a role on a table, as one query.

use std::fmt::Write as _;
use std::sync::Arc;

use tidegate_sql::Statement;

use crate::catalog_query::{ARE_VISIBLE, quoted};
use crate::decode::pgoutput::{ColumnValue, Tuple};
use crate::decode::schema::RelationSchema;

/// The row level security policies that apply when a role reads a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RlsPolicy {
    /// The statement that judges row images; see [`statement`]. `None` if the policies cannot be
    /// parsed.
    pub(super) statement: Option<Arc<Statement>>,
    /// On what of the caller the policies depend.
    pub(crate) caller: CallerPart,
    /// The names of the columns that the policies read; `None` if they are unknown.
    columns: Option<Vec<Box<str>>>,
    /// Whether no row can pass, because there is no permissive policy.
    pub(super) denies_all: bool,
    /// The comparisons, one for each policy, of which a visible row passes at least one. `None` if
    /// a policy is restrictive or not such a comparison, or if there is no policy.
    pub(super) equalities: Option<Vec<PolicyEquality>>,
}

/// On what of the caller the result of a policy depends, beside the role. Callers who have this in
/// common share a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallerPart {
    /// All callers with the role see the same rows.
    Nothing,
    /// All callers with the same claims see the same rows.
    Claims,
    /// The result may depend on anything.
    Identity,
}

/// The condition of a policy that compares a column with the caller's id or a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyEquality {
    pub(crate) column: Box<str>,
    /// How the values of the column are compared.
    pub(crate) compared: ComparedType,
    /// The name of the claim; `None` if the column is compared with the caller's id.
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
    /// The numbers (`attnum`) of the columns that the policy reads, separated by commas.
    pub(crate) columns: Box<str>,
    /// On what of the caller the condition depends.
    pub(crate) caller: CallerPart,
    /// The condition, if it only compares a column with the caller's id or a claim; otherwise
    /// `None`.
    pub(crate) equality: Option<PolicyEquality>,
}

impl RlsPolicy {
    /// Combines the policies of a role as PostgreSQL does: a row must pass at least one permissive
    /// policy and every restrictive policy (PostgreSQL, "Row Security Policies"). `numbers`
    /// contains the number and the name of each column.
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
        let parts = policies.iter().map(|policy| policy.caller);
        let caller = parts.max().unwrap_or(CallerPart::Identity);
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
        let statement = (!denies_all).then(|| statement(schema, name, numbers, &condition));
        Self {
            statement: statement.flatten().map(Arc::new),
            caller,
            columns,
            denies_all,
            equalities: equalities.filter(|equalities| !equalities.is_empty()),
        }
    }

    /// The columns that the policies read. `None` if these columns are unknown; the policies may
    /// then read every column.
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

/// Builds the statement that judges row images. `:numbers` are the ids of transactions, `:rows` is a
/// JSON array of row images. It selects the numbers, from 1, of the rows that pass, separated by
/// commas; NULL if a transaction is not visible yet. The alias of the rows is the table's name,
/// because conditions may refer to the table by name.
fn statement(
    schema: &str,
    name: &str,
    numbers: &[(Box<str>, Box<str>)],
    condition: &str,
) -> Option<Statement> {
    let (schema, name) = (quoted(schema), quoted(name));
    let mut columns = String::new();
    let mut number = String::from("number of the row");
    for (_, column) in numbers {
        // The name of the row number must differ from all columns. If the name of a column starts
        // with it, it is made longer than the name of that column.
        if column.starts_with(&*number) {
            number = format!("{column}_");
        }
        write!(columns, "{}, ", quoted(column)).expect("writing to a String cannot fail");
    }
    let number = quoted(&number);
    let text = format!(
        "SELECT CASE WHEN {ARE_VISIBLE} IS NOT FALSE THEN COALESCE((\
         SELECT pg_catalog.string_agg({name}.{number}::pg_catalog.text, ',') \
         FROM ROWS FROM (pg_catalog.jsonb_populate_recordset(\
         NULL::{schema}.{name}, :rows::pg_catalog.jsonb)) WITH ORDINALITY \
         AS {name}({columns}{number}) WHERE {condition}), '') END"
    );
    Statement::around(&text, condition).ok()
}
