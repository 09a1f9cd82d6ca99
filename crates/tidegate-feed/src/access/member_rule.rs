//! Row level security that the service evaluates for members, without a query.
//!
//! Many members of a group subscribe to the same table, and a policy shows each of them its own
//! rows: `owner = (SELECT tidegate.user_id())`. When a member subscribes, the service computes the
//! value that the column has in the member's rows. When a row changes, the service takes the
//! column's value in this row, and looks up the subscriptions of the members with this value
//! ([`crate::dispatch::index`]). PostgreSQL evaluates policies of other forms.

use tidegate_sql::{ClaimText, Login, Member, RoleUse};

use crate::access::rls_policy::{ComparedType, PolicyEquality, RlsPolicy};
use crate::decode::change::{ChangeKind, Row, RowChange};
use crate::decode::pgoutput::ColumnValue;

/// Says which rows of a table the policies show to a member.
#[derive(Debug)]
pub(crate) struct MemberRule {
    /// The comparisons of the policies, one for each policy.
    equalities: Vec<PolicyEquality>,
    /// A key for each of the comparisons, except those whose value is NULL.
    keys: Vec<RuleKey>,
}

/// A column and a value in text form. The member sees the rows whose column has this value.
#[derive(Debug)]
pub(crate) struct RuleKey {
    pub(crate) column: Box<str>,
    pub(crate) value: Box<[u8]>,
}

impl MemberRule {
    /// The rule of a member under these policies. Returns `None` if PostgreSQL has to evaluate the
    /// policies, because the caller is not a member or a policy does more than compare a column
    /// with a value that the service knows.
    pub(crate) fn new(login: &Login, policy: &RlsPolicy) -> Option<Self> {
        let RoleUse::Member(member) = &login.role_use else {
            return None;
        };
        let equalities = policy.equalities.clone()?;
        let mut keys = Vec::with_capacity(equalities.len());
        for equality in &equalities {
            match value_of(member, equality) {
                ClaimText::Text(text) => keys.push(RuleKey {
                    column: equality.column.clone(),
                    value: text.into_boxed_bytes(),
                }),
                // A comparison with NULL makes no row visible.
                ClaimText::Null => {}
                ClaimText::Other => return None,
            }
        }
        Some(Self { equalities, keys })
    }

    /// Whether the rule was made from the comparisons in these policies; `false` if `policy` is
    /// `None`.
    pub(crate) fn comes_from(&self, policy: Option<&RlsPolicy>) -> bool {
        policy.and_then(|policy| policy.equalities.as_ref()) == Some(&self.equalities)
    }

    /// The keys of the rule. A row is visible if it matches at least one of them.
    pub(crate) fn keys(&self) -> &[RuleKey] {
        &self.keys
    }

    /// Whether the member may see a change. A row image that lacks the compared column is not
    /// visible. A TRUNCATE is always visible.
    pub(crate) fn shows(&self, change: &RowChange) -> bool {
        let ChangeKind::Row(_, tuple) = &change.kind else {
            return true;
        };
        let row = Row {
            schema: &change.schema,
            tuple,
        };
        self.keys.iter().any(|key| {
            let at = row.schema.find(&key.column);
            at.is_some_and(|at| row.value(at) == ColumnValue::Text(&key.value))
        })
    }
}

/// The value with which a policy compares its column. [`ClaimText::Other`] means that only
/// PostgreSQL can compute or compare the value.
fn value_of(member: &Member, equality: &PolicyEquality) -> ClaimText {
    let value = match &equality.claim {
        None => ClaimText::Text(member.id().into()),
        Some(name) => member.claim(name),
    };
    match value {
        // If PostgreSQL would print the value in another spelling, only PostgreSQL can compare it.
        // A text that is not a value of the type is also left to PostgreSQL, which rejects it.
        ClaimText::Text(text) if !is_canonical(equality.compared, &text) => ClaimText::Other,
        value => value,
    }
}

/// Whether the text is a value of the type exactly as PostgreSQL prints it.
fn is_canonical(compared: ComparedType, text: &str) -> bool {
    match compared {
        ComparedType::Text => true,
        ComparedType::Uuid => is_canonical_uuid(text),
        ComparedType::Integer => text.parse().is_ok_and(|n: i32| n.to_string() == text),
        ComparedType::Bigint => text.parse().is_ok_and(|n: i64| n.to_string() == text),
    }
}

/// Whether a text is a UUID as PostgreSQL prints it.
fn is_canonical_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_sql::{DatabaseName, RoleName};

    use super::ComparedType::{Bigint, Integer, Text, Uuid};
    use super::*;
    use crate::access::rls_policy::{CallerPart, PolicyClause};

    const UUID: &str = "0b7e9c1e-0000-4000-8000-00000000000f";

    fn policy(permissive: bool, equality: Option<(ComparedType, Option<&str>)>) -> PolicyClause {
        PolicyClause {
            permissive,
            condition: "x".into(),
            columns: "1".into(),
            caller: CallerPart::Identity,
            equality: equality.map(|(compared, claim)| PolicyEquality {
                column: "a".into(),
                compared,
                claim: claim.map(Into::into),
            }),
        }
    }

    fn keys(id: &str, claims: &str, policies: Vec<PolicyClause>) -> Option<Vec<String>> {
        let login = Login {
            database: DatabaseName::new("shop"),
            role: RoleName::new("shop/group/staff"),
            role_use: RoleUse::Member(Arc::new(Member::new(id, claims).unwrap())),
        };
        let policy = RlsPolicy::new(("public", "t"), "", policies, &[("1".into(), "a".into())]);
        let rule = MemberRule::new(&login, &policy)?;
        assert!(rule.comes_from(Some(&policy)) && !rule.comes_from(None));
        let text = |key: &RuleKey| String::from_utf8(key.value.to_vec()).unwrap();
        Some(rule.keys().iter().map(text).collect())
    }

    #[test]
    fn only_comparisons_with_known_texts_make_a_rule() {
        let id = || policy(true, Some((Text, None)));
        let claim = |name| policy(true, Some((Text, Some(name))));
        let uuid = || policy(true, Some((Uuid, None)));
        let number = |kind, name| policy(true, Some((kind, Some(name))));
        let claims = r#"{"org":"o\u00fc","n":1,"none":null,"list":["x"],"float":1.5,"yes":true,
            "text":"-7","spaced":" 1","zeros":"01","plus":"+1","big":3000000000,"zero":-0}"#;
        let some = |texts: &[&str]| Some(texts.iter().map(ToString::to_string).collect());
        let cases = [
            (vec![id()], some(&["m1"])),
            (vec![id(), claim("org")], some(&["m1", "oü"])),
            (vec![claim("none")], some(&[])),
            (vec![claim("missing"), id()], some(&["m1"])),
            (vec![claim("n"), claim("yes")], some(&["1", "true"])),
            (vec![claim("float")], None),
            (
                vec![number(Integer, "n"), number(Bigint, "text")],
                some(&["1", "-7"]),
            ),
            (vec![number(Bigint, "big")], some(&["3000000000"])),
            (vec![number(Bigint, "none")], some(&[])),
            (vec![number(Integer, "big")], None),
            (vec![number(Integer, "spaced")], None),
            (vec![number(Integer, "zeros")], None),
            (vec![number(Integer, "plus")], None),
            (vec![number(Integer, "zero")], None),
            (vec![number(Integer, "org")], None),
            (vec![claim("list")], None),
            (vec![id(), policy(true, None)], None),
            (vec![id(), policy(false, Some((Text, None)))], None),
            (vec![], None),
            (vec![uuid()], None),
        ];
        for (policies, expected) in cases {
            assert_eq!(keys("m1", claims, policies), expected);
        }
        assert_eq!(keys(UUID, "{}", vec![uuid()]), some(&[UUID]));
        assert_eq!(keys(&UUID.to_uppercase(), "{}", vec![uuid()]), None);
    }
}
