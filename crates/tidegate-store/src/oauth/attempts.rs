//! The table of attempt counters, which all nodes share.

use tidegate_identity::{AttemptCounter, AttemptKey, AttemptLimit, AttemptOutcome, Timestamp};

use crate::error::Result;
use crate::query::{Argument, Database, Query};
use crate::row;

/// Counts an attempt by the rule of [`AttemptCounter::count`]. The first attempt inserts the
/// counter. A concurrent attempt waits for the row lock. If no row is returned, the attempt is
/// refused.
static COUNT: Query = Query::new(
    "insert into tidegate.attempts as old (scope, subject, count, open_at, expires_at) \
     values (:scope, :subject, 1, :first_open_at::timestamptz, :first_expires_at::timestamptz) \
     on conflict (scope, subject) do update set (count, open_at, expires_at) = ( \
       select new.count, \
         case when new.over >= 0 then new.open_at end, \
         case when new.over >= 0 then greatest(new.expires_at, \
             new.open_at + :memory::double precision * interval '1 millisecond') \
           else new.expires_at end \
       from ( \
         select base.count + 1 as count, base.count + 1 - :limit::integer as over, \
           base.expires_at, \
           :now::timestamptz + least(:longest::double precision, \
             :first_delay::double precision * pg_catalog.power(2::double precision, \
               least(greatest(base.count + 1 - :limit::integer, 0), 31)::double precision)) \
             * interval '1 millisecond' as open_at \
         from ( \
           select case when old.expires_at <= :now::timestamptz then 0 else old.count end as count, \
             case when old.expires_at <= :now::timestamptz then :fresh_expires_at::timestamptz \
               else old.expires_at end as expires_at \
         ) as base \
       ) as new \
     ) \
     where old.expires_at <= :now::timestamptz or old.open_at is null \
       or old.open_at <= :now::timestamptz \
     returning 1::bigint",
);
static REFUSED_UNTIL: Query = Query::new(
    "select open_at from tidegate.attempts \
     where scope = :scope and subject = :subject and expires_at > :now::timestamptz",
);
static REFUND: Query = Query::new(
    "update tidegate.attempts set count = greatest(count - 1, 0), open_at = null \
     where scope = :scope and subject = :subject",
);
static CLEAR: Query =
    Query::new("delete from tidegate.attempts where scope = :scope and subject = :subject");

pub(super) async fn count(
    database: &Database,
    key: &AttemptKey,
    limit: &AttemptLimit,
    now: Timestamp,
) -> Result<AttemptOutcome> {
    let (first, _) = AttemptCounter::count(None, limit, now);
    let (scope, most) = (key.scope, i64::from(limit.count));
    let fresh = now.plus(limit.window);
    let values: [Argument<'_>; 10] = [
        &scope,
        &key.subject,
        &first.open_at,
        &first.expires_at,
        &limit.memory,
        &most,
        &now,
        &limit.longest_delay,
        &limit.first_delay,
        &fresh,
    ];
    if database.row(&COUNT, &values, row::count).await?.is_some() {
        return Ok(AttemptOutcome::Allowed);
    }
    let values: [Argument<'_>; 3] = [&scope, &key.subject, &now];
    let until = database
        .row(&REFUSED_UNTIL, &values, row::optional_timestamp)
        .await?;
    // If there is no `open_at`, an attempt was refunded or the counter was cleared after the
    // refusal. The next attempt is then allowed immediately.
    Ok(AttemptOutcome::Refused {
        until: until.flatten().unwrap_or(now),
    })
}

pub(super) async fn refund(database: &Database, key: &AttemptKey) -> Result<()> {
    let scope = key.scope;
    database.execute(&REFUND, &[&scope, &key.subject]).await?;
    Ok(())
}

pub(super) async fn clear(database: &Database, key: &AttemptKey) -> Result<()> {
    let scope = key.scope;
    database.execute(&CLEAR, &[&scope, &key.subject]).await?;
    Ok(())
}
