//! Tests the doctor's findings about shared connections.

use tidegate_admin::doctor::{ChangeSource, Finding};
use tidegate_admin::is_unprintable;

use super::fixture::TenantFixture;

/// The findings about a tenant's shared connections.
async fn findings(tenant: &TenantFixture) -> Vec<Finding> {
    let findings = tenant.admin.examine_tenants(ChangeSource::Outbox).await;
    let about = format!("users of the tenant {} do not all share", tenant.name);
    let findings = findings.unwrap().into_iter();
    findings
        .filter(|finding| finding.text.starts_with(&about))
        .collect()
}

/// What prevents users from sharing connections, and a part of the finding.
const HARMS: [(&str, &str); 15] = [
    ("GRANT ALL ON own TO \"@mallory\"", "triggers on public.own"),
    (
        "CREATE SCHEMA IF NOT EXISTS \"a\u{1b}[2J\nb\"; GRANT CREATE ON SCHEMA \"a\u{1b}[2J\nb\" TO \"@mallory\"",
        "may make objects",
    ),
    ("ALTER ROLE \"@$authenticator1\" NOLOGIN", "is locked"),
    ("ALTER ROLE \"@$authenticator1\" INHERIT", "inherits"),
    (
        "ALTER ROLE \"@$authenticator1\" VALID UNTIL '2001-01-01'",
        "is locked",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" CONNECTION LIMIT 0",
        "limited",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" SET work_mem = '1MB'; \
         ALTER ROLE \"@$authenticator1\" IN DATABASE shared_doctor SET work_mem = '1MB'",
        "settings of its own",
    ),
    (
        "REVOKE SELECT ON tidegate_catalog.objections FROM \"@$authenticator1\"",
        "lacks",
    ),
    ("ALTER ROLE \"@$authenticator1\" CREATEROLE", "CREATEROLE"),
    ("GRANT shared_doctor TO \"@$authenticator1\"", "owner"),
    ("GRANT shared_doctor TO \"@mallory\"", "owner"),
    (
        "GRANT SELECT ON own TO \"@$authenticator1\"",
        "a right of its own on table public.own",
    ),
    (
        "GRANT EXECUTE ON FUNCTION pg_read_file(text) TO \"@$authenticator1\"",
        "a right of its own on function pg_read_file(text)",
    ),
    (
        "GRANT pg_read_all_data TO \"@$authenticator1\"",
        "a member of the role pg_read_all_data",
    ),
    (
        "GRANT \"@$authenticator1\" TO shared_doctor",
        "shared_doctor is a member of the authenticator",
    ),
];

/// Lists the owner's privileges. No SQL that the doctor prints may revoke one of them.
const OWNER_RIGHTS: &str = "SELECT concat_ws(' ', \
    has_schema_privilege('shared_doctor', 'public', 'CREATE'), \
    has_database_privilege('shared_doctor', current_database(), 'CREATE'), \
    has_table_privilege('shared_doctor', 'own', 'TRIGGER'), \
    has_table_privilege('shared_doctor', 'other', 'TRIGGER'))";

#[tokio::test]
async fn the_doctor_names_what_keeps_users_from_sharing_and_sets_it_right() {
    let tenant = TenantFixture::new("shared_doctor").await;
    tenant
        .run(
            "CREATE TABLE other (); GRANT TRIGGER ON other, own TO shared_doctor; \
              GRANT CREATE ON SCHEMA public TO shared_doctor",
        )
        .await;
    assert_eq!(findings(&tenant).await, []);
    for (harm, part) in HARMS {
        tenant.run(harm).await;
        let found = findings(&tenant).await;
        assert!(
            found.iter().any(|finding| finding.text.contains(part)),
            "{harm}: {found:?}"
        );
        for sql in found.iter().filter_map(|finding| finding.sql.as_deref()) {
            let unprintable = |char| is_unprintable(char) && char != '\n';
            assert!(!sql.contains(unprintable), "{sql:?}");
            // The first line of the SQL is a `\connect` command.
            tenant.run(sql.split_once('\n').unwrap().1).await;
        }
        assert_eq!(findings(&tenant).await, [], "{harm}");
        assert_eq!(tenant.value(OWNER_RIGHTS).await, "t t t t", "{harm}");
    }
    for (harm, part) in [
        (
            "REVOKE \"@bob\" FROM \"@$authenticator1\"",
            "1 user(s) have none",
        ),
        (
            "DROP OWNED BY \"@$authenticator1\"; DROP ROLE \"@$authenticator1\"",
            "0 authenticator(s)",
        ),
    ] {
        tenant.run(harm).await;
        let found = findings(&tenant).await;
        assert!(
            found.iter().any(|finding| finding.text.contains(part)),
            "{harm}: {found:?}"
        );
    }
    assert_eq!(tenant.of("alice").await, None);
}

#[tokio::test]
async fn the_doctor_names_triggers_that_run_what_they_put_together() {
    let tenant = TenantFixture::new("shared_dynamic").await;
    let reported = async || {
        let findings = tenant.admin.examine_tenants(ChangeSource::Outbox).await;
        let mut findings = findings.unwrap().into_iter();
        findings.find(|finding| {
            finding.text.contains("shared_dynamic") && finding.text.contains("put together")
        })
    };
    for (execute, is_reported) in [
        ("execute format('select %L', new.what)", false),
        ("execute 'select ' || quote_literal(new.what)", false),
        ("execute 'select 1'", false),
        ("execute 'select ' || new.what", true),
    ] {
        let body = format!("begin {execute}; return new; end").replace('\'', "''");
        tenant
            .run(&format!(
                "CREATE OR REPLACE FUNCTION calc() RETURNS trigger LANGUAGE plpgsql AS '{body}'; \
                 DROP TRIGGER IF EXISTS calc ON own; CREATE TRIGGER calc BEFORE INSERT ON own \
                 FOR EACH ROW EXECUTE FUNCTION calc()"
            ))
            .await;
        let found = reported().await;
        assert_eq!(found.is_some(), is_reported, "{execute}: {found:?}");
        if let Some(found) = found {
            assert!(found.text.contains("calc()"), "{found:?}");
        }
    }
    tenant.run("DROP TRIGGER calc ON own").await;
    assert_eq!(reported().await, None);
}
