//! Tests the findings of `tidegate doctor` about the master key and the tenants.

use crate::operator::{Operator, text};

#[tokio::test]
async fn the_doctor_tells_of_a_master_key_that_is_missing_or_wrong() {
    let operator = Operator::new().await;
    let doctor = |file: &str| {
        let mut command = operator.command(&["doctor"]);
        let output = command.env("TIDEGATE_MASTER_KEY_FILE", file).output();
        let output = output.unwrap();
        let printed = text(&output.stdout) + &text(&output.stderr);
        (output.status.code(), printed)
    };
    let (code, printed) = doctor("");
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("MISSING  there is no master key"),
        "{printed}"
    );
    let wrong = operator.folder.path().join("wrong.key");
    std::fs::write(&wrong, "secret\n").unwrap();
    let (code, printed) = doctor(wrong.to_str().unwrap());
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("contains no master key"), "{printed}");
    let right = operator.folder.path().join("master.key");
    let (_, printed) = doctor(right.to_str().unwrap());
    assert!(
        printed.contains("ok       no readable control database has another master key"),
        "{printed}"
    );
    // The key is valid, but is not the one with which the control database was created.
    operator.succeeds(&["tenant", "list"], "");
    let (code, printed) = doctor(right.to_str().unwrap());
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("ok       the master key is the one of the control database"),
        "{printed}"
    );
    let other = operator.folder.path().join("other.key");
    operator.succeeds(&["key", "init", other.to_str().unwrap()], "");
    let (code, printed) = doctor(other.to_str().unwrap());
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("MISSING  the master key is not the one"),
        "{printed}"
    );
}

#[tokio::test]
async fn the_doctor_tells_what_an_adopted_database_leaves_open() {
    let operator = Operator::new().await;
    let root = operator.root("postgres").await;
    root.batch_execute("CREATE DATABASE shop").await.unwrap();
    operator.succeeds(
        &["tenant", "adopt", "shop", "--password-file", "-"],
        "long-password\n",
    );
    operator.succeeds(
        &["tenant", "create", "made", "--password-file", "-"],
        "long-password\n",
    );
    for (tenant, value, reported) in [
        ("shop", "read", true),
        ("shop", "off", false),
        ("made", "read", false),
    ] {
        let setting = format!("anonymous_sql={value}");
        let printed = operator.succeeds(&["tenant", "set", tenant, &setting], "");
        assert_eq!(
            printed.contains("tidegate doctor"),
            reported,
            "{tenant}: {printed}"
        );
    }
    let printed = operator.succeeds(&["doctor"], "");
    assert!(
        printed.contains("advice   in shop, everybody may take advisory locks"),
        "{printed}"
    );
    assert!(
        printed.contains("ok       in made, only roles that the owner allows"),
        "{printed}"
    );
    let sql = printed
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("REVOKE EXECUTE"));
    for function in [
        "lo_create(",
        "pg_terminate_backend(",
        "pg_cancel_backend(",
        "pg_advisory_lock(",
    ] {
        assert!(
            sql.unwrap().contains(function),
            "{function} is not in {sql:?}"
        );
    }
    operator
        .root("shop")
        .await
        .batch_execute(sql.unwrap())
        .await
        .unwrap();
    let printed = operator.succeeds(&["doctor"], "");
    assert!(
        printed.contains("ok       in shop, only roles that the owner allows"),
        "{printed}"
    );
}

#[tokio::test]
async fn the_doctor_logs_in_as_the_owner_of_each_tenant() {
    let operator = Operator::new().await;
    operator.succeeds(
        &["tenant", "create", "shop", "--password-file", "-"],
        "long-password\n",
    );
    let good = "ok       the database and the roles of shop exist\n";
    assert!(operator.succeeds(&["doctor"], "").contains(good));
    let root = operator.root("postgres").await;
    let keep_out = "ALTER ROLE shop CONNECTION LIMIT 0";
    root.batch_execute(keep_out).await.unwrap();
    let output = operator.run(&["doctor"], "");
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let missing = "MISSING  the role shop of the tenant shop cannot log in (too many connections";
    assert!(printed.contains(missing), "{printed}");
}
