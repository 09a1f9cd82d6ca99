//! What a member's statement leaves in a shared session.

use std::time::{Duration, Instant};

use tidegate_sql::{Author, Error, Login, Mode, QueryOptions};

use super::{BODIES, ID, bodies, member, ours, quoted, tenant};
use crate::fixture::{Fixture, Sql};
use crate::pipeline::Plan;

/// Whether the session has forgotten the value of a sequence, so it was reset.
async fn is_reset(fixture: &Fixture, login: &Login) -> bool {
    fixture.rest().await;
    let last = ours("select lastval()").run(fixture, login).await;
    last.is_err_and(|error| error.sqlstate() == Some("55000"))
}

/// Reads until a plain read is known to be pure, so that no reset follows it.
pub(super) async fn wait_until_reads_are_pure(fixture: &Fixture, login: &Login) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        ours(BODIES).run(fixture, login).await.unwrap();
        fixture.rest().await;
        let last = "SELECT coalesce(max(query), '') FROM pg_stat_activity \
            WHERE datname = current_database() AND usename LIKE '%/group/staff'";
        let last = fixture.value(last).await;
        if last.starts_with("select body") {
            return;
        }
        assert!(Instant::now() < deadline, "reads are always reset: {last}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn only_a_pure_read_of_a_member_is_not_followed_by_a_reset() {
    let fixture = tenant("members_resets", 1).await;
    let (one, two) = (member(&fixture, 1), member(&fixture, 2));
    wait_until_reads_are_pure(&fixture, &one).await;
    // After this write, a session that is not reset keeps the value of the sequence.
    let insert = || ours("insert into counted default values");
    insert().run(&fixture, &one).await.unwrap();
    assert!(is_reset(&fixture, &two).await, "a write");
    let pipeline = Plan::new([insert(), insert()]).ours();
    pipeline.run(&fixture, &one).await.unwrap();
    assert!(is_reset(&fixture, &two).await, "a pipeline");
    let texts = ["insert into counted default values"];
    let transaction = super::in_transaction(&fixture, &one, Mode::ReadWrite, &texts).await;
    transaction.unwrap();
    assert!(is_reset(&fixture, &two).await, "a transaction");
    let call = Sql::new("select nextval('counted_id_seq')").by(Author::Owner);
    call.run(&fixture, &one).await.unwrap();
    assert!(is_reset(&fixture, &two).await, "a call");
}

#[tokio::test]
async fn a_method_that_may_not_be_shared_runs_sealed_and_leaves_nothing() {
    let fixture = tenant("members_own", 1).await;
    let (one, two) = (member(&fixture, 1), member(&fixture, 2));
    let set = "CREATE FUNCTION public.keep(value text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN
        EXECUTE 'PREPARE kept AS SELECT ' || quote_literal(value);
        CREATE TEMP TABLE mine AS SELECT value;
        RETURN set_config('work_mem', '77kB', false) || tidegate.user_id(); END $f$;
        GRANT TEMP ON DATABASE members_own TO PUBLIC";
    fixture.admin.batch_execute(set).await.unwrap();
    let keep = || {
        Sql::new("select public.keep(:value)")
            .by(Author::Owner)
            .set(["\"secret\""])
    };
    for login in [&one, &two, &one] {
        let id = keep().value(&fixture, login).await;
        assert!(id.contains("77kBm"), "{id}");
    }
    // The next method does not see it either.
    let left = "do $$ begin if current_setting('work_mem') = '77kB' \
        or exists (select from pg_prepared_statements where from_sql) \
        or to_regclass('pg_temp.mine') is not null then raise exception 'left'; end if; end $$";
    for login in [&two, &one] {
        let look = Sql::new("select public.look()").by(Author::Owner);
        let create = format!(
            "CREATE OR REPLACE FUNCTION public.look() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN
             EXECUTE $t${left}$t$; RETURN tidegate.user_id(); END $f$"
        );
        fixture.admin.batch_execute(&create).await.unwrap();
        let id = look.value(&fixture, login).await;
        assert!(id.starts_with("\"m"), "{id}");
    }
}

#[tokio::test]
async fn a_member_has_no_text_of_its_own() {
    let fixture = tenant("members_text", 1).await;
    let login = member(&fixture, 1);
    let query = Sql::new(ID).run(&fixture, &login).await.unwrap_err();
    assert!(matches!(query, Error::Internal(_)), "{query:?}");
    let pipeline = Plan::new([Sql::new(ID), Sql::new(ID)])
        .run(&fixture, &login)
        .await;
    assert!(matches!(pipeline.unwrap_err().error, Error::Internal(_)));
    let options = QueryOptions::default();
    let begun = fixture.users.begin(&login, Mode::ReadWrite, &options).await;
    assert!(matches!(begun.err(), Some(Error::Internal(_))));
    let mut bound = Sql::new(ID).bound;
    bound.sets.push(Vec::new());
    let described = fixture.users.describe(&login, &bound, &options).await;
    assert!(matches!(described.err(), Some(Error::Internal(_))));
    // A text of Tidegate works.
    assert_eq!(ours(ID).value(&fixture, &login).await, quoted(1));
    let rows = ours(BODIES).run(&fixture, &login).await.unwrap();
    assert_eq!(rows.values, bodies(1));
}
