//! The fixture of the administration tests.

use std::sync::atomic::{AtomicU32, Ordering};

use tidegate_admin::{Admin, RolePasswords};
use tidegate_embedded::testing;
use tidegate_postgres::role_password;
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_wire::{Config, Secret};
use tokio_postgres::Client;

/// The master secret of all tests. They share a cluster, so role names must be distinct.
pub(crate) const SECRET: [u8; 32] = [7; 32];

/// The configuration of the cluster's superuser.
pub(crate) fn superuser() -> Config {
    Config::from_url(&testing::cluster().admin_url()).unwrap()
}

/// The passwords of roles.
pub(crate) fn passwords() -> RolePasswords {
    // All tests use one counter, so that no two checks of the doctor create the same role.
    static SALT: AtomicU32 = AtomicU32::new(1);
    RolePasswords::new(SECRET, || {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&SALT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        bytes
    })
}

/// An administrator with this configuration.
pub(crate) fn admin(config: Config) -> Admin {
    Admin::new(config, passwords())
}

/// An administrator without superuser, with the privileges that `docs/OPERATIONS.md` lists.
pub(crate) async fn service_admin(name: &str) -> Config {
    let root = root("postgres").await;
    let sql = format!(
        "CREATE ROLE {name} LOGIN CREATEROLE CREATEDB PASSWORD 'service';
         GRANT pg_signal_backend, pg_read_all_stats TO {name};"
    );
    root.batch_execute(&sql).await.unwrap();
    let major = testing::cluster().version().major;
    if major < 15 {
        grant_the_template(name).await;
    }
    superuser().with_login(name, Secret::new("service"))
}

/// Before PostgreSQL 15 the schema `public` of a new database belongs to a superuser, and
/// `docs/OPERATIONS.md` says to give the one of `template1` to the administrator. In the tests it
/// belongs to a role of which all administrators are members.
pub(crate) async fn grant_the_template(name: &str) {
    let template = root("template1").await;
    let sql = format!(
        "BEGIN; SELECT pg_advisory_xact_lock(7);
         DO $$ BEGIN
           IF to_regrole('svc_templates') IS NULL THEN CREATE ROLE svc_templates; END IF;
         END $$;
         ALTER SCHEMA public OWNER TO svc_templates;
         GRANT svc_templates TO {name}; COMMIT"
    );
    template.batch_execute(&sql).await.unwrap();
}

/// A connection as the cluster's superuser.
pub(crate) async fn root(database: &str) -> Client {
    tidegate_testkit::connect(&testing::cluster().url(database)).await
}

/// Creates the tables of a control database that administration reads.
pub(crate) const RECORDS: &str = "CREATE SCHEMA tidegate; GRANT USAGE ON SCHEMA tidegate TO PUBLIC;
    CREATE TABLE tidegate.tenants (name text, owner_role text, adopted bool);
    CREATE TABLE tidegate.users (database text, role text, user_group text, default_user bool);
    GRANT SELECT ON ALL TABLES IN SCHEMA tidegate TO PUBLIC;";

/// Creates a control database that records a tenant and one user's role with its group. Returns a
/// connection to it.
pub(crate) async fn record_tenant(
    control: &str,
    tenant: &str,
    user: Option<(&str, &str)>,
) -> Client {
    let inside = tidegate_testkit::database(control, RECORDS).await;
    let insert = "INSERT INTO tidegate.tenants VALUES ($1, $1, false)";
    inside.execute(insert, &[&tenant]).await.unwrap();
    if let Some((role, group)) = user {
        let insert = "INSERT INTO tidegate.users VALUES ($1, $2, $3)";
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&tenant, &role, &group];
        inside.execute(insert, &values).await.unwrap();
    }
    inside
}

/// A connection that logged in as a user of a tenant.
pub(crate) async fn user(database: &str, role: &str) -> Result<Client, tokio_postgres::Error> {
    connect(database, role, &role_password(&SECRET, role, 1)).await
}

/// A connection with any login.
pub(crate) async fn connect(
    database: &str,
    role: &str,
    password: &str,
) -> Result<Client, tokio_postgres::Error> {
    tidegate_testkit::connect_as(&testing::cluster().url(database), role, password).await
}

/// The SQLSTATE of a statement that must fail.
pub(crate) async fn refusal(client: &Client, sql: &str) -> String {
    let error = client.batch_execute(sql).await.unwrap_err();
    error.code().unwrap().code().to_owned()
}

/// One value of a query as text.
pub(crate) async fn value(client: &Client, sql: &str) -> String {
    tidegate_testkit::text(client, sql).await
}

pub(crate) fn database(name: &str) -> DatabaseName {
    DatabaseName::new(name)
}

pub(crate) fn role(name: &str) -> RoleName {
    RoleName::new(name)
}
