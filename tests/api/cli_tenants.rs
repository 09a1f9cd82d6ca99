//! Tests the commands that create, adopt and drop tenants.

use crate::operator::{Operator, text};

#[tokio::test]
async fn tenants_and_users_come_and_go() {
    let operator = Operator::new().await;
    operator.succeeds(
        &["tenant", "create", "shop", "--password-file", "-"],
        "owner-password\n",
    );
    operator.succeeds(
        &[
            "user",
            "create",
            "shop",
            "ann",
            "--email",
            "ann@example.com",
            "--password-file",
            "-",
        ],
        "ann-password\n",
    );
    operator.succeeds(
        &[
            "user",
            "create",
            "shop",
            "anybody",
            "--default",
            "--no-password",
        ],
        "",
    );
    let users = operator.succeeds(&["user", "list", "shop"], "");
    for line in [
        "ann      shop/ann      ",
        "anybody  shop/anybody  default  no",
        "shop     shop",
    ] {
        assert!(users.contains(line), "{line} is not in\n{users}");
    }
    let roles = "SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles \
                 WHERE rolname LIKE 'shop%'";
    assert_eq!(
        operator.value(roles).await,
        "shop shop/$authenticator1 shop/$users shop/ann shop/anybody"
    );

    let (code, message) = operator.fails(&["user", "create", "shop", "ann", "--no-password"], "");
    assert!(code == 1 && message.contains("already exists"), "{message}");
    operator.succeeds(
        &["user", "password", "shop", "ann", "--password-file", "-"],
        "other-pw\n",
    );

    operator.succeeds(&["user", "drop", "shop", "ann", "--yes"], "");
    assert_eq!(
        operator.value(roles).await,
        "shop shop/$authenticator1 shop/$users shop/anybody"
    );
    let (_, message) = operator.fails(&["user", "drop", "shop", "shop", "--yes"], "");
    assert!(message.contains("tenant drop shop"), "{message}");

    operator.succeeds(&["tenant", "drop", "shop", "--with-data", "--yes"], "");
    assert_eq!(operator.value(roles).await, "");
    assert!(!operator.succeeds(&["tenant", "list"], "").contains("shop"));
}

#[tokio::test]
async fn a_tenant_is_created_after_a_run_that_was_interrupted_between_its_records() {
    let operator = Operator::new().await;
    let create = ["tenant", "create", "shop", "--password-file", "-"];
    operator.succeeds(&create, "long-enough\n");
    // The state after an interruption: only the owner's record is written.
    let control = operator.root("tidegate").await;
    let deleted = control.execute("delete from tidegate.tenants where name = 'shop'", &[]);
    assert_eq!(deleted.await.unwrap(), 1);
    let root = operator.root("postgres").await;
    root.batch_execute("DROP DATABASE shop WITH (FORCE)")
        .await
        .unwrap();
    let roles = "SELECT string_agg(format('DROP ROLE %I', rolname), ';') FROM pg_roles \
                 WHERE rolname ~ '^shop(/|$)'";
    let roles = operator.value(roles).await;
    root.batch_execute(&roles).await.unwrap();
    operator.succeeds(&create, "another-password\n");
    assert!(operator.succeeds(&["tenant", "list"], "").contains("shop"));
}

#[tokio::test]
async fn a_half_made_tenant_leaves_nothing_behind() {
    let operator = Operator::new().await;
    let short = operator.fails(
        &["tenant", "create", "shop", "--password-file", "-"],
        "short\n",
    );
    assert_eq!(short.0, 1, "{}", short.1);
    let found = "SELECT concat_ws(' ', (SELECT count(*) FROM pg_roles WHERE rolname = 'shop'), \
                 (SELECT count(*) FROM pg_database WHERE datname = 'shop'))";
    assert_eq!(operator.value(found).await, "0 0");
    operator.succeeds(
        &["tenant", "create", "shop", "--password-file", "-"],
        "long-enough\n",
    );
    let (_, message) = operator.fails(
        &["tenant", "create", "shop", "--password-file", "-"],
        "long-enough\n",
    );
    assert!(message.contains("shop is a tenant already"), "{message}");
    for reserved in ["postgres", "template1", "tidegate"] {
        let create = ["tenant", "create", reserved, "--password-file", "-"];
        let (_, message) = operator.fails(&create, "long-enough\n");
        assert!(message.contains("cannot be a tenant"), "{message}");
    }
    let (_, message) = operator.fails(&["tenant", "create", "No-Name"], "");
    assert!(message.contains("[a-z_][a-z0-9_]*"), "{message}");
}

#[tokio::test]
async fn an_adopted_database_is_given_back_as_it_was() {
    let operator = Operator::new().await;
    let root = operator.root("postgres").await;
    root.batch_execute("CREATE DATABASE legacy").await.unwrap();
    root.batch_execute("CREATE ROLE app LOGIN").await.unwrap();
    let inside = operator.root("legacy").await;
    inside
        .batch_execute("CREATE TABLE t (id int); INSERT INTO t VALUES (1)")
        .await
        .unwrap();
    let rights = "SELECT concat_ws(' ', (SELECT datacl::text FROM pg_database \
                  WHERE datname = 'legacy'), has_database_privilege('public', 'legacy', 'CONNECT'), \
                  has_database_privilege('app', 'legacy', 'CONNECT, TEMP'))";

    let adopt = ["tenant", "adopt", "legacy", "--password-file", "-"];
    let printed = operator.succeeds(&["tenant", "adopt", "legacy", "--dry-run"], "");
    assert!(
        printed.contains("GRANT CONNECT ON DATABASE \"legacy\" TO \"app\";"),
        "{printed}"
    );
    let made = "SELECT count(*)::text FROM pg_database WHERE datname = 'tidegate'";
    assert_eq!(operator.value(made).await, "0", "a dry run makes nothing");
    let before = operator.value(rights).await;

    let run = operator.succeeds(&adopt, "owner-password\n");
    assert!(
        run.starts_with(&printed),
        "what is printed first is what runs\n{run}"
    );
    assert_eq!(
        operator.value(rights).await.split_once("} ").unwrap().1,
        "f t"
    );
    let (_, message) = operator.fails(&adopt, "owner-password\n");
    assert!(message.contains("legacy is a tenant already"), "{message}");
    assert!(
        operator
            .succeeds(&["tenant", "list"], "")
            .contains("adopted")
    );

    operator.succeeds(&["tenant", "drop", "legacy", "--yes"], "");
    let after = operator.value(rights).await;
    assert_eq!(
        (before.as_str(), after.rsplit_once("} ").unwrap().1),
        ("t t", "t t")
    );
    let kept = inside.query_one("SELECT id FROM t", &[]).await.unwrap();
    assert_eq!(kept.get::<_, i32>(0), 1);

    let (_, message) = operator.fails(&["tenant", "adopt", "postgres", "--dry-run"], "");
    assert!(message.contains("cannot be a tenant"), "{message}");
}

#[tokio::test]
async fn a_name_that_is_taken_needs_another_role() {
    let operator = Operator::new().await;
    let root = operator.root("postgres").await;
    root.batch_execute("CREATE DATABASE sales").await.unwrap();
    root.batch_execute("CREATE ROLE sales").await.unwrap();
    let adopt = ["tenant", "adopt", "sales", "--password-file", "-"];
    let (_, message) = operator.fails(&adopt, "owner-password\n");
    assert!(
        message.contains("the role sales exists already"),
        "{message}"
    );
    for reserved in ["pg_sales", "public", "none", "a/b", &"r".repeat(64)] {
        let other = ["tenant", "adopt", "sales", "--dry-run", "--as", reserved];
        let (code, message) = operator.fails(&other, "");
        assert_eq!(code, 2, "{message}");
        assert!(message.contains("cannot be an owner's"), "{message}");
    }
    let other = [&adopt[..], &["--as", "sales_api"]].concat();
    operator.succeeds(&other, "owner-password\n");
    assert!(
        operator
            .succeeds(&["user", "list", "sales"], "")
            .contains("sales_api")
    );
}

#[tokio::test]
async fn an_administrator_that_is_no_superuser_does_everything() {
    let mut operator = Operator::new().await;
    let root = operator.root("postgres").await;
    root.batch_execute("CREATE ROLE service LOGIN PASSWORD 'service'")
        .await
        .unwrap();
    let login = format!("service:service@127.0.0.1:{}", operator.cluster.port());
    operator.admin_url = format!("postgresql://{login}/postgres");

    let output = operator.run(&["doctor"], "");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    operator.run_printed_sql(&report).await;
    let report = operator.succeeds(&["doctor"], "");
    assert!(
        report.contains("ok       roles of users can log in"),
        "{report}"
    );

    operator.succeeds(
        &["tenant", "create", "shop", "--password-file", "-"],
        "owner-password\n",
    );
    operator.succeeds(&["user", "create", "shop", "ann", "--no-password"], "");
    operator.succeeds(&["user", "drop", "shop", "ann", "--yes"], "");
    operator.succeeds(&["tenant", "drop", "shop", "--with-data", "--yes"], "");
}
