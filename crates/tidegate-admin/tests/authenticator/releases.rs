//! Tests nodes of several releases beside each other: each has its own text of the event trigger's
//! function.

use tidegate_admin::doctor::ChangeSource;
use tidegate_service::event_trigger_source;
use tidegate_sql::RoleName;

use super::fixture::{TenantFixture, node};

const MISSING: &str = "missing, disabled or altered";

/// Replaces the function of the event trigger, as another release does.
async fn install(tenant: &TenantFixture, source: &str) {
    tenant
        .run(&format!(
            "CREATE OR REPLACE FUNCTION tidegate_catalog.announce() RETURNS event_trigger \
             LANGUAGE plpgsql SECURITY DEFINER \
             SET search_path = pg_catalog, pg_temp SET client_min_messages = notice \
             AS $announce${source}$announce$"
        ))
        .await;
}

/// Why the database is not trusted, according to a node that starts now.
async fn objection(tenant: &TenantFixture) -> Option<String> {
    let node = node(tenant.name);
    let alice = node.of(&tenant.database(), &tenant.role("alice")).await;
    let decisions = node.decisions();
    let first = decisions[0].objections.first();
    assert_eq!(alice.is_some(), first.is_none());
    first.map(|objection| objection.reason.clone())
}

async fn provide(tenant: &TenantFixture) {
    let owner = RoleName::new(tenant.name);
    let provided = tenant
        .admin
        .provide_roles(&tenant.database(), &owner, &[])
        .await;
    provided.unwrap();
}

fn later() -> String {
    let (before, after) = event_trigger_source().split_once("-- Version ").unwrap();
    let (_, after) = after.split_once('.').unwrap();
    format!("{before}-- Version 1000.{after}\n-- More.\n")
}

#[tokio::test]
async fn a_node_accepts_the_function_of_a_later_release() {
    let tenant = TenantFixture::new("releases_later").await;
    install(&tenant, &later()).await;
    assert_eq!(objection(&tenant).await, None);
    // This release does not replace the function, and its doctor does not object to it.
    provide(&tenant).await;
    let found = "SELECT prosrc FROM pg_proc WHERE proname = 'announce'";
    assert_eq!(tenant.value(found).await, later());
    let findings = tenant.admin.examine_tenants(ChangeSource::Outbox).await;
    let mut findings = findings.unwrap().into_iter();
    assert!(!findings.any(|finding| finding.text.contains(MISSING)));
    // Definitions still end the sharing.
    let shared = tenant.shared().await;
    tenant.run("CREATE TABLE t ()").await;
    let refused = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
    assert_eq!(refused.unwrap_err(), "22023");
}

#[tokio::test]
async fn an_earlier_or_altered_function_is_replaced() {
    let tenant = TenantFixture::new("releases_other").await;
    let earlier = later().replace("-- Version 1000.", "-- Version 1.");
    let altered = format!("{}-- altered\n", event_trigger_source());
    for source in [&*earlier, &altered, "BEGIN END"] {
        install(&tenant, source).await;
        assert!(objection(&tenant).await.unwrap().contains(MISSING));
        provide(&tenant).await;
        assert_eq!(objection(&tenant).await, None, "{source}");
    }
    // A function of another role is not one of a later release.
    install(&tenant, &later()).await;
    tenant
        .run(
            "CREATE ROLE releases_thief; ALTER EVENT TRIGGER tidegate_catalog DISABLE; \
             ALTER FUNCTION tidegate_catalog.announce() OWNER TO releases_thief; \
             ALTER EVENT TRIGGER tidegate_catalog ENABLE ALWAYS",
        )
        .await;
    assert!(objection(&tenant).await.unwrap().contains(MISSING));
}

#[tokio::test]
async fn a_dropped_event_trigger_is_made_again_as_the_remedy_says() {
    let tenant = TenantFixture::new("releases_dropped").await;
    tenant.run("DROP EVENT TRIGGER tidegate_catalog").await;
    tenant.node.invalidate(&tenant.database());
    let (reason, remedy) = tenant.objection().await.unwrap();
    assert!(reason.contains(MISSING), "{reason}");
    let (sql, command) = remedy.split_once(" -- ").unwrap();
    assert!(command.contains("tidegate user repair"), "{command}");
    tenant.run(sql).await;
    provide(&tenant).await;
    tenant.wait_until_sharing("alice", true).await;
}
