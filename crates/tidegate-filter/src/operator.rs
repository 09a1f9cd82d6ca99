//! The operators of the where language.

/// An operator that compares a column with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// SQL `=`.
    Eq,
    /// SQL `<>`.
    Neq,
    /// SQL `>`.
    Gt,
    /// SQL `>=`.
    Gte,
    /// SQL `<`.
    Lt,
    /// SQL `<=`.
    Lte,
    /// SQL `= any (array)`.
    In,
    /// SQL `<> all (array)`.
    NotIn,
    /// SQL `IS NULL`.
    IsNull,
    /// SQL `IS NOT NULL`.
    IsNotNull,
    /// SQL `LIKE`.
    Like,
    /// SQL `ILIKE`.
    ILike,
    /// The text begins with the value.
    StartsWith,
    /// The text ends with the value.
    EndsWith,
    /// The text contains the value; SQL `@>` for arrays, ranges and jsonb.
    Contains,
    /// SQL `~`, a regular expression.
    Regex,
    /// SQL `~*`, a regular expression regardless of case.
    IRegex,
    /// SQL `<@`.
    ContainedBy,
    /// SQL `&&`; `?|` for jsonb.
    Overlaps,
}

impl Operator {
    /// The operators with the names that a request uses.
    const NAMED: [(&'static str, Self); 18] = [
        ("eq", Self::Eq),
        ("neq", Self::Neq),
        ("gt", Self::Gt),
        ("gte", Self::Gte),
        ("lt", Self::Lt),
        ("lte", Self::Lte),
        ("in", Self::In),
        ("nin", Self::NotIn),
        ("isNull", Self::IsNull),
        ("like", Self::Like),
        ("ilike", Self::ILike),
        ("startsWith", Self::StartsWith),
        ("endsWith", Self::EndsWith),
        ("contains", Self::Contains),
        ("regex", Self::Regex),
        ("iregex", Self::IRegex),
        ("containedBy", Self::ContainedBy),
        ("overlaps", Self::Overlaps),
    ];

    /// Finds an operator by the name that a request uses; `None` if there is none.
    pub fn find(name: &str) -> Option<Self> {
        let mut named = Self::NAMED.iter();
        named
            .find(|(known, _)| *known == name)
            .map(|(_, operator)| *operator)
    }

    /// The name that a request uses. [`Operator::IsNotNull`] has the name of [`Operator::IsNull`],
    /// because a request writes it as `{"isNull": false}`.
    pub fn name(self) -> &'static str {
        let wanted = match self {
            Self::IsNotNull => Self::IsNull,
            other => other,
        };
        let mut named = Self::NAMED.iter();
        named
            .find(|(_, operator)| *operator == wanted)
            .map_or("", |(name, _)| name)
    }
}
