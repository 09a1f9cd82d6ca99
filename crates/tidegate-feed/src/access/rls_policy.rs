//! Combines into one condition the row level security policies that apply when a role reads a
//! table.

use std::fmt::Write as _;

use crate::access::judgement::Judgement;
use crate::decode::pgoutput::{ColumnValue, Tuple};
use crate::decode::schema::RelationSchema;

/// The row level security policies that apply when a role reads a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RlsPolicy {
    /// The statement that judges row images; `None` if no row can pass, or the policies cannot be
    /// parsed.
    pub(super) judgement: Option<Judgement>,
    /// The part of the caller on which the policies depend.
    pub(crate) caller: CallerPart,
    /// The names of the columns that the policies read; `None` if they are unknown.
    columns: Option<Vec<Box<str>>>,
    /// Whether no row can pass, because there is no permissive policy.
    pub(super) denies_all: bool,
    /// The comparisons, one for each policy. A visible row passes at least one of them. `None` if
    /// there are no policies, or if one of the policies is restrictive or is not a comparison with
    /// the caller's id or a claim.
    pub(super) equalities: Option<Vec<PolicyEquality>>,
}

/// The property of the caller, besides the role, on which the result of a policy depends. Callers
/// with the same role and the same property share a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallerPart {
    /// All callers with the role see the same rows.
    Nothing,
    /// All callers with the same claims see the same rows.
    Claims,
    /// The result may depend on anything about the caller, so it is not shared with other callers.
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

/// The type of a column that a policy compares. Two values of such a type are equal if and only if
/// PostgreSQL prints the same text for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComparedType {
    /// A text type whose values are equal if and only if their bytes are equal.
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
    /// The part of the caller on which the condition depends.
    pub(crate) caller: CallerPart,
    /// The condition, if it only compares a column with the caller's id or a claim; otherwise
    /// `None`.
    pub(crate) equality: Option<PolicyEquality>,
}

impl RlsPolicy {
    /// Combines the policies of a role as PostgreSQL does: a row must pass at least one permissive
    /// policy and every restrictive policy (PostgreSQL, "Row Security Policies"). `table` is the
    /// schema and the name of the table, and `fingerprint` is the table's fingerprint.
    /// `numbered_columns` contains the number (`attnum`) and the name of each column.
    pub(crate) fn new(
        table: (&str, &str),
        fingerprint: &str,
        policies: Vec<PolicyClause>,
        numbered_columns: &[(Box<str>, Box<str>)],
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
                let named = numbered_columns
                    .iter()
                    .find(|(known, _)| &**known == number);
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
        let judgement = || Judgement::new(table, fingerprint, numbered_columns, condition);
        Self {
            judgement: if denies_all { None } else { judgement() },
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
