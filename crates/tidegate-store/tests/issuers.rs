//! Tests of the stored settings of external issuers, which nodes of several releases read.

use serde_json::json;
use tidegate_identity::Timestamp;
use tidegate_issuers::{ExternalIssuerStore as _, IssuerRecord, IssuerSettings};
use tidegate_store::PgIssuerStore;

use crate::fixture::Fixture;

#[tokio::test]
async fn settings_of_a_later_release_stop_no_other_issuer_and_are_kept() {
    let fixture = Fixture::migrated("later_issuers").await;
    for (name, member, value) in [
        ("known", "clock_skew", json!(5)),
        ("later", "required_claims", json!({"acr": ["gold", 1.5]})),
        ("unreadable", "algorithms", json!(["ML-DSA-44"])),
    ] {
        let issuer = "https://id.example.com".to_owned();
        let settings = IssuerSettings::new(issuer, vec!["api".to_owned()]);
        let mut settings = serde_json::to_value(settings).unwrap();
        settings[member] = value;
        let insert = "insert into tidegate.issuers (database, name, settings, created_at) \
                      values ('shop', $1, ($2::text)::json, now())";
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
            [&name, &settings.to_string()];
        fixture.beside.execute(insert, &values).await.unwrap();
    }
    let store = PgIssuerStore::new(fixture.executor());
    let all = store.all_issuers().await.unwrap();
    assert_eq!(all, store.issuers("shop").await.unwrap());
    let names: Vec<_> = all.iter().map(|record| &*record.name).collect();
    assert_eq!(names, ["known", "later"]);
    // Those that cannot be read have names, by which they are dropped.
    let names = store.issuer_names("shop").await.unwrap();
    assert_eq!(names, ["known", "later", "unreadable"]);
    assert!(store.delete_issuer("shop", "unreadable").await.unwrap());
    // A node that does not know a setting can change the others.
    let read = &all[1];
    let mut changed = read.clone();
    changed.settings.clock_skew = 10;
    assert!(store.update_issuer(read, &changed).await.unwrap());
    assert_eq!(store.issuers("shop").await.unwrap()[1], changed);
    let stored = "select settings->'required_claims'->'acr'->>1 from tidegate.issuers \
                  where name = 'later'";
    assert_eq!(tidegate_testkit::text(&fixture.beside, stored).await, "1.5");
}

/// A token for several issuers belongs to the oldest.
#[tokio::test]
async fn the_issuers_of_all_tenants_are_sorted_by_age() {
    let fixture = Fixture::migrated("old_issuers").await;
    let store = PgIssuerStore::new(fixture.executor());
    for (seconds, database, name) in [(2, "a", "a"), (1, "shop", "b"), (3, "shop", "a")] {
        let issuer = "https://id.example.com".to_owned();
        let record = IssuerRecord {
            database: database.to_owned(),
            name: name.to_owned(),
            settings: IssuerSettings::new(issuer, vec!["api".to_owned()]),
            created_at: Timestamp::from_seconds(seconds),
        };
        assert!(store.insert_issuer(&record).await.unwrap());
    }
    let all = store.all_issuers().await.unwrap();
    let names: Vec<_> = all
        .iter()
        .map(|record| (&*record.database, &*record.name))
        .collect();
    assert_eq!(names, [("shop", "b"), ("a", "a"), ("shop", "a")]);
}
