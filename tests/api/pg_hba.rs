//! Tests `tidegate doctor` with a `pg_hba.conf` that requires no password.

use crate::operator::Operator;
use crate::service::eventually;

/// Inserts a line before all others of `pg_hba.conf`, and waits until PostgreSQL has loaded the
/// file.
async fn with_line(operator: &Operator, before: &str, line: &str) {
    let file = operator.value("SHOW hba_file").await;
    std::fs::write(&file, format!("{line}\n{before}")).unwrap();
    // The earlier file may also allow the login, so a successful login does not show that the new
    // one is loaded.
    let loaded = "SELECT pg_conf_load_time()::text";
    let earlier = operator.value(loaded).await;
    operator.value("SELECT pg_reload_conf()::text").await;
    eventually("the file is read", || async {
        operator.value(loaded).await != earlier
    })
    .await;
}

#[tokio::test]
async fn a_trust_line_for_one_database_or_role_is_reported() {
    let operator = Operator::new().await;
    for name in ["shop", "other"] {
        let create = ["tenant", "create", name, "--password-file", "-"];
        operator.succeeds(&create, "owner-password\n");
    }
    let good = "ok       a wrong password is refused\n";
    let report = operator.succeeds(&["doctor"], "");
    assert!(
        report.contains(good) && !report.contains("pg_hba.conf"),
        "{report}"
    );
    let file = operator.value("SHOW hba_file").await;
    let before = std::fs::read_to_string(file).unwrap();

    let line = "host shop all 127.0.0.1/32 trust";
    with_line(&operator, &before, line).await;
    let output = operator.run(&["doctor"], "");
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8(output.stdout).unwrap();
    for line in [
        "MISSING  roles log in with any password to shop: ",
        "advice   pg_hba.conf asks no password",
        "         -- line 1: host shop all 127.0.0.1 255.255.255.255 trust\n",
    ] {
        assert!(report.contains(line), "{line} is not in\n{report}");
    }

    // The doctor's test login does not match this line, so the file itself is checked.
    with_line(&operator, &before, "host all shop 127.0.0.1/32 trust").await;
    let report = operator.succeeds(&["doctor"], "");
    assert!(report.contains(good), "{report}");
    let line = "-- line 1: host all shop 127.0.0.1 255.255.255.255 trust\n";
    assert!(report.contains(line), "{report}");
}
