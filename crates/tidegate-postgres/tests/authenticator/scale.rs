//! A tenant with thousands of users.

use tidegate_sql::RoleName;

use super::fixture::{Tenant, node, root};

/// As sign-ups leave it, which takes minutes.
const SIGN_UPS: &str = "DO $$ DECLARE users text; BEGIN \
    FOR i IN 1..6000 LOOP \
        EXECUTE format('CREATE ROLE \"@u%s\" LOGIN; \
                        COMMENT ON ROLE \"@u%1$s\" IS ''made by Tidegate''', i); \
    END LOOP; \
    SELECT string_agg(format('\"@u%s\"', i), ', ') INTO users FROM generate_series(1, 6000) i; \
    EXECUTE 'GRANT CONNECT ON DATABASE seats_scale TO ' || users; \
    EXECUTE 'GRANT USAGE ON SCHEMA public TO ' || users; \
    END $$";

/// Answers that compare each user with each do not come within a statement's time.
#[tokio::test]
async fn thousands_of_users_share_connections() {
    let tenant = Tenant::new("seats_scale").await;
    tenant.run(SIGN_UPS).await;
    let (database, owner) = (tenant.database(), RoleName::new(tenant.name));
    let provided = tenant.admin.provide_authenticators(&database, &owner, &[]);
    provided.await.unwrap();
    let node = node(tenant.name);
    for user in ["alice", "u1", "u6000"] {
        let authenticator = node.of(&database, &tenant.role(user)).await;
        assert!(authenticator.is_some(), "{user}: {:?}", node.decisions());
    }
    // Other tests share the cluster, and are slower with its roles.
    drop(tenant);
    let home = root("postgres").await;
    let clean = "DO $$ DECLARE r text; BEGIN \
        FOR r IN SELECT rolname FROM pg_roles WHERE rolname LIKE 'seats\\_scale/%' LOOP \
            EXECUTE format('DROP ROLE %I', r); \
        END LOOP; END $$";
    let drop = "DROP DATABASE seats_scale WITH (FORCE)";
    home.batch_execute(drop).await.unwrap();
    home.batch_execute(clean).await.unwrap();
}
