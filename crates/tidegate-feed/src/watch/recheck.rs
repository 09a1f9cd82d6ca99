//! Reads the privileges and policies of subscriptions again, and ends subscriptions whose
//! privileges were revoked.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{debug, warn};

use crate::access::privilege_query::{self, RoleTable};
use crate::access::privileges::{PrivilegeOutcome, Privileges};
use crate::access::rls::RlsEvaluator;
use crate::access::{fingerprint, old_rows};
use crate::catalog_query::RETRIES;
use crate::database::catalog_snapshot::CatalogSnapshot;
use crate::database::database_feed::DatabaseFeed;
use crate::dispatch::subscriber::Subscriber;
use crate::error::{Error, Result};
use crate::event::item::Ended;

/// Reads privileges again if a poll of the catalog does not confirm them, or if they were neither
/// confirmed nor read for [`crate::FeedSettings::recheck_interval`]. Runs until it is aborted.
pub(crate) async fn watch(database: Arc<DatabaseFeed>) {
    let mut tick = interval(database.settings.recheck_interval);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.tick().await;
    let mut snapshots = database.snapshots.subscribe();
    // For each role and table, the most recent time at which the privileges were confirmed or read,
    // or the stream was found closed.
    let mut checked: HashMap<RoleTable, Instant> = HashMap::new();
    loop {
        let mut groups;
        tokio::select! {
            _ = tick.tick() => {
                groups = group(database.hub.subscribers());
                checked.retain(|pair, _| groups.contains_key(pair));
                // The time of a check is recorded shortly after its tick. So at the next tick
                // slightly less than the interval has passed, but the next check must be due.
                let due = database.settings.recheck_interval.mul_f32(0.9);
                groups.retain(|pair, _| checked.get(pair).is_none_or(|last| last.elapsed() >= due));
            }
            Ok(()) = snapshots.changed() => {
                let snapshot = snapshots.borrow_and_update().clone();
                groups = group(database.hub.subscribers());
                groups.retain(|pair, subscribers| {
                    let is_confirmed = is_confirmed(&snapshot, subscribers);
                    if is_confirmed {
                        checked.insert(pair.clone(), Instant::now());
                    }
                    !is_confirmed
                });
            }
        }
        recheck(&database, &groups, &mut checked).await;
    }
}

/// Whether the fingerprints that the poll found equal those that were read together with the
/// privileges. This must hold for each of the subscriptions.
fn is_confirmed(snapshot: &CatalogSnapshot, subscribers: &[Arc<Subscriber>]) -> bool {
    subscribers.iter().all(|one| {
        let privileges = one.privileges.lock();
        let known = (&*privileges.fingerprint, &*privileges.role_fingerprint);
        snapshot.fingerprints(one.relation, &one.login.role) == Some(known)
    })
}

/// The subscriptions, grouped by their role and table.
type Groups = HashMap<RoleTable, Vec<Arc<Subscriber>>>;

fn group(subscribers: Vec<Arc<Subscriber>>) -> Groups {
    let mut groups = Groups::new();
    for subscriber in subscribers {
        let pair = (subscriber.login.role.clone(), subscriber.relation);
        groups.entry(pair).or_default().push(subscriber);
    }
    groups
}

/// Reads the privileges of each group once for all its subscriptions, and applies them. Ends
/// subscriptions whose privileges could not be read for too long.
async fn recheck(
    database: &DatabaseFeed,
    groups: &Groups,
    checked: &mut HashMap<RoleTable, Instant>,
) {
    let pairs = groups.keys().cloned().collect();
    let outcomes = privilege_query::query(&database.catalog, pairs).await;
    let is_live = database.stream.is_live();
    let apply = |(pair, outcome): (RoleTable, PrivilegeOutcome)| {
        let privileges = outcome.into_result();
        let last = checked.entry(pair.clone()).or_insert_with(Instant::now);
        if privileges.is_ok() || !is_live {
            *last = Instant::now();
        }
        // Time without a stream does not count, because no events are delivered in this time.
        let unverified = last.elapsed() > database.settings.max_unchecked;
        apply(database, &groups[&pair], privileges, unverified)
    };
    for (privileges, evaluators) in outcomes.into_iter().filter_map(apply) {
        for evaluator in evaluators {
            // A long evaluation for one subscription must not delay the next check of other
            // subscriptions.
            if !evaluator.try_update(&privileges) {
                let privileges = privileges.clone();
                tokio::spawn(async move { evaluator.update(&privileges).await });
            }
        }
    }
}

/// Called when the change log has described a table again. Reads the privileges and policies of the
/// subscriptions to the table again, unless the table is unchanged. The calling function must not
/// dispatch a later change before this function returns: the policies may have changed, or renamed
/// columns may have made the known privileges those of other columns.
///
/// Returns the names of the primary key's columns; `None` if the table has no subscriptions or the
/// names could not be read.
pub(crate) async fn table_redefined(
    database: &DatabaseFeed,
    relation: u32,
) -> Option<Arc<[Box<str>]>> {
    let groups = group(database.hub.count_definition(relation));
    // PostgreSQL also describes a table in each new stream, and after changes that do not affect
    // privileges. If the fingerprint is unchanged, the privileges are not read again.
    let fingerprint = if groups.is_empty() {
        None
    } else {
        fingerprint::of_table(&database.catalog, relation)
            .await
            .ok()
            .flatten()
    };
    let mut primary_key = None;
    let mut stale = Groups::new();
    for (pair, subscribers) in groups {
        match &fingerprint {
            Some(fingerprint) if have_current_policies(&subscribers, fingerprint).await => {
                let first = subscribers.first();
                primary_key = first.map(|first| first.privileges.lock().primary_key.clone());
            }
            _ => drop(stale.insert(pair, subscribers)),
        }
    }
    primary_key.or(reload(database, stale).await)
}

/// Reads the privileges of subscriptions to a table again if their roles, or memberships of their
/// roles, have changed. Called before a change of the table is dispatched, because the change log
/// does not report changes of roles.
pub(crate) async fn check_roles(database: &DatabaseFeed, relation: u32) {
    let roles = database.hub.roles_to_check(relation);
    if roles.is_empty() {
        return;
    }
    // If the fingerprints cannot be read, the privileges of all these subscriptions are read again.
    // If the privileges cannot be read either, subscriptions under row level security end.
    let current = fingerprint::of_roles(&database.catalog, &roles)
        .await
        .unwrap_or_default();
    let is_stale = |one: &Arc<Subscriber>| {
        let fingerprint = current.get(one.login.role.as_str());
        one.has_stale_role(fingerprint.map(|fingerprint| &**fingerprint))
    };
    let mut stale = database.hub.subscribers_of(relation);
    stale.retain(is_stale);
    reload(database, group(stale)).await;
}

async fn have_current_policies(subscribers: &[Arc<Subscriber>], fingerprint: &str) -> bool {
    for subscriber in subscribers {
        if !subscriber.has_current_policies(fingerprint).await {
            return false;
        }
    }
    true
}

/// Reads privileges and policies again, with retries. If they cannot be read, because PostgreSQL
/// does not respond or the definition keeps changing, subscriptions under row level security end.
/// Other subscriptions continue, and a periodic check reads their privileges later. Returns the
/// names of the primary key's columns; `None` if they were not read.
async fn reload(database: &DatabaseFeed, mut groups: Groups) -> Option<Arc<[Box<str>]>> {
    let (attempts, pause) = RETRIES;
    let (mut primary_key, mut errors) = (None, HashMap::new());
    for attempt in 0..=attempts {
        let pairs: Vec<RoleTable> = groups.keys().cloned().collect();
        if pairs.is_empty() {
            return primary_key;
        }
        let outcomes = privilege_query::query(&database.catalog, pairs).await;
        let mut updates: Vec<RlsUpdate> = Vec::new();
        for (pair, outcome) in outcomes {
            let failed = matches!(
                outcome,
                PrivilegeOutcome::Unstable | PrivilegeOutcome::Failed(_)
            );
            let privileges = outcome.into_result();
            if failed {
                errors.extend(privileges.err().map(|error| (pair, error)));
                continue;
            }
            let loaded = privileges.as_ref().ok();
            primary_key =
                primary_key.or_else(|| loaded.map(|privileges| privileges.primary_key.clone()));
            let subscribers = groups.remove(&pair).unwrap_or_default();
            updates.extend(apply(database, &subscribers, privileges, false));
        }
        update_all(updates).await;
        if attempt < attempts && !groups.is_empty() {
            sleep(pause).await;
        }
    }
    for (pair, subscribers) in groups {
        let (error, (role, relation)) = (errors.get(&pair).map(reason), &pair);
        warn!(database = %database.name, %role, relation, error, "could not read policies again; subscriptions under row level security end");
        for subscriber in subscribers.iter().filter(|one| one.is_under_policies()) {
            subscriber.end(Ended::Unverified);
            database.hub.detach(subscriber);
        }
    }
    primary_key
}

/// Privileges that were read again, and the evaluators that must be updated with their policies.
type RlsUpdate = (Arc<Privileges>, Vec<Arc<RlsEvaluator>>);

/// Applies new privileges to the subscriptions of a role to a table, and ends those that the
/// privileges no longer allow. If `unverified` is true, the privileges could not be read for too
/// long, and all of the subscriptions end. Returns the evaluators that the calling function must
/// update; some of them may be busy. Returns `None` if `privileges` is an error.
fn apply(
    database: &DatabaseFeed,
    subscribers: &[Arc<Subscriber>],
    privileges: Result<Arc<Privileges>>,
    unverified: bool,
) -> Option<RlsUpdate> {
    let mut evaluators = Vec::new();
    for subscriber in subscribers {
        let expired = unverified.then_some(Ended::Unverified);
        if let Some(why) = end_reason(&privileges, subscriber).or(expired) {
            let role = &subscriber.login.role;
            debug!(%role, relation = subscriber.relation, ?why, "subscription ended");
            subscriber.end(why);
            database.hub.detach(subscriber);
        } else if let Ok(privileges) = &privileges {
            subscriber.update_privileges(privileges);
            database.hub.forget_roles(subscriber.relation);
            evaluators.extend(subscriber.rls.clone());
        }
    }
    match privileges {
        Ok(privileges) => Some((privileges, evaluators)),
        Err(error) => {
            if let Some(first) = subscribers.first() {
                let (role, error) = (&first.login.role, reason(&error));
                warn!(database = %database.name, %role, relation = first.relation, error, "could not check privileges");
            }
            None
        }
    }
}

/// The cause of an error, for the log. The text of [`Error::Privileges`] does not contain the
/// cause.
fn reason(error: &Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Updates evaluators. Each update waits until a running evaluation has ended.
async fn update_all(updates: Vec<RlsUpdate>) {
    let update = |(privileges, evaluators): RlsUpdate| async move {
        for evaluator in evaluators {
            evaluator.update(&privileges).await;
        }
    };
    join_all(updates.into_iter().map(update)).await;
}

/// The reason why a subscription must end; `None` if it may continue.
fn end_reason(privileges: &Result<Arc<Privileges>>, subscriber: &Subscriber) -> Option<Ended> {
    // A renamed table may never change again, so the change log may never describe it again.
    // Therefore the new name is detected here too.
    let renamed = privileges.as_ref().ok();
    let renamed = renamed.and_then(|table| subscriber.renamed(&table.schema, &table.name));
    if renamed.is_some() {
        return renamed;
    }
    match privileges {
        // The change log reports changes of a partition as changes of the partitioned table, so the
        // subscription would get no more events.
        Ok(privileges) if privileges.is_partition => Some(Ended::Changed {
            problem: "the table was attached to a partitioned table".to_owned(),
        }),
        Ok(privileges) if !privileges.may_read(&subscriber.columns) => {
            let missing = subscriber.columns.iter().find(|name| {
                !privileges
                    .columns
                    .iter()
                    .any(|column| column.name == **name)
            });
            Some(match missing {
                Some(name) => Ended::Changed {
                    problem: format!("the column `{name}` was dropped or renamed"),
                },
                None => Ended::NotAllowed,
            })
        }
        Ok(privileges) if subscriber.rule.is_some() => other_policies(privileges, subscriber),
        Ok(privileges) if privileges.policy.is_some() => unusable_policies(privileges, subscriber),
        Err(Error::NoTable) => Some(Ended::NoTable),
        // The role was dropped, or may no longer log in to the database.
        Err(Error::NoRole) => Some(Ended::NotAllowed),
        // A failed query says nothing about privileges. Subscriptions end only if the query fails
        // for too long.
        Ok(_) | Err(_) => None,
    }
}

/// The reason why a subscription with a [`crate::access::member_rule::MemberRule`] must end; `None`
/// if it may continue. It must end if the policies are no longer those of the rule, or in the cases
/// of [`unusable_policies`].
fn other_policies(privileges: &Privileges, subscriber: &Subscriber) -> Option<Ended> {
    let rule = subscriber.rule.as_ref()?;
    if rule.comes_from(privileges.policy.as_ref()) {
        return unusable_policies(privileges, subscriber);
    }
    Some(Ended::Changed {
        problem: "the policies of the table have changed".to_owned(),
    })
}

/// The reason why a subscription cannot continue under the policies of `privileges`; `None` if it
/// may continue. It cannot continue in these cases:
///
/// - It began without row level security.
/// - The result of the policies depends on a property in which the callers that share the
///   subscription's evaluator may differ.
/// - The policies read columns that are not captured for the subscription, or that cannot be
///   captured. Without these columns, the subscription's events would be dropped silently.
fn unusable_policies(privileges: &Privileges, subscriber: &Subscriber) -> Option<Ended> {
    let shares = |rls: &Arc<RlsEvaluator>| {
        let policy = privileges.policy.as_ref();
        policy.is_none_or(|policy| rls.may_evaluate(policy))
    };
    let needs = old_rows::needs_old_rows(subscriber.operations, &subscriber.columns, privileges);
    let problem = match needs {
        _ if !subscriber.is_under_policies() => "row level security was enabled on the table",
        _ if !subscriber.rls.as_ref().is_none_or(shares) => {
            "the policies of the table have changed"
        }
        Ok(true) if !subscriber.old_rows => {
            "the policies of the table now read columns that are not captured for the subscription"
        }
        Err(Error::Unsupported(problem)) => return Some(Ended::Changed { problem }),
        Ok(_) | Err(_) => return None,
    };
    Some(Ended::Changed {
        problem: problem.to_owned(),
    })
}
