//! Tests roles whose login PostgreSQL refuses, and `tidegate user repair`.

use reqwest::StatusCode;
use serde_json::json;

use crate::node::{Node, operator};
use crate::operator::text;
use crate::service::eventually;

#[tokio::test]
async fn a_login_that_postgresql_refuses_is_reported_and_repaired_by_a_command() {
    let operator = operator().await;
    let ann = ["user", "create", "shop", "ann", "--password-file", "-"];
    operator.succeeds(&ann, "ann-password\n");
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "ann", "ann-password").await;
    let token = tokens["access_token"].as_str().unwrap();
    let root = operator.root("shop").await;
    let kick = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'shop/ann'";
    let own = "alter role current_user password 'mine'";
    let search_path = "alter role current_user set search_path = nowhere";
    for q in [search_path, own] {
        let (status, response) = node.post("/api/v4/sql", Some(token), json!({"q": q})).await;
        assert_eq!(status, StatusCode::OK, "{response}");
    }
    let library = "alter role \"shop/ann\" set session_preload_libraries = 'nowhere'";
    root.batch_execute(library).await.unwrap();
    eventually("its sessions are gone", || async {
        root.execute(kick, &[]).await.unwrap() == 0
    })
    .await;

    let q = json!({"q": "select current_setting('search_path') as path"});
    let (status, response) = node.post("/api/v4/sql", Some(token), q.clone()).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{response}");
    assert_eq!(response["errorCode"], "DATABASE_UNAVAILABLE", "{response}");
    let reported = response["message"].as_str().unwrap_or_default();
    assert!(reported.contains("refuses the login"), "{response}");

    let doctor = operator.run(&["doctor"], "");
    let report = text(&doctor.stdout);
    assert_eq!(doctor.status.code(), Some(1), "{report}");
    let missing = "MISSING  roles of the tenant shop have another password than the one of this \
                   master key, as after a restore without passwords: shop/ann\n         \
                   -- tidegate user repair shop --all\n";
    assert!(report.contains(missing), "{report}");

    let repaired = operator.succeeds(&["user", "repair", "shop", "ann"], "");
    let reset = "ALTER ROLE \"shop/ann\" RESET \"session_preload_libraries\";\n";
    assert_eq!(repaired, format!("{reset}shop/ann can log in.\n"));
    eventually("it is let in", || async {
        let (status, response) = node.post("/api/v4/sql", Some(token), q.clone()).await;
        match status {
            StatusCode::OK => assert_eq!(response["data"], json!([{"path": "nowhere"}])),
            // The service caches a refused login for a second.
            status => assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{response}"),
        }
        status == StatusCode::OK
    })
    .await;
    let log = node.stop();
    let command = "command=\"tidegate user repair shop ann\"";
    assert!(log.contains(command), "{log}");
    assert!(
        operator
            .succeeds(&["doctor"], "")
            .contains("roles of shop exist")
    );
}

#[tokio::test]
async fn a_repair_names_the_users_that_it_cannot_repair_and_repairs_the_others() {
    let operator = operator().await;
    for name in ["ann", "bob"] {
        operator.succeeds(&["user", "create", "shop", name, "--no-password"], "");
    }
    let root = operator.root("postgres").await;
    let spoil = "alter role \"shop/ann\" nologin; alter role \"shop/bob\" password 'x'; \
                 alter role shop password null; alter role \"shop/$authenticator1\" password 'x'";
    root.batch_execute(spoil).await.unwrap();
    let names = "have another password than the one of this master key, as after a restore \
                 without passwords: shop, shop/$authenticator1, shop/bob";
    // A role without LOGIN stays locked, because the operator may intend that. The command reports
    // it.
    let login = "alter role \"shop/ann\" login";
    root.batch_execute(login).await.unwrap();
    let report = text(&operator.run(&["doctor"], "").stdout);
    assert!(report.contains(names), "{report}");
    root.batch_execute("alter role \"shop/ann\" nologin")
        .await
        .unwrap();

    let (code, reported) = operator.fails(&["user", "repair", "--all"], "");
    assert_eq!(code, 1);
    assert!(
        reported.contains("shop/ann: PostgreSQL refuses the login of shop/ann"),
        "{reported}"
    );
    root.batch_execute(login).await.unwrap();
    let repaired = operator.succeeds(&["user", "repair", "shop", "--all"], "");
    for role in ["shop", "shop/ann", "shop/bob", "shop/$authenticator1"] {
        assert!(
            repaired.contains(&format!("{role} can log in.\n")),
            "{repaired}"
        );
    }
    let report = operator.succeeds(&["doctor"], "");
    assert!(report.contains("roles of shop exist"), "{report}");

    let inside = operator.root("shop").await;
    let drop = "drop owned by \"shop/$authenticator1\"; drop role \"shop/$authenticator1\"";
    inside.batch_execute(drop).await.unwrap();
    let report = text(&operator.run(&["doctor"], "").stdout);
    let command = "`tidegate user repair shop --all` makes them";
    assert!(report.contains(command), "{report}");
    let repaired = operator.succeeds(&["user", "repair", "shop", "--all"], "");
    let made = "shop/$authenticator1 can log in.\n";
    assert!(repaired.contains(made), "{repaired}");
    let report = operator.succeeds(&["doctor"], "");
    assert!(!report.contains(command), "{report}");
    for (arguments, expected) in [
        (&["user", "repair", "shop"][..], 2),
        (&["user", "repair", "shop", "ann", "--all"], 2),
        (&["user", "repair"], 2),
        (&["user", "repair", "none", "--all"], 1),
        (&["user", "repair", "shop", "none"], 1),
    ] {
        let (code, reported) = operator.fails(arguments, "");
        assert_eq!(code, expected, "{reported}");
    }
}

#[tokio::test]
async fn a_repair_makes_a_group_of_members_again_whose_role_was_dropped() {
    let operator = operator().await;
    let create = "user create shop mia --member --group people --no-password";
    operator.succeeds(&create.split(' ').collect::<Vec<_>>(), "");
    let inside = operator.root("shop").await;
    let drop = "drop owned by \"shop/group/people\"; drop role \"shop/group/people\"";
    inside.batch_execute(drop).await.unwrap();
    let report = text(&operator.run(&["doctor"], "").stdout);
    let missing = "groups of members of the tenant shop have no role: shop/group/people";
    assert!(report.contains(missing), "{report}");
    // The log names this command when a member's request fails.
    let repaired = operator.succeeds(&["user", "repair", "shop", "--all"], "");
    let made = "shop/group/people can log in.\n";
    assert!(repaired.contains(made), "{repaired}");
    let report = operator.succeeds(&["doctor"], "");
    assert!(!report.contains(missing), "{report}");
}
