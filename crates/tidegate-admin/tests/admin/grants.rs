//! Dropping roles with grants that depend on them, in databases whose tables have other owners.

use tidegate_admin::{Admin, Adoption, Error};
use tidegate_embedded::testing;
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_wire::Config;
use tokio_postgres::Client;

use super::fixture::{admin, connect, database, role, root, service_admin, superuser, user, value};

const ACL: &str = "SELECT relacl::text FROM pg_class WHERE relname = 'album'";

/// An adopted database with a table of another role, and the users eve, who is in the group
/// `sales`, and kim.
struct Adopted {
    name: &'static str,
    admin: Admin,
    plan: Adoption,
    /// The privileges on the table before the adoption.
    before: String,
    root: Client,
}

impl Adopted {
    async fn new(name: &'static str, config: Config) -> Self {
        let home = root("postgres").await;
        let maker = format!("CREATE ROLE {name}_maker LOGIN PASSWORD 'old'");
        home.batch_execute(&maker).await.unwrap();
        let mine = &config.admin_role;
        let lent = format!("GRANT {name}_maker TO {mine}");
        home.batch_execute(&lent).await.unwrap();
        let made = format!("CREATE DATABASE {name} OWNER {name}_maker");
        home.batch_execute(&made).await.unwrap();
        let maker = format!("{name}_maker");
        let maker = connect(name, &maker, "old").await.unwrap();
        let table = "CREATE SCHEMA s; CREATE TABLE s.album (id int, name text); \
                     GRANT SELECT ON s.album TO CURRENT_USER";
        maker.batch_execute(table).await.unwrap();
        let root = root(name).await;
        let before = value(&root, ACL).await;

        let admin = admin(config);
        let tenant = database(name);
        let plan = admin.plan_adoption(&tenant, &role(name)).await.unwrap();
        admin.adopt(&tenant, &plan).await.unwrap();
        let adopted = Self {
            name,
            admin,
            plan,
            before,
            root,
        };
        adopted.make_users().await;
        adopted
    }

    async fn make_users(&self) {
        let (tenant, eve, kim) = (self.tenant(), self.user("eve"), self.user("kim"));
        for user in [&eve, &kim] {
            self.admin.create_user(&tenant, user).await.unwrap();
        }
        let sales = role(&format!("{}/group/sales", self.name));
        let joined = self
            .admin
            .set_groups(&tenant, &eve, std::slice::from_ref(&sales));
        joined.await.unwrap();
        let rights = "GRANT USAGE ON SCHEMA s TO @/eve, @/kim; \
                      GRANT SELECT, INSERT ON s.album TO @/group/sales WITH GRANT OPTION; \
                      GRANT SELECT ON s.album TO @/eve WITH GRANT OPTION";
        self.run_as("", rights).await;
        let on = "GRANT SELECT ON s.album TO @/kim; GRANT SELECT (name) ON s.album TO @/kim";
        self.run_as("/eve", on).await;
    }

    fn tenant(&self) -> DatabaseName {
        database(self.name)
    }

    fn user(&self, name: &str) -> RoleName {
        role(&format!("{}/{name}", self.name))
    }

    /// Runs statements as a user or the owner; `@/eve` is a role of the tenant.
    async fn run_as(&self, who: &str, sql: &str) {
        let client = user(self.name, &format!("{}{who}", self.name)).await;
        let sql = self.named(sql);
        client.unwrap().batch_execute(&sql).await.unwrap();
    }

    fn named(&self, sql: &str) -> String {
        let mut parts = sql.split('@');
        let mut named = parts.next().unwrap().to_owned();
        for part in parts {
            let end = part.find([' ', ',', ';']).unwrap_or(part.len());
            let (path, rest) = part.split_at(end);
            named.extend(["\"", self.name, path, "\"", rest]);
        }
        named
    }

    async fn drop_user(&self, name: &str) -> Result<(), Error> {
        let (tenant, owner) = (self.tenant(), role(self.name));
        let user = self.user(name);
        self.admin.drop_user(&tenant, &user, &owner, false).await
    }

    async fn release(&self) -> Result<(), Error> {
        let roles = ["/eve", "/kim", ""].map(|user| format!("{}{user}", self.name));
        let changes = &self.plan.changes;
        self.admin
            .release_tenant(&self.tenant(), &roles, changes)
            .await
    }

    /// The privileges on the table and its columns, and the memberships of the tenant's roles.
    /// Memberships of the administrator are left out, because since PostgreSQL 16 it is a member of
    /// each role that it creates. So are those of authenticators and in the role of all users,
    /// which have no privileges on the table.
    async fn rights(&self) -> String {
        let sql = format!(
            "SELECT concat_ws(' ', relacl, (SELECT string_agg(attacl::text, ' ') FROM pg_attribute \
                WHERE attrelid = c.oid), (SELECT string_agg(concat(roleid::regrole, '>', \
                member::regrole), ' ' ORDER BY m) FROM pg_auth_members m \
                WHERE (roleid::regrole::text ~ '{0}' OR member::regrole::text ~ '{0}') \
                AND member::regrole::text !~ '^svc_|/[$]authenticator' \
                AND roleid::regrole::text !~ '/[$]users')) \
             FROM pg_class c WHERE relname = 'album'",
            self.name
        );
        value(&self.root, &sql).await
    }

    async fn require_released(&self) {
        self.release().await.unwrap();
        assert_eq!(value(&self.root, ACL).await, self.before);
        let left = "SELECT concat((SELECT string_agg(attacl::text, ' ') FROM pg_attribute \
                    WHERE attrelid = 's.album'::regclass), ' ', (SELECT count(*) FROM pg_roles \
                    WHERE rolname = $ OR rolname ~ ('^' || $ || '/')))";
        let left = left.replace('$', &format!("'{}'", self.name));
        assert_eq!(value(&self.root, &left).await, " 0");
    }
}

#[tokio::test]
async fn who_granted_on_what_its_group_may_grant_too_is_dropped() {
    for (name, config) in [
        ("leafs_root", superuser()),
        ("leafs_svc", service_admin("svc_leafs").await),
    ] {
        let adopted = Adopted::new(name, config).await;
        adopted.drop_user("eve").await.unwrap();
        let left = adopted.rights().await;
        assert!(!left.contains("kim") && !left.contains("eve"), "{left}");
        assert!(left.contains("group/sales\\\"=a*r*/"), "{left}");
        adopted.require_released().await;
    }
}

#[tokio::test]
async fn who_was_granted_something_by_a_member_of_a_group_is_dropped() {
    for (name, config) in [
        ("given_root", superuser()),
        ("given_svc", service_admin("svc_given").await),
    ] {
        let adopted = Adopted::new(name, config).await;
        adopted.drop_user("kim").await.unwrap();
        let left = adopted.rights().await;
        assert!(!left.contains("kim"), "{left}");
        assert!(left.contains("eve\\\"=r*/"), "{left}");
        adopted.require_released().await;
    }
}

#[tokio::test]
async fn a_tenant_with_grants_of_members_of_groups_leaves_nothing_behind() {
    for (name, config) in [
        ("left_root", superuser()),
        ("left_svc", service_admin("svc_left").await),
    ] {
        let adopted = Adopted::new(name, config).await;
        adopted.require_released().await;
    }
}

#[tokio::test]
async fn what_a_grantor_may_grant_no_more_is_taken_back_and_the_grantor_keeps_what_it_has() {
    for (name, config) in [
        ("lost_root", superuser()),
        ("lost_svc", service_admin("svc_lost").await),
    ] {
        let adopted = Adopted::new(name, config).await;
        // PostgreSQL keeps eve's grant while the group holds the GRANT OPTION.
        let lost = "REVOKE ALL ON s.album FROM @/eve CASCADE; \
                    REVOKE ALL ON s.album FROM @/group/sales CASCADE; \
                    REVOKE USAGE ON SCHEMA s FROM @/eve; GRANT SELECT ON s.album TO @/eve";
        adopted.run_as("", lost).await;
        let stuck = adopted.rights().await;
        assert!(stuck.contains("kim\\\"=r/"), "{stuck}");
        adopted.drop_user("kim").await.unwrap();
        let left = adopted.rights().await;
        assert!(!left.contains("kim"), "{left}");
        assert!(left.contains("eve\\\"=r/"), "{left}");
        let schema = "SELECT nspacl::text FROM pg_namespace WHERE nspname = 's'";
        let schema = value(&adopted.root, schema).await;
        assert!(!schema.contains("eve"), "{schema}");
        adopted.require_released().await;
    }
}

#[tokio::test]
async fn what_others_would_lose_with_a_loan_refuses_the_drop() {
    let adopted = Adopted::new("harmed", superuser()).await;
    let zoe = adopted.user("zoe");
    let tenant = adopted.tenant();
    adopted.admin.create_user(&tenant, &zoe).await.unwrap();
    let on = "GRANT SELECT ON s.album TO @/zoe";
    adopted.run_as("/eve", on).await;
    let lost = "REVOKE ALL ON s.album FROM @/eve CASCADE; \
                REVOKE ALL ON s.album FROM @/group/sales CASCADE";
    adopted.run_as("", lost).await;
    let before = adopted.rights().await;
    assert!(before.contains("zoe\\\"=r/"), "{before}");
    let dropped = adopted.drop_user("kim").await;
    assert!(
        matches!(dropped, Err(Error::StillUsed { .. })),
        "{dropped:?}"
    );
    assert_eq!(adopted.rights().await, before);
    // If both roles are dropped, no remaining role loses a privilege.
    let roles = ["/eve", "/kim", "/zoe", ""].map(|user| format!("harmed{user}"));
    let changes = &adopted.plan.changes;
    let released = adopted.admin.release_tenant(&tenant, &roles, changes).await;
    released.unwrap();
}

#[tokio::test]
async fn a_schema_is_taken_behind_what_is_in_it() {
    let admin = admin(service_admin("svc_schema_last").await);
    let tenant = database("schema_last");
    admin.create_tenant(&tenant).await.unwrap();
    let [eve, kim, ann] = ["eve", "kim", "ann"].map(|name| role(&format!("schema_last/{name}")));
    for one in [&eve, &kim, &ann] {
        admin.create_user(&tenant, one).await.unwrap();
    }
    let owner = user("schema_last", "schema_last").await.unwrap();
    let app = "CREATE SCHEMA app; GRANT USAGE, CREATE ON SCHEMA app TO \"schema_last/ann\"; \
               GRANT USAGE ON SCHEMA app TO \"schema_last/eve\"";
    owner.batch_execute(app).await.unwrap();
    let anns = user("schema_last", "schema_last/ann").await.unwrap();
    let on = "CREATE TABLE app.t (a int); \
              GRANT SELECT ON app.t TO \"schema_last/eve\" WITH GRANT OPTION";
    anns.batch_execute(on).await.unwrap();
    let eves = user("schema_last", "schema_last/eve").await.unwrap();
    let on = "GRANT SELECT ON app.t TO \"schema_last/kim\"";
    eves.batch_execute(on).await.unwrap();
    let heir = role("schema_last");
    let dropped = admin.drop_user(&tenant, &eve, &heir, false).await;
    dropped.unwrap();
    let left = "SELECT relacl::text FROM pg_class WHERE relname = 't'";
    let left = value(&owner, left).await;
    assert!(!left.contains("eve") && !left.contains("kim"), "{left}");
}

#[tokio::test]
async fn a_drop_that_is_refused_takes_nothing() {
    let adopted = Adopted::new("refusing", service_admin("svc_refusing").await).await;
    let outside = "CREATE ROLE refusing_r LOGIN; SET ROLE refusing_maker; \
                   GRANT USAGE ON SCHEMA s TO refusing_r; \
                   GRANT SELECT ON s.album TO refusing_r WITH GRANT OPTION; \
                   SET ROLE refusing_r; GRANT SELECT ON s.album TO @/kim; RESET ROLE";
    let outside = adopted.named(outside);
    adopted.root.batch_execute(&outside).await.unwrap();
    let before = adopted.rights().await;
    let dropped = adopted.drop_user("kim").await;
    assert!(
        matches!(&dropped, Err(Error::StillUsed { reason, .. }) if reason.contains("table s.album")),
        "{dropped:?}"
    );
    assert_eq!(adopted.rights().await, before);
    adopted.release().await.unwrap_err();
    assert_eq!(adopted.rights().await, before);

    // A superuser can revoke the grant as any role.
    let config = superuser();
    let adopted = Adopted {
        admin: admin(config),
        ..adopted
    };
    adopted.drop_user("kim").await.unwrap();
    adopted
        .root
        .batch_execute("DROP OWNED BY refusing_r")
        .await
        .unwrap();
    adopted.require_released().await;
}

#[tokio::test]
async fn what_a_member_of_the_owners_role_granted_on_goes_with_the_tenant() {
    let mut administrators = vec![("chained_root", superuser())];
    // Since 16 only a superuser can end what a superuser granted.
    if testing::cluster().version().major < 16 {
        administrators.push(("chained_svc", service_admin("svc_chained").await));
    }
    for (name, config) in administrators {
        let adopted = Adopted::new(name, config).await;
        let outside = format!("CREATE ROLE {name}_r; CREATE ROLE {name}_late");
        adopted.root.batch_execute(&outside).await.unwrap();
        let on = format!(
            "GRANT USAGE ON SCHEMA s TO {name}_r; \
             GRANT SELECT ON s.album TO {name}_r WITH GRANT OPTION"
        );
        adopted.run_as("", &on).await;
        let late = format!(
            "SET ROLE {name}_r; GRANT SELECT ON s.album TO {name}_late; RESET ROLE; \
             GRANT {name} TO {name}_r"
        );
        adopted.root.batch_execute(&late).await.unwrap();
        adopted.require_released().await;
    }
}

#[tokio::test]
async fn what_a_user_granted_on_its_own_table_goes_with_whom_it_was_granted() {
    let admin = admin(service_admin("svc_own_table").await);
    let tenant = database("own_table");
    admin.create_tenant(&tenant).await.unwrap();
    let (eve, kim) = (role("own_table/eve"), role("own_table/kim"));
    admin.create_user(&tenant, &eve).await.unwrap();
    admin.create_user(&tenant, &kim).await.unwrap();
    let owner = user("own_table", "own_table").await.unwrap();
    let may = "GRANT CREATE ON SCHEMA public TO \"own_table/eve\"";
    owner.batch_execute(may).await.unwrap();
    let eves = user("own_table", "own_table/eve").await.unwrap();
    let made = "CREATE TABLE hers (a int); GRANT SELECT ON hers TO \"own_table/kim\"";
    eves.batch_execute(made).await.unwrap();
    let heir = role("own_table");
    let dropped = admin.drop_user(&tenant, &kim, &heir, false).await;
    dropped.unwrap();
}

#[tokio::test]
async fn a_database_that_is_read_only_by_default_is_administered() {
    let home = root("postgres").await;
    home.batch_execute("CREATE DATABASE settled").await.unwrap();
    let set = "ALTER DATABASE settled SET default_transaction_read_only = on";
    home.batch_execute(set).await.unwrap();
    let admin = admin(superuser());
    let (tenant, owner) = (database("settled"), role("settled"));
    let plan = admin.plan_adoption(&tenant, &owner).await.unwrap();
    admin.adopt(&tenant, &plan).await.unwrap();
    let ann = role("settled/ann");
    admin.create_user(&tenant, &ann).await.unwrap();
    admin.drop_user(&tenant, &ann, &owner, false).await.unwrap();
    let roles = ["settled".to_owned()];
    let released = admin.release_tenant(&tenant, &roles, &plan.changes).await;
    released.unwrap();
}
