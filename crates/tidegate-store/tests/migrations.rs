//! Tests of migrations.

use tidegate_oauth::IssuerStore as _;
use tidegate_store::{Error, Migrated, PgOauthStore, migrate, newest_version};

use crate::fixture::Fixture;

#[tokio::test]
async fn the_first_start_creates_the_schema_and_the_next_finds_it() {
    let fixture = Fixture::empty("migrate_twice").await;
    let newest = newest_version();
    let first = migrate(&fixture.executor()).await.unwrap();
    assert_eq!(
        first,
        Migrated {
            from: 0,
            to: newest
        }
    );
    let second = migrate(&fixture.executor()).await.unwrap();
    assert_eq!(
        second,
        Migrated {
            from: newest,
            to: newest
        }
    );
}

#[tokio::test]
async fn nodes_that_start_at_once_are_serialised() {
    let fixture = Fixture::empty("migrate_at_once").await;
    let nodes: Vec<_> = (0..6)
        .map(|_| {
            let executor = fixture.another();
            tokio::spawn(async move { migrate(&executor).await })
        })
        .collect();
    let mut first = 0;
    for node in nodes {
        first += usize::from(node.await.unwrap().unwrap().from == 0);
    }
    assert_eq!(first, 1, "one made it, the others found it");
}

#[tokio::test]
async fn a_schema_of_a_newer_program_is_refused() {
    let fixture = Fixture::migrated("migrate_newer").await;
    let newer = "insert into tidegate.migrations (number, name) values (4242, 'later')";
    fixture.beside.batch_execute(newer).await.unwrap();
    let error = migrate(&fixture.executor()).await.unwrap_err();
    assert!(
        matches!(error, Error::NewerSchema { found: 4242, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("version 4242"), "{error}");
}

#[tokio::test]
async fn a_failed_migration_changes_nothing() {
    let fixture = Fixture::empty("migrate_fails").await;
    let obstacle = "create schema tidegate; create table tidegate.attempts (other int)";
    fixture.beside.batch_execute(obstacle).await.unwrap();
    let error = migrate(&fixture.executor()).await.unwrap_err();
    assert!(matches!(error, Error::Failed(_)), "{error:?}");
    let tables = "select count(*) from pg_tables where schemaname = 'tidegate'";
    let count: i64 = fixture.beside.query_one(tables, &[]).await.unwrap().get(0);
    assert_eq!(count, 1, "only the obstacle is there");
}

#[tokio::test]
async fn another_master_key_is_refused() {
    let fixture = Fixture::migrated("master_key").await;
    let store = PgOauthStore::new(fixture.executor());
    store.check_master_key("first").await.unwrap();
    store.check_master_key("first").await.unwrap();
    let error = store.check_master_key("second").await.unwrap_err();
    assert!(matches!(error, Error::OtherMasterKey), "{error:?}");
    assert_eq!(store.claim_master_key("third").await.unwrap(), "first");
}

#[tokio::test]
async fn of_nodes_that_start_at_once_with_different_keys_one_wins() {
    let fixture = Fixture::migrated("master_key_race").await;
    let nodes: Vec<_> = (0..10)
        .map(|node| {
            let store = PgOauthStore::new(fixture.executor());
            tokio::spawn(async move { store.claim_master_key(&format!("key {node}")).await })
        })
        .collect();
    let mut kept = Vec::new();
    for node in nodes {
        kept.push(node.await.unwrap().unwrap());
    }
    kept.dedup();
    assert_eq!(kept.len(), 1, "{kept:?}");
}
