//! Creating, repairing and removing the functions.

use tidegate_admin::doctor::Severity;
use tidegate_admin::{Admin, ClaimsState, RoleIdentity};
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_wire::Secret;

use super::fixture::{ClaimsFixture, identity, passwords, superuser, value};

/// Whether the database has the functions.
const THERE: &str = "SELECT (to_regprocedure('tidegate.user_id()') IS NOT NULL)::text";

#[tokio::test]
async fn default_privileges_give_no_role_what_is_the_services() {
    let root = tidegate_testkit::database("claims_defaults", "").await;
    let grants = "CREATE ROLE claims_reader; \
        ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO claims_reader; \
        ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO claims_reader WITH GRANT OPTION; \
        ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO claims_reader; \
        ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; \
        ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO claims_reader";
    root.batch_execute(grants).await.unwrap();
    let admin = Admin::new(superuser(), passwords());
    let database = DatabaseName::new("claims_defaults");
    let provided = admin.provide_claims(&database, 1).await.unwrap();
    assert_eq!(provided, ClaimsState::Current);
    let may = "SELECT concat_ws(' ', has_schema_privilege('claims_reader', 'tidegate_private', 'USAGE'), \
        has_schema_privilege('claims_reader', 'tidegate', 'CREATE'), \
        has_sequence_privilege('claims_reader', 'tidegate_private.key_1_a', 'SELECT'), \
        has_table_privilege('claims_reader', 'tidegate_private.identities', 'SELECT'), \
        has_function_privilege('claims_reader', 'tidegate_private.role_claims()', 'EXECUTE'), \
        has_function_privilege('claims_reader', 'tidegate.claim(text)', 'EXECUTE'))";
    assert_eq!(value(&root, may).await, Ok(Some("f f f f f t".to_owned())));
    // A privilege that is granted later is revoked again.
    let grant = "GRANT SELECT ON tidegate_private.key_1_a TO claims_reader";
    root.batch_execute(grant).await.unwrap();
    admin.provide_claims(&database, 1).await.unwrap();
    assert_eq!(value(&root, may).await, Ok(Some("f f f f f t".to_owned())));
}

#[tokio::test]
async fn a_schema_of_another_owner_is_refused_and_reported() {
    let tenant = ClaimsFixture::new("claims_foreign").await;
    let [good] = &tenant.findings().await[..] else {
        panic!("{:?}", tenant.findings().await);
    };
    assert_eq!(good.severity, Severity::Good);
    for take in [
        "ALTER SCHEMA tidegate OWNER TO claims_foreign",
        "ALTER FUNCTION tidegate.user_id() OWNER TO claims_foreign",
        "ALTER TABLE tidegate_private.identities OWNER TO claims_foreign",
    ] {
        tenant.root.batch_execute(take).await.unwrap();
        let provided = tenant.admin.provide_claims(tenant.database(), 1).await;
        let ClaimsState::Foreign(object) = provided.unwrap() else {
            panic!("{take}");
        };
        assert!(object.ends_with(" of claims_foreign"), "{object}");
        let [finding] = &tenant.findings().await[..] else {
            panic!("{take}");
        };
        assert_eq!(finding.severity, Severity::Missing, "{finding:?}");
        // The remedy is commented out, for the operator to read.
        let sql = finding.sql.as_deref().unwrap().replace("-- ALTER", "ALTER");
        let sql: Vec<_> = sql
            .lines()
            .filter(|line| line.starts_with("ALTER"))
            .collect();
        assert_eq!(sql.len(), 1, "{finding:?}");
        tenant.root.batch_execute(sql[0]).await.unwrap();
        let provided = tenant.admin.provide_claims(tenant.database(), 1).await;
        assert_eq!(provided.unwrap(), ClaimsState::Current, "{take}");
    }
}

#[tokio::test]
async fn identities_are_never_written_into_a_table_of_another_owner() {
    let tenant = ClaimsFixture::new("claims_trap").await;
    let trap = "DROP TABLE tidegate_private.identities; \
        CREATE TABLE tidegate_private.identities (role name primary key, user_id text, claims jsonb); \
        ALTER TABLE tidegate_private.identities OWNER TO claims_trap";
    tenant.root.batch_execute(trap).await.unwrap();
    tenant
        .set_identity(&tenant.role("alice"), Some("x"), "{}")
        .await;
    let count = "SELECT count(*)::text FROM tidegate_private.identities";
    assert_eq!(value(&tenant.root, count).await, Ok(Some("0".to_owned())));
}

#[tokio::test]
async fn without_create_on_the_database_nothing_is_created() {
    let root = tidegate_testkit::database("claims_closed", "").await;
    let service = "CREATE ROLE claims_service LOGIN CREATEROLE PASSWORD 'service'";
    root.batch_execute(service).await.unwrap();
    let config = superuser().with_login("claims_service", Secret::new("service"));
    let admin = Admin::new(config, passwords());
    let database = DatabaseName::new("claims_closed");
    let provided = admin.provide_claims(&database, 1).await.unwrap();
    assert_eq!(provided, ClaimsState::NotAllowed);
    let identity = RoleIdentity {
        role: RoleName::new("claims_closed/ann"),
        user_id: None,
        claims: "{\"a\": 1}".to_owned(),
    };
    admin.set_identity(&database, &identity).await.unwrap();
    let none = admin.differing_identities(&database, &[identity]).await;
    assert_eq!(none.unwrap(), Vec::<String>::new());
    // A schema that the service may not even use.
    let foreign = "CREATE SCHEMA tidegate; CREATE FUNCTION tidegate.user_id() RETURNS text \
                   LANGUAGE sql AS 'SELECT NULL::text'";
    root.batch_execute(foreign).await.unwrap();
    let provided = admin.provide_claims(&database, 1).await.unwrap();
    assert!(matches!(provided, ClaimsState::Foreign(_)), "{provided:?}");
    let drop = "DROP SCHEMA tidegate CASCADE";
    root.batch_execute(drop).await.unwrap();
    // With the privilege CREATE, a service that is not a superuser creates the whole schema.
    let grant = "GRANT CREATE ON DATABASE claims_closed TO claims_service";
    root.batch_execute(grant).await.unwrap();
    let provided = admin.provide_claims(&database, 1).await.unwrap();
    assert_eq!(provided, ClaimsState::Current);
    root.batch_execute("REVOKE CREATE ON DATABASE claims_closed FROM claims_service")
        .await
        .unwrap();
    let rotated = admin.provide_claims(&database, 2).await.unwrap();
    assert_eq!(rotated, ClaimsState::Current);
}

#[tokio::test]
async fn differing_identities_are_found() {
    let tenant = ClaimsFixture::new("claims_differing").await;
    let (alice, bob) = (tenant.role("alice"), tenant.role("bob"));
    let wanted = |role: &str, user_id: &str, claims: &str| RoleIdentity {
        role: RoleName::new(role),
        user_id: Some(user_id.to_owned()),
        claims: claims.to_owned(),
    };
    let all = [
        wanted(tenant.name, tenant.name, "{}"),
        wanted(&alice, "alice", "{\"a\":1}"),
        wanted(&bob, "bob", "{}"),
    ];
    let differing = || tenant.admin.differing_identities(tenant.database(), &all);
    assert_eq!(differing().await.unwrap(), std::slice::from_ref(&alice));
    tenant
        .set_identity(&alice, Some("alice"), "{\"a\": 1}")
        .await;
    assert_eq!(differing().await.unwrap(), Vec::<String>::new());
    tenant.set_identity(&bob, Some("other"), "{}").await;
    tenant
        .set_identity(&tenant.role("gone"), Some("gone"), "{\"a\": 2}")
        .await;
    assert_eq!(differing().await.unwrap(), [bob, tenant.role("gone")]);
}

#[tokio::test]
async fn a_dropped_user_leaves_no_claims_for_the_next_of_its_name() {
    let tenant = ClaimsFixture::new("claims_dropped").await;
    let role = RoleName::new(tenant.role("alice"));
    tenant
        .set_identity(role.as_str(), Some("alice"), "{\"org\": \"acme\"}")
        .await;
    let owner = RoleName::new(tenant.name);
    let dropped = tenant
        .admin
        .drop_user(tenant.database(), &role, &owner, false);
    dropped.await.unwrap();
    tenant
        .admin
        .create_user(tenant.database(), &role)
        .await
        .unwrap();
    let next = tenant.login(role.as_str()).await;
    let none = Ok((Some("alice".to_owned()), Some("{}".to_owned())));
    assert_eq!(identity(&next).await, none);
}

#[tokio::test]
async fn a_released_database_keeps_the_functions_that_policies_use() {
    let tenant = ClaimsFixture::new("claims_released").await;
    let roles = ["", "/alice", "/bob"].map(|user| format!("{}{user}", tenant.name));
    let release = || tenant.admin.release_tenant(tenant.database(), &roles, &[]);
    release().await.unwrap();
    assert_eq!(
        value(&tenant.root, THERE).await,
        Ok(Some("true".to_owned()))
    );
    tenant
        .root
        .batch_execute("DROP POLICY own ON notes")
        .await
        .unwrap();
    release().await.unwrap();
    let schemas = "SELECT count(*)::text FROM pg_namespace WHERE nspname LIKE 'tidegate%'";
    assert_eq!(value(&tenant.root, schemas).await, Ok(Some("0".to_owned())));
}

#[tokio::test]
async fn the_doctor_names_policies_that_call_a_function_for_each_row() {
    let tenant = ClaimsFixture::new("claims_slow").await;
    let policies = "CREATE POLICY cast_id ON notes USING (owner = (SELECT tidegate.user_id()::text)); \
                    CREATE POLICY slow ON notes USING (owner = tidegate.user_id())";
    tenant.root.batch_execute(policies).await.unwrap();
    let findings = tenant.findings().await;
    let advice: Vec<_> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Advice)
        .collect();
    let [slow] = &advice[..] else {
        panic!("{findings:?}");
    };
    assert!(slow.text.ends_with(": slow on public.notes"), "{slow:?}");
}

#[tokio::test]
async fn the_key_is_not_logged() {
    let root = tidegate_testkit::database("claims_logged", "").await;
    let log_all = "ALTER DATABASE claims_logged SET log_statement = 'all'";
    root.batch_execute(log_all).await.unwrap();
    let admin = Admin::new(superuser(), passwords());
    let database = DatabaseName::new("claims_logged");
    admin.provide_claims(&database, 1).await.unwrap();
    let data = value(&root, "SHOW data_directory").await.unwrap().unwrap();
    let log = std::path::Path::new(&data).with_file_name("server.log");
    let log = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
    assert!(
        log.contains("pg_catalog.setval("),
        "statements are not logged"
    );
    for half in passwords().claims_key("claims_logged", 1).halves() {
        assert!(!log.contains(&half.to_string()));
    }
}
