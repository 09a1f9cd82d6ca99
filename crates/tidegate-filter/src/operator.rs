//! The operators of the where language.

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Eq,
    /// `<>`
    Neq,
    /// `>`
    Gt,
    /// `>=`
    Gte,
    /// `<`
    Lt,
    /// `<=`
    Lte,
    /// `= any`
    In,
    /// `<> all`
    NotIn,
    /// `IS NULL`
    IsNull,
    /// `IS NOT NULL`
    IsNotNull,
    /// `LIKE`
    Like,
    /// `ILIKE`
    ILike,
    /// The text begins with the value.
    StartsWith,
    /// The text ends with the value.
    EndsWith,
    /// The text contains the value; for arrays, ranges and jsonb `@>`.
    Contains,
    /// `~`
    Regex,
    /// `~*`
    IRegex,
    /// `<@`
    ContainedBy,
    /// `&&`; for jsonb `?|`.
    Overlaps,
}

impl Operator {
    /// The operators that a request can name.
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

    /// Finds an operator by the name that a request uses.
    pub fn find(name: &str) -> Option<Self> {
        let mut named = Self::NAMED.iter();
        named
            .find(|(known, _)| *known == name)
            .map(|(_, operator)| *operator)
    }

    /// The name that a request uses. [`Operator::IsNotNull`] has the name of its opposite, because
    /// a request writes it as `{"isNull": false}`.
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
