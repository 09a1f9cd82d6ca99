//! Tests `tidegate doctor` after databases or roles were lost, and the procedure in
//! docs/OPERATIONS.md for a backup without roles.

use std::path::Path;
use std::process::Command;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tidegate_embedded::Cluster;
use tidegate_testkit::left_out;

use crate::node::{Node, operator};
use crate::operator::{Operator, text};

/// An operator with the tenant `shop`, which has the user `ann` in the group `staff`, and the
/// tenant `made`.
async fn shop() -> Operator {
    let operator = operator().await;
    let ann = ["user", "create", "shop", "ann", "--group", "staff"];
    let password = ["--password-file", "-"];
    operator.succeeds(&[&ann[..], &password].concat(), "ann-password\n");
    let made = ["tenant", "create", "made"];
    operator.succeeds(&[&made[..], &password].concat(), "owner-password\n");
    let inside = operator.root("shop").await;
    let sql = "GRANT SELECT ON orders TO \"shop/group/staff\"; \
               CREATE TABLE notes (id int); INSERT INTO notes VALUES (7); \
               ALTER TABLE notes OWNER TO \"shop/ann\"";
    inside.batch_execute(sql).await.unwrap();
    operator
}

/// Runs the doctor. Returns its exit code and output.
fn doctor(operator: &Operator) -> (Option<i32>, String) {
    let output = operator.run(&["doctor"], "");
    (output.status.code(), text(&output.stdout))
}

fn restored(operator: &Operator, database: &str, file: &Path) {
    let url = operator.cluster.admin_url();
    let arguments = ["--create", "--exit-on-error", "-d", &url];
    run(operator, "pg_restore", &arguments, file);
    assert!(
        !doctor(operator)
            .1
            .contains(&format!("the database {database} does not exist"))
    );
}

fn run(operator: &Operator, program: &str, arguments: &[&str], file: &Path) {
    let mut command = Command::new(operator.cluster.bin_dir().join(program));
    let output = command.args(arguments).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

async fn rows(node: &Node, name: &str, q: &str) -> (StatusCode, Value) {
    let password = if name == "shop" { "owner" } else { name };
    let password = format!("{password}-password");
    let token = node.sign_in("shop", name, &password).await;
    let token = token["access_token"].as_str().unwrap();
    let (status, mut response) = node.post("/api/v4/sql", Some(token), json!({"q": q})).await;
    (status, response["data"].take())
}

#[tokio::test]
async fn a_backup_without_roles_comes_back_in_a_fresh_cluster() {
    let mut operator = shop().await;
    if !operator.cluster.bin_dir().join("pg_dump").exists() {
        left_out("pg_dump", "there is no pg_dump with the server");
        return;
    }
    let folder = operator.folder.path().to_owned();
    let databases = ["tidegate", "shop", "made"];
    let files = databases.map(|database| (database, folder.join(database)));
    for (database, file) in &files {
        let url = operator.cluster.url(database);
        let arguments = ["--format=custom", "--dbname", &url, "--file"];
        run(&operator, "pg_dump", &arguments, file);
    }
    let settings = tidegate_embedded::testing::settings();
    operator.cluster = Cluster::start(settings).await.unwrap();
    operator.admin_url = operator.cluster.admin_url();

    let [(_, control), tenants @ ..] = &files;
    restored(&operator, "tidegate", control);
    let (code, report) = doctor(&operator);
    assert_eq!(code, Some(1), "{report}");
    for line in [
        "MISSING  roles of the tenant shop do not exist, so their users cannot log in: \
         shop/$users, shop, shop/ann, shop/$authenticator1\n",
        "         CREATE ROLE \"shop/$users\" NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE \
         NOREPLICATION NOBYPASSRLS;\n         COMMENT ON ROLE \"shop/$users\"",
        "         GRANT \"shop/$users\" TO \"shop/ann\"",
        "         CREATE ROLE \"shop/ann\" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION \
         NOBYPASSRLS;\n         COMMENT ON ROLE \"shop/ann\" IS 'made by Tidegate';\n",
        "MISSING  users of the tenant shop are not in the roles of their groups",
        "MISSING  the database shop does not exist, and shop is a tenant\n",
        "MISSING  the database made does not exist, and made is a tenant\n",
    ] {
        assert!(report.contains(line), "{line} is not in\n{report}");
    }
    operator.run_printed_sql(&report).await;
    for (database, file) in tenants {
        restored(&operator, database, file);
    }
    let (code, report) = doctor(&operator);
    assert_eq!(code, Some(1), "{report}");
    assert!(
        report.contains("-- tidegate user repair shop --all\n"),
        "{report}"
    );
    operator.succeeds(&["user", "repair", "--all"], "");
    let (code, report) = doctor(&operator);
    assert_eq!(code, Some(0), "{report}");
    for tenant in ["shop", "made"] {
        let good = format!("ok       the database and the roles of {tenant} exist\n");
        assert!(report.contains(&good), "{report}");
    }

    let node = Node::start(&operator).await;
    let orders = "select id from orders";
    for (user, q, id) in [
        ("shop", orders, 1),
        ("ann", orders, 1),
        ("ann", "select id from notes", 7),
    ] {
        let found = rows(&node, user, q).await;
        assert_eq!(found, (StatusCode::OK, json!([{"id": id}])), "{user}: {q}");
    }
    node.stop();
}

#[tokio::test]
async fn roles_that_are_gone_while_their_database_stays_are_made_by_what_is_printed() {
    let operator = shop().await;
    let root = operator.root("postgres").await;
    let inside = operator.root("shop").await;
    inside
        .batch_execute(
            "DROP OWNED BY \"shop/ann\", \"shop/group/staff\", \"shop/$users\"; \
             DROP ROLE \"shop/ann\", \"shop/group/staff\", \"shop/$users\"",
        )
        .await
        .unwrap();
    let made = operator.root("made").await;
    let gone = "REASSIGN OWNED BY made TO CURRENT_USER; DROP OWNED BY made; DROP ROLE made";
    made.batch_execute(gone).await.unwrap();
    let (code, report) = doctor(&operator);
    assert_eq!(code, Some(1), "{report}");
    assert!(!report.contains("CREATE ROLE \"shop\""), "{report}");
    operator.run_printed_sql(&report).await;
    operator.succeeds(&["user", "repair", "--all"], "");
    let (code, report) = doctor(&operator);
    assert_eq!(code, Some(0), "{report}");
    let public = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'public'";
    let owner = made.query_one(public, &[]).await.unwrap();
    assert_eq!(owner.get::<_, String>(0), "made");

    let node = Node::start(&operator).await;
    let (status, found) = rows(
        &node,
        "ann",
        "select pg_has_role('shop/group/staff', 'usage')",
    )
    .await;
    assert_eq!(status, StatusCode::OK, "{found}");
    assert_eq!(found[0]["pg_has_role"], true);
    node.stop();

    root.batch_execute("DROP DATABASE made WITH (FORCE)")
        .await
        .unwrap();
    let (code, report) = doctor(&operator);
    assert_eq!(code, Some(1), "{report}");
    assert!(
        report.contains("MISSING  the database made does not exist"),
        "{report}"
    );
    operator.succeeds(&["tenant", "drop", "made", "--yes"], "");
    let (code, report) = doctor(&operator);
    assert_eq!(code, Some(0), "{report}");
}

#[tokio::test]
async fn locked_roles_foreign_roles_and_open_databases_are_reported() {
    let operator = shop().await;
    let root = operator.root("postgres").await;
    let sql = "ALTER ROLE \"shop/ann\" NOLOGIN; COMMENT ON ROLE made IS NULL; \
               REVOKE \"shop/$users\" FROM \"shop/ann\"; \
               REVOKE CONNECT ON DATABASE shop FROM \"shop/$users\"; \
               REVOKE CONNECT ON DATABASE made FROM made; \
               GRANT CONNECT ON DATABASE made TO PUBLIC";
    root.batch_execute(sql).await.unwrap();
    let (code, report) = doctor(&operator);
    assert_eq!(code, Some(1), "{report}");
    for line in [
        "advice   roles of the tenant shop are kept out by PostgreSQL",
        "         -- ALTER ROLE \"shop/ann\" LOGIN;\n",
        "         -- GRANT CONNECT ON DATABASE \"shop\" TO \"shop/$users\";\n",
        "         -- GRANT \"shop/$users\" TO \"shop/ann\"",
        "MISSING  roles of the tenant made lack the comment",
        "         COMMENT ON ROLE \"made\" IS 'made by Tidegate';\n",
        "advice   everybody may connect to the database made",
    ] {
        assert!(report.contains(line), "{line} is not in\n{report}");
    }
    operator.run_printed_sql(&report).await;
    // A role without LOGIN stays locked, because the operator may intend that.
    let (code, report) = doctor(&operator);
    assert_eq!(code, Some(0), "{report}");
    assert!(
        report.contains("-- ALTER ROLE \"shop/ann\" LOGIN;"),
        "{report}"
    );
    assert!(
        report.contains("ok       the database and the roles of made"),
        "{report}"
    );
    let connects = "SELECT concat_ws(' ', has_database_privilege('made', 'made', 'CONNECT'), \
                    has_database_privilege('public', 'made', 'CONNECT'))";
    assert_eq!(operator.value(connects).await, "t f");
    let past = "ALTER ROLE \"shop/ann\" LOGIN VALID UNTIL '2020-01-01'";
    root.batch_execute(past).await.unwrap();
    let report = operator.succeeds(&["doctor"], "");
    let lets_in = "-- ALTER ROLE \"shop/ann\" VALID UNTIL 'infinity';";
    assert!(report.contains(lets_in), "{report}");
}

#[tokio::test]
async fn an_administrator_that_is_no_superuser_reaches_the_roles_that_a_superuser_makes() {
    let mut operator = Operator::new().await;
    let root = operator.root("postgres").await;
    let service = "CREATE ROLE service LOGIN CREATEROLE CREATEDB PASSWORD 'service'";
    root.batch_execute(service).await.unwrap();
    let login = format!("service:service@127.0.0.1:{}", operator.cluster.port());
    operator.admin_url = format!("postgresql://{login}/postgres");
    operator.run_printed_sql(&doctor(&operator).1).await;
    let create = ["tenant", "create", "shop", "--password-file", "-"];
    operator.succeeds(&create, "owner-password\n");
    operator.succeeds(&["user", "create", "shop", "ann", "--no-password"], "");
    let inside = operator.root("shop").await;
    let gone = "DROP OWNED BY \"shop/ann\"; DROP ROLE \"shop/ann\"";
    inside.batch_execute(gone).await.unwrap();
    operator.run_printed_sql(&doctor(&operator).1).await;
    let (code, report) = doctor(&operator);
    assert_eq!(code, Some(1), "{report}");
    let wrong = "have another password than the one of this master key, as after a restore \
                 without passwords: shop/ann\n";
    assert!(report.contains(wrong), "{report}");
    operator.succeeds(&["user", "repair", "shop", "ann"], "");
    let (code, report) = doctor(&operator);
    assert_eq!(code, Some(0), "{report}");
    operator.succeeds(&["user", "drop", "shop", "ann", "--yes"], "");
}
