//! An index of the subscriptions to one operation on a table. For a changed row it finds the
//! subscriptions that may get the change. It looks up the row's value in a column that filters or
//! policies compare for equality.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_filter::{ComparableKey, KeyReader};
use tidegate_values::Type;

use crate::decode::change::Row;
use crate::decode::pgoutput::ColumnValue;
use crate::decode::schema::RelationSchema;
use crate::dispatch::predicate::{BoundPredicate, Equality, filter_value};
use crate::dispatch::subscriber::Subscriber;

/// A live subscription, bound to the schema of its table.
#[derive(Clone)]
pub(crate) struct IndexedSubscriber {
    pub(crate) subscriber: Arc<Subscriber>,
    pub(crate) predicate: Option<Arc<BoundPredicate>>,
    /// The index of the encoder for the subscription's events, in the table's list of encoders.
    pub(crate) encoder: usize,
}

/// The subscriptions to one operation on one table.
#[derive(Default)]
pub(crate) struct Index {
    /// The subscriptions with a `MemberRule`, by the values that the rule requires in a column.
    by_rule: Vec<RuleIndex>,
    /// The subscriptions that have no `MemberRule` and whose filter compares a column for
    /// equality.
    by_equality: Vec<EqualityIndex>,
    /// The subscriptions with neither a rule nor a filter that compares a column for equality.
    others: Vec<IndexedSubscriber>,
    /// The equality under which each subscription of `by_equality` was inserted, by the id of the
    /// subscription.
    equalities: HashMap<u64, Arc<Equality>>,
}

/// Subscriptions of members, by the values that policies require in one column. The values are in
/// text form. For each row, only the subscriptions that require the row's value are visited.
struct RuleIndex {
    column: Box<str>,
    /// The index of the column in the schema; `None` if the schema is unknown or lacks the column.
    at: Option<usize>,
    by_value: HashMap<Box<[u8]>, Vec<IndexedSubscriber>>,
}

/// Subscriptions, by the values that their filters require in one column.
struct EqualityIndex {
    column: Box<str>,
    r#type: Type,
    reader: KeyReader,
    /// The index of the column in the schema; `None` if the schema is unknown or lacks the column.
    at: Option<usize>,
    by_value: HashMap<ComparableKey<'static>, Vec<IndexedSubscriber>>,
}

impl EqualityIndex {
    fn matches(&self, equality: &Equality) -> bool {
        self.column == equality.column && self.r#type == equality.r#type
    }

    /// The subscriptions whose filters require the value that a row has in this column. Returns
    /// `None` if the value cannot be looked up; any subscription of this index may then match.
    fn find<'r>(&'r self, row: Row<'r>) -> Option<&'r [IndexedSubscriber]> {
        let value = row.value(self.at?);
        if value == ColumnValue::Absent {
            return None;
        }
        let Some(key) = self.reader.read(filter_value(value)).ok()? else {
            return Some(&[]);
        };
        if !key.is_comparable() {
            return None;
        }
        // The annotation shortens the lifetime of the map's keys, so that a borrowed key can be
        // looked up.
        let by_value: &HashMap<ComparableKey<'_>, Vec<IndexedSubscriber>> = &self.by_value;
        Some(by_value.get(&key).map_or(&[], Vec::as_slice))
    }
}

impl Index {
    pub(crate) fn insert(&mut self, entry: &IndexedSubscriber, schema: Option<&RelationSchema>) {
        if let Some(rule) = &entry.subscriber.rule {
            for key in rule.keys() {
                let index = self.rule_index(&key.column, schema);
                let entries = index.by_value.entry(key.value.clone());
                entries.or_default().push(entry.clone());
            }
            return;
        }
        let equality = match &entry.predicate {
            Some(predicate) => predicate.equality(),
            None => entry.subscriber.equality(),
        };
        let Some(equality) = equality else {
            self.others.push(entry.clone());
            return;
        };
        let id = entry.subscriber.id;
        self.equalities.insert(id, equality.clone());
        let index = self.index_for(equality, schema);
        for key in &equality.keys {
            index
                .by_value
                .entry(key.clone())
                .or_default()
                .push(entry.clone());
        }
    }

    fn rule_index(&mut self, column: &str, schema: Option<&RelationSchema>) -> &mut RuleIndex {
        let at = self
            .by_rule
            .iter()
            .position(|index| *index.column == *column);
        let at = at.unwrap_or_else(|| {
            self.by_rule.push(RuleIndex {
                column: column.into(),
                at: schema.and_then(|schema| schema.find(column)),
                by_value: HashMap::new(),
            });
            self.by_rule.len() - 1
        });
        &mut self.by_rule[at]
    }

    fn index_for(
        &mut self,
        equality: &Equality,
        schema: Option<&RelationSchema>,
    ) -> &mut EqualityIndex {
        let at = self
            .by_equality
            .iter()
            .position(|index| index.matches(equality));
        let at = at.unwrap_or_else(|| {
            self.by_equality.push(EqualityIndex {
                column: equality.column.clone(),
                r#type: equality.r#type.clone(),
                reader: equality.reader.clone(),
                at: schema.and_then(|schema| schema.find(&equality.column)),
                by_value: HashMap::new(),
            });
            self.by_equality.len() - 1
        });
        &mut self.by_equality[at]
    }

    pub(crate) fn remove(&mut self, subscriber: &Subscriber) {
        let other = |entry: &IndexedSubscriber| entry.subscriber.id != subscriber.id;
        if let Some(rule) = &subscriber.rule {
            for key in rule.keys() {
                let mut indexes = self.by_rule.iter_mut();
                let index = indexes.find(|index| index.column == key.column);
                let Some(index) = index else {
                    continue;
                };
                if let Some(entries) = index.by_value.get_mut(&key.value) {
                    entries.retain(other);
                    if entries.is_empty() {
                        index.by_value.remove(&key.value);
                    }
                }
            }
            return;
        }
        let Some(equality) = self.equalities.remove(&subscriber.id) else {
            self.others.retain(other);
            return;
        };
        let mut indexes = self.by_equality.iter_mut();
        let Some(index) = indexes.find(|index| index.matches(&equality)) else {
            return;
        };
        for key in &equality.keys {
            if let Some(entries) = index.by_value.get_mut(key) {
                entries.retain(other);
                if entries.is_empty() {
                    index.by_value.remove(key);
                }
            }
        }
    }

    /// Visits every subscription whose filter and rule the row may pass. A subscription may be
    /// visited more than once.
    pub(crate) fn for_each_candidate(
        &self,
        row: Row<'_>,
        visit: &mut dyn FnMut(&IndexedSubscriber),
    ) {
        for index in &self.by_rule {
            let value = index.at.map(|at| row.value(at));
            if let Some(ColumnValue::Text(text)) = value
                && let Some(entries) = index.by_value.get(text)
            {
                entries.iter().for_each(&mut *visit);
            }
        }
        for index in &self.by_equality {
            match index.find(row) {
                Some(entries) => entries.iter().for_each(&mut *visit),
                None => index.by_value.values().flatten().for_each(&mut *visit),
            }
        }
        self.others.iter().for_each(visit);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use bytes::Bytes;
    use parking_lot::Mutex;
    use tidegate_sql::{DatabaseName, Login, Member, RoleName, RoleUse};
    use tokio::time::Instant;

    use super::*;
    use crate::access::member_rule::MemberRule;
    use crate::access::privileges::Privileges;
    use crate::access::rls_policy::{
        CallerPart, ComparedType, PolicyClause, PolicyEquality, RlsPolicy,
    };
    use crate::decode::pgoutput::{PgOutputMessage, Relation, RelationColumn, Tuple, decode};
    use crate::dispatch::queue::{QueueLimits, event_queue};
    use crate::event::operation::Operations;
    use crate::event::selection::Selection;

    /// The policy `owner = (SELECT tidegate.user_id())`.
    fn policy() -> RlsPolicy {
        let clause = PolicyClause {
            permissive: true,
            condition: "owner = (SELECT tidegate.user_id())".into(),
            columns: "1".into(),
            caller: CallerPart::Identity,
            equality: Some(PolicyEquality {
                column: "owner".into(),
                compared: ComparedType::Text,
                claim: None,
            }),
        };
        let columns = [("1".into(), "owner".into())];
        RlsPolicy::new(("public", "t"), "", vec![clause], &columns)
    }

    /// The subscription of the member `m<id>`.
    fn subscription(id: u64) -> IndexedSubscriber {
        let policy = policy();
        let member = Member::new(&format!("m{id}"), "{}").unwrap();
        let login = Login {
            database: DatabaseName::new("shop"),
            role: RoleName::new("shop/group/staff"),
            role_use: RoleUse::Member(Arc::new(member)),
        };
        let privileges = Privileges {
            schema: "public".into(),
            name: "t".into(),
            columns: Vec::new(),
            primary_key: Arc::default(),
            fingerprint: "".into(),
            role_fingerprint: "".into(),
            depends_on_roles: false,
            is_partition: false,
            queried_at: Instant::now(),
            policy: None,
        };
        let subscriber = Subscriber {
            id,
            tag: 1,
            relation: 7,
            name: ("public".into(), "t".into()),
            operations: Operations::ALL,
            selection: Arc::new(Selection::of(["owner"])),
            predicate: None,
            columns: vec!["owner".into()],
            old_rows: false,
            sender: event_queue(QueueLimits::default()).0,
            metrics: Arc::default(),
            rls: None,
            rule: Some(MemberRule::new(&login, &policy).unwrap()),
            login,
            privileges: Mutex::new(Arc::new(privileges)),
            ended: AtomicBool::new(false),
            last_pushed: AtomicU64::new(0),
        };
        IndexedSubscriber {
            subscriber: Arc::new(subscriber),
            predicate: None,
            encoder: 0,
        }
    }

    fn schema() -> RelationSchema {
        let owner = RelationColumn {
            name: "owner".into(),
            r#type: Type::TEXT.oid(),
            in_replica_identity: true,
        };
        let relation = Relation {
            oid: 7,
            schema: "public".into(),
            name: "t".into(),
            full_replica_identity: false,
            columns: Box::new([owner]),
        };
        RelationSchema::new(relation, &HashMap::new())
    }

    /// A new row with this owner.
    fn row(owner: &str) -> Tuple {
        let length = u32::try_from(owner.len()).unwrap().to_be_bytes();
        let message = [&b"I\0\0\0\x07N\0\x01t"[..], &length[..], owner.as_bytes()].concat();
        match decode(&Bytes::from(message)).unwrap() {
            PgOutputMessage::Insert { new, .. } => new,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_row_visits_the_subscription_of_its_member_and_no_other() {
        let schema = schema();
        let mut index = Index::default();
        for id in 0..1_000 {
            index.insert(&subscription(id), Some(&schema));
        }
        let visited = |index: &Index, owner: &str| {
            let (schema, tuple) = (&schema, &row(owner));
            let mut ids = Vec::new();
            index.for_each_candidate(Row { schema, tuple }, &mut |one| {
                ids.push(one.subscriber.id);
            });
            ids
        };
        assert_eq!(visited(&index, "m7"), [7]);
        assert_eq!(visited(&index, "m999"), [999]);
        assert_eq!(visited(&index, "m1000"), Vec::<u64>::new());
        index.remove(&subscription(7).subscriber);
        assert_eq!(visited(&index, "m7"), Vec::<u64>::new());
        assert_eq!(visited(&index, "m8"), [8]);
    }
}
