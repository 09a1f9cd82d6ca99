//! Writes `LIMIT`, `OFFSET` and `ORDER BY`.

use tidegate_catalog::{ColumnId, Relation};
use tidegate_filter::{Filter, Operator};
use tidegate_sql::statement::SqlWriter;
use tidegate_values::Parameter;

use super::column;
use crate::Limits;
use crate::operation::{List, Order};

/// The part of a list that is fetched, and how many of the fetched rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The largest number of rows that are shown.
    pub(crate) most: u64,
    /// The number of rows that are fetched. It is `most` if the request has a limit within the
    /// limits of the service. Otherwise the limits of the service determine `most`, and one more
    /// row is fetched. The extra row shows that the list has more rows.
    pub(crate) fetched: u64,
    /// The number of rows that are skipped.
    pub(crate) offset: u64,
    /// Whether the request has a limit or an offset.
    pub(crate) given: bool,
    /// Whether the filter selects at most one row. If so, the statement needs no order and no
    /// limit.
    pub(crate) single: bool,
}

impl Page {
    /// The page of a to-one relationship.
    pub(crate) const ONE: Self = Self {
        most: 1,
        fetched: 1,
        offset: 0,
        given: false,
        single: true,
    };

    /// The page of a list.
    pub(crate) fn of(list: &List, relation: &Relation, limits: &Limits) -> Self {
        let page = Self::new(list.limit, list.offset, limits);
        Self {
            single: !page.given && is_single(&list.filter, relation),
            ..page
        }
    }

    /// The page of a list with this limit and offset, whose filter may select several rows.
    pub(crate) fn new(limit: Option<u64>, offset: Option<u64>, limits: &Limits) -> Self {
        let most = limit.unwrap_or(limits.default_rows);
        let most = most.min(limits.most_rows);
        let cut = limit.is_none_or(|limit| limit > limits.most_rows);
        Self {
            most,
            fetched: most.saturating_add(cut.into()),
            offset: offset.unwrap_or(0),
            given: limit.is_some() || offset.is_some(),
            single: false,
        }
    }

    /// Whether a list with this page and a list with `other` have the same SQL, except for values.
    pub(crate) fn has_same_sql(&self, other: &Self) -> bool {
        let text = |page: &Self| {
            let has_parameters = page.has_parameters();
            (has_parameters, page.bound(), page.single, page.offset > 0)
        };
        text(self) == text(other) && self.given == other.given
    }

    /// Whether the limit, and the offset if it is not 0, are parameters of the statement. Otherwise
    /// the limit is a constant in the SQL text, and there is no offset.
    pub(crate) fn has_parameters(&self) -> bool {
        self.given && (self.offset > 0 || !is_round(self.fetched))
    }

    /// The largest number of rows that any page with the same SQL text can fetch.
    pub(crate) fn bound(&self) -> u64 {
        if self.has_parameters() {
            let last_row = self.fetched.saturating_add(self.offset);
            last_row.checked_next_power_of_two().unwrap_or(u64::MAX)
        } else {
            self.fetched
        }
    }
}

/// Whether a filter compares all columns of a key for equality, so that at most one row passes.
pub(crate) fn is_single(filter: &Filter, relation: &Relation) -> bool {
    let fixes = |column: &ColumnId| match filter {
        Filter::All(filters) => filters.iter().any(|filter| is_equality(filter, *column)),
        filter => is_equality(filter, *column),
    };
    let mut keys = relation.primary_key.iter().chain(&relation.unique);
    keys.any(|key| !key.columns.is_empty() && key.columns.iter().all(fixes))
}

fn is_equality(filter: &Filter, column: ColumnId) -> bool {
    matches!(filter, Filter::Compare(comparison)
        if comparison.operator == Operator::Eq && comparison.column == column)
}

/// Whether a number has at most two significant digits. There are 281 such numbers up to 10,000.
fn is_round(mut number: u64) -> bool {
    while number >= 100 && number.is_multiple_of(10) {
        number /= 10;
    }
    number < 100
}

/// Appends a select with its order and limit; `select` appends the text up to the condition. A page
/// of a single row has no order and no limit.
///
/// A limit with at most two significant digits is a constant in the SQL text, if there is no
/// offset. Any other limit of the request is a parameter, so that there are few different SQL
/// texts. With only this parameter, PostgreSQL would plan for a tenth of all rows, or plan each
/// execution separately. So the statement has two selects:
///
/// - The inner select has a constant limit: the smallest power of two that is at least the limit
///   plus the offset. It is omitted if it would exceed [`MAX_CONSTANT_LIMIT`].
/// - The outer select has the exact limit and the offset as parameters.
///
/// A round limit is a constant in a single select, because two selects can be slower. With two
/// selects, PostgreSQL expects that a tenth of the inner limit is fetched. For so few rows, it may
/// choose an index that has the wanted order but costs more.
///
/// Measured: CPU time of the backend per document (PostgreSQL 15, `pgbench -M prepared`), for four
/// levels with a limit of three each.
///
/// | limit | time |
/// | --- | --- |
/// | two selects | 87 µs |
/// | a constant | 64 µs |
pub(super) fn write(
    page: &Page,
    sql: &mut SqlWriter,
    select: impl FnOnce(&mut SqlWriter),
    order: impl FnOnce(&mut SqlWriter),
) {
    if page.single {
        select(sql);
        return;
    }
    if !page.has_parameters() {
        select(sql);
        order(sql);
        sql.syntax(" limit ").numbered("", narrow(page.fetched));
        return;
    }
    let last_row = page.fetched.saturating_add(page.offset);
    sql.syntax("select * from (");
    select(sql);
    order(sql);
    if let Some(power) = last_row
        .checked_next_power_of_two()
        .filter(|_| last_row <= MAX_CONSTANT_LIMIT)
    {
        sql.syntax(" limit ").numbered("", narrow(power));
    }
    sql.syntax(") s limit ").parameter(number(page.fetched));
    if page.offset > 0 {
        sql.syntax(" offset ").parameter(number(page.offset));
    }
}

/// The largest sum of limit and offset for which the inner select gets a constant limit. A larger
/// constant does not help the planner.
const MAX_CONSTANT_LIMIT: u64 = 1 << 40;

fn narrow(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A number as a parameter. Numbers beyond the range of `bigint` become its largest value.
pub(crate) fn number(number: u64) -> Parameter {
    let number = number.min(i64::MAX.unsigned_abs());
    Parameter::Text(itoa::Buffer::new().format(number).into())
}

/// Appends the order of the request. If `is_stable` is true and the relation has a unique key, the
/// key is appended, so that the order of all rows is determined.
pub(super) fn order(relation: &Relation, wanted: &[Order], is_stable: bool, sql: &mut SqlWriter) {
    let mut separator = " order by ";
    for term in wanted {
        sql.syntax(separator);
        separator = ", ";
        column(0, &relation.column(term.column).name, sql);
        if term.descending {
            sql.syntax(" desc");
        }
        match term.nulls_first {
            None => {}
            Some(true) => {
                sql.syntax(" nulls first");
            }
            Some(false) => {
                sql.syntax(" nulls last");
            }
        }
    }
    if !is_stable {
        return;
    }
    for id in stable_key(relation) {
        if !wanted.iter().any(|term| term.column == *id) {
            sql.syntax(separator);
            separator = ", ";
            column(0, &relation.column(*id).name, sql);
        }
    }
}

/// The columns that make each row unique: the primary key, or else a unique constraint without
/// nullable columns. The slice is empty if the relation has neither.
fn stable_key(relation: &Relation) -> &[ColumnId] {
    let not_null = |id: &ColumnId| relation.column(*id).not_null;
    let mut unique = relation.unique.iter();
    let key = relation
        .primary_key
        .as_ref()
        .or_else(|| unique.find(|key| key.columns.iter().all(not_null)));
    key.map_or(&[], |key| &key.columns)
}
