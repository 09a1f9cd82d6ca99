//! Tests that `tidegate tenant adopt` shows its SQL before it changes anything.

use crate::operator::Operator;

#[tokio::test]
async fn a_dry_run_refuses_what_the_real_run_refuses() {
    let operator = Operator::new().await;
    let create = ["tenant", "create", "chinook", "--password-file", "-"];
    operator.succeeds(&create, "owner-password\n");
    let root = operator.root("postgres").await;
    root.batch_execute("CREATE DATABASE plain").await.unwrap();
    root.batch_execute("CREATE ROLE theirs").await.unwrap();
    for (arguments, reported) in [
        (&["plain", "--as", "chinook"][..], "the owner of chinook"),
        (&["chinook"], "chinook is a tenant already"),
        (&["chinook", "--as", "other"], "chinook is a tenant already"),
        (&["plain", "--as", "theirs"], "Tidegate did not create it"),
        (&["nowhere"], "there is no database nowhere"),
        (&["tidegate"], "cannot be a tenant"),
    ] {
        let run = |more: &[&str]| {
            let adopt = [&["tenant", "adopt"][..], arguments, more].concat();
            operator.fails(&adopt, "owner-password\n")
        };
        let real = run(&["--password-file", "-"]);
        assert!(real.0 == 1 && real.1.contains(reported), "{real:?}");
        assert_eq!(run(&["--dry-run"]), real);
    }
    operator.succeeds(&["tenant", "adopt", "plain", "--dry-run"], "");
}
