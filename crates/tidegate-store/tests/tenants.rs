//! Tests of the table of tenants.

use tidegate_identity::IdentityStore as _;
use tidegate_identity::{AnonymousSql, Timestamp};
use tidegate_store::{PgOauthStore, Tenant, Tenants};

use crate::fixture::Fixture;

fn tenant(name: &str, owner_role: &str) -> Tenant {
    Tenant {
        name: name.to_owned(),
        owner_role: owner_role.to_owned(),
        adopted: false,
        grants: None,
        anonymous_sql: AnonymousSql::Off,
        claims_generation: 1,
        created_at: Timestamp::from_millis(1_795_173_603_042),
    }
}

#[tokio::test]
async fn tenants_are_kept_found_listed_and_deleted() {
    let fixture = Fixture::migrated("tenants").await;
    let tenants = Tenants::new(fixture.executor());
    let adopted = Tenant {
        adopted: true,
        grants: Some(r#"{"schemas":["public"]}"#.to_owned()),
        ..tenant("chinook", "music")
    };
    assert!(tenants.insert(&tenant("shop", "shop")).await.unwrap());
    assert!(tenants.insert(&adopted).await.unwrap());
    assert!(
        !tenants.insert(&tenant("shop", "other")).await.unwrap(),
        "the name is taken"
    );
    assert!(
        !tenants.insert(&tenant("other", "music")).await.unwrap(),
        "the role is taken"
    );
    assert_eq!(
        tenants.find("chinook").await.unwrap(),
        Some(adopted.clone())
    );
    assert_eq!(tenants.find("nobody").await.unwrap(), None);
    assert_eq!(
        tenants.list().await.unwrap(),
        [adopted, tenant("shop", "shop")]
    );
    assert!(tenants.delete("shop").await.unwrap());
    assert!(!tenants.delete("shop").await.unwrap());
}

#[tokio::test]
async fn a_tenant_runs_no_anonymous_sql_until_it_is_set_to() {
    let fixture = Fixture::migrated("anonymous_sql").await;
    let tenants = Tenants::new(fixture.executor());
    let store = PgOauthStore::new(fixture.executor());
    assert!(tenants.insert(&tenant("shop", "shop")).await.unwrap());
    let of = async |name: &str| store.anonymous_sql(name).await.unwrap();
    assert_eq!(of("shop").await, AnonymousSql::Off);
    let settings = [AnonymousSql::Read, AnonymousSql::On, AnonymousSql::Off];
    for setting in settings {
        assert!(store.set_anonymous_sql("shop", setting).await.unwrap());
        assert_eq!(of("shop").await, setting);
        let found = tenants.find("shop").await.unwrap().unwrap();
        assert_eq!(found.anonymous_sql, setting);
    }
    let on = AnonymousSql::On;
    assert!(!store.set_anonymous_sql("nobody", on).await.unwrap());
    assert_eq!(of("nobody").await, AnonymousSql::Off);
}
