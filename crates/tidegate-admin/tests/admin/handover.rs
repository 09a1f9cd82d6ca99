//! Tests that objects of a dropped user do not let others act with the privileges of the new owner.

use tidegate_admin::{Admin, Error};
use tidegate_embedded::testing;
use tidegate_sql::{DatabaseName, RoleName};
use tokio_postgres::Client;

use super::fixture::{admin, database, role, root, service_admin, superuser, user, value};

/// A tenant with a user `bob` who may create objects, and a user `eve`.
struct HandoverFixture {
    admin: Admin,
    tenant: DatabaseName,
    bob: RoleName,
    owner: Client,
    bobs: Client,
    eves: Client,
}

impl HandoverFixture {
    async fn of(admin: Admin, name: &str) -> Self {
        let tenant = database(name);
        admin.create_tenant(&tenant).await.unwrap();
        let (bob, eve) = (format!("{name}/bob"), format!("{name}/eve"));
        for user in [&bob, &eve] {
            admin.create_user(&tenant, &role(user)).await.unwrap();
        }
        let owner = user(name, name).await.unwrap();
        let rights = format!(
            "GRANT CREATE ON SCHEMA public TO \"{bob}\"; \
             CREATE TABLE secrets (word text); INSERT INTO secrets VALUES ('secret')"
        );
        owner.batch_execute(&rights).await.unwrap();
        Self {
            bobs: user(name, &bob).await.unwrap(),
            eves: user(name, &eve).await.unwrap(),
            bob: role(&bob),
            admin,
            tenant,
            owner,
        }
    }

    /// Returns the objects that the error names when bob's objects are to go to the owner.
    async fn refused(&self) -> Vec<String> {
        let heir = role(self.tenant.as_str());
        let names = (&self.bob, &heir);
        let may = self.admin.may_drop_user(&self.tenant, names, true).await;
        let Err(Error::CarriesRights { objects, .. }) = may else {
            panic!("not refused: {may:?}");
        };
        let dropped = self.admin.drop_user(&self.tenant, &self.bob, &heir, true);
        let Err(Error::CarriesRights { .. }) = dropped.await else {
            panic!("dropped");
        };
        objects
    }

    async fn drop_bob(&self) {
        let heir = role(self.tenant.as_str());
        let dropped = self.admin.drop_user(&self.tenant, &self.bob, &heir, true);
        dropped.await.unwrap();
    }
}

#[tokio::test]
async fn a_function_does_not_become_the_owners() {
    let fixture = HandoverFixture::of(admin(service_admin("svc_handed").await), "handed").await;
    let function = "CREATE FUNCTION pwn(q text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS \
                    $$ DECLARE r text; BEGIN EXECUTE q INTO r; RETURN r; END $$; \
                    CREATE TABLE kept (id int)";
    fixture.bobs.batch_execute(function).await.unwrap();
    let attack = "SELECT public.pwn('SELECT current_user::text')";
    assert_eq!(value(&fixture.eves, attack).await, "handed/bob");
    assert_eq!(
        fixture.refused().await,
        ["function public.pwn(text) is SECURITY DEFINER"]
    );
    assert_eq!(value(&fixture.eves, attack).await, "handed/bob");
    // The refused attempt has terminated bob's session.
    let bobs = user("handed", "handed/bob").await.unwrap();
    // A function that runs as its caller is refused too: others can reach code in more ways than
    // can be listed.
    let invoker = "ALTER FUNCTION public.pwn(text) SECURITY INVOKER";
    bobs.batch_execute(invoker).await.unwrap();
    assert_eq!(
        fixture.refused().await,
        ["function public.pwn(text) is code of the former owner"]
    );
    let drop = "DROP FUNCTION public.pwn(text)";
    fixture.owner.batch_execute(drop).await.unwrap();
    fixture.drop_bob().await;
    let owner = "SELECT relowner::regrole::text FROM pg_class WHERE relname = 'kept'";
    assert_eq!(value(&fixture.owner, owner).await, "handed");
}

#[tokio::test]
async fn a_view_does_not_show_others_what_only_the_owner_may_read() {
    let fixture = HandoverFixture::of(admin(superuser()), "shown").await;
    let views = "CREATE VIEW own AS SELECT 1 AS one; \
                 CREATE VIEW peep AS SELECT * FROM public.secrets; \
                 GRANT SELECT ON peep TO PUBLIC; \
                 CREATE MATERIALIZED VIEW stale AS SELECT 1 AS one; \
                 GRANT SELECT (one) ON stale TO \"shown/eve\"";
    fixture.bobs.batch_execute(views).await.unwrap();
    assert_eq!(
        fixture.refused().await,
        [
            "materialized view public.stale shows others what its owner may read",
            "view public.peep shows others what its owner may read"
        ]
    );
    // The owner of the schema may drop objects that it may not alter.
    fixture
        .owner
        .batch_execute("DROP MATERIALIZED VIEW stale; DROP VIEW peep")
        .await
        .unwrap();
    fixture.drop_bob().await;
}

/// Functions whose code is bob's.
const TRAP: &str = "CREATE FUNCTION run_as(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \
        $$ BEGIN RETURN a; END $$; \
    CREATE FUNCTION on_write() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN RETURN NULL; END $$;";

/// Tables that call bob's functions. Each entry has the table, the function that the error names,
/// and the statement that calls it.
const TRAPS: [(&str, &str, &str); 7] = [
    (
        "CREATE TABLE t (a int); CREATE INDEX ON t (run_as(a))",
        "function public.run_as(integer)",
        "maintenance",
    ),
    (
        "CREATE DOMAIN d AS int CHECK (run_as(value) > 0); \
         CREATE TABLE t (a int); CREATE INDEX ON t (a) WHERE (a::d) > 0",
        "function public.run_as(integer)",
        "maintenance",
    ),
    (
        "CREATE TABLE p (a int PRIMARY KEY); \
         CREATE TABLE t (a int REFERENCES p ON DELETE CASCADE); \
         CREATE TRIGGER w AFTER DELETE ON t EXECUTE FUNCTION on_write()",
        "function public.on_write()",
        "a foreign key",
    ),
    (
        "CREATE TABLE p (a int PRIMARY KEY); \
         CREATE TABLE t (a int DEFAULT run_as(1) REFERENCES p ON DELETE SET DEFAULT)",
        "function public.run_as(integer)",
        "a foreign key",
    ),
    (
        "CREATE FUNCTION gap(a float8, b float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS \
             $$ BEGIN RETURN a - b; END $$; \
         CREATE TYPE span AS RANGE (subtype = float8, subtype_diff = gap); \
         CREATE DOMAIN spans AS span; CREATE TABLE t (a spans)",
        "function public.gap(double precision,double precision)",
        "maintenance",
    ),
    (
        "CREATE TABLE p (a int PRIMARY KEY); \
         CREATE TABLE t (a int REFERENCES p ON UPDATE CASCADE) PARTITION BY LIST (run_as(a))",
        "function public.run_as(integer)",
        "a foreign key",
    ),
    (
        "CREATE MATERIALIZED VIEW t AS SELECT run_as(1)",
        "function public.run_as(integer)",
        "a refresh",
    ),
];

#[tokio::test]
async fn code_that_runs_as_the_owner_of_a_table_is_not_given_to_it() {
    let fixture = HandoverFixture::of(admin(superuser()), "trapped").await;
    for (trap, object, cause) in TRAPS {
        let bobs = user("trapped", "trapped/bob").await.unwrap();
        bobs.batch_execute(&format!("{TRAP}{trap}")).await.unwrap();
        let reported = format!("{object} is called by {cause} as the owner of a table");
        let refused = fixture.refused().await;
        assert!(refused.contains(&reported), "{trap}: {refused:?}");
        let again = "DROP OWNED BY \"trapped/bob\"; \
                     GRANT CONNECT ON DATABASE trapped TO \"trapped/bob\"; \
                     GRANT ALL ON SCHEMA public TO \"trapped/bob\"";
        root("trapped").await.batch_execute(again).await.unwrap();
    }
    let bobs = user("trapped", "trapped/bob").await.unwrap();
    let rule = "CREATE TABLE t (a int); CREATE TABLE u (a int); \
                CREATE RULE r AS ON INSERT TO t DO ALSO INSERT INTO u VALUES (1)";
    bobs.batch_execute(rule).await.unwrap();
    assert_eq!(
        fixture.refused().await,
        ["rule r on table public.t acts with the rights of its owner"]
    );
}

/// Tables that run text as their owner through built-in functions, and the error about them.
const TEXTS: [(&str, &str); 4] = [
    (
        "CREATE TABLE p (a int PRIMARY KEY); CREATE TABLE t (a int DEFAULT \
         length(query_to_xml('select 1', true, true, '')::text) REFERENCES p ON DELETE SET DEFAULT)",
        "default value for column a of table public.t calls query_to_xml(text,boolean,boolean,text) \
         for a foreign key as the owner of a table",
    ),
    (
        "CREATE DOMAIN d AS int CHECK (query_to_xml('select 1', true, true, '') IS NOT NULL); \
         CREATE TABLE t (a int); CREATE INDEX ON t ((a::d))",
        "constraint d_check calls query_to_xml(text,boolean,boolean,text) \
         for maintenance as the owner of a table",
    ),
    (
        "CREATE DOMAIN d AS int CHECK (table_to_xml('pg_class', true, true, '') IS NOT NULL); \
         CREATE TABLE t (a d); CREATE STATISTICS s ON (a + 1), a FROM t",
        "constraint d_check calls table_to_xml(regclass,boolean,boolean,text) \
         for maintenance as the owner of a table",
    ),
    (
        "CREATE MATERIALIZED VIEW t AS SELECT pg_sleep(0)::text",
        "rule _RETURN on materialized view public.t calls pg_sleep(double precision) \
         for a refresh as the owner of a table",
    ),
];

#[tokio::test]
async fn functions_that_run_a_text_are_not_called_as_the_heir() {
    let fixture = HandoverFixture::of(admin(superuser()), "texts").await;
    // Statistics of expressions exist from 14 on.
    let has_statistics = testing::cluster().version().major >= 14;
    let is_known = |text: &str| has_statistics || !text.contains("CREATE STATISTICS");
    for (texts, reported) in TEXTS.iter().filter(|(texts, _)| is_known(texts)) {
        let bobs = user("texts", "texts/bob").await.unwrap();
        bobs.batch_execute(texts).await.unwrap();
        let refused = fixture.refused().await;
        assert!(
            refused.iter().any(|one| one == reported),
            "{texts}: {refused:?}"
        );
        let again = "DROP OWNED BY \"texts/bob\"; \
                     GRANT CONNECT ON DATABASE texts TO \"texts/bob\"; \
                     GRANT ALL ON SCHEMA public TO \"texts/bob\"";
        root("texts").await.batch_execute(again).await.unwrap();
    }
}

#[tokio::test]
async fn plain_tables_go_to_the_owner() {
    let fixture = HandoverFixture::of(admin(superuser()), "plainly").await;
    let made = "CREATE TABLE p (a int PRIMARY KEY, b text DEFAULT upper('x') CHECK (length(b) < 9)); \
                CREATE TABLE t (a int REFERENCES p ON DELETE CASCADE, e int); \
                CREATE INDEX ON p (lower(b)); CREATE INDEX ON t (e) WHERE e > 0; \
                CREATE TABLE log (at timestamptz DEFAULT now()); \
                ALTER TABLE log ENABLE ROW LEVEL SECURITY; \
                CREATE POLICY all_of_it ON log USING (true); \
                CREATE TYPE mood AS ENUM ('glad'); CREATE VIEW own AS SELECT 1 AS one";
    fixture.bobs.batch_execute(made).await.unwrap();
    let defaults = "CREATE TABLE u (id serial, key uuid DEFAULT gen_random_uuid(), \
                        day date DEFAULT to_date('2026', 'YYYY'), a int DEFAULT random() * 3 \
                        REFERENCES p ON DELETE SET DEFAULT)";
    fixture.bobs.batch_execute(defaults).await.unwrap();
    fixture.drop_bob().await;
    let left = "SELECT count(*)::text FROM pg_roles WHERE rolname = 'plainly/bob'";
    assert_eq!(value(&root("postgres").await, left).await, "0");
}

#[tokio::test]
async fn dropping_a_tenant_gives_no_rights_of_the_databases_owner() {
    let fixture = HandoverFixture::of(admin(superuser()), "released").await;
    let function = "CREATE FUNCTION pwn() RETURNS text LANGUAGE sql SECURITY DEFINER \
                    AS 'SELECT current_user::text'";
    fixture.owner.batch_execute(function).await.unwrap();
    let roles = ["released", "released/bob", "released/eve"].map(str::to_owned);
    let released = fixture
        .admin
        .release_tenant(&fixture.tenant, &roles, &[])
        .await;
    let Err(Error::CarriesRights { objects, .. }) = released else {
        panic!("not refused: {released:?}");
    };
    assert_eq!(objects, ["function public.pwn() is SECURITY DEFINER"]);
    let drop = "DROP FUNCTION public.pwn()";
    root("released").await.batch_execute(drop).await.unwrap();
    let released = fixture
        .admin
        .release_tenant(&fixture.tenant, &roles, &[])
        .await;
    released.unwrap();
}
