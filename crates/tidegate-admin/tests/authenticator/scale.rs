//! A tenant with thousands of users, on a cluster of its own: other tests would wait for its roles.

use std::sync::Arc;

use tidegate_admin::Admin;
use tidegate_embedded::{Cluster, testing};
use tidegate_postgres::Authenticators;
use tidegate_service::Control;
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_wire::Config;
use tidegate_wire::backoff::Jitter;
use tokio_postgres::{Client, NoTls};

use super::fixture::passwords;

const RECORDS: &str = "CREATE SCHEMA tidegate; \
    CREATE TABLE tidegate.tenants (name text, owner_role text, adopted bool); \
    CREATE TABLE tidegate.users (database text, role text, user_group text, default_user bool); \
    INSERT INTO tidegate.tenants VALUES ('large', 'large', false)";

/// As sign-ups leave it, which takes minutes; the last users are an older release's.
const SIGN_UPS: &str = "DO $$ DECLARE users text; BEGIN \
    FOR i IN 1..6000 LOOP \
        EXECUTE format('CREATE ROLE \"large/u%s\" LOGIN; \
                        COMMENT ON ROLE \"large/u%1$s\" IS ''made by Tidegate''', i); \
    END LOOP; \
    SELECT string_agg(format('\"large/u%s\"', i), ', ') INTO users FROM generate_series(1, 5000) i; \
    EXECUTE 'GRANT \"large/$users\" TO ' || users; \
    SELECT string_agg(format('\"large/u%s\"', i), ', ') INTO users FROM generate_series(5001, 6000) i; \
    EXECUTE 'GRANT CONNECT ON DATABASE large TO ' || users; \
    EXECUTE 'GRANT USAGE ON SCHEMA public TO ' || users; \
    END $$";

async fn connect(cluster: &Cluster, database: &str) -> Client {
    let connected = tokio_postgres::connect(&cluster.url(database), NoTls).await;
    let (client, connection) = connected.unwrap();
    tokio::spawn(connection);
    client
}

/// Answers that compare each user with each do not come within a statement's time.
#[tokio::test]
async fn thousands_of_users_share_connections() {
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let mut config = Config::from_url(&cluster.admin_url()).unwrap();
    config.control_database = DatabaseName::new("control");
    let root = connect(&cluster, "postgres").await;
    root.batch_execute("CREATE DATABASE control").await.unwrap();
    let control = connect(&cluster, "control").await;
    control.batch_execute(RECORDS).await.unwrap();

    let admin = Admin::new(config.clone(), passwords());
    let (database, owner) = (DatabaseName::new("large"), RoleName::new("large"));
    admin.create_tenant(&database).await.unwrap();
    let large = connect(&cluster, "large").await;
    large.batch_execute(SIGN_UPS).await.unwrap();
    let provided = admin.provide_roles(&database, &owner, &[]);
    provided.await.unwrap();

    let control = Control::new(Arc::new(config), Jitter::none()).unwrap();
    let node = Authenticators::new(Arc::new(control));
    for user in ["large/u1", "large/u6000"] {
        let authenticator = node.of(&database, &RoleName::new(user)).await;
        assert!(authenticator.is_some(), "{user}: {:?}", node.decisions());
    }
}
