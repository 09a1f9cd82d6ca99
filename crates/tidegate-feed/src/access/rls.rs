//! Row level security on events: decides whether a caller may see a row image.
//!
//! PostgreSQL evaluates the policies, in a transaction that runs as the caller. The policies are
//! applied to the row images of the change log and not to the table, because the current row may
//! differ from the image.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tidegate_sql::{Error, Executor, Login};
use tidegate_values::codec::json_string;
use tidegate_values::{Type, TypeKind};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::access::judgement::JudgedCaller;
use crate::access::privileges::Privileges;
use crate::access::rls_policy::{CallerPart, RlsPolicy};
use crate::decode::change::{ChangeKind, RowChange};
use crate::decode::pgoutput::{ColumnValue, Tuple};
use crate::decode::schema::RelationSchema;
use crate::event::cursor::EventPosition;

/// The maximum number of results that an evaluator caches for other subscriptions. When a call of
/// [`RlsEvaluator::visible`] exceeds this number, the evaluator removes the results of all changes
/// before the last change of the call.
const MAX_CACHED: usize = 4096;

/// How long a cached result is used. The result of a slow query is used for a longer time. A policy
/// may depend on the time or on other tables, so a subscription that resumes later must not use an
/// old result.
const LIFETIME: Duration = Duration::from_secs(5);

/// Decides which row images a caller may see. The results are shared by all subscriptions of the
/// caller to one table, and by callers that the policies do not distinguish.
pub(crate) struct RlsEvaluator {
    executor: Arc<dyn Executor>,
    /// PostgreSQL evaluates the policies as this caller.
    login: Login,
    /// The property that all callers of this evaluator share in addition to the role. With
    /// [`CallerPart::Nothing`] they share only the role, with [`CallerPart::Claims`] also the
    /// claims, and with [`CallerPart::Identity`] everything on which a policy can depend.
    common: CallerPart,
    /// Limits how many evaluators of one role and table wait for PostgreSQL at the same time.
    permits: Arc<Semaphore>,
    state: tokio::sync::Mutex<RlsState>,
}

struct RlsState {
    /// The policies; `None` if row level security no longer applies, so that every image is
    /// visible.
    policy: Option<RlsPolicy>,
    /// The fingerprint of the table when the policies were read.
    fingerprint: Box<str>,
    /// When the policies were read.
    queried_at: Instant,
    /// Whether each evaluated image is visible, and the time until which this result is used. The
    /// key is the generation of the image's schema and the image's position. The generation is
    /// needed because another change log may have the same positions.
    cache: HashMap<(u64, EventPosition), (bool, Instant)>,
}

impl std::fmt::Debug for RlsEvaluator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RlsEvaluator")
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

impl RlsState {
    fn update(&mut self, privileges: &Privileges) {
        if privileges.queried_at < self.queried_at {
            return;
        }
        self.fingerprint.clone_from(&privileges.fingerprint);
        self.queried_at = privileges.queried_at;
        if self.policy != privileges.policy {
            self.policy.clone_from(&privileges.policy);
            self.cache.clear();
        }
    }
}

impl RlsEvaluator {
    pub(crate) fn new(
        executor: Arc<dyn Executor>,
        (login, common): (Login, CallerPart),
        privileges: &Privileges,
        permits: Arc<Semaphore>,
    ) -> Self {
        Self {
            executor,
            login,
            common,
            permits,
            state: tokio::sync::Mutex::new(RlsState {
                policy: privileges.policy.clone(),
                fingerprint: privileges.fingerprint.clone(),
                queried_at: privileges.queried_at,
                cache: HashMap::new(),
            }),
        }
    }

    /// Replaces the policies by those of `privileges`. Does nothing if the current policies were
    /// queried later. Waits until a running evaluation has ended.
    pub(crate) async fn update(&self, privileges: &Privileges) {
        self.state.lock().await.update(privileges);
    }

    /// Does the same as [`Self::update`], but only if no evaluation is running. Returns `false` if
    /// an evaluation is running.
    pub(crate) fn try_update(&self, privileges: &Privileges) -> bool {
        let state = self.state.try_lock();
        state.map(|mut state| state.update(privileges)).is_ok()
    }

    /// Whether this evaluator can be used for `policy`. It cannot if the result of `policy` depends
    /// on a property in which the callers of this evaluator may differ.
    pub(crate) fn may_evaluate(&self, policy: &RlsPolicy) -> bool {
        policy.caller <= self.common
    }

    /// Whether the policies were read when the table had this fingerprint.
    pub(crate) async fn has_fingerprint(&self, fingerprint: &str) -> bool {
        *self.state.lock().await.fingerprint == *fingerprint
    }

    /// Decides for each change whether the caller may see it. A TRUNCATE is always visible. A row
    /// image is not visible if it lacks one of the columns that the policies read. Returns `None`
    /// if the changes cannot be evaluated yet, for one of two reasons:
    ///
    /// - The transactions of the changes are not visible to queries yet. Policies that read tables
    ///   would see these tables as they were before the transactions.
    /// - The columns of the table have changed since the policies were read.
    ///
    /// # Errors
    ///
    /// If PostgreSQL does not respond in time, or the evaluation of a policy fails.
    pub(crate) async fn visible(
        &self,
        changes: &[Arc<RowChange>],
    ) -> tidegate_sql::Result<Option<Vec<bool>>> {
        // The lock is held during the query, so that another subscription with this evaluator waits
        // and then finds the results in the cache.
        let mut state = self.state.lock().await;
        let RlsState { policy, cache, .. } = &mut *state;
        let Some(policy) = policy else {
            return Ok(Some(vec![true; changes.len()]));
        };
        if !self.may_evaluate(policy) {
            // The policies now distinguish callers who share this evaluator. The check of
            // privileges ends their subscriptions; see `watch::recheck`.
            return Err(Error::internal("the policies now tell callers apart"));
        }
        let mut unknown = Vec::new();
        let now = Instant::now();
        for change in changes {
            if cache
                .get(&key(change))
                .is_some_and(|(_, until)| now < *until)
            {
                continue;
            }
            let decided = match &change.kind {
                ChangeKind::Truncated => Some(true),
                ChangeKind::Row(..) if policy.denies_all => Some(false),
                ChangeKind::Row(_, tuple) if policy.can_evaluate(&change.schema, tuple) => None,
                ChangeKind::Row(..) => Some(false),
            };
            match decided {
                Some(is_visible) => drop(cache.insert(key(change), (is_visible, now + LIFETIME))),
                None => unknown.push(change),
            }
        }
        if !unknown.is_empty() {
            let Some(visible) = self.query_visible(policy, &unknown).await? else {
                return Ok(None);
            };
            // The results of a slow query are used for a longer time. Otherwise they could expire
            // while other subscriptions wait for the lock, and each of these would query again.
            let until = Instant::now() + LIFETIME.max(4 * now.elapsed());
            for (change, visible) in unknown.iter().zip(visible) {
                cache.insert(key(change), (visible, until));
            }
        }
        let is_visible =
            |change: &Arc<RowChange>| cache.get(&key(change)).is_some_and(|(visible, _)| *visible);
        let visible = changes.iter().map(is_visible).collect();
        if cache.len() > MAX_CACHED {
            let newest = changes
                .last()
                .map(|change| change.position)
                .unwrap_or_default();
            cache.retain(|(_, position), _| *position >= newest);
        }
        Ok(Some(visible))
    }

    async fn query_visible(
        &self,
        policy: &RlsPolicy,
        changes: &[&Arc<RowChange>],
    ) -> tidegate_sql::Result<Option<Vec<bool>>> {
        let Some(judgement) = &policy.judgement else {
            return Err(Error::internal("the policies cannot be parsed"));
        };
        let images = images_json(changes);
        let mut transactions: Vec<u32> =
            changes.iter().map(|change| change.transaction_id).collect();
        transactions.dedup();
        let table = changes.first().map_or(0, |change| change.schema.oid);
        let caller = JudgedCaller {
            executor: &*self.executor,
            login: &self.login,
            table,
        };
        let permit = self.permits.acquire().await;
        let judged = judgement.run(caller, &transactions, &images).await;
        drop(permit);
        let Some(numbers) = judged? else {
            return Ok(None);
        };
        let mut visible = vec![false; changes.len()];
        for number in numbers {
            if let Some(visible) = number.checked_sub(1).and_then(|at| visible.get_mut(at)) {
                *visible = true;
            }
        }
        Ok(Some(visible))
    }
}

/// Writes the row images as a JSON array of objects. A value of a JSON type is embedded. Any other
/// value becomes a JSON string with its text form.
fn images_json(changes: &[&Arc<RowChange>]) -> String {
    let mut out = BytesMut::from(&b"["[..]);
    for (number, change) in changes.iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b",");
        }
        if let ChangeKind::Row(_, tuple) = &change.kind {
            row_json(&change.schema, tuple, &mut out);
        }
    }
    out.extend_from_slice(b"]");
    String::from_utf8_lossy(&out).into_owned()
}

fn row_json(schema: &RelationSchema, tuple: &Tuple, out: &mut BytesMut) {
    let mut separator = &b"{"[..];
    for (at, column) in schema.columns.iter().enumerate() {
        let ColumnValue::Text(raw) = tuple.value(at) else {
            continue;
        };
        out.extend_from_slice(separator);
        separator = b",";
        json_string(column.name.as_bytes(), out);
        out.extend_from_slice(b":");
        if is_json(&column.r#type) {
            out.extend_from_slice(raw);
        } else {
            json_string(raw, out);
        }
    }
    out.extend_from_slice(if separator == b"{" { b"{}" } else { b"}" });
}

fn is_json(r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Domain(base) => is_json(base),
        _ => matches!(*r#type, Type::JSON | Type::JSONB),
    }
}

fn key(change: &RowChange) -> (u64, EventPosition) {
    (change.schema.generation, change.position)
}
