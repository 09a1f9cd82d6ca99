//! A tenant with users, a group with a login, and the seals of members.

use tidegate_admin::doctor::{ChangeSource, Finding};
use tidegate_admin::{Admin, RoleIdentity};
use tidegate_embedded::testing;
use tidegate_postgres::{ClaimsKey, SET_CLAIMS, claims_head, role_password, scram_verifier};
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_testkit::config;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::admin::fixture::{SECRET, record_tenant, root, user};
pub(super) use crate::admin::fixture::{passwords, superuser};

/// The SQLSTATE with which the functions refuse a caller.
pub(super) const REFUSED: &str = "42501";

/// A tenant on the cluster that the tests share; its name must be unique. Its users are alice and
/// bob, and its group staff has a login.
pub(super) struct ClaimsFixture {
    pub(super) name: &'static str,
    database: DatabaseName,
    pub(super) admin: Admin,
    /// The superuser, in the tenant's database.
    pub(super) root: Client,
}

impl ClaimsFixture {
    pub(super) async fn new(name: &'static str) -> Self {
        let control = format!("{name}_control");
        let records = record_tenant(&control, name, None).await;
        let generation = "ALTER TABLE tidegate.tenants ADD claims_generation int4 DEFAULT 1";
        records.batch_execute(generation).await.unwrap();
        let config = config(&testing::cluster().admin_url(), &control);
        let admin = Admin::new(config, passwords());
        let database = DatabaseName::new(name);
        admin.create_tenant(&database).await.unwrap();
        for user in ["alice", "bob"] {
            let role = RoleName::new(format!("{name}/{user}"));
            admin.create_user(&database, &role).await.unwrap();
        }
        let root = root(name).await;
        let group = format!("{name}/group/staff");
        let verifier = scram_verifier(&role_password(&SECRET, &group, 1), &[3; 16]);
        let group = format!(
            "CREATE ROLE \"{group}\" LOGIN PASSWORD '{verifier}'; \
             GRANT \"{name}/$users\" TO \"{group}\"; \
             CREATE TABLE notes (owner text, org text, body text); \
             INSERT INTO notes VALUES ('m1', 'acme', 'of m1'), ('m2', 'acme', 'of m2'), \
                 ('alice', 'acme', 'of alice'), ('bob', 'other', 'of bob'); \
             ALTER TABLE notes ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY own ON notes USING (owner = (SELECT tidegate.user_id())); \
             GRANT ALL ON notes TO \"{group}\", \"{name}/$users\""
        );
        root.batch_execute(&group).await.unwrap();
        Self {
            name,
            database,
            admin,
            root,
        }
    }

    pub(super) fn database(&self) -> &DatabaseName {
        &self.database
    }

    pub(super) fn role(&self, user: &str) -> String {
        format!("{}/{user}", self.name)
    }

    /// A connection that logged in as a role.
    pub(super) async fn login(&self, role: &str) -> Client {
        user(self.name, role).await.unwrap()
    }

    /// A connection of the group.
    pub(super) async fn group(&self) -> Client {
        self.login(&self.role("group/staff")).await
    }

    pub(super) fn key(&self, generation: i32) -> ClaimsKey {
        passwords().claims_key(self.name, generation)
    }

    pub(super) async fn set_identity(&self, role: &str, user_id: Option<&str>, claims: &str) {
        let identity = RoleIdentity {
            role: RoleName::new(role),
            user_id: user_id.map(str::to_owned),
            claims: claims.to_owned(),
        };
        let set = self.admin.set_identity(self.database(), &identity);
        set.await.unwrap();
    }

    /// The doctor's findings about the functions.
    pub(super) async fn findings(&self) -> Vec<Finding> {
        let findings = self.admin.examine_tenants(ChangeSource::Outbox).await;
        let ours = |finding: &Finding| finding.text.contains("tidegate.user_id()");
        findings.unwrap().into_iter().filter(ours).collect()
    }

    /// Opens a transaction of a member, as the executor does.
    pub(super) async fn begin(&self, group: &Client, user_id: &str, claims: &str) {
        group.batch_execute("BEGIN").await.unwrap();
        seal(group, &self.key(1), (user_id, claims)).await;
    }
}

/// Seals the claims of a member for the open transaction.
pub(super) async fn seal(group: &Client, key: &ClaimsKey, (user_id, claims): (&str, &str)) {
    let head = claims_head(user_id, claims);
    let token = key.token(pid(group).await, &head);
    set(group, &token, (&head, claims)).await;
}

pub(super) async fn pid(client: &Client) -> i32 {
    let row = client.query_one("SELECT pg_backend_pid()", &[]).await;
    row.unwrap().get(0)
}

/// Runs the statement with which the service sets the claims and their seal.
pub(super) async fn set(group: &Client, token: &[u8], (head, claims): (&str, &str)) {
    group
        .query_one(SET_CLAIMS, &[&token, &head, &claims])
        .await
        .unwrap();
}

/// The only value of a query, or the SQLSTATE of its error.
pub(super) async fn value(client: &Client, sql: &str) -> Result<Option<String>, String> {
    match client.query_one(sql, &[]).await {
        Ok(row) => Ok(row.get(0)),
        Err(error) => Err(error.code().map_or("", SqlState::code).to_owned()),
    }
}

/// The results of the claims functions.
pub(super) async fn identity(client: &Client) -> Result<(Option<String>, Option<String>), String> {
    let id = value(client, "SELECT tidegate.user_id()").await?;
    Ok((id, value(client, "SELECT tidegate.claims()::text").await?))
}
