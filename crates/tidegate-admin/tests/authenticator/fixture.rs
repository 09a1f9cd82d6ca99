//! A tenant with users and nodes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_admin::Admin;
use tidegate_embedded::testing;
use tidegate_postgres::Authenticators;
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_testkit::service_connections;
use tidegate_wire::Config;
use tokio_postgres::Client;

pub(super) use crate::admin::fixture::root;
use crate::admin::fixture::{passwords, record_tenant, user};

/// A tenant with the users alice, bob and mallory, on the cluster that the tests share. The
/// tenant's name must be unique.
pub(super) struct TenantFixture {
    pub(super) name: &'static str,
    pub(super) admin: Admin,
    /// A connection of the superuser to the tenant's database.
    pub(super) root: Client,
    pub(super) node: Authenticators,
}

impl TenantFixture {
    pub(super) async fn new(name: &'static str) -> Self {
        let config = config(name);
        let admin = Admin::new(config.clone(), passwords());
        record_tenant(&format!("{name}_control"), name, None).await;
        admin.create_tenant(&DatabaseName::new(name)).await.unwrap();
        let tenant = Self {
            name,
            admin,
            root: root(name).await,
            node: node(name),
        };
        let owner = tenant.login(name).await;
        owner
            .batch_execute("CREATE TABLE own (who text, what text); ALTER TABLE own ENABLE ROW LEVEL SECURITY; \
                CREATE POLICY own ON own USING (who = current_user) WITH CHECK (who = current_user)")
            .await
            .unwrap();
        for user in ["alice", "bob", "mallory"] {
            tenant.user(user).await;
            let user = tenant.role(user);
            let sql = format!("GRANT SELECT, INSERT, UPDATE ON own TO \"{user}\"");
            owner.batch_execute(&sql).await.unwrap();
        }
        tenant
    }

    pub(super) fn database(&self) -> DatabaseName {
        DatabaseName::new(self.name)
    }

    /// The role of a user.
    pub(super) fn role(&self, user: &str) -> RoleName {
        RoleName::new(format!("{}/{user}", self.name))
    }

    /// Creates a user.
    pub(super) async fn user(&self, user: &str) {
        let made = self
            .admin
            .create_user(&self.database(), &self.role(user))
            .await;
        made.unwrap();
    }

    /// Runs SQL as the superuser; `@` stands for the prefix of users' roles.
    pub(super) async fn run(&self, sql: &str) {
        let sql = sql.replace('@', &format!("{}/", self.name));
        self.root.batch_execute(&sql).await.unwrap();
    }

    /// One value of a query of the superuser.
    pub(super) async fn value(&self, sql: &str) -> String {
        let sql = sql.replace('@', &format!("{}/", self.name));
        tidegate_testkit::text(&self.root, &sql).await
    }

    /// A connection that logged in as a role.
    pub(super) async fn login(&self, role: &str) -> Client {
        self.try_login(role).await.unwrap()
    }

    pub(super) async fn try_login(&self, role: &str) -> Result<Client, tokio_postgres::Error> {
        user(self.name, role).await
    }

    /// A connection of the first authenticator.
    pub(super) async fn shared(&self) -> Client {
        self.login(&format!("{}/$authenticator1", self.name)).await
    }

    /// The authenticator of a user according to this fixture's node.
    pub(super) async fn of(&self, user: &str) -> Option<RoleName> {
        self.node.of(&self.database(), &self.role(user)).await
    }

    /// Waits until a user shares connections, or until it no longer does.
    pub(super) async fn wait_until_sharing(&self, user: &str, shares: bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            self.node.refresh().await.unwrap();
            // The executor does this when a role switch is refused, and the catalog watch after a
            // notification.
            self.node.invalidate(&self.database());
            if self.of(user).await.is_some() == shares {
                return;
            }
            assert!(Instant::now() < deadline, "{:?}", self.node.decisions());
        }
    }

    /// The first objection to sharing connections: the reason and the remedy.
    pub(super) async fn objection(&self) -> Option<(String, String)> {
        self.of("alice").await;
        let decisions = self.node.decisions();
        let first = decisions[0].objections.first()?;
        Some((first.reason.clone(), first.remedy.clone()))
    }

    /// Switches the role as the executor does, and reads what the user sees; returns the SQLSTATE
    /// of an error.
    pub(super) async fn as_user(
        &self,
        shared: &Client,
        user: &str,
        sql: &str,
    ) -> Result<String, String> {
        let code = |error: tokio_postgres::Error| error.code().unwrap().code().to_owned();
        shared.batch_execute("BEGIN").await.unwrap();
        let role = self.role(user);
        let switched = shared
            .query(Authenticators::SWITCH, &[&role.as_str()])
            .await;
        let done = match switched.map_err(code) {
            Ok(_) => shared.query_one(sql, &[]).await.map_err(code),
            Err(code) => Err(code),
        };
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        shared.batch_execute(end).await.unwrap();
        done.map(|row| row.get::<_, Option<String>>(0).unwrap_or_default())
    }
}

fn config(name: &str) -> Config {
    let url = testing::cluster().admin_url();
    tidegate_testkit::config(&url, &format!("{name}_control"))
}

/// A second node's decisions.
pub(super) fn node(name: &str) -> Authenticators {
    Authenticators::new(Arc::new(service_connections(config(name))))
}
